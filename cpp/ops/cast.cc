// cast: y = x in another element type.
//   x   [...]  any type
//   to  string, required: name of the element type of y, "f32", "i64", "bool", "u4", ...
//   y   the shape of x, element type `to`
// Float to float and integer to float round once, half to even; what is too large becomes infinity. Float to integer
// truncates; NaN and what is out of range give what x86-64, numpy and PyTorch give, see convert() in element.h. Integer
// to narrower integer keeps the low bits. To bool: false for 0 and -0, true for all else, NaN too. Quantised tensors
// count as their stored integers, as NNAPI's CAST has it. ONNX's saturate and round_mode concern types that we do not
// have. Source: ONNX Cast, opset 28.
#include "ops/cast_elements.h"

namespace pinnace {

Result<TensorType> cast_type_to(const NodeView& node, DType to) {
  const auto declared = node.output_quantization(0);
  if (declared && dtypes(to) & (kFloats | kBool)) {
    return node.error("the output is declared quantised, but is ", dtype_name(to));
  }
  return TensorType{to, node.input(0).shape, declared};
}

Status cast_elements(const TensorView& x, const TensorView& y) {
  constexpr DTypes kPacked = kI4 | kU4;
  const int64_t count = y.elements();
  if (dtypes(x.dtype()) & kPacked) {
    if (dtypes(y.dtype()) & kPacked) {
      for (int64_t i = 0; i < count; ++i) store_int(y, i, load_int(x, i));
      return {};
    }
    return visit(y.dtype(), [&](auto zero) {
      using R = decltype(zero);
      for (int64_t i = 0; i < count; ++i) y.data<R>()[i] = convert<R>(load_int(x, i));
      return Status();
    });
  }
  return visit(x.dtype(), [&](auto zero_x) {
    using T = decltype(zero_x);
    const T* from = x.data<T>();
    if (dtypes(y.dtype()) & kPacked) {
      for (int64_t i = 0; i < count; ++i) store_int(y, i, convert<int8_t>(from[i]));
      return Status();
    }
    return visit(y.dtype(), [&](auto zero_y) {
      using R = decltype(zero_y);
      for (int64_t i = 0; i < count; ++i) y.data<R>()[i] = convert<R>(from[i]);
      return Status();
    });
  });
}

namespace {
Result<TensorType> cast_type(const NodeView& node) {
  const auto to = dtype_from_name(node.attr_string("to"));
  if (!to) return node.error("to is '", node.attr_string("to"), "', which is no element type");
  return cast_type_to(node, *to);
}

Status cast_reference(const NodeView&, std::span<const TensorView> in, std::span<const TensorView> out) {
  return cast_elements(in[0], out[0]);
}
}  // namespace

PINNACE_OP(cast){
    .name = "cast",
    .inputs = {{"x", kAny | kI4 | kU4}},
    .attrs = {required_attr("to", AttrKind::kString)},
    .type = cast_type,
    .reference = cast_reference,
    .in_place = 1,
};
}  // namespace pinnace
