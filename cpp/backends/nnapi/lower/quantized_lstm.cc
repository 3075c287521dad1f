// quantized_lstm as QUANTIZED_LSTM (feature level 4), quantized_lstm_u8 as QUANTIZED_16BIT_LSTM (feature level 3). Ours
// know no scales: the ones given here make NNAPI's fixed-point factors ours to the bit, with 1 for input and output.
// Stored bytes pass CAST, which looks at them alone; the cell's 16 bits stand with their scale from the start.
#include <cmath>
#include <cstring>

#include "backends/nnapi/lowering.h"

namespace pinnace::nnapi_client {
namespace {

using enum nnapi::OperandCode;

/// The constant that is input `input`, from byte `first` on: rows of `dims`, `stride` bytes apart.
OperandId part(NodeLowering& n, int input, const OperandSpec& spec, size_t first, size_t stride) {
  const auto* from = static_cast<const std::byte*>(n.data(input));
  const size_t size = nnapi::info(spec.type).bytes;
  const size_t rows = spec.dims.size() == 2 ? spec.dims[0] : 1, row = spec.dims.back() * size;
  const auto fill = [=](std::byte* to) {
    for (size_t i = 0; i < rows; ++i) std::memcpy(to + i * row, from + first + i * stride, row);
  };
  return n.lowering().add_weight(spec, str_cat("part", input, "@", first), fill, true);
}

OperandId omitted(NodeLowering& n, OperandCode type) {
  OperandSpec spec{type, {0}};
  if (nnapi::info(type).quantized) spec.scale = 1;
  return n.lowering().add_operand(spec, nnapi::Lifetime::kOmitted);
}

/// The bytes of `x` with another scale.
Result<OperandId> rescaled(NodeLowering& n, OperandId x, float scale, int32_t zero_point) {
  const nnapi::Operand o = n.operand(x);
  if (o.scale == scale && o.zero_point == zero_point) return x;
  const OperandId y = n.temp(OperandSpec{o.type, o.dims, scale, zero_point});
  PINNACE_TRY(n.add(Op::CAST, {x}, y));
  return y;
}

/// Output i as an operand with this scale; `finish` brings its bytes to where they are read.
struct Made {
  OperandId operand, y = kNoOperand;
  Status finish(NodeLowering& n) const {
    return y == kNoOperand || y == operand ? Status() : n.add(Op::CAST, {operand}, y);
  }
};
bool wanted(NodeLowering& n, size_t i) {
  return i < n.view().node().outputs.size();
}
Result<Made> output(NodeLowering& n, int i, const OperandSpec& spec) {
  if (!wanted(n, static_cast<size_t>(i))) return Made{n.temp(spec)};
  PINNACE_ASSIGN(const OperandId y, n.out(i));
  const nnapi::Operand& o = n.operand(y);
  if (o.scale == spec.scale && o.zero_point == spec.zero_point) return Made{y, y};
  return Made{n.temp(spec), y};
}
Result<OperandId> cell_output(NodeLowering& n, const OperandSpec& spec) {
  if (!wanted(n, 1)) return n.temp(spec);
  return n.lowering().cell_output(n.out_id(1), spec.scale, n.verdict());
}

Status check_constants(NodeLowering& n, std::initializer_list<int> inputs) {
  for (int i : inputs) {
    if (n.has(i) && !n.constant(i)) return n.refuse(Rule::kConstant, to_string(n.in_type(i)));
  }
  return {};
}

/// NNAPI makes factors of scales, which are float32.
Status check_factors(NodeLowering& n, std::initializer_list<std::string_view> lists,
                     std::initializer_list<std::string_view> numbers) {
  std::vector<double> all;
  for (std::string_view name : lists) {
    const auto factors = n.view().attr_floats(name);
    all.insert(all.end(), factors.begin(), factors.end());
  }
  for (std::string_view name : numbers) all.push_back(n.view().attr_float(name));
  for (double factor : all) {
    const bool is_float = static_cast<double>(static_cast<float>(factor)) == factor;
    if (factor == 0 || !is_float) return n.refuse(Rule::kQuantization, str_cat("factor ", factor));
  }
  return {};
}

/// A positive float whose product with `factor` rounds to `product`; 0 where there is none. What the product was made
/// of is one or its neighbour.
float quotient(float product, float factor) {
  const float near = product / factor;
  for (float q : {near, std::nextafter(near, 0.0f), std::nextafter(near, INFINITY)}) {
    if (q > 0 && q * factor == product) return q;
  }
  return 0;
}
/// A positive float that `dividend` is divided by to give `result`; 0 where there is none.
float divisor(float dividend, float result) {
  const float near = dividend / result;
  for (float d : {near, std::nextafter(near, 0.0f), std::nextafter(near, INFINITY)}) {
    if (d > 0 && std::isfinite(d) && dividend / d == result) return d;
  }
  return 0;
}

}  // namespace

namespace {

/// Rows and columns of one gate's weights in w, or the biases of one in b. What only a run gives is cut out there and
/// cast to the scale.
struct Block {
  int input;
  OperandSpec spec;
  std::vector<uint32_t> begin;
};
Result<OperandId> block(NodeLowering& n, const Block& b) {
  const Shape& shape = n.in_type(b.input).shape;
  const size_t size = nnapi::info(b.spec.type).bytes;
  const size_t stride = shape.size() == 2 ? static_cast<size_t>(shape[1].size) * size : 0;
  const size_t first = shape.size() == 2 ? b.begin[0] * stride + b.begin[1] * size : b.begin[0] * size;
  if (n.constant(b.input)) return part(n, b.input, b.spec, first, stride);
  PINNACE_ASSIGN(const OperandId whole, n.in(b.input));
  const OperandId cut = n.temp(whole, b.spec.dims);
  const std::vector<int32_t> begin(b.begin.begin(), b.begin.end()), sizes(b.spec.dims.begin(), b.spec.dims.end());
  PINNACE_TRY(n.add(Op::SLICE, {whole, n.ints(begin), n.ints(sizes)}, cut));
  const OperandId scaled = n.temp(b.spec);
  PINNACE_TRY(n.add(Op::CAST, {cut}, scaled));
  return scaled;
}

}  // namespace

/// Rows of w meet [x, h]; NNAPI's row of the state stands before that of the input (cpp/nnapi/map/quantized_lstm.cc).
Status lower_quantized_lstm_u8(NodeLowering& n) {
  enum { kX, kW, kB, kC, kH };
  constexpr float kStateScale = 1.0f / 128, kCellScale = 1.0f / 2048;
  constexpr int32_t kStateZero = 128;
  PINNACE_TRY(check_factors(n, {}, {"factor"}));
  const auto B = static_cast<uint32_t>(n.in_type(kX).shape[0].size);
  const auto I = static_cast<uint32_t>(n.in_type(kX).shape[1].size);
  const auto U = static_cast<uint32_t>(n.in_type(kC).shape[1].size);
  const auto bias_scale = static_cast<float>(n.view().attr_float("factor") / 4096);
  const OperandSpec rows{
      kTensorQuant8Asymm, {U, I}, bias_scale / kStateScale, static_cast<int32_t>(n.view().attr_int("w_zero"))};
  PINNACE_ASSIGN(OperandId x, n.in(kX));
  PINNACE_ASSIGN(x, rescaled(n, x, kStateScale, kStateZero));
  std::vector<OperandId> inputs = {x};
  for (const bool of_state : {false, true}) {
    for (uint32_t g = 0; g < 4; ++g) {
      OperandSpec spec = rows;
      if (of_state) spec.dims = {U, U};
      PINNACE_ASSIGN(const OperandId w, block(n, {kW, spec, {g * U, of_state ? 0 : U}}));
      inputs.push_back(w);
    }
  }
  for (uint32_t g = 0; g < 4; ++g) {
    PINNACE_ASSIGN(const OperandId b, block(n, {kB, {kTensorInt32, {U}, bias_scale}, {g * U}}));
    inputs.push_back(b);
  }
  PINNACE_ASSIGN(const OperandId c, n.lowering().cell_input(n.in_id(kC), kCellScale, n.verdict()));
  PINNACE_ASSIGN(OperandId h, n.in(kH));
  PINNACE_ASSIGN(h, rescaled(n, h, kStateScale, kStateZero));
  inputs.insert(inputs.end(), {c, h});
  PINNACE_ASSIGN(const Made made, output(n, 0, {kTensorQuant8Asymm, {B, U}, kStateScale, kStateZero}));
  PINNACE_ASSIGN(const OperandId cell, cell_output(n, {kTensorQuant16Symm, {B, U}, kCellScale}));
  PINNACE_TRY(n.add(Op::QUANTIZED_16BIT_LSTM, std::move(inputs), std::vector<OperandId>{cell, made.operand}));
  return made.finish(n);
}

namespace {

enum Input : uint8_t { kX, kW, kR, kH, kC, kP, kNorm, kB, kProjection, kProjectionBias };

/// NNAPI's inputs 1 to 17 and 20 to 23, by gates; what the graph's node stacks lies one gate after the other.
struct QuantizedCell {
  NodeLowering& n;
  uint32_t I, O, U;
  size_t gates;

  float factor(std::string_view name, size_t i) const { return static_cast<float>(n.view().attr_floats(name)[i]); }
  /// Four gates, the first left out where there are three.
  void matrices(int input, uint32_t columns, std::string_view factors, std::vector<OperandId>& to) const {
    if (gates == 3) to.push_back(omitted(n, kTensorQuant8Symm));
    for (size_t g = 0; g < gates; ++g) {
      const size_t bytes = size_t{U} * columns;
      to.push_back(part(n, input, {kTensorQuant8Symm, {U, columns}, factor(factors, g)}, g * bytes, columns));
    }
  }
  void peepholes(int exponent, std::vector<OperandId>& to) const {
    const size_t count = n.has(kP) ? gates - 1 : 0;
    for (size_t i = count; i < 3; ++i) to.push_back(omitted(n, kTensorQuant16Symm));
    for (size_t i = 0; i < count; ++i) {
      const float scale = std::ldexp(factor("p_factors", i), -exponent);
      to.push_back(part(n, kP, {kTensorQuant16Symm, {U}, scale}, i * U * 2, 0));
    }
  }
  /// Only normalised gates read them, but all models have them.
  void biases(std::vector<OperandId>& to) const {
    if (gates == 3) to.push_back(omitted(n, kTensorInt32));
    for (size_t g = 0; g < gates; ++g) {
      const OperandSpec spec{kTensorInt32, {U}};
      to.push_back(n.has(kB) ? part(n, kB, spec, g * U * 4, 0)
                             : n.lowering().add_weight(spec, "zeros", [bytes = size_t{U} * 4](std::byte* at) {
                                 std::memset(at, 0, bytes);
                               }));
    }
  }
  void norms(std::vector<OperandId>& to) const {
    const size_t count = n.has(kNorm) ? gates : 0;
    for (size_t i = count; i < 4; ++i) to.push_back(omitted(n, kTensorQuant16Symm));
    for (size_t g = 0; g < count; ++g) {
      to.push_back(part(n, kNorm, {kTensorQuant16Symm, {U}, factor("norm_scales", g)}, g * U * 2, 0));
    }
  }
};

}  // namespace

Status lower_quantized_lstm(NodeLowering& n) {
  const NodeView& view = n.view();
  if (n.feature_level() < 4)
    return n.refuse(Rule::kFeatureLevel, str_cat("QUANTIZED_LSTM needs feature level 4, here are ", n.feature_level()));
  PINNACE_TRY(check_constants(n, {kW, kR, kP, kNorm, kB, kProjection, kProjectionBias}));
  PINNACE_TRY(
      check_factors(n, {"x_factors", "h_factors", "p_factors", "norm_scales"}, {"hidden_factor", "projection_factor"}));
  const auto B = static_cast<uint32_t>(n.in_type(kX).shape[0].size);
  const QuantizedCell cell{n, static_cast<uint32_t>(n.in_type(kX).shape[1].size),
                           static_cast<uint32_t>(n.in_type(kR).shape[1].size),
                           static_cast<uint32_t>(n.in_type(kC).shape[1].size), view.attr_floats("x_factors").size()};
  const auto exponent = static_cast<int>(view.attr_int("cell_exponent"));
  const float cell_scale = std::ldexp(1.0f, exponent);
  const auto hidden_factor = static_cast<float>(view.attr_float("hidden_factor"));
  const float hidden_scale = divisor(std::ldexp(1.0f, -30), hidden_factor);
  const auto projection_factor = static_cast<float>(view.attr_float("projection_factor"));
  const float projection_scale = n.has(kProjection) ? quotient(projection_factor, hidden_scale) : 1;
  if (hidden_scale == 0 || projection_scale == 0) {
    return n.refuse(Rule::kQuantization, str_cat("factors ", hidden_factor, " and ", projection_factor));
  }
  // Bounds are cut to whole numbers: half a step more than the bound is the bound again.
  const auto bound = [&](std::string_view name, float scale) {
    const auto units = static_cast<double>(view.attr_int(name));
    return n.lowering().add_scalar(static_cast<float>(units > 0 ? (units + 0.5) * static_cast<double>(scale) : 0),
                                   kFloat32);
  };
  const auto h_zero = static_cast<int32_t>(view.attr_int("h_zero"));
  PINNACE_ASSIGN(OperandId x, n.in(kX));
  PINNACE_ASSIGN(x, rescaled(n, x, 1, static_cast<int32_t>(view.attr_int("x_zero"))));
  std::vector<OperandId> inputs = {x};
  cell.matrices(kW, cell.I, "x_factors", inputs);
  cell.matrices(kR, cell.O, "h_factors", inputs);
  cell.peepholes(exponent, inputs);
  cell.biases(inputs);
  inputs.push_back(n.has(kProjection)
                       ? part(n, kProjection, {kTensorQuant8Symm, {cell.O, cell.U}, projection_scale}, 0, cell.U)
                       : omitted(n, kTensorQuant8Symm));
  inputs.push_back(n.has(kProjectionBias) ? part(n, kProjectionBias, {kTensorInt32, {cell.O}}, 0, 0)
                                          : omitted(n, kTensorInt32));
  PINNACE_ASSIGN(OperandId h, n.in(kH));
  PINNACE_ASSIGN(h, rescaled(n, h, 1, h_zero));
  PINNACE_ASSIGN(const OperandId c, n.lowering().cell_input(n.in_id(kC), cell_scale, n.verdict()));
  inputs.insert(inputs.end(), {h, c});
  cell.norms(inputs);
  inputs.insert(inputs.end(), {bound("cell_clip", cell_scale), bound("projection_clip", projection_scale)});
  for (int i = 0; i < 4; ++i) inputs.push_back(n.lowering().add_scalar(1.0f, kFloat32));  // intermediate scales
  inputs.push_back(n.scalar(static_cast<int32_t>(view.attr_int("hidden_zero"))));
  inputs.push_back(n.lowering().add_scalar(hidden_scale, kFloat32));
  const OperandSpec state{kTensorQuant8AsymmSigned, {B, cell.O}, 1, h_zero};
  PINNACE_ASSIGN(const Made made, output(n, 0, state));
  PINNACE_ASSIGN(const OperandId made_cell, cell_output(n, {kTensorQuant16Symm, {B, cell.U}, cell_scale}));
  const OperandId again = n.temp(state);
  PINNACE_TRY(n.add(Op::QUANTIZED_LSTM, std::move(inputs), std::vector<OperandId>{made.operand, made_cell, again}));
  return made.finish(n);
}

}  // namespace pinnace::nnapi_client
