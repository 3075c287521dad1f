// Activations of fp16 values, computed in float32 and rounded. Included by files that are compiled for neon_dotprod.
#pragma once

#include "backends/cpu/simd/f32.h"
#include "backends/cpu/unary/activation_f32.h"
#include "backends/cpu/unary/activation_registers.h"

namespace pinnace::cpu {
namespace neon_dotprod {
namespace {

inline void map(const UnaryF32& m, const uint16_t* x, uint16_t* y, int64_t count) {
  const auto four = [&](const uint16_t* from, uint16_t* to) {
    Wide::store(reinterpret_cast<F16Bits*>(to), activate<Wide>(m, Wide::load(reinterpret_cast<const F16Bits*>(from))));
  };
  int64_t i = 0;
  for (; i + 4 <= count; i += 4) four(x + i, y + i);
  if (i == count) return;
  uint16_t part[4] = {};
  const size_t bytes = static_cast<size_t>(count - i) * sizeof *x;
  __builtin_memcpy(part, x + i, bytes);
  four(part, part);
  __builtin_memcpy(y + i, part, bytes);
}

}  // namespace
}  // namespace neon_dotprod
}  // namespace pinnace::cpu
