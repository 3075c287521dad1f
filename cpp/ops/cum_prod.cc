// cum_prod: running products along an axis: y[k] = x[0] * ... * x[k].
//   x          [...]  numbers
//   axis       [] or [1]  i32 | i64
//   exclusive  int, default 0; 1: y[k] leaves out x[k], so that the first one is 1
//   reverse    int, default 0; 1: from the end
//   y          as x
// Floats are multiplied in double and each product is rounded once; integers wrap. From a NaN on all products are NaN.
// Source: ONNX CumProd, opset 26.
#include "ops/move.h"

namespace pinnace {
namespace {
Result<TensorType> cum_prod_type(const NodeView& node) {
  PINNACE_TRY(refuse_quantized(node));
  const TensorType& x = node.input(0);
  PINNACE_ASSIGN(const KnownInt axis, known_scalar(node, 1));
  if (axis.known) PINNACE_TRY(node.axis(axis.value, x.rank()).status());
  return x;
}

Status cum_prod_reference(const NodeView& node, std::span<const TensorView> in, std::span<const TensorView> out) {
  const TensorView x = in[0], y = out[0];
  PINNACE_ASSIGN(const int axis, node.axis(load_index(in[1], 0), x.rank()));
  const bool exclusive = node.attr_int("exclusive") != 0, reverse = node.attr_int("reverse") != 0;
  const AxisView v = view_axis(x.type->shape, axis);
  return visit(x.dtype(), [&](auto zero) {
    using T = decltype(zero);
    using Product = std::conditional_t<is_float<T>, double, uint64_t>;  // unsigned: wraps where signed is undefined
    for (int64_t o = 0; o < v.outer; ++o) {
      for (int64_t i = 0; i < v.inner; ++i) {
        Product product{1};
        for (int64_t k = 0; k < v.size; ++k) {
          const int64_t at = (o * v.size + (reverse ? v.size - 1 - k : k)) * v.inner + i;
          const Product before = product;
          product *= static_cast<Product>(widen(x.data<T>()[at]));
          y.data<T>()[at] = static_cast<T>(exclusive ? before : product);
        }
      }
    }
    return Status();
  });
}
}  // namespace

PINNACE_OP(cum_prod){
    .name = "cum_prod",
    .inputs = {{"x", kNumbers}, {"axis", kIndices}},
    .attrs = {int_attr("exclusive", 0), int_attr("reverse", 0)},
    .type = cum_prod_type,
    .reference = cum_prod_reference,
    .in_place = 1,
};
}  // namespace pinnace
