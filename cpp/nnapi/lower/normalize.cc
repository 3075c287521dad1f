// Softmax and normalisations.
#include "nnapi/lowering.h"

namespace pinnace::nnapi {

Status lower_softmax(Call& call) {
  PINNACE_ASSIGN(ValueId x, call.in(0));
  PINNACE_ASSIGN(double beta, call.real(1));
  if (!(beta > 0)) return call.error("beta ", beta, " is not above 0");
  int64_t axis = call.rank(x) - 1;
  if (call.inputs() > 2) {
    PINNACE_ASSIGN(axis, call.axis(2, call.rank(x)));
  }
  if (axis < 0) return call.error("a scalar has no axis");
  QuantizationPtr fixed;
  if (const QuantizationPtr q = call.type(x).quantization) {
    fixed = per_tensor(1.0f / 256, call.type(x).dtype == DType::kI8 ? -128 : 0);
    // A scale times beta is all that beta does.
    const auto scaled = per_tensor(q->scales[0] * static_cast<float>(beta), q->zero_points[0]);
    if (beta != 1) {
      PINNACE_ASSIGN(x, call.reinterpret(x, scaled));
    }
  } else if (beta != 1) {
    PINNACE_ASSIGN(ValueId factor, call.constant_scalar(call.type(x).dtype, beta));
    PINNACE_ASSIGN(x, call.emit("mul", {x, factor}));
  }
  PINNACE_ASSIGN(ValueId y, call.emit("softmax", {x}, {{"axis", axis}}, std::move(fixed)));
  return call.finish(0, y);
}

}  // namespace pinnace::nnapi
