// split: x cut into pieces along an axis.
//   x            [...]  any type
//   split        [outputs]  i64, optional: sizes of the pieces; none negative, their sum is the size of the axis
//   axis         int, default 0
//   num_outputs  int, default 0: not stated; else it must be the number of outputs
//   y...         as x
// Without split every piece has size ceil(axis / outputs) as long as there is something left. Source: ONNX Split,
// opset 18.
#include <algorithm>

#include "ops/move.h"

namespace pinnace {
namespace {
Status split_types(const NodeView& node, std::span<TensorType> outputs) {
  const TensorType& x = node.input(0);
  PINNACE_ASSIGN(const int axis, node.axis(node.attr_int("axis"), x.rank()));
  PINNACE_ASSIGN(const auto quantization, moved_quantization(node, 0));
  const auto pieces = static_cast<int64_t>(outputs.size());
  const int64_t stated = node.attr_int("num_outputs");
  if (stated != 0 && stated != pieces) return node.error("num_outputs is ", stated, ", there are ", pieces, " outputs");
  const Dim d = x.shape[static_cast<size_t>(axis)];
  for (TensorType& y : outputs) {
    y = {x.dtype, x.shape, quantization};
    if (pieces > 1) y.shape[static_cast<size_t>(axis)] = dim_at_most(d);
  }
  if (!node.has_input(1)) {
    if (!d.known()) return {};
    int64_t left = d.size;
    const int64_t piece = left / pieces + (left % pieces != 0);
    for (TensorType& y : outputs) {
      const int64_t size = std::min(piece, left);
      y.shape[static_cast<size_t>(axis)] = size;
      left -= size;
    }
    return {};
  }
  PINNACE_ASSIGN(const Dim length, vector_length(node, 1, false));
  if (length.known() && length.size != pieces) {
    return node.error("split has ", length.size, " sizes, there are ", pieces, " outputs");
  }
  const auto sizes = node.input_known(1);
  if (!sizes) return {};
  Dim sum(0);
  for (size_t i = 0; i < sizes->size(); ++i) {
    const KnownInt& k = (*sizes)[i];
    if (k.known && k.value < 0) return node.error("size ", k.value, " of piece ", i, " is negative");
    if (k.known || k.symbol >= 0) outputs[i].shape[static_cast<size_t>(axis)] = k.dim();
    sum = dim_add(sum, k.dim());
  }
  if (sum.known() && d.known() && sum.size != d.size) {
    return node.error("sizes sum to ", sum.size, ", axis ", axis, " of ", x, " has ", d.size);
  }
  return {};
}

Status split_reference(const NodeView& node, std::span<const TensorView> in, std::span<const TensorView> out) {
  const TensorView x = in[0];
  PINNACE_ASSIGN(const int axis, node.axis(node.attr_int("axis"), x.rank()));
  const AxisView v = view_axis(x.type->shape, axis);
  const size_t bytes = element_bytes(x.dtype());
  int64_t start = 0;
  for (const TensorView& y : out) {
    const int64_t run = y.dim(axis) * v.inner;
    node.threads().ranges(v.outer, copy_nanoseconds(run, bytes), [&](int64_t first, int64_t last) {
      for (int64_t o = first; o < last; ++o) {
        copy_run(y.bytes + static_cast<size_t>(o * run) * bytes,
                 x.bytes + static_cast<size_t>((o * v.size + start) * v.inner) * bytes, run, bytes);
      }
    });
    start += y.dim(axis);
  }
  return {};
}
}  // namespace

PINNACE_OP(split){
    .name = "split",
    .inputs = {{"x", kBytewise}, {"split", kI64, 0, Arity::kOptional}},
    .attrs = {int_attr("axis", 0), int_attr("num_outputs", 0)},
    .max_outputs = -1,
    .types = split_types,
    .reference = split_reference,
    .traits = Trait::kMoves,
    .work = Work::kCopied,
};
}  // namespace pinnace
