// constant_of_shape: a tensor of a given shape, every element the same.
//   shape      [rank]  i64, none negative
//   dtype      string, default "f32": the element type of y
//   value      float, default 0: the element of float types
//   int_value  int, default 0: the element of integer types and bool; it must be in the type's range
//   y          [shape...]
// ONNX holds element and type in one tensor attribute; these three say the same. Source: ONNX ConstantOfShape,
// opset 25.
#include "base/dtype_code.h"
#include "ops/move.h"

namespace pinnace {
namespace {
Result<TensorType> constant_of_shape_type(const NodeView& node) {
  const auto dtype = dtype_from_code(node.attr_string("dtype"));
  if (!dtype || !(kAny >> static_cast<int>(*dtype) & 1))
    return node.error("has no type '", node.attr_string("dtype"), "'");
  const int64_t wanted = node.attr_int("int_value");
  const bool in_range = visit(*dtype, [&](auto zero) {
    using T = decltype(zero);
    if constexpr (is_float<T>) {
      return true;
    } else {
      const auto value = static_cast<T>(wanted);
      return static_cast<int64_t>(value) == wanted && (!std::is_same_v<T, uint64_t> || wanted >= 0);
    }
  });
  if (!in_range) return node.error("int_value ", wanted, " is not in the range of ", dtype_name(*dtype));
  PINNACE_ASSIGN(const Dim length, vector_length(node, 0, true));
  TensorType y{*dtype, Shape(static_cast<size_t>(length.size)), nullptr};
  if (const auto sizes = node.input_known(0)) {
    for (size_t i = 0; i < sizes->size(); ++i) {
      const KnownInt& k = (*sizes)[i];
      if (k.known && k.value < 0) return node.error("size ", k.value, " at place ", i, " is negative");
      y.shape[i] = k.dim();
    }
  }
  return y;
}

Status constant_of_shape_reference(const NodeView& node, std::span<const TensorView>, std::span<const TensorView> out) {
  const TensorView y = out[0];
  const int64_t count = y.elements();
  return visit(y.dtype(), [&](auto zero) {
    using T = decltype(zero);
    T value{};
    if constexpr (is_float<T>) {
      value = narrow<T>(node.attr_float("value"));
    } else {
      value = static_cast<T>(node.attr_int("int_value"));
    }
    for (int64_t i = 0; i < count; ++i) y.data<T>()[i] = value;
    return Status();
  });
}
}  // namespace

PINNACE_OP(constant_of_shape){
    .name = "constant_of_shape",
    .inputs = {{"shape", kI64}},
    .attrs = {string_attr("dtype", "f32"), float_attr("value", 0), int_attr("int_value", 0)},
    .type = constant_of_shape_type,
    .reference = constant_of_shape_reference,
};
}  // namespace pinnace
