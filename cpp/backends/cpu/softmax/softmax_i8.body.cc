// Rows of an 8-bit softmax (softmax_i8.h).
#include "backends/cpu/softmax/softmax_i8.h"
#include "backends/cpu/simd/i8.h"

namespace pinnace::cpu {
namespace PINNACE_ISA {
namespace {

using V = Quads<PINNACE_LANES>;
using I = V::I;
using F = V::F;
constexpr int kBytes = 4 * V::kLanes;

/// Powers by number: those of a register at once, where registers hold 16 floats to choose from.
struct Powers {
#if PINNACE_LANES == 16
  F low, high;
  explicit Powers(const SoftmaxPowersI8& p) : low(V::load_floats(p.low)), high(V::load_floats(p.high)) {}
  F operator()(I k) const {
    return _mm512_permutexvar_ps(k, low) * _mm512_permutexvar_ps(_mm512_srli_epi32(k, 4), high);
  }
#elif PINNACE_LANES == 8
  F low[2], high[2];
  explicit Powers(const SoftmaxPowersI8& p)
      : low{V::load_floats(p.low), V::load_floats(p.low + 8)},
        high{V::load_floats(p.high), V::load_floats(p.high + 8)} {}
  static F choose(const F (&from)[2], I k) {
    const F second = _mm256_castsi256_ps(_mm256_slli_epi32(k, 28));
    return _mm256_blendv_ps(_mm256_permutevar8x32_ps(from[0], k), _mm256_permutevar8x32_ps(from[1], k), second);
  }
  F operator()(I k) const { return choose(low, k) * choose(high, _mm256_srli_epi32(k, 4)); }
#else
  const float* each;
  explicit Powers(const SoftmaxPowersI8& p) : each(p.each) {}
  F operator()(I k) const {
    int32_t at[V::kLanes];
    float found[V::kLanes];
    V::store(at, k);
    for (int l = 0; l < V::kLanes; ++l) found[l] = each[at[l]];
    return V::load_floats(found);
  }
#endif
};

uint8_t largest_of(const uint8_t* x, int64_t n, uint8_t flip) {
  uint8_t largest = 0;
  if (n < kBytes) {
    for (int64_t i = 0; i < n; ++i) largest = (x[i] ^ flip) > largest ? x[i] ^ flip : largest;
    return largest;
  }
  const I bits = V::all_bytes(flip);
  I most = V::all(0);
  for (int64_t i = 0; i < n; i += kBytes) {  // the last ones again, if need be
    most = V::at_least_bytes(most, V::flip(V::load(x + (i + kBytes <= n ? i : n - kBytes)), bits));
  }
  uint8_t each[kBytes];
  V::store(each, most);
  for (const uint8_t b : each) largest = b > largest ? b : largest;
  return largest;
}

bool row(const SoftmaxRowI8& s, const uint8_t* x, uint8_t* y, int64_t n, float* line) {
  const Powers powers(*s.powers);
  const I bits = V::all(s.flip), shift = V::all(255 - largest_of(x, n, s.flip));
  F sums[4] = {};
  const auto power = [&](const uint8_t* from, float* to) __attribute__((always_inline)) {
    const F e = powers(V::add(V::flip(V::widen(from), bits), shift));
    __builtin_memcpy(to, &e, sizeof e);
    return e;
  };
  int64_t i = 0;
  for (; i + kBytes <= n; i += kBytes) {
    PINNACE_UNROLL for (int v = 0; v < 4; ++v) sums[v] += power(x + i + v * V::kLanes, line + i + v * V::kLanes);
  }
  if (i < n) {
    uint8_t rest[kBytes];
    __builtin_memset(rest, s.flip, kBytes);
    __builtin_memcpy(rest, x + i, static_cast<size_t>(n - i));
    for (int v = 0; v < 4; ++v) power(rest + v * V::kLanes, line + i + v * V::kLanes);
    for (int64_t j = n; j < i + kBytes; ++j) line[j] = 0;
    PINNACE_UNROLL for (int v = 0; v < 4; ++v) sums[v] += V::load_floats(line + i + v * V::kLanes);
  }
  const F all = (sums[0] + sums[1]) + (sums[2] + sums[3]);
  alignas(64) float part[V::kLanes];
  __builtin_memcpy(part, &all, sizeof part);
  for (int l = 4; l < V::kLanes; ++l) part[l % 4] += part[l];
  const float sum = (part[0] + part[1]) + (part[2] + part[3]);

  const F factor = V::all(s.inverse / sum), error = V::all(s.error);
  const I zero = V::all_shorts(s.zero), flip = V::all_bytes(s.flip);
  auto* const bytes = reinterpret_cast<uint8_t*>(line);  // results lie before the floats that are still to be read
  F doubt = V::all(0.0f);
  for (i = 0; i < n; i += kBytes) {
    I q[4];
    PINNACE_UNROLL for (int v = 0; v < 4; ++v) {
      const F quotient = V::load_floats(line + i + v * V::kLanes) * factor;
      q[v] = V::to_ints(quotient);
      const F off = quotient - V::to_floats(q[v]);
      doubt = V::larger(doubt, V::larger(off, -off) + quotient * error);
    }
    V::store_rows(V::flip(V::to_bytes(q[0], q[1], q[2], q[3], zero), flip), bytes + i, V::kLanes, 4);
  }
  int32_t each[V::kLanes], most = 0;  // floats that are not negative are ordered as their bits are
  __builtin_memcpy(each, &doubt, sizeof each);
  for (const int32_t d : each) most = d > most ? d : most;
  const bool certain = most < __builtin_bit_cast(int32_t, 0.49999f);
  if (certain) __builtin_memcpy(y, bytes, static_cast<size_t>(n));
  return certain;
}

#undef PINNACE_UNROLL

}  // namespace
}  // namespace PINNACE_ISA

bool PINNACE_FOR_ISA(softmax_row_i8)(const SoftmaxRowI8& s, const uint8_t* x, uint8_t* y, int64_t n, float* line) {
  return PINNACE_ISA::row(s, x, y, n, line);
}

}  // namespace pinnace::cpu
