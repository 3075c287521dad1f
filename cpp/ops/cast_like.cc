// cast_like: y = x in the element type of another tensor, as cast does.
//   x            [...]  any type
//   target_type  any tensor: only its element type counts
//   y            the shape of x
// Source: ONNX CastLike, opset 25.
#include "ops/cast_elements.h"

namespace pinnace {
namespace {
Result<TensorType> cast_like_type(const NodeView& node) {
  return cast_type_to(node, node.input(1).dtype);
}

Status cast_like_reference(const NodeView&, std::span<const TensorView> in, std::span<const TensorView> out) {
  return cast_elements(in[0], out[0]);
}
}  // namespace

PINNACE_OP(cast_like){
    .name = "cast_like",
    .inputs = {{"x", kAny | kI4 | kU4}, {"target_type", kAny | kI4 | kU4}},
    .type = cast_like_type,
    .reference = cast_like_reference,
    .in_place = 1,
};
}  // namespace pinnace
