// Grouped convolutions of few channels a group (grouped_f32.h).
#include "backends/cpu/conv/grouped_f32.h"
#include "backends/cpu/simd/f32.h"
#include "backends/cpu/unary/activation_registers.h"

namespace pinnace::cpu {
namespace PINNACE_ISA {
namespace {

#define PINNACE_UNROLL _Pragma("GCC unroll 64")

template <int N>
struct Number {
  static constexpr int value = N;
};

/// Lane l gets lane l / EACH * EACH + J.
template <int EACH, int J>
inline VectorOf<4>::T spread(VectorOf<4>::T v) {
  constexpr auto at = [](int l) { return l / EACH * EACH + J; };
  return __builtin_shufflevector(v, v, at(0), at(1), at(2), at(3));
}
#if PINNACE_LANES >= 8
template <int EACH, int J>
inline VectorOf<8>::T spread(VectorOf<8>::T v) {
  constexpr auto at = [](int l) { return l / EACH * EACH + J; };
  return __builtin_shufflevector(v, v, at(0), at(1), at(2), at(3), at(4), at(5), at(6), at(7));
}
#endif
#if PINNACE_LANES >= 16
template <int EACH, int J>
inline VectorOf<16>::T spread(VectorOf<16>::T v) {
  constexpr auto at = [](int l) { return l / EACH * EACH + J; };
  return __builtin_shufflevector(v, v, at(0), at(1), at(2), at(3), at(4), at(5), at(6), at(7), at(8), at(9), at(10),
                                 at(11), at(12), at(13), at(14), at(15));
}
#endif

/// f(Number<0>), ..., f(Number<COUNT - 1>)
template <int COUNT, int I = 0, class F>
inline __attribute__((always_inline)) void each_number(F f) {
  if constexpr (I < COUNT) {
    f(Number<I>{});
    each_number<COUNT, I + 1>(f);
  }
}

/// COLUMNS outputs of one register of channels. EACH: channels of a group, fewer than V has; 0: g.each, as many or
/// some times as many, so that all lanes meet the same input, which `x` begins at. KW: kernel columns that stand
/// side by side, where a pixel that was spread goes into every output that it is part of, STRIDE between outputs; 0:
/// any.
template <class V, int EACH, int KW, int STRIDE, int COLUMNS>
inline void grouped_tile(const GroupedRowF32& g, const float* x, const float* w, float* y) {
  using T = typename V::T;
  constexpr int kStep = Wide::kLanes;  // between registers of weights
  const int each = EACH ? EACH : g.each;
  T sum[COLUMNS];
  const T bias = V::load(w);
  w += kStep;
  PINNACE_UNROLL for (int i = 0; i < COLUMNS; ++i) sum[i] = bias;
  const auto value = [](const float* pixel, auto j) __attribute__((always_inline)) {
    if constexpr (EACH) {
      return spread<EACH, decltype(j)::value>(V::load(pixel));
    } else {
      return V::all(pixel[j]);
    }
  };
  for (int ky = 0; ky < g.kernel_h; ++ky, x += g.tap_row) {
    if constexpr (KW > 0) {
      const auto input = [&](auto j, int at) __attribute__((always_inline)) {
        T weight[KW];
        PINNACE_UNROLL for (int k = 0; k < KW; ++k) weight[k] = V::load(w + (k * each + at) * kStep);
        PINNACE_UNROLL for (int i = 0; i < (COLUMNS - 1) * STRIDE + KW; ++i) {
          const T v = value(x + i * g.pitch, j);
          PINNACE_UNROLL for (int k = 0; k < KW; ++k) {
            const int at_output = i - k;
            if (at_output >= 0 && at_output % STRIDE == 0 && at_output / STRIDE < COLUMNS) {
              sum[at_output / STRIDE] = V::multiply_add(v, weight[k], sum[at_output / STRIDE]);
            }
          }
        }
      };
      if constexpr (EACH) {
        each_number<EACH>([&](auto j) __attribute__((always_inline)) { input(j, decltype(j)::value); });
      } else {
        for (int j = 0; j < each; ++j) input(j, j);
      }
      w += KW * each * kStep;
    } else {
      for (int kx = 0; kx < g.kernel_w; ++kx) {
        const float* tap = x + kx * static_cast<ptrdiff_t>(g.dilation_x) * g.pitch;
        const auto input = [&](auto j) __attribute__((always_inline)) {
          const T weight = V::load(w);
          w += kStep;
          PINNACE_UNROLL for (int i = 0; i < COLUMNS; ++i) {
            sum[i] = V::multiply_add(value(tap + i * g.stride_x * g.pitch, j), weight, sum[i]);
          }
        };
        if constexpr (EACH) {
          each_number<EACH>(input);
        } else {
          for (int j = 0; j < each; ++j) input(j);
        }
      }
    }
  }
  const bool clamp = g.map.kind == UnaryKind::kRelu || g.map.kind == UnaryKind::kClip;
  const T low = V::all(g.map.kind == UnaryKind::kClip ? g.map.p : clamp ? 0.0f : -__builtin_inff());
  const T high = V::all(g.map.kind == UnaryKind::kClip ? g.map.q : __builtin_inff());
  PINNACE_UNROLL for (int i = 0; i < COLUMNS; ++i) {
    V::store(y + i * g.y_pitch, V::at_most(V::at_least(sum[i], low), high));
  }
  if (!clamp && g.map.kind != UnaryKind::kNone) map_rows<V>(g.map, y, g.y_pitch, COLUMNS);
}

/// Channels [first, last).
template <class V, int EACH, int KW, int STRIDE, int COLUMNS>
void grouped_channels(const GroupedRowF32& g, int64_t first, int64_t last) {
  const int64_t panel = (1 + static_cast<int64_t>(g.kernel_h) * g.kernel_w * g.each) * Wide::kLanes;
  for (int64_t c = first; c < last; c += V::kLanes) {
    const float* w = g.weights + c / Wide::kLanes * panel + c % Wide::kLanes;
    const float* x = g.x + (EACH ? c : c / g.each * g.each);
    float* y = g.y + c;
    for (int64_t ox = 0; ox < g.out_w; ox += COLUMNS) {
      const int64_t at = ox < g.out_w - COLUMNS ? ox : g.out_w - COLUMNS;  // the last ones are done again
      grouped_tile<V, EACH, KW, STRIDE, COLUMNS>(g, x + at * g.stride_x * g.pitch, w, y + at * g.y_pitch);
    }
  }
}

template <class V, int EACH, int KW, int STRIDE>
void grouped_widths(const GroupedRowF32& g, int64_t first, int64_t last) {
  if (g.out_w < 7) return grouped_channels<V, EACH, KW, STRIDE, 1>(g, first, last);
#if PINNACE_LANES == 16
  if (g.out_w >= 14) return grouped_channels<V, EACH, KW, STRIDE, 14>(g, first, last);
#endif
  grouped_channels<V, EACH, KW, STRIDE, 7>(g, first, last);
}

template <class V, int EACH>
void grouped_columns(const GroupedRowF32& g, int64_t first, int64_t last) {
  if (first == last) return;
  if (g.kernel_w == 3 && g.dilation_x == 1 && g.stride_x == 1) return grouped_widths<V, EACH, 3, 1>(g, first, last);
  if (g.kernel_w == 3 && g.dilation_x == 1 && g.stride_x == 2) return grouped_widths<V, EACH, 3, 2>(g, first, last);
  grouped_widths<V, EACH, 0, 0>(g, first, last);
}

/// Whole registers of channels, then those that are left.
template <int EACH>
void grouped_of(const GroupedRowF32& g) {
  const int64_t whole = g.channels / Wide::kLanes * Wide::kLanes;
  grouped_columns<Wide, EACH>(g, 0, whole);
#if PINNACE_LANES == 16
  grouped_columns<HalfWidth, EACH>(g, whole, g.channels);
#endif
}

bool takes(int64_t each) {
  return each == 2 || each == 4 || each == 8 || each == 16;
}

void row(const GroupedRowF32& g) {
#if PINNACE_LANES >= 4
  if (g.each == 2) return grouped_of<2>(g);
#endif
#if PINNACE_LANES >= 8
  if (g.each == 4) return grouped_of<4>(g);
#endif
#if PINNACE_LANES >= 16
  if (g.each == 8) return grouped_columns<HalfWidth, 0>(g, 0, g.channels);
#endif
  grouped_columns<Wide, 0>(g, 0, g.channels);
}

#undef PINNACE_UNROLL

}  // namespace
}  // namespace PINNACE_ISA

const GroupedF32 PINNACE_FOR_ISA(grouped_f32) = {PINNACE_ISA::Wide::kLanes, PINNACE_ISA::takes, PINNACE_ISA::row};

}  // namespace pinnace::cpu
