// transpose: dimension i of y is dimension perm[i] of x.
//   x     [...]  any type
//   perm  ints, a permutation of the dimensions, none counted from the last; empty: the reverse order
//   y     as x; a quantisation axis moves along
// Source: ONNX Transpose, opset 25.
#include <algorithm>

#include "ops/move.h"

namespace pinnace {
namespace {
Result<std::vector<int>> permutation(const NodeView& node, int rank) {
  const std::span<const int64_t> given = node.attr_ints("perm");
  std::vector<int> perm;
  if (given.empty()) {
    for (int i = rank; i-- > 0;) perm.push_back(i);
    return perm;
  }
  if (given.size() != static_cast<size_t>(rank)) {
    return node.error("perm ", list_text(given), " must have ", rank, " elements");
  }
  PINNACE_TRY(node.axes(given, rank).status());
  for (int64_t axis : given) {
    if (axis < 0) return node.error("perm ", list_text(given), " has a negative dimension");
    perm.push_back(static_cast<int>(axis));
  }
  return perm;
}

Result<TensorType> transpose_type(const NodeView& node) {
  const TensorType& x = node.input(0);
  PINNACE_ASSIGN(const std::vector<int> perm, permutation(node, x.rank()));
  TensorType y{x.dtype, {}, x.quantization};
  for (int axis : perm) y.shape.push_back(x.shape[static_cast<size_t>(axis)]);
  if (x.quantized() && x.quantization->axis >= 0) {
    if (x.quantization->block > 0) return node.error("takes no input quantised per block: ", x);
    Quantization moved = *x.quantization;
    moved.axis = static_cast<int32_t>(std::find(perm.begin(), perm.end(), moved.axis) - perm.begin());
    y.quantization = std::make_shared<const Quantization>(std::move(moved));
  }
  return y;
}

Status transpose_reference(const NodeView& node, std::span<const TensorView> in, std::span<const TensorView> out) {
  PINNACE_ASSIGN(const std::vector<int> perm, permutation(node, in[0].rank()));
  copy_transposed(node.threads(), in[0].type->shape, perm, in[0].bytes, out[0].bytes, element_bytes(in[0].dtype()));
  return {};
}
}  // namespace

PINNACE_OP(transpose){
    .name = "transpose",
    .inputs = {{"x", kBytewise}},
    .attrs = {ints_attr("perm")},
    .type = transpose_type,
    .reference = transpose_reference,
    .traits = Trait::kMoves | Trait::kFoldsQuantization,
    .work = Work::kCopied,
};
}  // namespace pinnace
