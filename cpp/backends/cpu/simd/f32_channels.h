// Registers of floats for the channels of a pixel: whole ones, then those that are left. Bodies include it.
#pragma once

#include "backends/cpu/simd/f32.h"

namespace pinnace::cpu {
namespace PINNACE_ISA {
namespace {

#if PINNACE_LANES == 4
using Lanes = Wide;
#else
using Lanes = Floats<8>;  // pixels are padded to 8 channels
#endif

/// One float where a register of them may stand.
struct Single {
  using T = float;
  using I = int32_t;
  static constexpr int kLanes = 1;
  static T load(const float* p) { return *p; }
  static void store(float* p, T v) { *p = v; }
  static T all(float x) { return x; }
  static T select(bool mask, T yes, T no) { return mask ? yes : no; }
  static T absolute(T x) { return __builtin_fabsf(x); }
};

}  // namespace
}  // namespace PINNACE_ISA
}  // namespace pinnace::cpu
