// What follows a product of 8-bit integers: its sums are stored as such, or rounded to bytes, to which another image
// may be added. Bodies include it.
#pragma once

#include "backends/cpu/matmul/gemm_i8_tiles.h"
#include "backends/cpu/simd/i8.h"

namespace pinnace::cpu {
namespace PINNACE_ISA {
namespace {

/// Rows of sums, stored as such, or as bytes in `to`, one by one, where multipliers are too large for registers.
__attribute__((noinline)) void store_sums(const GemmRowsI8& g, int64_t row, int64_t rows, int32_t width,
                                          const int32_t* sums, ptrdiff_t sums_row, const StoreI8& store, uint8_t* to) {
  const auto* scale = reinterpret_cast<const float*>(g.b) + width;
  for (int64_t i = 0; i < rows; ++i, sums += sums_row) {
    if (g.sums) {
      __builtin_memcpy(g.sums + (row + i) * g.c_row, sums, sizeof(int32_t) * static_cast<size_t>(g.columns));
      continue;
    }
    for (int32_t j = 0; j < width; ++j) to[i * width + j] = requantise_one(sums[j], scale[j], store);
  }
}

/// x / scale, rounded as a division is, in a third of its time: by Markstein's theorem a quotient that is off by an ulp
/// becomes the nearest number when the remainder times the reciprocal is added, where the reciprocal is the nearest
/// number too, no step underflows, and the divisor's significand is not all ones (IBM Journal of Research and
/// Development 34-1, 1990, theorem 8.1). divides_fast() says so of the scales.
template <class V, bool FAST>
inline typename V::F quotient(typename V::F x, typename V::F scale, [[maybe_unused]] typename V::F reciprocal) {
  if constexpr (FAST) {
    typename V::F q = x * reciprocal;
    q = V::plus_product(V::less_product(q, scale, x), reciprocal, q);
    return V::plus_product(V::less_product(q, scale, x), reciprocal, q);
  } else {
    return x / scale;
  }
}
/// Whether all quotients of sums are below 2^30.
inline bool adds_small(const AddedI8& added) {
  return 255 * (added.own.scale + added.other.scale) < 0x1p30f * added.scale;
}
/// Whether quotient() may be fast for sums of `added`.
inline bool divides_fast(const AddedI8& added) {
  uint32_t bits;
  __builtin_memcpy(&bits, &added.scale, 4);
  const auto moderate = [](float scale) { return scale > 0x1p-60f && scale < 0x1p60f; };
  return moderate(added.own.scale) && moderate(added.other.scale) && moderate(added.scale) &&
         (bits & 0x7fffff) != 0x7fffff;
}

/// Adds g.added to `rows` rows of a product's bytes, and stores them in `to`, which may be the same. SMALL: quotients
/// are finite and below 2^30, and the packs clamp them. FAST: as of quotient().
template <class V, int NV, bool SMALL, bool FAST = false>
__attribute__((noinline)) void add_rows(const GemmRowsI8& g, int64_t row, int rows, const uint8_t* product, uint8_t* to,
                                        ptrdiff_t to_row) {
  using I = typename V::I;
  using F = typename V::F;
  constexpr int kWidth = NV * V::kLanes;
  const I zero = V::all_shorts(g.store.zero), low = V::all_bytes(g.store.low), high = V::all_bytes(g.store.high);
  const F least = V::all(static_cast<float>(g.store.low - g.store.zero));
  const F most = V::all(static_cast<float>(g.store.high - g.store.zero)), scale = V::all(g.added.scale);
  const F reciprocal = V::all(1.0f / g.added.scale);
  const I own_zero = V::all(-g.added.own.zero), other_zero = V::all(-g.added.other.zero);
  const F own_scale = V::all(g.added.own.scale), other_scale = V::all(g.added.other.scale);
  const uint8_t* added = g.added.at + row * g.added.row;
  for (int i = 0; i < rows; i += 4) {
    I bytes[NV];
    PINNACE_UNROLL for (int j = 0; j < NV; ++j) {
      I q[4];
      PINNACE_UNROLL for (int r = 0; r < 4; ++r) {
        const int at = i + r < rows ? i + r : i;
        const I own = V::add(V::widen(product + at * kWidth + j * V::kLanes), own_zero);
        const I other = V::add(V::widen(added + at * g.added.row + j * V::kLanes), other_zero);
        const F sum = V::to_floats(own) * own_scale + V::to_floats(other) * other_scale;
        const F whole = quotient<V, FAST>(sum, scale, reciprocal);
        q[r] = V::to_ints(SMALL ? whole : V::smaller(V::larger(V::not_nan(whole), least), most));
      }
      bytes[j] = V::to_bytes(q[0], q[1], q[2], q[3], zero);
      bytes[j] = V::at_most_bytes(V::at_least_bytes(bytes[j], low), high);
    }
    V::template store_columns<NV>(bytes, to + i * to_row, to_row, rows - i < 4 ? rows - i : 4);
  }
}

/// add_rows() for what g adds.
template <class V, int NV>
inline auto add_rows_of(const GemmRowsI8& g) {
  const bool small = adds_small(g.added);
#if defined(__FMA__)
  if (small && divides_fast(g.added)) return add_rows<V, NV, true, true>;
#endif
  return small ? add_rows<V, NV, true> : add_rows<V, NV, false>;
}

/// Rows of bytes of which only some columns are wanted.
template <int WIDTH>
__attribute__((noinline)) void store_part(const GemmRowsI8& g, int64_t row, int64_t rows, const uint8_t* bytes) {
  for (int64_t i = 0; i < rows; ++i) {
    __builtin_memcpy(g.c + (row + i) * g.c_row, bytes + i * WIDTH, static_cast<size_t>(g.columns));
  }
}

/// True if a product of sum and multiplier could be 2^31 or more, where conversions to int32 fail.
bool too_large(const GemmRowsI8& g, int32_t width) {
  using V = Quads<PINNACE_LANES == 16 ? 8 : PINNACE_LANES>;  // of which every width has a whole number
  const auto* bias = reinterpret_cast<const int32_t*>(g.b);
  const auto* scale = reinterpret_cast<const float*>(g.b) + width;
  const float each = g.row_sums ? 2 * 4 * 255 * 128 : 4 * 255 * 128;
  const auto products = V::all(static_cast<float>(g.block_count * g.quads) * each), most = V::all(0x1p31f);
  auto largest = V::all(0.0f);
  for (int32_t j = 0; j < width; j += V::kLanes) {
    const auto start = V::to_floats(V::load(bias + j));
    const auto reach = V::larger(start, -start) + products;
    largest = V::larger(V::smaller(reach, most) * V::load_floats(scale + j), largest);
  }
  float lanes[V::kLanes];
  __builtin_memcpy(lanes, &largest, sizeof lanes);
  bool too_large = false;
  for (const float real : lanes) too_large |= !(real < 0x1p30f);
  return too_large;
}

}  // namespace
}  // namespace PINNACE_ISA
}  // namespace pinnace::cpu
