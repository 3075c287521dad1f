// Conversions between element types (cast_loops.h), which the compiler's own vectors serve well enough.
#include "backends/cpu/cast/cast_loops.h"
#include "backends/cpu/simd/isa.h"

namespace pinnace::cpu {
namespace PINNACE_ISA {
namespace {

/// What is not below 2^(bits - 1) in magnitude, NaN too, as -2^(bits - 1). One comparison after the other: a loop with
/// both in one condition would branch.
inline float within(float x, float limit) {
  const float low = x >= -limit ? x : -limit;
  return low < limit ? low : -limit;
}

template <class R, class T>
inline R converted(T x) {
  return static_cast<R>(x);
}
template <>
inline bool converted(float x) {
  return x != 0;
}
template <>
inline int32_t converted(float x) {
  return static_cast<int32_t>(within(x, 0x1p31f));
}
template <>
inline uint8_t converted(float x) {
  return static_cast<uint8_t>(static_cast<int32_t>(within(x, 0x1p31f)));
}
template <>
inline int64_t converted(float x) {
  return static_cast<int64_t>(within(x, 0x1p63f));
}

template <class T, class R>
void loop(const void* x, void* y, int64_t n) {
  const T* __restrict from = static_cast<const T*>(x);
  R* __restrict to = static_cast<R*>(y);
  for (int64_t i = 0; i < n; ++i) to[i] = converted<R, T>(from[i]);
}

}  // namespace
}  // namespace PINNACE_ISA

#define PINNACE_LOOP(T, R) PINNACE_ISA::loop<T, R>
const CastLoops PINNACE_FOR_ISA(cast_loops) = {
    {{nullptr, PINNACE_LOOP(float, uint8_t), PINNACE_LOOP(float, int32_t), PINNACE_LOOP(float, int64_t),
      PINNACE_LOOP(float, bool)},
     {PINNACE_LOOP(int8_t, float), nullptr, PINNACE_LOOP(int8_t, int32_t), PINNACE_LOOP(int8_t, int64_t),
      PINNACE_LOOP(uint8_t, bool)},
     {PINNACE_LOOP(uint8_t, float), nullptr, PINNACE_LOOP(uint8_t, int32_t), PINNACE_LOOP(uint8_t, int64_t),
      PINNACE_LOOP(uint8_t, bool)},
     {PINNACE_LOOP(int32_t, float), PINNACE_LOOP(int32_t, uint8_t), nullptr, PINNACE_LOOP(int32_t, int64_t),
      PINNACE_LOOP(int32_t, bool)},
     {PINNACE_LOOP(int64_t, float), PINNACE_LOOP(int64_t, uint8_t), PINNACE_LOOP(int64_t, int32_t), nullptr,
      PINNACE_LOOP(int64_t, bool)}}};

}  // namespace pinnace::cpu
