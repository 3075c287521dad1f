// What cum_max and cum_min share: running extremes along an axis, with the place of each.
#pragma once

#include "ops/move.h"

namespace pinnace {

inline Status cum_extreme_types(const NodeView& node, std::span<TensorType> outputs) {
  PINNACE_TRY(refuse_quantized(node));
  const TensorType& x = node.input(0);
  PINNACE_TRY(node.axis(node.attr_int("axis"), x.rank()).status());
  outputs[0] = x;
  if (outputs.size() > 1) outputs[1] = {DType::kI64, x.shape, nullptr};
  return {};
}

/// `better(a, b)`: a takes the place of b, also where both are equal. A NaN takes it too, and keeps it.
template <class Better>
Status cum_extreme(const NodeView& node, std::span<const TensorView> in, std::span<const TensorView> out,
                   Better better) {
  const TensorView x = in[0], y = out[0];
  PINNACE_ASSIGN(const int axis, node.axis(node.attr_int("axis"), x.rank()));
  const AxisView v = view_axis(x.type->shape, axis);
  return visit(x.dtype(), [&](auto zero) {
    using T = decltype(zero);
    node.threads().ranges(v.outer * v.inner, 3 * static_cast<double>(v.size), [&](int64_t begin, int64_t end) {
      for (int64_t line = begin; line < end; ++line) {
        const int64_t o = line / v.inner, i = line % v.inner;
        int64_t best = 0;
        for (int64_t k = 0; k < v.size; ++k) {
          const auto element = [&](int64_t place) { return widen(x.data<T>()[(o * v.size + place) * v.inner + i]); };
          const auto now = element(k), held = element(best);
          if (now != now || (held == held && better(now, held))) best = k;
          const int64_t at = (o * v.size + k) * v.inner + i;
          y.data<T>()[at] = x.data<T>()[(o * v.size + best) * v.inner + i];
          if (out.size() > 1) out[1].data<int64_t>()[at] = best;
        }
      }
    });
    return Status();
  });
}

}  // namespace pinnace
