// The loops of depthwise_f32.h.
#include "backends/cpu/conv/depthwise_f32.h"
#include "backends/cpu/simd/f32_channels.h"
#include "backends/cpu/unary/activation_registers.h"

namespace pinnace::cpu {
namespace PINNACE_ISA {
namespace {

#define PINNACE_UNROLL _Pragma("GCC unroll 64")

/// A number that is known when a lambda is compiled.
template <int N>
struct Number {
  static constexpr int value = N;
};

#if defined(__aarch64__)
constexpr int kWeightLanes = 8;
#else
constexpr int kWeightLanes = Wide::kLanes;
#endif

#if defined(__aarch64__)
}  // namespace
}  // namespace PINNACE_ISA
}  // namespace pinnace::cpu
#include "backends/cpu/conv/depthwise_f32_neon.h"
namespace pinnace::cpu {
namespace PINNACE_ISA {
namespace {
#else
/// ROWS x COLUMNS outputs of one register of channels: each input pixel is loaded once for each row of taps and goes
/// into every output that it is part of. Two rows have their kernel's size known, so that all is unrolled and the
/// weights of 3 x 3 stay in registers. Weights of a tap stand Wide::kLanes apart, of which V reads the first.
template <class V, int KW, int STRIDE, int COLUMNS, int ROWS>
inline void depthwise_tile(const DepthwiseRowsF32& d, const float* x, const float* w, float* y) {
  using T = typename V::T;
  T sum[ROWS][COLUMNS];
  const T bias = V::load(w);
  w += Wide::kLanes;
  PINNACE_UNROLL for (int r = 0; r < ROWS; ++r) {
    PINNACE_UNROLL for (int i = 0; i < COLUMNS; ++i) sum[r][i] = bias;
  }
  const auto row_of_x = [&](auto first, auto rows, int ky0) __attribute__((always_inline)) {
    constexpr int kFirst = decltype(first)::value, kRows = decltype(rows)::value;  // output rows it is part of
    T weight[kRows][KW];
    PINNACE_UNROLL for (int r = 0; r < kRows; ++r) {
      PINNACE_UNROLL for (int k = 0; k < KW; ++k) {
        weight[r][k] = V::load(w + ((ky0 - (kFirst + r) * STRIDE) * KW + k) * Wide::kLanes);
      }
    }
    PINNACE_UNROLL for (int i = 0; i < (COLUMNS - 1) * STRIDE + KW; ++i) {
      const T value = V::load(x + i * d.pitch);
      PINNACE_UNROLL for (int r = 0; r < kRows; ++r) {
        PINNACE_UNROLL for (int k = 0; k < KW; ++k) {
          const int at = i - k;
          if (at >= 0 && at % STRIDE == 0 && at / STRIDE < COLUMNS) {
            T& s = sum[kFirst + r][at / STRIDE];
            s = V::multiply_add(value, weight[r][k], s);
          }
        }
      }
    }
    x += d.tap_row;
  };
  if constexpr (ROWS == 1) {
    for (int ky = 0; ky < d.kernel_h; ++ky) row_of_x(Number<0>{}, Number<1>{}, ky);
  } else {
    PINNACE_UNROLL for (int ky = 0; ky < STRIDE; ++ky) row_of_x(Number<0>{}, Number<1>{}, ky);
    PINNACE_UNROLL for (int ky = STRIDE; ky < KW; ++ky) row_of_x(Number<0>{}, Number<2>{}, ky);
    PINNACE_UNROLL for (int ky = KW; ky < KW + STRIDE; ++ky) row_of_x(Number<1>{}, Number<1>{}, ky);
  }
  const bool clamp = d.map.kind == UnaryKind::kRelu || d.map.kind == UnaryKind::kClip;
  const bool maps = !clamp && d.map.kind != UnaryKind::kNone;
  const T low = V::all(d.map.kind == UnaryKind::kClip ? d.map.p : clamp ? 0.0f : -__builtin_inff());
  const T high = V::all(d.map.kind == UnaryKind::kClip ? d.map.q : __builtin_inff());
  PINNACE_UNROLL for (int r = 0; r < ROWS; ++r) {
    PINNACE_UNROLL for (int i = 0; i < COLUMNS; ++i) {
      V::store(y + r * d.y_row + i * d.y_pitch, V::at_most(V::at_least(sum[r][i], low), high));
    }
    if (maps) map_rows<V>(d.map, y + r * d.y_row, d.y_pitch, COLUMNS);
  }
}

template <class V, int KW, int STRIDE, int ROWS, int COLUMNS>
void depthwise_channels(const DepthwiseRowsF32& d, int64_t first, int64_t last) {
  const int64_t panel = (1 + static_cast<int64_t>(d.kernel_h) * KW) * Wide::kLanes;
  for (int64_t c = first; c < last; c += V::kLanes) {
    const float* w = d.weights + c / Wide::kLanes * panel;
    const float* x = d.x + c;
    float* y = d.y + c;
    for (int64_t ox = 0; ox < d.out_w; ox += COLUMNS) {
      const int64_t at = ox < d.out_w - COLUMNS ? ox : d.out_w - COLUMNS;  // the last ones are done again
      depthwise_tile<V, KW, STRIDE, COLUMNS, ROWS>(d, x + at * STRIDE * d.pitch, w, y + at * d.y_pitch);
    }
  }
}

/// By tiles of the width that does the fewest columns again: rows of networks are multiples of 7 or of 8, or short.
template <class V, int KW, int STRIDE, int ROWS>
void depthwise_columns(const DepthwiseRowsF32& d, int64_t first, int64_t last) {
  if (d.out_w < 4) return depthwise_channels<V, KW, STRIDE, ROWS, 1>(d, first, last);
  if (d.out_w < 7) return depthwise_channels<V, KW, STRIDE, ROWS, 4>(d, first, last);
#if PINNACE_LANES == 16
  if (d.out_w > 7 && (d.out_w + 7) / 8 * 8 < (d.out_w + 6) / 7 * 7) {
    return depthwise_channels<V, KW, STRIDE, ROWS, 8>(d, first, last);
  }
#endif
  depthwise_channels<V, KW, STRIDE, ROWS, 7>(d, first, last);
}

/// Whole registers of channels, then those that are left. Weights of HalfWidth's channels begin a panel of their own.
template <int KW, int STRIDE, int ROWS>
void depthwise_of(const DepthwiseRowsF32& d) {
  const int64_t whole = d.channels / Wide::kLanes * Wide::kLanes;
  depthwise_columns<Wide, KW, STRIDE, ROWS>(d, 0, whole);
#if PINNACE_LANES == 16
  if (whole < d.channels) depthwise_columns<HalfWidth, KW, STRIDE, ROWS>(d, whole, d.channels);
#endif
}
#endif

/// Any kernel, stride and dilation.
void depthwise_any(const DepthwiseRowsF32& d) {
  using V = Lanes;
  const int64_t panel = (1 + static_cast<int64_t>(d.kernel_h) * d.kernel_w) * kWeightLanes;
  for (int64_t c = 0; c < d.channels; c += V::kLanes) {
    for (int64_t ox = 0; ox < d.out_w; ++ox) {
      const float* w = d.weights + c / kWeightLanes * panel + c % kWeightLanes;
      const float* x = d.x + c + ox * d.stride_x * d.pitch;
      V::T sum = V::load(w);
      w += kWeightLanes;
      for (int ky = 0; ky < d.kernel_h; ++ky) {
        for (int kx = 0; kx < d.kernel_w; ++kx, w += kWeightLanes) {
          sum = V::multiply_add(V::load(x + ky * d.tap_row + kx * d.dilation_x * d.pitch), V::load(w), sum);
        }
      }
      V::store(d.y + c + ox * d.y_pitch, sum);
      if (d.map.kind != UnaryKind::kNone) map_rows<V>(d.map, d.y + c + ox * d.y_pitch, 0, 1);
    }
  }
}

/// Two rows of sums, the weights of two rows of taps and a pixel want 32 registers. NEON's hold less than 5 x 5 needs.
bool two_rows(int32_t kernel_h, int32_t kernel_w, int32_t stride) {
#if PINNACE_LANES == 16
  const bool known = kernel_w == 3 || kernel_w == 5;
#elif defined(__aarch64__)
  const bool known = kernel_w == 3;
#else
  const bool known = false;
#endif
  return known && kernel_h == kernel_w && (stride == 1 || stride == 2);
}

void depthwise_rows(const DepthwiseRowsF32& d) {
  if (d.dilation_x > 1 && d.stride_x == 1 && (d.kernel_w == 3 || d.kernel_w == 5 || d.kernel_w == 7)) {
    // Every dilation_x-th column by itself is a convolution without dilation.
    DepthwiseRowsF32 phase = d;
    phase.dilation_x = 1;
    phase.pitch = d.pitch * d.dilation_x;
    phase.y_pitch = d.y_pitch * d.dilation_x;
    for (int64_t p = 0; p < d.dilation_x && p < d.out_w; ++p) {
      phase.x = d.x + p * d.pitch;
      phase.y = d.y + p * d.y_pitch;
      phase.out_w = (d.out_w - p + d.dilation_x - 1) / d.dilation_x;
      depthwise_rows(phase);
    }
    return;
  }
#if PINNACE_LANES == 16
  if (d.rows == 2) {
    if (d.kernel_w == 3) return d.stride_x == 1 ? depthwise_of<3, 1, 2>(d) : depthwise_of<3, 2, 2>(d);
    return d.stride_x == 1 ? depthwise_of<5, 1, 2>(d) : depthwise_of<5, 2, 2>(d);
  }
#elif defined(__aarch64__)
  if (d.rows == 2) return d.stride_x == 1 ? depthwise_of<3, 1, 2>(d) : depthwise_of<3, 2, 2>(d);
#endif
  if (d.dilation_x == 1 && d.stride_x == 1) {
#if !defined(__aarch64__)
    // Phases of transposed convolutions.
    if (d.kernel_w == 1) return depthwise_of<1, 1, 1>(d);
    if (d.kernel_w == 2) return depthwise_of<2, 1, 1>(d);
#endif
    if (d.kernel_w == 3) return depthwise_of<3, 1, 1>(d);
    if (d.kernel_w == 5) return depthwise_of<5, 1, 1>(d);
    if (d.kernel_w == 7) return depthwise_of<7, 1, 1>(d);
  }
  if (d.dilation_x == 1 && d.stride_x == 2) {
    if (d.kernel_w == 3) return depthwise_of<3, 2, 1>(d);
    if (d.kernel_w == 5) return depthwise_of<5, 2, 1>(d);
  }
  depthwise_any(d);
}

#undef PINNACE_UNROLL

}  // namespace
}  // namespace PINNACE_ISA

const DepthwiseLoops<float> PINNACE_FOR_ISA(depthwise_loops_f32) = {PINNACE_ISA::kWeightLanes, PINNACE_ISA::two_rows,
                                                                    PINNACE_ISA::depthwise_rows};

}  // namespace pinnace::cpu
