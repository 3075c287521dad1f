// unsqueeze: x with new dimensions of size 1.
//   x     [...]  any type
//   axes  [n]  i64: where they stand in y, in [-rank of y, rank of y)
//   y     as x, same bytes, n dimensions more
// Source: ONNX Unsqueeze, opset 25.
#include "ops/move.h"

namespace pinnace {
namespace {
Result<TensorType> unsqueeze_type(const NodeView& node) {
  const TensorType& x = node.input(0);
  TensorType y{x.dtype, {}, nullptr};
  PINNACE_ASSIGN(y.quantization, moved_quantization(node, 0));
  PINNACE_ASSIGN(const Dim length, vector_length(node, 1, true));
  y.shape.resize(x.shape.size() + static_cast<size_t>(length.size));
  const auto named = known_ints(node, 1);
  if (!named) return y;
  PINNACE_ASSIGN(const std::vector<int> axes, node.axes(*named, y.rank()));
  std::vector<bool> added(y.shape.size(), false);
  for (int axis : axes) added[static_cast<size_t>(axis)] = true;
  size_t from = 0;
  for (size_t d = 0; d < added.size(); ++d) y.shape[d] = added[d] ? Dim(1) : x.shape[from++];
  return y;
}

Status unsqueeze_reference(const NodeView&, std::span<const TensorView> in, std::span<const TensorView> out) {
  copy_run(out[0].bytes, in[0].bytes, in[0].type->bytes(), 1);
  return {};
}
}  // namespace

PINNACE_OP(unsqueeze){
    .name = "unsqueeze",
    .inputs = {{"x", kEvery}, {"axes", kI64}},
    .type = unsqueeze_type,
    .reference = unsqueeze_reference,
    .traits = Trait::kView | Trait::kReshapes | Trait::kMoves | Trait::kKeepsSameType | Trait::kFoldsQuantization,
    .work = Work::kCopied,
};
}  // namespace pinnace
