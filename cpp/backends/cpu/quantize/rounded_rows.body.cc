// The loops of rounded_rows.h.
#include "backends/cpu/quantize/rounded_rows.h"
#include "backends/cpu/quantize/stored_registers.h"

namespace pinnace::cpu {
namespace PINNACE_ISA {
namespace {

void range(const float* x, int64_t n, float* least, float* largest) {
  constexpr int kLanes = Wide::kLanes;
  using F = typename Wide::F;
  F low[4], high[4];
  for (int v = 0; v < 4; ++v) low[v] = high[v] = Wide::all(x[0]);
  auto none = low[0] != low[0];  // lanes that have seen NaN, which minima and maxima pass over
  const auto take = [&](int v, const float* from) __attribute__((always_inline)) {
    const F numbers = Wide::load_floats(from);
    low[v] = Wide::smaller(numbers, low[v]);
    high[v] = Wide::larger(numbers, high[v]);
    none |= numbers != numbers;
  };
  int64_t i = 0;
  for (; i + 4 * kLanes <= n; i += 4 * kLanes) {
    for (int v = 0; v < 4; ++v) take(v, x + i + v * kLanes);
  }
  for (; i + kLanes <= n; i += kLanes) take(0, x + i);
  if (i < n) {
    float part[kLanes];
    for (int l = 0; l < kLanes; ++l) part[l] = x[i + l < n ? i + l : i];
    take(1, part);
  }
  bool any = false;
  *least = *largest = x[0];
  for (int l = 0; l < kLanes; ++l) {
    any |= none[l] != 0;
    for (int v = 0; v < 4; ++v) {
      if (low[v][l] < *least) *least = low[v][l];
      if (high[v][l] > *largest) *largest = high[v][l];
    }
  }
  if (any) *least = *largest = __builtin_nanf("");
}

template <bool BIAS, bool CLAMPS>
void scale_rows(const ScaledSums& s) {
  const auto low = Wide::all(s.low), high = Wide::all(s.high);
  const auto scaled = [&](const int32_t* sums, int64_t n, auto zero, auto row) __attribute__((always_inline)) {
    const auto own = Wide::less_product(Wide::load(sums + n), zero, Wide::load(s.column_sums + n));
    auto y = Wide::to_floats(own) * Wide::load_floats(s.columns + n) * row;
    if (BIAS) y = y + Wide::load_floats(s.bias + n);
    // As clip has it: NaN stays.
    if (CLAMPS) y = Wide::smaller(high, Wide::larger(low, y));
    return y;
  };
  for (int64_t m = 0; m < s.M; ++m) {
    const int32_t* sums = s.sums + m * s.sums_row;
    float* y = s.y + m * s.y_row;
    const auto row = Wide::all(s.rows[m]);
    const auto zero = Wide::all(s.zeros[m]);
    int64_t n = 0;
    for (; n + Wide::kLanes <= s.N; n += Wide::kLanes) {
      const auto v = scaled(sums, n, zero, row);
      __builtin_memcpy(y + n, &v, sizeof v);
    }
    if (n == s.N) continue;
    const auto v = scaled(sums, n, zero, row);
    __builtin_memcpy(y + n, &v, sizeof(float) * static_cast<size_t>(s.N - n));
  }
}

void scale(const ScaledSums& s) {
  const bool clamps = s.low > -__builtin_inff() || s.high < __builtin_inff();
  if (s.bias) return clamps ? scale_rows<true, true>(s) : scale_rows<true, false>(s);
  return clamps ? scale_rows<false, true>(s) : scale_rows<false, false>(s);
}

}  // namespace
}  // namespace PINNACE_ISA

const RoundedRowsLoops PINNACE_FOR_ISA(rounded_rows_loops) = {PINNACE_ISA::range, PINNACE_ISA::scale};

}  // namespace pinnace::cpu
