// Body of image_f32_<level>.cc, compiled once per instruction set; see gemm_f32_tiles_body.h.

#include "backends/cpu/image_f32.h"
#include "backends/cpu/simd_f32.h"

namespace pinnace {
namespace PINNACE_LEVEL {
namespace {

#define PINNACE_UNROLL _Pragma("GCC unroll 64")

/// COLUMNS outputs of one register of channels: each input pixel is loaded once for each kernel row and goes into every
/// output that it is part of, the row's weights stay in registers.
template <class V, int KW, int STRIDE, int COLUMNS>
inline void depthwise_columns(const DepthwiseRowF32& d, const float* x, const float* w, float* y) {
  using T = typename V::T;
  T sum[COLUMNS];
  const T bias = V::load(w);
  w += V::kLanes;
  PINNACE_UNROLL for (int i = 0; i < COLUMNS; ++i) sum[i] = bias;
  for (int ky = 0; ky < d.kernel_h; ++ky, x += d.tap_row, w += KW * V::kLanes) {
    T weight[KW];
    PINNACE_UNROLL for (int k = 0; k < KW; ++k) weight[k] = V::load(w + k * V::kLanes);
    PINNACE_UNROLL for (int i = 0; i < (COLUMNS - 1) * STRIDE + KW; ++i) {
      const T value = V::load(x + i * d.pitch);
      PINNACE_UNROLL for (int k = 0; k < KW; ++k) {
        const int at = i - k;
        if (at >= 0 && at % STRIDE == 0 && at / STRIDE < COLUMNS) {
          sum[at / STRIDE] = V::multiply_add(value, weight[k], sum[at / STRIDE]);
        }
      }
    }
  }
  const bool clamp = d.map.kind == MapKind::kRelu || d.map.kind == MapKind::kClip;
  if (clamp) {
    const T low = V::all(d.map.kind == MapKind::kClip ? d.map.a : 0.0f);
    const T high = V::all(d.map.kind == MapKind::kClip ? d.map.b : __builtin_inff());
    PINNACE_UNROLL for (int i = 0; i < COLUMNS; ++i) sum[i] = V::at_most(V::at_least(sum[i], low), high);
  }
  PINNACE_UNROLL for (int i = 0; i < COLUMNS; ++i) V::store(y + i * d.y_pitch, sum[i]);
  if (!clamp && d.map.kind != MapKind::kNone) map_block<V>(d.map, y, d.y_pitch, COLUMNS, V::kLanes);
}

template <class V, int KW, int STRIDE>
void depthwise_of(const DepthwiseRowF32& d) {
  constexpr int kColumns = 7;
  const int64_t panel = (1 + static_cast<int64_t>(d.kernel_h) * KW) * V::kLanes;
  for (int64_t c = 0; c < d.channels; c += V::kLanes) {
    const float* w = d.weights + c / V::kLanes * panel;
    const float* x = d.x + c;
    float* y = d.y + c;
    if (d.out_w < kColumns) {
      for (int64_t ox = 0; ox < d.out_w; ++ox) {
        depthwise_columns<V, KW, STRIDE, 1>(d, x + ox * STRIDE * d.pitch, w, y + ox * d.y_pitch);
      }
      continue;
    }
    for (int64_t ox = 0; ox < d.out_w; ox += kColumns) {
      const int64_t at = ox < d.out_w - kColumns ? ox : d.out_w - kColumns;  // the last ones are done again
      depthwise_columns<V, KW, STRIDE, kColumns>(d, x + at * STRIDE * d.pitch, w, y + at * d.y_pitch);
    }
  }
}

/// Any kernel, stride and dilation.
template <class V>
void depthwise_any(const DepthwiseRowF32& d) {
  using T = typename V::T;
  const int64_t panel = (1 + static_cast<int64_t>(d.kernel_h) * d.kernel_w) * V::kLanes;
  for (int64_t c = 0; c < d.channels; c += V::kLanes) {
    for (int64_t ox = 0; ox < d.out_w; ++ox) {
      const float* w = d.weights + c / V::kLanes * panel;
      const float* x = d.x + c + ox * d.stride_x * d.pitch;
      T sum = V::load(w);
      w += V::kLanes;
      for (int ky = 0; ky < d.kernel_h; ++ky) {
        for (int kx = 0; kx < d.kernel_w; ++kx, w += V::kLanes) {
          sum = V::multiply_add(V::load(x + ky * d.tap_row + kx * d.dilation_x * d.pitch), V::load(w), sum);
        }
      }
      V::store(d.y + c + ox * d.y_pitch, sum);
      if (d.map.kind != MapKind::kNone) map_block<V>(d.map, d.y + c + ox * d.y_pitch, 0, 1, V::kLanes);
    }
  }
}

#if PINNACE_LANES == 4
using Lanes = Wide;
#else
using Lanes = Floats<8>;  // pixels are padded to 8 channels
#endif

void depthwise_row(const DepthwiseRowF32& d) {
  if (d.dilation_x == 1 && d.stride_x == 1) {
    if (d.kernel_w == 3) return depthwise_of<Lanes, 3, 1>(d);
    if (d.kernel_w == 5) return depthwise_of<Lanes, 5, 1>(d);
    if (d.kernel_w == 7) return depthwise_of<Lanes, 7, 1>(d);
  }
  if (d.dilation_x == 1 && d.stride_x == 2) {
    if (d.kernel_w == 3) return depthwise_of<Lanes, 3, 2>(d);
    if (d.kernel_w == 5) return depthwise_of<Lanes, 5, 2>(d);
  }
  depthwise_any<Lanes>(d);
}

template <class F>
void pixels_of(const float* a, ptrdiff_t a_step, const float* b, ptrdiff_t b_step, float* y, ptrdiff_t y_step,
               int64_t pixels, int64_t channels, F f) {
  if (a_step == channels && b_step == channels && y_step == channels) {
    channels *= pixels;
    pixels = 1;
  }
  for (int64_t p = 0; p < pixels; ++p, a += a_step, b += b_step, y += y_step) {
    int64_t c = 0;
    for (; c + Wide::kLanes <= channels; c += Wide::kLanes) Wide::store(y + c, f(Wide::load(a + c), Wide::load(b + c)));
    for (; c + Lanes::kLanes <= channels; c += Lanes::kLanes) {
      Lanes::store(y + c, f(Lanes::load(a + c), Lanes::load(b + c)));
    }
    for (; c < channels; ++c) y[c] = f(a[c], b[c]);
  }
}

void binary(BinaryKind kind, const float* a, ptrdiff_t a_step, const float* b, ptrdiff_t b_step, float* y,
            ptrdiff_t y_step, int64_t pixels, int64_t channels) {
  switch (kind) {
    case BinaryKind::kAdd:
      return pixels_of(a, a_step, b, b_step, y, y_step, pixels, channels, [](auto p, auto q) { return p + q; });
    case BinaryKind::kSub:
      return pixels_of(a, a_step, b, b_step, y, y_step, pixels, channels, [](auto p, auto q) { return p - q; });
    case BinaryKind::kMul:
      return pixels_of(a, a_step, b, b_step, y, y_step, pixels, channels, [](auto p, auto q) { return p * q; });
    case BinaryKind::kDiv:
      return pixels_of(a, a_step, b, b_step, y, y_step, pixels, channels, [](auto p, auto q) { return p / q; });
  }
}

void maximum(const float* x, float* y, int64_t channels) {
  for (int64_t c = 0; c < channels; ++c) y[c] = x[c] > y[c] || x[c] != x[c] ? x[c] : y[c];
}

void sum(const float* x, ptrdiff_t step, int64_t pixels, int64_t channels, float* sums) {
  int64_t c = 0;
  for (; c + Wide::kLanes <= channels; c += Wide::kLanes) {
    Wide::T total = Wide::load(sums + c);
    for (int64_t p = 0; p < pixels; ++p) total += Wide::load(x + p * step + c);
    Wide::store(sums + c, total);
  }
  for (; c + Lanes::kLanes <= channels; c += Lanes::kLanes) {
    Lanes::T total = Lanes::load(sums + c);
    for (int64_t p = 0; p < pixels; ++p) total += Lanes::load(x + p * step + c);
    Lanes::store(sums + c, total);
  }
  for (; c < channels; ++c) {
    for (int64_t p = 0; p < pixels; ++p) sums[c] += x[p * step + c];
  }
}

#undef PINNACE_UNROLL

}  // namespace
}  // namespace PINNACE_LEVEL

#define PINNACE_NAME_(level) image_f32_kernels_##level
#define PINNACE_NAME(level) PINNACE_NAME_(level)
const ImageF32Kernels PINNACE_NAME(PINNACE_LEVEL) = {PINNACE_LEVEL::Lanes::kLanes, PINNACE_LEVEL::depthwise_row,
                                                     PINNACE_LEVEL::binary, PINNACE_LEVEL::maximum, PINNACE_LEVEL::sum};

}  // namespace pinnace
