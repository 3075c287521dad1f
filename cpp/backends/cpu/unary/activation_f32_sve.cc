// Activations in float32 for SVE registers of any length.
#include "backends/cpu/unary/activation_sve.h"

namespace pinnace::cpu {
namespace {

void map(const UnaryF32& m, const float* x, float* y, int64_t count) {
  const auto lanes = static_cast<int64_t>(svcntw());
  for (int64_t i = 0; i < count; i += lanes) {
    const svbool_t some = svwhilelt_b32_s64(i, count);
    svst1_f32(some, y + i, sve::mapped(m, some, svld1_f32(some, x + i)));
  }
}

}  // namespace

const ActivationLoops<float> activation_loops_f32_sve = {map};

}  // namespace pinnace::cpu
