// log_gamma: y = log |gamma(x)|.
//   x  [...]  floats
//   y  as x
// inf at 0, at negative whole numbers, and at both infinities; NaN stays. Computed in double, rounded once. ONNX has no
// such operator; PyTorch's lgamma.
#include <cmath>

#include "ops/lines.h"

namespace pinnace {
namespace {
double log_of_gamma(double x) {
  int sign = 0;  // lgamma would write it to a global
  return ::lgamma_r(x, &sign);
}

Status log_gamma_reference(const NodeView&, std::span<const TensorView> in, std::span<const TensorView> out) {
  return visit_float(in[0].dtype(), [&](auto zero) {
    using T = decltype(zero);
    for (int64_t i = 0; i < out[0].elements(); ++i) {
      out[0].data<T>()[i] = narrow<T>(log_of_gamma(widen(in[0].data<T>()[i])));
    }
    return Status();
  });
}
}  // namespace

PINNACE_OP(log_gamma){
    .name = "log_gamma",
    .inputs = {{"x", kFloats}},
    .type = [](const NodeView& node) -> Result<TensorType> { return node.input(0); },
    .reference = log_gamma_reference,
    .in_place = 1,
    .traits = Trait::kElementwise,
    .work = Work::kSorted,
};
}  // namespace pinnace
