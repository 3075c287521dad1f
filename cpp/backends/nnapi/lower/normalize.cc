// Softmax and what is made of its kind.
#include <cmath>

#include "backends/nnapi/steps/floats.h"
#include "backends/nnapi/steps/shape.h"
#include "base/half.h"

namespace pinnace::nnapi_client {

namespace {

/// SOFTMAX of x along a dimension of its own order. Along the last one, as a matrix, any feature level has it; along
/// others from feature level 3 on.
Status add_softmax(NodeLowering& n, OperandId x, int32_t at, OperandId y) {
  const std::vector<uint32_t> dims = n.operand(x).dims;
  const OperandId beta = n.real(1, n.in_type(0));
  const auto last = static_cast<int32_t>(dims.size()) - 1;
  if (at != last && dims.size() <= 4) return n.add(Op::SOFTMAX, {x, beta, n.scalar(at)}, y);
  if (at != last) return n.refuse(Rule::kRank, str_cat(dims.size()));
  if (dims.size() == 2) return n.add(Op::SOFTMAX, {x, beta}, y);
  uint32_t rows = 1;
  for (size_t i = 0; i + 1 < dims.size(); ++i) rows *= dims[i];
  PINNACE_ASSIGN(const OperandId matrix, reshaped(n, x, {rows, dims.back()}));
  const OperandId made = n.temp(y, {rows, dims.back()});
  PINNACE_TRY(n.add(Op::SOFTMAX, {matrix, beta}, made));
  return reshape_into(n, made, y);
}

/// A constant of one number per channel, in the shape that broadcasts to x's layout. x has rank 2 to 4.
Result<OperandId> per_channel(NodeLowering& n, std::string_view role, const std::vector<float>& values, OperandId x,
                              Layout layout) {
  std::vector<uint32_t> dims = {static_cast<uint32_t>(values.size())};
  if (layout == Layout::kPlain) dims.insert(dims.end(), n.operand(x).dims.size() - 2, 1);
  const bool is_f16 = n.operand(x).type == nnapi::OperandCode::kTensorFloat16;
  return n.lowering().add_weight({n.operand(x).type, std::move(dims)}, role, [values, is_f16](std::byte* to) {
    for (size_t i = 0; i < values.size(); ++i) {
      if (is_f16) {
        reinterpret_cast<uint16_t*>(to)[i] = float_to_half(values[i]);
      } else {
        reinterpret_cast<float*>(to)[i] = values[i];
      }
    }
  });
}

/// (x - mean) / sqrt(variance + epsilon) over axes of x, which is of float32, as operations of feature level 3.
OperandId standardized(Chain& c, OperandId x, std::span<const int32_t> axes, double epsilon) {
  NodeLowering& n = c.n;
  std::vector<uint32_t> dims = n.operand(x).dims;
  for (int32_t a : axes) dims[static_cast<size_t>(a)] = 1;
  const OperandId list = n.ints(axes), mean = n.temp(x, dims), variance = n.temp(x, dims);
  const OperandId raised = n.temp(x, dims), factor = n.temp(x, dims);
  c.op(Op::MEAN, {x, list, n.scalar(1)}, mean);
  const OperandId centred = c.sub(x, mean);
  c.op(Op::MEAN, {c.mul(centred, centred), list, n.scalar(1)}, variance);
  c.op(Op::ADD, {variance, c.num(epsilon), n.scalar(0)}, raised);
  c.op(Op::RSQRT, {raised}, factor);
  return c.mul(centred, factor);
}

}  // namespace

Status lower_softmax(NodeLowering& n) {
  const TensorType &type = n.in_type(0), &out = n.out_type();
  PINNACE_ASSIGN(const int axis, n.view().axis(n.view().attr_int("axis"), type.rank()));
  const Layout layout = axis_layout(n);
  PINNACE_ASSIGN(const OperandId x, n.in(0, layout));
  PINNACE_ASSIGN(const OperandId y, n.out(0, layout));
  const int32_t at = axis_in(layout, axis);
  // Quantised: NNAPI fixes the scale of the result.
  const bool fixed = out.quantized() && (out.quantization->scales[0] != 1.0f / 256 ||
                                         out.quantization->zero_points[0] + (out.dtype == DType::kI8 ? 128 : 0) != 0);
  if (!fixed) return add_softmax(n, x, at, y);
  PINNACE_ASSIGN(const OperandId floats, as_floats(n, x));
  const OperandId to = floats_for(n, y);
  PINNACE_TRY(add_softmax(n, floats, at, to));
  return store_floats(n, to, y);
}

/// Ranks above 4 as [outer, size, inner].
Status lower_log_softmax(NodeLowering& n) {
  if (n.out_type().quantized()) return n.refuse(Rule::kQuantization, to_string(n.out_type()));
  const Shape& shape = n.in_type(0).shape;
  PINNACE_ASSIGN(const int axis, n.view().axis(n.view().attr_int("axis"), n.in_type(0).rank()));
  if (shape.size() > 4) {
    std::vector<uint32_t> dims = {1, 1, 1};
    for (int d = 0; d < n.in_type(0).rank(); ++d) {
      dims[d < axis ? 0 : d == axis ? 1 : 2] *= static_cast<uint32_t>(shape[static_cast<size_t>(d)].size);
    }
    PINNACE_ASSIGN(const OperandId whole, n.in(0));
    PINNACE_ASSIGN(const OperandId y, n.out());
    PINNACE_ASSIGN(const OperandId parts, reshaped(n, whole, dims));
    const OperandId made = n.temp(y, dims);
    PINNACE_TRY(n.add(Op::LOG_SOFTMAX, {parts, n.real(1, n.in_type(0)), n.scalar(1)}, made));
    return reshape_into(n, made, y);
  }
  const Layout layout = axis_layout(n);
  PINNACE_ASSIGN(const OperandId x, n.in(0, layout));
  PINNACE_ASSIGN(const OperandId y, n.out(0, layout));
  return n.add(Op::LOG_SOFTMAX, {x, n.real(1, n.in_type(0)), n.scalar(axis_in(layout, axis))}, y);
}

/// x * factor + offset with one of each per channel, known ahead.
Status lower_batch_normalization(NodeLowering& n) {
  std::vector<double> of[5];
  for (int i = 1; i < 5; ++i) {
    const auto values = n.view().input_floats(i);
    if (!values) return n.refuse(Rule::kConstant, "the statistics");
    of[i] = *values;
  }
  const int rank = n.in_type(0).rank();
  if (rank < 2 || rank > 4) return n.refuse(Rule::kRank, str_cat(rank));
  std::vector<float> factor, offset;
  for (size_t c = 0; c < of[1].size(); ++c) {
    const double f = of[1][c] / std::sqrt(of[4][c] + n.view().attr_float("epsilon"));
    factor.push_back(static_cast<float>(f));
    offset.push_back(static_cast<float>(of[2][c] - of[3][c] * f));
  }
  const Layout layout = n.elementwise_layout();
  PINNACE_ASSIGN(const OperandId x, n.in(0, layout));
  PINNACE_ASSIGN(const OperandId y, n.out(0, layout));
  PINNACE_ASSIGN(const OperandId f, per_channel(n, "factor", factor, x, layout));
  PINNACE_ASSIGN(const OperandId o, per_channel(n, "offset", offset, x, layout));
  const OperandId scaled = n.temp(x);
  PINNACE_TRY(n.add(Op::MUL, {x, f, n.scalar(0)}, scaled));
  return n.add(Op::ADD, {scaled, o, n.scalar(0)}, y);
}

Status lower_layer_normalization(NodeLowering& n) {
  if (n.view().output_count() > 1) return n.refuse(Rule::kAttribute, "mean and deviation as results");
  const int rank = n.in_type(0).rank();
  PINNACE_ASSIGN(const int axis, n.view().axis(n.view().attr_int("axis"), rank));
  std::vector<int32_t> axes;
  for (int a = axis; a < rank; ++a) axes.push_back(a);
  OperandId operands[3] = {kNoOperand, kNoOperand, kNoOperand};
  for (int i = 0; i < 3; ++i) {
    if (!n.has(i)) continue;
    PINNACE_ASSIGN(const OperandId given, n.in(i));
    PINNACE_ASSIGN(operands[i], as_float32(n, given));
  }
  const auto [x, scale, b] = operands;
  PINNACE_ASSIGN(const OperandId to, n.out());
  const OperandId y = float32_for(n, to);
  n.rewritten("mean, squares, rsqrt");
  Chain c{n, x};
  const OperandId made = standardized(c, x, axes, n.view().attr_float("epsilon"));
  if (b == kNoOperand) {
    c.mul(made, scale, y);
  } else {
    c.add(c.mul(made, scale), b, y);
  }
  PINNACE_TRY(c.status);
  return store_floats(n, y, to);
}

Status lower_rms_normalization(NodeLowering& n) {
  const int rank = n.in_type(0).rank();
  if (n.in_type(0).dtype != n.in_type(1).dtype) return n.refuse(Rule::kType, to_string(n.in_type(1)));
  PINNACE_ASSIGN(const int axis, n.view().axis(n.view().attr_int("axis"), rank));
  std::vector<int32_t> axes;
  for (int a = axis; a < rank; ++a) axes.push_back(a);
  PINNACE_ASSIGN(const OperandId given, n.in(0));
  PINNACE_ASSIGN(const OperandId given_scale, n.in(1));
  PINNACE_ASSIGN(const OperandId to, n.out());
  PINNACE_ASSIGN(const OperandId x, as_float32(n, given));
  PINNACE_ASSIGN(const OperandId scale, as_float32(n, given_scale));
  const OperandId y = float32_for(n, to);
  n.rewritten("squares, mean, rsqrt");
  std::vector<uint32_t> dims = n.operand(x).dims;
  for (int32_t a : axes) dims[static_cast<size_t>(a)] = 1;
  Chain c{n, x};
  const OperandId mean = n.temp(x, dims), raised = n.temp(x, dims), factor = n.temp(x, dims);
  c.op(Op::MEAN, {c.mul(x, x), n.ints(axes), n.scalar(1)}, mean);
  c.op(Op::ADD, {mean, c.num(n.view().attr_float("epsilon")), n.scalar(0)}, raised);
  c.op(Op::RSQRT, {raised}, factor);
  c.mul(c.mul(x, factor), scale, y);
  PINNACE_TRY(c.status);
  return store_floats(n, y, to);
}

namespace {
/// Groups of channels standardised, then a factor and an offset per channel. Groups of one are instances.
Status normalize_groups(NodeLowering& n, int64_t groups) {
  const auto scale = n.view().input_floats(1), b = n.view().input_floats(2);
  if (!scale || !b) return n.refuse(Rule::kConstant, "scale and bias");
  const int rank = n.in_type(0).rank();
  if (rank < 2 || rank > 4) return n.refuse(Rule::kRank, str_cat(rank));
  PINNACE_ASSIGN(const OperandId given, n.in(0));
  PINNACE_ASSIGN(const OperandId to, n.out());
  PINNACE_ASSIGN(const OperandId x, as_float32(n, given));
  const OperandId y = float32_for(n, to);
  n.rewritten("mean, squares, rsqrt");
  const std::vector<uint32_t> dims = n.operand(x).dims;
  uint32_t size = 1;
  for (uint32_t d : dims) size *= d;
  const auto g = static_cast<uint32_t>(groups);
  PINNACE_ASSIGN(const OperandId lines, reshaped(n, x, {dims[0], g, size / dims[0] / g}));
  const int32_t last = 2;
  Chain c{n, lines};
  const OperandId made = standardized(c, lines, {&last, 1}, n.view().attr_float("epsilon"));
  PINNACE_TRY(c.status);
  PINNACE_ASSIGN(const OperandId images, reshaped(n, made, dims));
  const std::vector<float> fs(scale->begin(), scale->end()), bs(b->begin(), b->end());
  PINNACE_ASSIGN(const OperandId f, per_channel(n, "scale", fs, x, Layout::kPlain));
  PINNACE_ASSIGN(const OperandId o, per_channel(n, "bias", bs, x, Layout::kPlain));
  const OperandId scaled = n.temp(x);
  PINNACE_TRY(n.add(Op::MUL, {images, f, n.scalar(0)}, scaled));
  PINNACE_TRY(n.add(Op::ADD, {scaled, o, n.scalar(0)}, y));
  return store_floats(n, y, to);
}
}  // namespace

Status lower_instance_normalization(NodeLowering& n) {
  return normalize_groups(n, n.in_type(0).shape.size() > 1 ? n.in_type(0).shape[1].size : 1);
}
Status lower_group_normalization(NodeLowering& n) {
  return normalize_groups(n, n.view().attr_int("num_groups"));
}

/// L2_NORMALIZATION: along the last of four dimensions at any feature level, along any from feature level 3 on.
/// Quantised results have its fixed scale, or are made of floats.
Status lower_lp_normalization(NodeLowering& n) {
  if (n.view().attr_int("p") != 2) return n.refuse(Rule::kAttribute, "p 1");
  PINNACE_ASSIGN(const int axis, n.view().axis(n.view().attr_int("axis"), n.in_type(0).rank()));
  const Layout layout = axis_layout(n);
  PINNACE_ASSIGN(OperandId x, n.in(0, layout));
  PINNACE_ASSIGN(const OperandId y, n.out(0, layout));
  const nnapi::Operand& to = n.operand(y);
  const bool fixed =
      to.scale == 1.0f / 128 && to.zero_point == (to.type == nnapi::OperandCode::kTensorQuant8Asymm ? 128 : 0);
  OperandId made = y;
  if (!fixed) {
    PINNACE_ASSIGN(x, as_floats(n, x));
    made = floats_for(n, y);
  }
  const int32_t at = axis_in(layout, axis);
  std::vector<OperandId> inputs = {x};
  if (at != 3) inputs.push_back(n.scalar(at));
  PINNACE_TRY(n.add(Op::L2_NORMALIZATION, std::move(inputs), made));
  return store_floats(n, made, y);
}

/// LOCAL_RESPONSE_NORMALIZATION does not divide alpha by the window, which is odd. It goes along the last of four
/// dimensions, or from feature level 3 on along any.
Status lower_lrn(NodeLowering& n) {
  const int64_t size = n.view().attr_int("size");
  if (size % 2 == 0) return n.refuse(Rule::kAttribute, str_cat("an even size, ", size));
  const int64_t radius = std::min<int64_t>((size - 1) / 2, n.in_type(0).shape[1].size);
  const TensorType& type = n.in_type(0);
  const Layout layout = type.rank() == 4 ? Layout::kChannelsLast : Layout::kPlain;
  PINNACE_ASSIGN(const OperandId x, n.in(0, layout));
  PINNACE_ASSIGN(const OperandId y, n.out(0, layout));
  std::vector<OperandId> inputs = {x, n.scalar(static_cast<int32_t>(radius)), n.real(n.view().attr_float("bias"), type),
                                   n.real(n.view().attr_float("alpha") / static_cast<double>(size), type),
                                   n.real(n.view().attr_float("beta"), type)};
  if (type.rank() != 4) inputs.push_back(n.scalar(1));
  return n.add(Op::LOCAL_RESPONSE_NORMALIZATION, std::move(inputs), y);
}

}  // namespace pinnace::nnapi_client
