// The folds of column_folds.h.
#include "backends/cpu/reduce/column_folds.h"
#include "backends/cpu/simd/f32_channels.h"

namespace pinnace::cpu {
namespace PINNACE_ISA {
namespace {

#define PINNACE_UNROLL _Pragma("GCC unroll 64")

/// y[c] = f(y[c], x[p, c]) over pixels, for N registers from channel c on; f also takes the kind of register and c.
template <class V, int N, class F>
inline void fold_registers(const float* x, ptrdiff_t step, int64_t pixels, int64_t c, float* y, F f) {
  typename V::T total[N];
  PINNACE_UNROLL for (int i = 0; i < N; ++i) total[i] = V::load(y + c + i * V::kLanes);
  x += c;
  for (int64_t p = 0; p < pixels; ++p, x += step) {
    PINNACE_UNROLL for (int i = 0; i < N; ++i) {
      total[i] = f(V{}, total[i], V::load(x + i * V::kLanes), c + i * V::kLanes);
    }
  }
  PINNACE_UNROLL for (int i = 0; i < N; ++i) V::store(y + c + i * V::kLanes, total[i]);
}
template <class F>
inline void fold(const float* x, ptrdiff_t step, int64_t pixels, int64_t channels, float* y, F f) {
  int64_t c = 0;  // four registers are as many additions as begin before the first ends
  for (; c + 4 * Wide::kLanes <= channels; c += 4 * Wide::kLanes) fold_registers<Wide, 4>(x, step, pixels, c, y, f);
  for (; c + Wide::kLanes <= channels; c += Wide::kLanes) fold_registers<Wide, 1>(x, step, pixels, c, y, f);
  for (; c + Lanes::kLanes <= channels; c += Lanes::kLanes) fold_registers<Lanes, 1>(x, step, pixels, c, y, f);
  for (; c < channels; ++c) fold_registers<Single, 1>(x, step, pixels, c, y, f);
}

void extreme(bool least, const float* x, ptrdiff_t step, int64_t pixels, int64_t channels, float* y) {
  if (least) {
    return fold(x, step, pixels, channels, y, [](auto kind, auto most, auto v, int64_t) {
      return decltype(kind)::select((v < most) | (v != v), v, most);
    });
  }
  fold(x, step, pixels, channels, y,
       [](auto kind, auto most, auto v, int64_t) { return decltype(kind)::select((v > most) | (v != v), v, most); });
}

/// Channels [c, c + V::kLanes). `better(a, b)` is the order of numbers.
template <class V, class F>
inline void arg_extreme_lanes(const float* x, ptrdiff_t step, int64_t pixels, float* y, int32_t first, int32_t* at,
                              F better) {
  typename V::T most = V::load(y);
  typename V::I place;
  __builtin_memcpy(&place, at, sizeof place);
  for (int64_t p = 0; p < pixels; ++p, x += step) {
    const typename V::T v = V::load(x);
    const auto takes = better(v, most);
    most = takes ? v : most;
    place = takes ? place * 0 + static_cast<int32_t>(first + p) : place;
  }
  V::store(y, most);
  __builtin_memcpy(at, &place, sizeof place);
}
template <class F>
inline void arg_extreme_of(const float* x, ptrdiff_t step, int64_t pixels, int64_t channels, float* y, int32_t first,
                           int32_t* at, F better) {
  int64_t c = 0;
  for (; c + Wide::kLanes <= channels; c += Wide::kLanes) {
    arg_extreme_lanes<Wide>(x + c, step, pixels, y + c, first, at + c, better);
  }
  for (; c < channels; ++c) arg_extreme_lanes<Single>(x + c, step, pixels, y + c, first, at + c, better);
}
void arg_extreme(bool least, bool last, const float* x, ptrdiff_t step, int64_t pixels, int64_t channels, float* y,
                 int32_t first, int32_t* at) {
  const auto run = [&](auto better) { arg_extreme_of(x, step, pixels, channels, y, first, at, better); };
  // A NaN that is there is not followed by a number; among several the first or the last counts too.
  if (last && least) return run([](auto v, auto most) { return (v <= most) | (v != v); });
  if (last) return run([](auto v, auto most) { return (v >= most) | (v != v); });
  if (least) return run([](auto v, auto most) { return (v < most) | ((v != v) & (most == most)); });
  run([](auto v, auto most) { return (v > most) | ((v != v) & (most == most)); });
}

void sum(const float* x, ptrdiff_t step, int64_t pixels, int64_t channels, float* sums) {
  fold(x, step, pixels, channels, sums, [](auto, auto total, auto v, int64_t) { return total + v; });
}

void sum_magnitudes(const float* x, ptrdiff_t step, int64_t pixels, int64_t channels, float* sums) {
  fold(x, step, pixels, channels, sums,
       [](auto kind, auto total, auto v, int64_t) { return total + decltype(kind)::absolute(v); });
}

void sum_squares(const float* x, ptrdiff_t step, int64_t pixels, int64_t channels, const float* centre, float* sums) {
  fold(x, step, pixels, channels, sums, [&](auto kind, auto total, auto v, int64_t c) {
    const auto off = v - decltype(kind)::load(centre + c);
    return total + off * off;
  });
}

#undef PINNACE_UNROLL

}  // namespace
}  // namespace PINNACE_ISA

const ColumnFolds<float> PINNACE_FOR_ISA(column_folds_f32) = {PINNACE_ISA::extreme, PINNACE_ISA::arg_extreme,
                                                              PINNACE_ISA::sum, PINNACE_ISA::sum_magnitudes,
                                                              PINNACE_ISA::sum_squares};

}  // namespace pinnace::cpu
