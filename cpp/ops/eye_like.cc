// eye_like: ones on one diagonal, zeros elsewhere, in the shape of x.
//   x      [rows, cols]  any type; its elements are not read
//   k      int, default 0: the diagonal col = row + k
//   dtype  string, default "": the element type of y; empty: that of x
//   y      [rows, cols]
// Source: ONNX EyeLike, opset 22.
#include "base/dtype_code.h"
#include "ops/move.h"

namespace pinnace {
namespace {
Result<TensorType> eye_like_type(const NodeView& node) {
  PINNACE_TRY(refuse_quantized(node));
  const TensorType& x = node.input(0);
  if (x.rank() != 2) return node.error("x must be a matrix, is ", x);
  const std::string_view name = node.attr_string("dtype");
  if (name.empty()) return TensorType{x.dtype, x.shape, nullptr};
  const auto dtype = dtype_from_code(name);
  if (!dtype || !(kAny >> static_cast<int>(*dtype) & 1)) return node.error("has no type '", name, "'");
  return TensorType{*dtype, x.shape, nullptr};
}

Status eye_like_reference(const NodeView& node, std::span<const TensorView>, std::span<const TensorView> out) {
  const TensorView y = out[0];
  const int64_t rows = y.dim(0), cols = y.dim(1), k = node.attr_int("k");
  return visit(y.dtype(), [&](auto zero) {
    using T = decltype(zero);
    for (int64_t r = 0; r < rows; ++r) {
      for (int64_t c = 0; c < cols; ++c) {
        y.data<T>()[r * cols + c] = c - r == k ? narrow<T>(Wide<T>(1)) : T{};
      }
    }
    return Status();
  });
}
}  // namespace

PINNACE_OP(eye_like){
    .name = "eye_like",
    .inputs = {{"x", kAny}},
    .attrs = {int_attr("k", 0), string_attr("dtype", "")},
    .type = eye_like_type,
    .reference = eye_like_reference,
};
}  // namespace pinnace
