// What cum_sum and cum_prod share: a running result along an axis that an input gives, from either end, with or without
// the element itself.
#pragma once

#include "ops/move.h"

namespace pinnace {

inline Result<TensorType> cum_fold_type(const NodeView& node) {
  PINNACE_TRY(refuse_quantized(node));
  const TensorType& x = node.input(0);
  PINNACE_ASSIGN(const KnownInt axis, known_scalar(node, 1));
  if (axis.known) PINNACE_TRY(node.axis(axis.value, x.rank()).status());
  return x;
}

/// `fold(before, element)` gives what comes after an element; the first element comes after `start`. Floats are folded
/// in double and each result is rounded once. Integers are folded as uint64_t, which wraps where a signed type would be
/// undefined.
template <class Fold>
Status cum_fold(const NodeView& node, std::span<const TensorView> in, std::span<const TensorView> out, int start,
                Fold fold) {
  const TensorView x = in[0], y = out[0];
  PINNACE_ASSIGN(const int axis, node.axis(load_index(in[1], 0), x.rank()));
  const bool exclusive = node.attr_int("exclusive") != 0, reverse = node.attr_int("reverse") != 0;
  const AxisView v = view_axis(x.type->shape, axis);
  if (y.elements() == 0) return {};  // lines of nothing, however many
  return visit(x.dtype(), [&](auto zero) {
    using T = decltype(zero);
    using Wider = std::conditional_t<is_float<T>, double, uint64_t>;
    node.threads().ranges(v.outer * v.inner, 2 * static_cast<double>(v.size), [&](int64_t begin, int64_t end) {
      for (int64_t line = begin; line < end; ++line) {
        const int64_t o = line / v.inner, i = line % v.inner;
        auto sum = static_cast<Wider>(start);
        for (int64_t k = 0; k < v.size; ++k) {
          const int64_t at = (o * v.size + (reverse ? v.size - 1 - k : k)) * v.inner + i;
          const Wider before = sum;
          sum = fold(before, static_cast<Wider>(widen(x.data<T>()[at])));
          y.data<T>()[at] = static_cast<T>(exclusive ? before : sum);
        }
      }
    });
    return Status();
  });
}

}  // namespace pinnace
