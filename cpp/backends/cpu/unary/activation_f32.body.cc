// The loops of activation_f32.h; their formulas are those of activation_registers.h.
#include "backends/cpu/unary/activation_f32.h"
#include "backends/cpu/simd/f32.h"
#include "backends/cpu/unary/activation_registers.h"

namespace pinnace::cpu {
namespace PINNACE_ISA {
namespace {

void map(const UnaryF32& m, const float* x, float* y, int64_t count) {
  int64_t i = 0;
  for (; i + Wide::kLanes <= count; i += Wide::kLanes) Wide::store(y + i, activate<Wide>(m, Wide::load(x + i)));
  if (i < count) {
    Wide::T rest{};
    __builtin_memcpy(&rest, x + i, sizeof(float) * static_cast<size_t>(count - i));
    rest = activate<Wide>(m, rest);
    __builtin_memcpy(y + i, &rest, sizeof(float) * static_cast<size_t>(count - i));
  }
}

}  // namespace
}  // namespace PINNACE_ISA

const ActivationLoops<float> PINNACE_FOR_ISA(activation_loops_f32) = {PINNACE_ISA::map};

}  // namespace pinnace::cpu
