// Registers of eight fp16 values for ARMv8.2 with arithmetic on them; in memory they are their bits. Included by files
// that are compiled for neon_dotprod.
#pragma once

#include <arm_neon.h>

#include <cstddef>
#include <cstdint>

namespace pinnace::cpu {
namespace neon_dotprod {
namespace {

using Halves = float16x8_t;
constexpr int kLanes = 8;

inline Halves load(const uint16_t* p) {
  return vreinterpretq_f16_u16(vld1q_u16(p));
}
inline void store(uint16_t* p, Halves v) {
  vst1q_u16(p, vreinterpretq_u16_f16(v));
}
inline Halves load_part(const uint16_t* p, int64_t count) {
  uint16_t part[kLanes] = {};
  __builtin_memcpy(part, p, static_cast<size_t>(count) * sizeof *p);
  return load(part);
}
inline void store_part(uint16_t* p, Halves v, int64_t count) {
  uint16_t part[kLanes];
  store(part, v);
  __builtin_memcpy(p, part, static_cast<size_t>(count) * sizeof *p);
}

}  // namespace
}  // namespace neon_dotprod
}  // namespace pinnace::cpu
