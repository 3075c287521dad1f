// cast_like: y = x in the element type of another tensor, as cast does.
//   x            [...]  any type
//   target_type  any tensor: only its element type counts
//   y            the shape of x
//   saturate, round_mode  as cast has them
// Source: ONNX CastLike, opset 25.
#include "ops/cast_elements.h"

namespace pinnace {
namespace {
Result<TensorType> cast_like_type(const NodeView& node) {
  PINNACE_TRY(cast_rule(node).status());
  return cast_type_to(node, node.input(1).dtype);
}

Status cast_like_reference(const NodeView& node, std::span<const TensorView> in, std::span<const TensorView> out) {
  PINNACE_ASSIGN(const CastRule rule, cast_rule(node));
  return cast_elements(node.threads(), in[0], out[0], rule);
}
}  // namespace

PINNACE_OP(cast_like){
    .name = "cast_like",
    .inputs = {{"x", kEvery}, {"target_type", kEvery}},
    .attrs = {int_attr("saturate", 1), string_attr("round_mode", "up")},
    .type = cast_like_type,
    .reference = cast_like_reference,
    .in_place = 1,
    .traits = Trait::kElementwise | Trait::kConverts | Trait::kKeepsSameType,
};
}  // namespace pinnace
