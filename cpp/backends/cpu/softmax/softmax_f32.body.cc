// The loops of softmax_f32.h.
#include "backends/cpu/softmax/softmax_f32.h"
#include "backends/cpu/reduce/rows_f32.h"
#include "backends/cpu/unary/activation_registers.h"

namespace pinnace::cpu {
namespace PINNACE_ISA {
namespace {

float exp_sum(const float* x, float* y, int64_t count) {
  float largest = largest_of(x, count);
  if (largest == -__builtin_inff()) largest = 0;
  return static_cast<float>(row_sum<1>(x, count, -__builtin_inff(), [&](V v, int64_t i, int64_t some) {
    v = exponential<Wide>(v - largest);
    store_part(y + i, v, some);
    return v;
  }));
}

void softmax(const float* x, float* y, int64_t count) {
  // All -inf, or an inf or NaN among them: exp(inf - inf) is NaN throughout, as IEEE arithmetic gives it.
  const bool none = largest_of(x, count) == -__builtin_inff();
  const float sum = exp_sum(x, y, count), scale = none ? __builtin_nanf("") : 1.0f / sum;
  for (int64_t i = 0; i < count; ++i) y[i] *= scale;
}

}  // namespace
}  // namespace PINNACE_ISA

const SoftmaxLoops PINNACE_FOR_ISA(softmax_loops_f32) = {PINNACE_ISA::softmax, PINNACE_ISA::exp_sum};

}  // namespace pinnace::cpu
