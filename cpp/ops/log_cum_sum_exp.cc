// log_cum_sum_exp: y[k] = log(exp(x[0]) + ... + exp(x[k])) along an axis.
//   x     [...]  floats
//   axis  int, default 0
//   y     as x
// Each step is taken around the larger of the sum so far and the element, in double, and rounded once, so that nothing
// overflows on the way: inf gives inf, -inf adds nothing, NaN stays. ONNX has no such operator; PyTorch's logcumsumexp.
#include <cmath>

#include "ops/move.h"

namespace pinnace {
namespace {
Result<TensorType> log_cum_sum_exp_type(const NodeView& node) {
  PINNACE_TRY(node.axis(node.attr_int("axis"), node.input(0).rank()).status());
  return node.input(0);
}

double log_add(double a, double b) {
  if (std::isnan(a) || std::isnan(b)) return a + b;
  const double high = std::fmax(a, b), low = std::fmin(a, b);
  if (std::isinf(high)) return high;  // of both signs: inf + anything, and -inf + -inf
  return high + std::log1p(std::exp(low - high));
}

Status log_cum_sum_exp_reference(const NodeView& node, std::span<const TensorView> in,
                                 std::span<const TensorView> out) {
  const TensorView x = in[0], y = out[0];
  PINNACE_ASSIGN(const int axis, node.axis(node.attr_int("axis"), x.rank()));
  const AxisView v = view_axis(x.type->shape, axis);
  return visit_float(x.dtype(), [&](auto zero) {
    using T = decltype(zero);
    node.threads().ranges(v.outer * v.inner, 30 * static_cast<double>(v.size), [&](int64_t begin, int64_t end) {
      for (int64_t line = begin; line < end; ++line) {
        const int64_t o = line / v.inner, i = line % v.inner;
        double sum = -INFINITY;
        for (int64_t k = 0; k < v.size; ++k) {
          if (k % 4096 == 4095 && loop_stops()) return;
          const int64_t at = (o * v.size + k) * v.inner + i;
          sum = log_add(sum, widen(x.data<T>()[at]));
          y.data<T>()[at] = narrow<T>(sum);
        }
      }
    });
    return Status();
  });
}
}  // namespace

PINNACE_OP(log_cum_sum_exp){
    .name = "log_cum_sum_exp",
    .inputs = {{"x", kFloats}},
    .attrs = {int_attr("axis", 0)},
    .type = log_cum_sum_exp_type,
    .reference = log_cum_sum_exp_reference,
    .in_place = 1,
};
}  // namespace pinnace
