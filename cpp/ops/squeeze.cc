// squeeze: x without some dimensions of size 1.
//   x     [...]  any type
//   axes  [n]  i64, optional: the dimensions to leave out; left out: all that have size 1
//   y     as x, same bytes
// Without axes every size of x must be known, for the rank depends on them. Source: ONNX Squeeze, opset 25.
#include "ops/move.h"

namespace pinnace {
namespace {
Result<TensorType> squeeze_type(const NodeView& node) {
  const TensorType& x = node.input(0);
  TensorType y{x.dtype, {}, nullptr};
  PINNACE_ASSIGN(y.quantization, moved_quantization(node, 0));
  std::vector<bool> drop(x.shape.size(), false);
  if (!node.has_input(1)) {
    if (!x.concrete()) return node.error("without axes its rank depends on sizes that are not known: ", x);
    for (size_t d = 0; d < drop.size(); ++d) drop[d] = x.shape[d].size == 1;
  } else {
    PINNACE_ASSIGN(const Dim length, vector_length(node, 1, true));
    const auto named = known_ints(node, 1);
    if (!named) {
      if (length.size > x.rank()) return node.error("axes names ", length.size, " axes of ", x);
      y.shape.resize(x.shape.size() - static_cast<size_t>(length.size));
      return y;
    }
    PINNACE_ASSIGN(const std::vector<int> axes, node.axes(*named, x.rank()));
    for (int axis : axes) {
      const Dim& d = x.shape[static_cast<size_t>(axis)];
      if (d.known() && d.size != 1) return node.error("axis ", axis, " of ", x, " does not have size 1");
      drop[static_cast<size_t>(axis)] = true;
    }
  }
  for (size_t d = 0; d < drop.size(); ++d) {
    if (!drop[d]) y.shape.push_back(x.shape[d]);
  }
  return y;
}

Status squeeze_reference(const NodeView&, std::span<const TensorView> in, std::span<const TensorView> out) {
  copy_run(out[0].bytes, in[0].bytes, in[0].type->bytes(), 1);
  return {};
}
}  // namespace

PINNACE_OP(squeeze){
    .name = "squeeze",
    .inputs = {{"x", kEvery}, {"axes", kI64, 0, Arity::kOptional}},
    .type = squeeze_type,
    .reference = squeeze_reference,
    .traits = Trait::kView | Trait::kReshapes | Trait::kMoves | Trait::kKeepsSameType | Trait::kFoldsQuantization,
    .work = Work::kCopied,
};
}  // namespace pinnace
