// max_unpool: the largest elements that max_pool found, back at their places, among zeros.
//   x             [N, C, spatial...]  floats, 1 to 3 spatial dimensions
//   indices       as x, i64: places as max_pool gives them, counted through the whole unpooled tensor
//   output_shape  [rank]  i64, optional: y's shape, N and C included; at least the unpooled sizes, which then take its
//                 start, and the rest is 0
//   y             [N, C, out...]  as x, out = (spatial - 1) * strides - pads + kernel_shape, or output_shape
//   kernel_shape  ints, required; strides, pads  see window.h
// Of two elements with one place the later one wins. A place outside the unpooled tensor is an error. NaN keeps its
// bits. Source: ONNX MaxUnpool, opset 22.
#include "ops/lines.h"
#include "ops/move.h"
#include "ops/window.h"

namespace pinnace {
namespace {
/// The shape that indices count through.
Result<Shape> unpooled_shape(const NodeView& node, const TensorType& x) {
  PINNACE_ASSIGN(const Shape kernel, kernel_shape_of(node, x));
  PINNACE_ASSIGN(const Window w, window_attributes(node, kernel));
  Shape shape = x.shape;
  for (int d = 3 - w.rank; d < 3; ++d) {
    Dim& size = shape[static_cast<size_t>(2 + d - (3 - w.rank))];
    if (!size.known()) {
      const bool keeps = w.stride[d] == 1 && w.kernel[d] - w.before[d] - w.after[d] == 1;
      if (!keeps) size = Dim();
      continue;
    }
    const int64_t strides = saturating_mul(size.size - 1, w.stride[d]);
    if (strides >= INT64_MAX / 2) return node.error("x ", x, " is too large to unpool");
    size = strides - w.before[d] - w.after[d] + w.kernel[d];
    if (size.size < 0) return node.error("pads leave nothing of x ", x);
  }
  return shape;
}

Result<TensorType> max_unpool_type(const NodeView& node) {
  const TensorType &x = node.input(0), &indices = node.input(1);
  TensorType y{x.dtype, {}, nullptr};
  PINNACE_ASSIGN(y.shape, unpooled_shape(node, x));
  if (indices.rank() != x.rank()) {
    return node.error("x ", x, " and indices ", indices, " differ in shape");
  }
  for (size_t d = 0; d < x.shape.size(); ++d) {
    if (differ(x.shape[d], indices.shape[d])) {
      return node.error("x ", x, " and indices ", indices, " differ in shape");
    }
  }
  if (!node.has_input(2)) return y;
  PINNACE_ASSIGN(const Dim length, vector_length(node, 2, false));
  if (differ(length, Dim(x.rank()))) {
    return node.error("output_shape ", node.input(2), " must have ", x.rank(), " entries");
  }
  const auto sizes = node.input_known(2);
  for (size_t d = 0; d < y.shape.size(); ++d) {
    const KnownInt given = sizes ? (*sizes)[d] : KnownInt{};
    if (given.known && (given.value < 0 || (y.shape[d].known() && (d < 2 ? given.value != y.shape[d].size
                                                                         : given.value < y.shape[d].size)))) {
      return node.error("output_shape has ", given.value, " in dimension ", d, ", unpooled it has ", y.shape[d].size);
    }
    if (d >= 2) y.shape[d] = given.dim();
  }
  return y;
}

Status max_unpool_reference(const NodeView& node, std::span<const TensorView> in, std::span<const TensorView> out) {
  const TensorView x = in[0], y = out[0];
  PINNACE_ASSIGN(const Shape unpooled, unpooled_shape(node, *x.type));
  int64_t count = 1;
  for (size_t d = 0; d < unpooled.size(); ++d) {
    count *= unpooled[d].size;
    if (unpooled[d].size > y.type->shape[d].size) return node.error("y is smaller than what is unpooled");
  }
  const size_t bytes = element_bytes(x.dtype());
  if (y.elements()) std::memset(y.bytes, 0, static_cast<size_t>(y.elements()) * bytes);
  const std::vector<int64_t> strides = row_major_strides(y.type->shape);
  for (int64_t i = 0; i < x.elements(); ++i) {
    if (i % 4096 == 4095 && loop_stops()) break;
    int64_t place = in[1].data<int64_t>()[i];
    if (place < 0 || place >= count) return node.error("index ", place, " is outside ", count, " unpooled elements");
    int64_t at = 0;
    for (size_t d = unpooled.size(); d-- > 0; place /= unpooled[d].size) at += place % unpooled[d].size * strides[d];
    copy_element(y.bytes + static_cast<size_t>(at) * bytes, x.bytes + static_cast<size_t>(i) * bytes, bytes);
  }
  return {};
}
}  // namespace

PINNACE_OP(max_unpool){
    .name = "max_unpool",
    .inputs = {{"x", kFloats}, {"indices", kI64}, {"output_shape", kI64, 0, Arity::kOptional}},
    .attrs = {required_attr("kernel_shape", AttrKind::kInts), kPadsAttr, kStridesAttr},
    .type = max_unpool_type,
    .reference = max_unpool_reference,
};
}  // namespace pinnace
