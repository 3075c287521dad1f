// The search of arg_max and arg_min.
#include "ops/arg_reduce.h"

#include "ops/move.h"

namespace pinnace {

Result<TensorType> arg_reduce_type(const NodeView& node) {
  const TensorType& x = node.input(0);
  PINNACE_ASSIGN(const int axis, node.axis(node.attr_int("axis"), x.rank()));
  TensorType y{DType::kI64, x.shape, nullptr};
  const auto at = y.shape.begin() + axis;
  if (at->known() && at->size == 0) {
    const Dim rest = dim_mul(dim_product({y.shape.begin(), at}), dim_product({at + 1, y.shape.end()}));
    if (rest.known() && rest.size > 0) return node.error("axis ", axis, " of ", x, " has no elements");
  }
  if (node.attr_int("keepdims")) {
    *at = 1;
  } else {
    y.shape.erase(at);
  }
  return y;
}

Status arg_reduce(const NodeView& node, const TensorView& x, const TensorView& y, bool largest) {
  PINNACE_ASSIGN(const int axis, node.axis(node.attr_int("axis"), x.rank()));
  const bool last = node.attr_int("select_last_index") != 0;
  const AxisView v = view_axis(x.type->shape, axis);
  if (v.size == 0 && y.elements() > 0) return node.error("axis ", axis, " of ", *x.type, " has no elements");
  return visit(x.dtype(), [&](auto zero) {
    using T = decltype(zero);
    const T* data = x.data<T>();
    node.threads().ranges(v.outer * v.inner, 2 * static_cast<double>(v.size), [&](int64_t begin, int64_t end) {
      for (int64_t line = begin; line < end; ++line) {
        const int64_t o = line / v.inner, i = line % v.inner;
        const T* row = data + o * v.size * v.inner + i;
        int64_t best = 0;
        for (int64_t k = 1; k < v.size; ++k) {
          const auto a = widen(row[k * v.inner]), b = widen(row[best * v.inner]);
          const bool a_nan = a != a, b_nan = b != b;
          const bool better = a_nan ? !b_nan : !b_nan && (largest ? a > b : a < b);
          const bool equal = a_nan ? b_nan : a == b;
          if (better || (last && equal)) best = k;
        }
        y.data<int64_t>()[o * v.inner + i] = best;
      }
    });
    return Status();
  });
}

}  // namespace pinnace
