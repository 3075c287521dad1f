// bit_shift: z = x shifted by y bits, broadcast as numpy does.
//   x, y       [...]  integers, the same type
//   direction  string, required: "LEFT" or "RIGHT"
//   z          the broadcast shape
// A right shift of a signed x keeps its sign; bits shifted past either end are lost. A y that is negative or not below
// the number of bits leaves only the fill: -1 for a right shift of a negative x, else 0. Source: ONNX BitShift,
// opset 28.
#include "ops/element.h"

namespace pinnace {
namespace {
Result<TensorType> bit_shift_type(const NodeView& node) {
  PINNACE_TRY(refuse_quantized(node));
  const std::string_view direction = node.attr_string("direction");
  if (direction != "LEFT" && direction != "RIGHT") {
    return node.error("direction is '", direction, "', must be 'LEFT' or 'RIGHT'");
  }
  return binary_type(node);
}

Status bit_shift_reference(const NodeView& node, std::span<const TensorView> in, std::span<const TensorView> out) {
  const bool left = node.attr_string("direction") == "LEFT";
  return visit_int(out[0].dtype(), [&](auto zero) {
    using T = decltype(zero);
    map_broadcast<T, T>(node.threads(), in[0], in[1], out[0], [left](T x, T y) {
      if (static_cast<uint64_t>(y) >= sizeof(T) * 8) return static_cast<T>(!left && x < T{} ? ~T{} : T{});
      return left ? wrap<T>(static_cast<uint64_t>(x) << y) : static_cast<T>(x >> y);
    });
    return Status();
  });
}
}  // namespace

PINNACE_OP(bit_shift){
    .name = "bit_shift",
    .inputs = {{"x", kInts, 'T'}, {"y", kInts, 'T'}},
    .attrs = {required_attr("direction", AttrKind::kString)},
    .type = bit_shift_type,
    .reference = bit_shift_reference,
    .in_place = 0b11,
    .traits = Trait::kElementwise,
};
}  // namespace pinnace
