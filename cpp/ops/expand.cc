// expand: x broadcast to the shape that it and `shape` broadcast to together.
//   x      [...]  any type
//   shape  [n]  i64, none negative; 1 keeps x's size
//   y      as x, of rank max(rank of x, n)
// Source: ONNX Expand, opset 13.
#include <algorithm>

#include "ops/move.h"

namespace pinnace {
namespace {
Result<TensorType> expand_type(const NodeView& node) {
  const TensorType& x = node.input(0);
  PINNACE_ASSIGN(const Dim length, vector_length(node, 1, true));
  Shape wanted(static_cast<size_t>(length.size));
  if (const auto sizes = node.input_known(1)) {
    for (size_t i = 0; i < sizes->size(); ++i) {
      const KnownInt& k = (*sizes)[i];
      if (k.known && k.value < 0) return node.error("size ", k.value, " at place ", i, " is negative");
      wanted[i] = k.dim();
    }
  }
  TensorType y{x.dtype, {}, nullptr};
  PINNACE_ASSIGN(y.shape, broadcast_shapes(node, x.shape, wanted));
  PINNACE_ASSIGN(y.quantization, moved_quantization(node, 0));
  return y;
}

Status expand_reference(const NodeView& node, std::span<const TensorView> in, std::span<const TensorView> out) {
  const TensorView x = in[0], y = out[0];
  const std::vector<int64_t> own = row_major_strides(x.type->shape);
  std::vector<int64_t> from(static_cast<size_t>(y.rank()), 0);
  const size_t lead = from.size() - own.size();
  for (size_t i = 0; i < own.size(); ++i) from[lead + i] = x.type->shape[i].size == 1 ? 0 : own[i];
  copy_strided(node.threads(), y.type->shape, x.bytes, from, y.bytes, row_major_strides(y.type->shape),
               element_bytes(x.dtype()));
  return {};
}
}  // namespace

PINNACE_OP(expand){
    .name = "expand",
    .inputs = {{"x", kBytewise}, {"shape", kI64}},
    .type = expand_type,
    .reference = expand_reference,
    .traits = Trait::kMoves | Trait::kKeepsSameType,
    .work = Work::kCopied,
};
}  // namespace pinnace
