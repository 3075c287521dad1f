// Over one row of floats: its largest, and its sum: float32 partial sums of up to 64 registers, accumulated in double.
// Bodies include it.
#pragma once

#include "backends/cpu/simd/f32.h"

namespace pinnace::cpu {
namespace PINNACE_ISA {
namespace {

constexpr int kLanes = Wide::kLanes;

using V = Wide::T;
inline V load(const float* p) {
  return Wide::load(p);
}
inline void store(float* p, V v) {
  Wide::store(p, v);
}
inline V splat(float x) {
  return Wide::all(x);
}

/// The last register of a row may be part of one; `fill` stands for what is not there.
inline V load_part(const float* p, int64_t count, float fill) {
  V v = splat(fill);
  __builtin_memcpy(&v, p, sizeof(float) * static_cast<size_t>(count < kLanes ? count : kLanes));
  return v;
}
inline void store_part(float* p, V v, int64_t count) {
  __builtin_memcpy(p, &v, sizeof(float) * static_cast<size_t>(count < kLanes ? count : kLanes));
}

/// The largest, NaN left out.
inline float largest_of(const float* x, int64_t count) {
  V most = splat(-__builtin_inff());
  int64_t i = 0;
  for (; i + kLanes <= count; i += kLanes) most = larger(load(x + i), most);
  if (i < count) most = larger(load_part(x + i, count - i, -__builtin_inff()), most);
  float part[kLanes];
  store(part, most);
  for (int width = kLanes / 2; width > 0; width /= 2) {
    for (int j = 0; j < width; ++j) part[j] = part[j] > part[j + width] ? part[j] : part[j + width];
  }
  return part[0];
}

/// The sum of a register's floats, in double.
inline double sum_of(V v) {
  double half[kLanes / 2];
  for (int j = 0; j < kLanes / 2; ++j) half[j] = static_cast<double>(v[j]) + static_cast<double>(v[j + kLanes / 2]);
  for (int width = kLanes / 4; width > 0; width /= 2) {
    for (int j = 0; j < width; ++j) half[j] += half[j + width];
  }
  return half[0];
}

/// The sum of f(register, its place) over a row; a last part of a register is filled up with `fill`. Up to 64 registers
/// are added in float32, in SUMS independent accumulators, and the results of these in double.
template <int SUMS, class F>
inline double row_sum(const float* x, int64_t count, float fill, F f) {
  double sum = 0;
  for (int64_t i = 0; i < count;) {
    const int64_t last = count - i < 64 * kLanes ? count : i + 64 * kLanes;
    V parts[SUMS] = {};
    for (; i + SUMS * kLanes <= last; i += SUMS * kLanes) {
#pragma GCC unroll 4
      for (int j = 0; j < SUMS; ++j) parts[j] += f(load(x + i + j * kLanes), i + j * kLanes, kLanes);
    }
    for (; SUMS > 1 && i + kLanes <= last; i += kLanes) parts[0] += f(load(x + i), i, kLanes);
    if (i < last) parts[0] += f(load_part(x + i, last - i, fill), i, last - i);
    i = last;
    for (int j = 1; j < SUMS; ++j) parts[0] += parts[j];
    sum += sum_of(parts[0]);
  }
  return sum;
}

}  // namespace
}  // namespace PINNACE_ISA
}  // namespace pinnace::cpu
