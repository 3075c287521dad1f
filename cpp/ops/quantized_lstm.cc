// quantized_lstm: one element of time of an LSTM cell in integers. G is 4, gates in the order input, forget, cell,
// output; or 3, without the input gate, which then is 1 minus the forget gate.
//   x                [B, I]      i8
//   w, r             [G U, I], [G U, O]  i8
//   h                [B, O]      i8
//   c                [B, U]      i16, of scale 2^cell_exponent
//   p                [(G - 1) U]  i16, optional: peepholes of all gates but the cell's
//   norm, b          [G U]       i16, i32, optional, both or none: gates are normalised, scaled, and b is added
//   projection       [O, U]      i8, optional; without it O is U
//   projection_bias  [O]         i32, optional
//   x_factors, h_factors  floats, required, G: from sums of products to gates of scale 2^-12
//   p_factors        floats, G - 1, where there is p; norm_scales floats, G, where there is norm
//   x_zero, h_zero, hidden_zero  int, default 0, zero points in [-128, 127]
//   hidden_factor    float, required: from 2^-30 to the scale of the output before the projection
//   projection_factor  float, default 1; projection_clip int, default 0, is none
//   cell_exponent    int, required, in [-15, -9]; cell_clip int, default 0, is none
//   h                [B, O]      i8
//   c                [B, U]      i16
// Per gate a = sat16(x_factor sum((x - x_zero) w)) + h_factor sum((h - h_zero) r), saturated, + p_factor p c; sums
// modulo 2^32, factors and functions of fixed_point.h. c' = f c + i g and y = hidden_factor o tanh(c') - hidden_zero,
// projected after hidden_zero is added again. All is integers: there is no NaN. Source: NNAPI QUANTIZED_LSTM, with its
// quirks: the sign of hidden_zero, and biases that only a normalised gate reads.
#include <algorithm>

#include "ops/element.h"
#include "ops/fixed_point.h"
#include "ops/lines.h"

namespace pinnace {
namespace {

enum Input : uint8_t { kX, kW, kR, kH, kC, kP, kNorm, kB, kProjection, kProjectionBias };
constexpr int64_t kMostUnits = int64_t{1} << 40;

Status check_vector(const NodeView& node, Input input, Dim units, int64_t times) {
  if (!node.has_input(input)) return {};
  const Shape& shape = node.input(input).shape;
  const Dim wanted = units.known() ? Dim(times * units.size) : Dim();
  if (shape.size() == 1 && !differ(shape[0], wanted)) return {};
  return node.error(node.input_name(input), " is ", node.input(input), ", must have ", times, " times ", units.size,
                    " elements");
}

Status check_matrix(const NodeView& node, Input input, Dim rows, int64_t times, Dim columns) {
  if (!node.has_input(input)) return {};
  const Shape& shape = node.input(input).shape;
  const Dim wanted = rows.known() ? Dim(times * rows.size) : Dim();
  if (shape.size() == 2 && !differ(shape[0], wanted) && !differ(shape[1], columns)) return {};
  return node.error(node.input_name(input), " is ", node.input(input), ", must be [", wanted.size, ", ", columns.size,
                    "]");
}

Status check_factors(const NodeView& node, std::string_view name, size_t count) {
  const auto factors = node.attr_floats(name);
  if (factors.size() != count) return node.error(name, " has ", factors.size(), " elements, must have ", count);
  for (double factor : factors) {
    if (!(factor >= 0 && factor < kMostFactor)) return node.error(name, " has ", factor, ", must be 0 to below 2^30");
  }
  return {};
}

Status check_range(const NodeView& node, std::string_view name, int64_t least, int64_t most) {
  const int64_t value = node.attr_int(name);
  if (value >= least && value <= most) return {};
  return node.error(name, " is ", value, ", must be ", least, " to ", most);
}

Status quantized_lstm_types(const NodeView& node, std::span<TensorType> out) {
  PINNACE_TRY(refuse_quantized(node));
  const TensorType &x = node.input(kX), &r = node.input(kR), &c = node.input(kC);
  for (Input input : {kX, kR, kC}) {
    if (node.input(input).rank() != 2) {
      return node.error(node.input_name(input), " is ", node.input(input), ", must have rank 2");
    }
  }
  const size_t gates = node.attr_floats("x_factors").size();
  if (gates != 3 && gates != 4) return node.error("x_factors has ", gates, " elements, must have 3 or 4");
  const auto times = static_cast<int64_t>(gates);
  const Dim B = x.shape[0], I = x.shape[1], U = c.shape[1], O = r.shape[1];
  if (U.known() && U.size > kMostUnits) return node.error("c ", c, " has too many units");
  PINNACE_TRY(check_matrix(node, kW, U, times, I));
  PINNACE_TRY(check_matrix(node, kR, U, times, O));
  PINNACE_TRY(check_matrix(node, kH, B, 1, O));
  PINNACE_TRY(check_matrix(node, kC, B, 1, U));
  PINNACE_TRY(check_vector(node, kP, U, times - 1));
  PINNACE_TRY(check_vector(node, kNorm, U, times));
  PINNACE_TRY(check_vector(node, kB, U, times));
  PINNACE_TRY(check_matrix(node, kProjection, O, 1, U));
  PINNACE_TRY(check_vector(node, kProjectionBias, O, 1));
  if (node.has_input(kNorm) != node.has_input(kB)) return node.error("norm and b must be there both or not at all");
  if (!node.has_input(kProjection)) {
    if (node.has_input(kProjectionBias)) return node.error("projection_bias without a projection");
    if (differ(U, O)) return node.error("r ", r, " and c ", c, " without a projection");
  }
  PINNACE_TRY(check_factors(node, "x_factors", gates));
  PINNACE_TRY(check_factors(node, "h_factors", gates));
  if (node.has_input(kP)) PINNACE_TRY(check_factors(node, "p_factors", gates - 1));
  if (node.has_input(kNorm)) PINNACE_TRY(check_factors(node, "norm_scales", gates));
  for (const char* name : {"hidden_factor", "projection_factor"}) {
    const double factor = node.attr_float(name);
    if (!(factor >= 0 && factor < kMostFactor)) return node.error(name, " is ", factor, ", must be 0 to below 2^30");
  }
  for (const char* name : {"x_zero", "h_zero", "hidden_zero"}) PINNACE_TRY(check_range(node, name, -128, 127));
  PINNACE_TRY(check_range(node, "cell_exponent", -15, -9));
  PINNACE_TRY(check_range(node, "cell_clip", 0, 32767));
  PINNACE_TRY(check_range(node, "projection_clip", 0, 127));
  out[0] = {DType::kI8, {B, O}, nullptr};
  if (out.size() > 1) out[1] = {DType::kI16, {B, U}, nullptr};
  return {};
}

/// Sum of (v - zero) * w modulo 2^32.
int32_t dot(const int8_t* w, const int8_t* v, int32_t zero, int64_t count) {
  uint32_t sum = 0;
  for (int64_t i = 0; i < count; ++i) sum += static_cast<uint32_t>((v[i] - zero) * w[i]);
  return static_cast<int32_t>(sum);
}

struct Cell {
  int64_t gates, I, U, O;
  std::vector<FixedFactor> x, h, p, norm;
  std::vector<int32_t> least_variance;  ///< per normalised gate
  int32_t x_zero, h_zero, hidden_zero;
  FixedFactor hidden, projection;
  int exponent;
  int16_t cell_clip, projection_clip;
};

std::vector<FixedFactor> factors_of(const NodeView& node, std::string_view name) {
  std::vector<FixedFactor> factors;
  for (double factor : node.attr_floats(name)) factors.push_back(fixed_factor(factor));
  return factors;
}

Cell cell_of(const NodeView& node, std::span<const TensorView> in) {
  Cell cell{};
  cell.x = factors_of(node, "x_factors");
  cell.gates = static_cast<int64_t>(cell.x.size());
  cell.I = in[kX].dim(1);
  cell.U = in[kC].dim(1);
  cell.O = in[kR].dim(1);
  cell.h = factors_of(node, "h_factors");
  cell.p = factors_of(node, "p_factors");
  cell.norm = factors_of(node, "norm_scales");
  for (double scale : node.attr_floats("norm_scales")) cell.least_variance.push_back(10000 * scale >= 1);
  cell.x_zero = static_cast<int32_t>(node.attr_int("x_zero"));
  cell.h_zero = static_cast<int32_t>(node.attr_int("h_zero"));
  cell.hidden_zero = static_cast<int32_t>(node.attr_int("hidden_zero"));
  cell.hidden = fixed_factor(node.attr_float("hidden_factor"));
  cell.projection = fixed_factor(node.attr_float("projection_factor"));
  cell.exponent = static_cast<int>(node.attr_int("cell_exponent"));
  cell.cell_clip = static_cast<int16_t>(node.attr_int("cell_clip"));
  cell.projection_clip = static_cast<int16_t>(node.attr_int("projection_clip"));
  return cell;
}

/// Gate g's arguments for one row, normalised in place.
void normalise(const Cell& cell, int64_t g, const int16_t* norm, const int32_t* b, int16_t* a) {
  const auto gate = static_cast<size_t>(g);
  int64_t sum = 0, squares = 0;
  for (int64_t u = 0; u < cell.U; ++u) {
    sum += a[u];
    squares += static_cast<int64_t>(a[u]) * a[u];
  }
  const int64_t mean = sum * 1024 / cell.U;
  int64_t variance = (squares * ((1 << 20) / cell.U) - mean * mean) / (1 << 20);
  if (variance < 1) variance = cell.least_variance[gate];
  const FixedFactor inverse = fixed_inverse_sqrt(saturate32(variance));
  FixedFactor scale = cell.norm[gate];
  if (scale.m != 0) scale.shift += 12;
  for (int64_t u = 0; u < cell.U; ++u) {
    const int64_t centered = multiply(saturate32(1024 * int64_t{a[u]} - mean), inverse);
    const int64_t t = centered * norm[u] + b[u];
    a[u] = saturate16(multiply(saturate32((t > 0 ? t + 512 : t - 512) / 1024), scale));
  }
}

/// Gates' arguments of one row but for the output's peephole and normalisation: [gates, U].
void gate_arguments(const Cell& cell, std::span<const TensorView> in, int64_t row, int16_t* a) {
  const int8_t *x = in[kX].data<int8_t>() + row * cell.I, *h = in[kH].data<int8_t>() + row * cell.O;
  for (int64_t g = 0; g < cell.gates; ++g) {
    for (int64_t u = 0; u < cell.U; ++u) {
      const int64_t line = g * cell.U + u;
      const int32_t of_x = dot(in[kW].data<int8_t>() + line * cell.I, x, cell.x_zero, cell.I);
      const int32_t of_h = dot(in[kR].data<int8_t>() + line * cell.O, h, cell.h_zero, cell.O);
      const auto gate = static_cast<size_t>(g);
      a[line] = saturate16(int64_t{multiply(of_h, cell.h[gate])} + saturate16(multiply(of_x, cell.x[gate])));
    }
  }
}

void step(const Cell& cell, std::span<const TensorView> in, int64_t row, int16_t* a, int16_t* c, int8_t* y) {
  const int64_t U = cell.U, last = cell.gates - 1;
  const auto given = [&](Input input) { return in.size() > input && in[input].present(); };
  const int16_t* before = in[kC].data<int16_t>() + row * U;
  // Peephole, then normalisation; `hole` counts the gates that have one.
  const auto finish = [&](int64_t g, int64_t hole, const int16_t* state) {
    if (given(kP) && hole >= 0) {
      const int16_t* p = in[kP].data<int16_t>() + hole * U;
      for (int64_t u = 0; u < U; ++u) {
        a[g * U + u] = saturate16(a[g * U + u] + int64_t{multiply(p[u] * state[u], cell.p[static_cast<size_t>(hole)])});
      }
    }
    if (given(kNorm)) {
      normalise(cell, g, in[kNorm].data<int16_t>() + g * U, in[kB].data<int32_t>() + g * U, a + g * U);
    }
  };
  gate_arguments(cell, in, row, a);
  for (int64_t g = 0; g < last; ++g) finish(g, g == last - 1 ? -1 : g, before);
  const int16_t *input = a, *forget = a + (last - 2) * U, *candidate = a + (last - 1) * U, *output = a + last * U;
  for (int64_t u = 0; u < U; ++u) {
    const int16_t f = fixed_sigmoid(forget[u], 3), g = fixed_tanh(candidate[u], 3);
    const int16_t i = cell.gates == 3 ? static_cast<int16_t>(32767 - f) : fixed_sigmoid(input[u], 3);
    c[u] = saturate16(round_shift(f * before[u], 15) + round_shift(i * g, 30 + cell.exponent));
    if (cell.cell_clip > 0) c[u] = std::clamp<int16_t>(c[u], static_cast<int16_t>(-cell.cell_clip), cell.cell_clip);
  }
  finish(last, last - 1, c);
  for (int64_t u = 0; u < U; ++u) {
    const int32_t product = fixed_sigmoid(output[u], 3) * fixed_tanh(c[u], cell.exponent + 15);
    const int64_t stored = int64_t{multiply(product, cell.hidden)} - cell.hidden_zero;
    y[u] = static_cast<int8_t>(std::clamp<int64_t>(stored, -128, 127));
  }
}

void project(const Cell& cell, const TensorView& weights, const TensorView* bias, const int8_t* y, int8_t* h) {
  for (int64_t o = 0; o < cell.O; ++o) {
    auto sum = static_cast<uint32_t>(dot(weights.data<int8_t>() + o * cell.U, y, -cell.hidden_zero, cell.U));
    if (bias) sum += static_cast<uint32_t>(bias->data<int32_t>()[o]);
    const int64_t stored = int64_t{multiply(static_cast<int32_t>(sum), cell.projection)} + cell.h_zero;
    h[o] = static_cast<int8_t>(std::clamp<int64_t>(stored, -128, 127));
    if (cell.projection_clip > 0) {
      h[o] = static_cast<int8_t>(std::clamp<int>(h[o], -cell.projection_clip, cell.projection_clip));
    }
  }
}

Status quantized_lstm_reference(const NodeView& node, std::span<const TensorView> in, std::span<const TensorView> out) {
  const Cell cell = cell_of(node, in);
  const bool projected = in.size() > kProjection && in[kProjection].present();
  const TensorView* bias =
      in.size() > kProjectionBias && in[kProjectionBias].present() ? &in[kProjectionBias] : nullptr;
  const double cost = static_cast<double>(cell.gates * cell.U * (cell.I + cell.O + 20) + cell.O * cell.U);
  node.threads().ranges(in[kX].dim(0), cost, [&](int64_t first, int64_t end) {
    std::vector<int16_t> a(static_cast<size_t>(cell.gates * cell.U)), c(static_cast<size_t>(cell.U));
    std::vector<int8_t> y(static_cast<size_t>(cell.U));
    for (int64_t row = first; row < end; ++row) {
      if (cell.U > 0) step(cell, in, row, a.data(), c.data(), y.data());
      int8_t* h = out[0].data<int8_t>() + row * cell.O;
      if (projected) {
        project(cell, in[kProjection], bias, y.data(), h);
      } else {
        std::copy(y.begin(), y.end(), h);
      }
      if (out.size() > 1) std::copy(c.begin(), c.end(), out[1].data<int16_t>() + row * cell.U);
    }
  });
  return {};
}
}  // namespace

PINNACE_OP(quantized_lstm){
    .name = "quantized_lstm",
    .inputs = {{"x", kI8},
               {"w", kI8},
               {"r", kI8},
               {"h", kI8},
               {"c", dtypes(DType::kI16)},
               {"p", dtypes(DType::kI16), 0, Arity::kOptional},
               {"norm", dtypes(DType::kI16), 0, Arity::kOptional},
               {"b", kI32, 0, Arity::kOptional},
               {"projection", kI8, 0, Arity::kOptional},
               {"projection_bias", kI32, 0, Arity::kOptional}},
    .attrs = {int_attr("cell_clip", 0), required_attr("cell_exponent", AttrKind::kInt),
              required_attr("h_factors", AttrKind::kFloats), int_attr("h_zero", 0),
              required_attr("hidden_factor", AttrKind::kFloat), int_attr("hidden_zero", 0), floats_attr("norm_scales"),
              floats_attr("p_factors"), int_attr("projection_clip", 0), float_attr("projection_factor", 1),
              required_attr("x_factors", AttrKind::kFloats), int_attr("x_zero", 0)},
    .max_outputs = 2,
    .types = quantized_lstm_types,
    .reference = quantized_lstm_reference,
    .work = Work::kSquared,
};
}  // namespace pinnace
