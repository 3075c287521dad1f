// non_zero: the indices of all elements that are not zero, in row-major order.
//   x  [...]  numbers and bool
//   y  [rank of x, count]  i64: one column per element; a scalar gives [0, 0 or 1]
// NaN is not zero, -0 is. The count depends on data; bound: the elements of x. Source: ONNX NonZero, opset 13.
#include "ops/move.h"

namespace pinnace {
namespace {
template <class F>
void each_non_zero(const TensorView& x, F f) {
  constexpr int64_t kBetweenLooks = 65536;
  const int64_t count = x.elements();
  for (int64_t first = 0; first < count && !loop_stops(); first += kBetweenLooks) {
    visit(x.dtype(), [&](auto zero) {
      using T = decltype(zero);
      for (int64_t i = first; i < std::min(count, first + kBetweenLooks); ++i) {
        if (widen(x.data<T>()[i]) != widen(T{})) f(i);
      }
      return 0;
    });
  }
}

Result<TensorType> non_zero_type(const NodeView& node) {
  const TensorType& x = node.input(0);
  if (x.quantized()) return node.error("takes no quantised input, is given ", x);
  TensorType y{DType::kI64, {Dim(x.rank()), dim_at_most(dim_product(x.shape))}, nullptr};
  if (node.input_data(0) && x.concrete()) {
    int64_t count = 0;
    // Only read: TensorView has one type of pointer for both directions.
    each_non_zero({&x, static_cast<std::byte*>(const_cast<void*>(node.input_data(0)))}, [&](int64_t) { ++count; });
    y.shape[1] = count;
  }
  return y;
}

Status non_zero_reference(const NodeView&, std::span<const TensorView> in, std::span<const TensorView> out) {
  const TensorView x = in[0], y = out[0];
  const int64_t columns = y.dim(1);
  int64_t column = 0;
  each_non_zero(x, [&](int64_t i) {
    for (int d = x.rank(); d-- > 0;) {
      y.data<int64_t>()[d * columns + column] = i % x.dim(d);
      i /= x.dim(d);
    }
    ++column;
  });
  return {};
}
}  // namespace

PINNACE_OP(non_zero){
    .name = "non_zero",
    .inputs = {{"x", kAny}},
    .type = non_zero_type,
    .reference = non_zero_reference,
    .traits = Trait::kRunsToCount,
};
}  // namespace pinnace
