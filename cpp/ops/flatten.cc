// flatten: x as a matrix: the dimensions before `axis` times those from it on.
//   x     [...]  any type
//   axis  int in [-rank, rank], default 1; 0 gives one row
//   y     as x, rank 2; same bytes
// Source: ONNX Flatten, opset 25.
#include "ops/move.h"

namespace pinnace {
namespace {
Result<TensorType> flatten_type(const NodeView& node) {
  const TensorType& x = node.input(0);
  const int64_t axis = node.attr_int("axis"), rank = x.rank();
  if (axis < -rank || axis > rank) return node.error("axis ", axis, " is outside [", -rank, ",", rank, "]");
  const std::span<const Dim> dims = x.shape;
  const auto at = static_cast<size_t>(axis < 0 ? axis + rank : axis);
  TensorType y{x.dtype, {dim_product(dims.first(at)), dim_product(dims.subspan(at))}, nullptr};
  PINNACE_ASSIGN(y.quantization, moved_quantization(node, 0));
  return y;
}

Status flatten_reference(const NodeView&, std::span<const TensorView> in, std::span<const TensorView> out) {
  copy_run(out[0].bytes, in[0].bytes, in[0].type->bytes(), 1);
  return {};
}
}  // namespace

PINNACE_OP(flatten){
    .name = "flatten",
    .inputs = {{"x", kEvery}},
    .attrs = {int_attr("axis", 1)},
    .type = flatten_type,
    .reference = flatten_reference,
    .traits = Trait::kView | Trait::kReshapes | Trait::kMoves | Trait::kKeepsSameType | Trait::kFoldsQuantization,
    .work = Work::kCopied,
};
}  // namespace pinnace
