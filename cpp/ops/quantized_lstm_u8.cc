// quantized_lstm_u8: one element of time of an LSTM cell in integers, gates of one scale, in the order input, forget,
// cell, output.
//   x   [B, I]       u8, values (raw - 128) / 128
//   w   [4 U, I + U] u8: each row meets the vector [x, h]
//   b   [4 U]        i32
//   c   [B, U]       i16, of scale 2^-11
//   h   [B, U]       u8, as x
//   factor  float, required: from sums of products to gates of scale 2^-12
//   w_zero  int, default 0: zero point of w, in [0, 255]
//   h   [B, U]       u8, as x
//   c   [B, U]       i16, of scale 2^-11
// Per gate a = sat16(factor (b + sum((v - 128) (w - w_zero)))); sums modulo 2^32, factors and functions of
// fixed_point.h. c' = f c + i g, h' = o tanh(c'). All is integers: there is no NaN. Source: NNAPI QUANTIZED_16BIT_LSTM.
#include <algorithm>

#include "ops/element.h"
#include "ops/fixed_point.h"
#include "ops/lines.h"

namespace pinnace {
namespace {

enum Input : uint8_t { kX, kW, kB, kC, kH };
constexpr int64_t kMostUnits = int64_t{1} << 40;

Status quantized_lstm_u8_types(const NodeView& node, std::span<TensorType> out) {
  PINNACE_TRY(refuse_quantized(node));
  const auto fits = [&](Input input, std::initializer_list<Dim> dims) -> Status {
    const Shape& shape = node.input(input).shape;
    const bool good = std::equal(shape.begin(), shape.end(), dims.begin(), dims.end(),
                                 [](const Dim& is, const Dim& wanted) { return !differ(is, wanted); });
    if (good) return {};
    return node.error(node.input_name(input), " is ", node.input(input), ", must be ",
                      TensorType{node.input(input).dtype, dims, nullptr});
  };
  PINNACE_TRY(fits(kX, {{}, {}}));
  PINNACE_TRY(fits(kC, {{}, {}}));
  const Dim B = node.input(kX).shape[0], I = node.input(kX).shape[1], U = node.input(kC).shape[1];
  if ((U.known() && U.size > kMostUnits) || (I.known() && I.size > kMostUnits)) {
    return node.error("x ", node.input(kX), " and c ", node.input(kC), " are too wide");
  }
  const Dim rows = U.known() ? Dim(4 * U.size) : Dim();
  const Dim columns = U.known() && I.known() ? Dim(I.size + U.size) : Dim();
  PINNACE_TRY(fits(kW, {rows, columns}));
  PINNACE_TRY(fits(kB, {rows}));
  PINNACE_TRY(fits(kC, {B, U}));
  PINNACE_TRY(fits(kH, {B, U}));
  const double factor = node.attr_float("factor");
  if (!(factor >= 0 && factor < kMostFactor)) return node.error("factor is ", factor, ", must be 0 to below 2^30");
  const int64_t zero = node.attr_int("w_zero");
  if (zero < 0 || zero > 255) return node.error("w_zero is ", zero, ", must be 0 to 255");
  out[0] = {DType::kU8, {B, U}, nullptr};
  if (out.size() > 1) out[1] = {DType::kI16, {B, U}, nullptr};
  return {};
}

Status quantized_lstm_u8_reference(const NodeView& node, std::span<const TensorView> in,
                                   std::span<const TensorView> out) {
  const int64_t I = in[kX].dim(1), U = in[kC].dim(1), columns = I + U;
  const FixedFactor factor = fixed_factor(node.attr_float("factor"));
  const auto zero = static_cast<int32_t>(node.attr_int("w_zero"));
  const double cost = static_cast<double>(4 * U * (columns + 20));
  node.threads().ranges(in[kX].dim(0), cost, [&](int64_t first, int64_t end) {
    std::vector<int32_t> v(static_cast<size_t>(columns));
    std::vector<int16_t> a(static_cast<size_t>(4 * U));
    for (int64_t row = first; row < end; ++row) {
      const uint8_t *x = in[kX].data<uint8_t>() + row * I, *h = in[kH].data<uint8_t>() + row * U;
      const auto centered = [](uint8_t raw) { return raw - 128; };
      std::transform(h, h + U, std::transform(x, x + I, v.begin(), centered), centered);
      for (int64_t line = 0; line < 4 * U; ++line) {
        const uint8_t* w = in[kW].data<uint8_t>() + line * columns;
        auto sum = static_cast<uint32_t>(in[kB].data<int32_t>()[line]);
        for (int64_t i = 0; i < columns; ++i) sum += static_cast<uint32_t>(v[static_cast<size_t>(i)] * (w[i] - zero));
        a[static_cast<size_t>(line)] = saturate16(multiply(static_cast<int32_t>(sum), factor));
      }
      for (int64_t u = 0; u < U; ++u) {
        const auto gate = [&](int64_t g) { return a[static_cast<size_t>(g * U + u)]; };
        const int16_t i = fixed_sigmoid(gate(0), 3), f = fixed_sigmoid(gate(1), 3);
        const int16_t g = fixed_tanh(gate(2), 3), o = fixed_sigmoid(gate(3), 3);
        const int16_t before = in[kC].data<int16_t>()[row * U + u];
        const int16_t c = saturate16(round_shift(high_product16(i, g), 4) + high_product16(f, before));
        const int64_t made = round_shift(high_product16(o, fixed_tanh(saturate16(int64_t{2} * c), 3)), 8);
        out[0].data<uint8_t>()[row * U + u] = static_cast<uint8_t>(128 + std::clamp<int64_t>(made, -128, 127));
        if (out.size() > 1) out[1].data<int16_t>()[row * U + u] = c;
      }
    }
  });
  return {};
}
}  // namespace

PINNACE_OP(quantized_lstm_u8){
    .name = "quantized_lstm_u8",
    .inputs = {{"x", kU8}, {"w", kU8}, {"b", kI32}, {"c", dtypes(DType::kI16)}, {"h", kU8}},
    .attrs = {required_attr("factor", AttrKind::kFloat), int_attr("w_zero", 0)},
    .max_outputs = 2,
    .types = quantized_lstm_u8_types,
    .reference = quantized_lstm_u8_reference,
    .work = Work::kSquared,
};
}  // namespace pinnace
