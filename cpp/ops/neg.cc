// neg: y = -x.
//   x  [...]  floats, signed integers, or quantised i8 | u8
//   y  as x; quantised: declared scale and zero point
// NaN stays NaN; 0 becomes -0 for floats; the smallest signed integer stays itself. Quantised: by table, see
// quantized_map.h. Source: ONNX Neg, opset 13.
#include "ops/unary.h"

namespace pinnace {
namespace {
Result<TensorType> neg_type(const NodeView& node) {
  if (node.input(0).dtype == DType::kU8) PINNACE_TRY(refuse_plain_int8(node, 0));
  return same_type(node);
}

Status neg_reference(const NodeView& node, std::span<const TensorView> in, std::span<const TensorView> out) {
  const TensorView x = in[0], y = out[0];
  if (x.type->quantized()) return map_function(node.threads(), x, y, [](double v) { return -v; });
  return visit(x.dtype(), [&](auto zero) {
    using T = decltype(zero);
    map_elements<T, T>(node.threads(), x, y, [](Wide<T> v) {
      if constexpr (is_float<T>) {
        return -v;
      } else {
        return wrap<T>(0 - static_cast<uint64_t>(v));
      }
    });
    return Status();
  });
}
}  // namespace

PINNACE_OP(neg){
    .name = "neg",
    .inputs = {{"x", kFloats | kI8 | kU8 | kI32 | kI64 | dtypes(DType::kI16)}},
    .type = neg_type,
    .reference = neg_reference,
    .in_place = 1,
    .traits = Trait::kElementwise,
    .unary = UnaryKind::kNeg,
};
}  // namespace pinnace
