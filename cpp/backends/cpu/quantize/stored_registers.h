// Registers of numbers as 8-bit quantised values. Bodies include it.
#pragma once

#include "backends/cpu/simd/i8.h"

namespace pinnace::cpu {
namespace PINNACE_ISA {
namespace {

using Wide = Quads<PINNACE_LANES>;

/// How numbers become bytes, four registers of LANES at a time.
template <class V>
struct Stored {
  typename V::F scale, least, most;
  typename V::I zero, flip;
  Stored(float s, const StoreI8& store, uint8_t bits)
      : scale(V::all(s)),
        least(V::all(static_cast<float>(store.low - store.zero))),
        most(V::all(static_cast<float>(store.high - store.zero))),
        zero(V::all_shorts(store.zero)),
        flip(V::all_bytes(bits)) {}

  /// round_half_even(x / scale), clamped; NaN is 0.
  template <bool NUMBERS = false>
  inline typename V::I divided(typename V::F x) const {
    const auto quotient = NUMBERS ? x / scale : V::not_nan(x / scale);
    return V::to_ints(V::smaller(V::larger(quotient, least), most));
  }
  /// f(v) gives register v of 4, of consecutive elements. NUMBERS: no quotient is NaN.
  template <bool NUMBERS = false, class Get>
  inline void put(uint8_t* to, Get f) const {
    const auto q = [&](int v) { return divided<NUMBERS>(f(v)); };
    // Per 128-bit lane four of each: as rows of LANES bytes they are in order.
    V::store_rows(V::flip(V::to_bytes(q(0), q(1), q(2), q(3), zero), flip), to, V::kLanes, 4);
  }
};

/// put(i, to): blocks of a register's bytes, the last one cut short.
template <class Put>
inline void put_all(uint8_t* y, int64_t n, Put put) {
  constexpr int kBytes = 4 * Wide::kLanes;
  int64_t i = 0;
  for (; i + kBytes <= n; i += kBytes) put(i, kBytes, y + i);
  if (i < n) {
    alignas(64) uint8_t part[kBytes];
    put(i, n - i, part);
    __builtin_memcpy(y + i, part, static_cast<size_t>(n - i));
  }
}

}  // namespace
}  // namespace PINNACE_ISA
}  // namespace pinnace::cpu
