// gather_elements: one element of x per element of indices: y[..., i, ...] = x[..., indices[..., i, ...], ...].
//   x        [...]  any type
//   indices  [...]  i32 | i64 in [-n, n), n the size of x along axis; same rank as x, no larger than x beside the axis
//   axis     int, default 0
//   y        the shape of indices, the type of x
// An index outside is an error. Source: ONNX GatherElements, opset 13.
#include "ops/move.h"

namespace pinnace {
namespace {
Result<TensorType> gather_elements_type(const NodeView& node) {
  const TensorType &x = node.input(0), &indices = node.input(1);
  PINNACE_ASSIGN(const int axis, node.axis(node.attr_int("axis"), x.rank()));
  if (indices.rank() != x.rank()) {
    return node.error("indices ", indices, " must have the rank of ", x);
  }
  for (size_t d = 0; d < x.shape.size(); ++d) {
    if (static_cast<int>(d) != axis && x.shape[d].known() && indices.shape[d].known() &&
        indices.shape[d].size > x.shape[d].size) {
      return node.error("indices ", indices, " are larger than ", x, " beside axis ", axis);
    }
  }
  TensorType y{x.dtype, indices.shape, nullptr};
  PINNACE_ASSIGN(y.quantization, moved_quantization(node, 0));
  return y;
}

Status gather_elements_reference(const NodeView& node, std::span<const TensorView> in,
                                 std::span<const TensorView> out) {
  const TensorView x = in[0], indices = in[1], y = out[0];
  PINNACE_ASSIGN(const int axis, node.axis(node.attr_int("axis"), x.rank()));
  std::vector<int64_t> strides = row_major_strides(x.type->shape);
  const int64_t step = std::exchange(strides[static_cast<size_t>(axis)], 0), size = x.dim(axis);
  const size_t bytes = element_bytes(x.dtype());
  StridedLoop loop(y.type->shape);
  loop.add_strides(strides);
  const auto gather = [&](int64_t first, int64_t last) {
    Status status;
    loop.run(first, last, [&](int64_t i, const int64_t* at) {
      int64_t index = load_index(indices, i);
      if (index < -size || index >= size) {
        if (status.ok()) status = wrap_index(node, index, size).status();
        return;
      }
      index += index < 0 ? size : 0;
      copy_element(y.bytes + static_cast<size_t>(i) * bytes,
                   x.bytes + static_cast<size_t>(at[0] + index * step) * bytes, bytes);
    });
    return status;
  };
  constexpr double kNanoseconds = 5;
  return node.threads().ranges(loop.size(), kNanoseconds, gather, kMapGrain);
}
}  // namespace

PINNACE_OP(gather_elements){
    .name = "gather_elements",
    .inputs = {{"x", kAny}, {"indices", kIndices}},
    .attrs = {int_attr("axis", 0)},
    .type = gather_elements_type,
    .reference = gather_elements_reference,
    .traits = Trait::kMoves,
};
}  // namespace pinnace
