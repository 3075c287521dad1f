// gather: the slices of x along an axis that indices name: y[a, i, b] = x[a, indices[i], b].
//   x        [A..., n, B...]  any type
//   indices  [I...]  i32 | i64 in [-n, n)
//   axis     int, default 0
//   y        [A..., I..., B...]  as x
// An index outside is an error. Source: ONNX Gather, opset 13.
#include "ops/move.h"

namespace pinnace {
namespace {
Result<TensorType> gather_type(const NodeView& node) {
  const TensorType& x = node.input(0);
  const Shape& indices = node.input(1).shape;
  PINNACE_ASSIGN(const int axis, node.axis(node.attr_int("axis"), x.rank()));
  TensorType y{x.dtype, x.shape, nullptr};
  PINNACE_ASSIGN(y.quantization, moved_quantization(node, 0));
  y.shape.erase(y.shape.begin() + axis);
  y.shape.insert(y.shape.begin() + axis, indices.begin(), indices.end());
  return y;
}

Status gather_reference(const NodeView& node, std::span<const TensorView> in, std::span<const TensorView> out) {
  const TensorView x = in[0], indices = in[1], y = out[0];
  PINNACE_ASSIGN(const int axis, node.axis(node.attr_int("axis"), x.rank()));
  const AxisView v = view_axis(x.type->shape, axis);
  const size_t bytes = element_bytes(x.dtype()), run = static_cast<size_t>(v.inner) * bytes;
  const int64_t count = indices.elements();
  for (int64_t i = 0; i < count; ++i) PINNACE_TRY(wrap_index(node, load_index(indices, i), v.size).status());
  if (y.elements() == 0) return {};
  const auto copy = [&](int64_t first, int64_t last) {
    for (int64_t row = first; row < last; ++row) {
      const int64_t o = row / count, index = load_index(indices, row % count);
      copy_run(y.bytes + static_cast<size_t>(row) * run,
               x.bytes + static_cast<size_t>(o * v.size + index + (index < 0 ? v.size : 0)) * run, v.inner, bytes);
    }
  };
  node.threads().ranges(v.outer * count, copy_nanoseconds(v.inner, bytes), copy);
  return {};
}
}  // namespace

PINNACE_OP(gather){
    .name = "gather",
    .inputs = {{"x", kBytewise}, {"indices", kIndices}},
    .attrs = {int_attr("axis", 0)},
    .type = gather_type,
    .reference = gather_reference,
    .traits = Trait::kMoves,
    .work = Work::kCopied,
};
}  // namespace pinnace
