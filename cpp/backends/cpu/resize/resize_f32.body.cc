// The float32 loops of resize (resize_f32.h).
#include "backends/cpu/resize/resize_f32.h"
#include "backends/cpu/simd/f32.h"

namespace pinnace::cpu {
namespace PINNACE_ISA {
namespace {

#if PINNACE_LANES == 16
using Lanes = Floats<8>;  // pixels are padded to 8 channels
#else
using Lanes = Wide;
#endif

/// f(V, place) for whole registers, f of one float for what is left.
template <class F>
inline void each_register(int64_t count, F f) {
  int64_t i = 0;
  for (; i + Wide::kLanes <= count; i += Wide::kLanes) f(Wide{}, i);
#if PINNACE_LANES == 16
  for (; i + Lanes::kLanes <= count; i += Lanes::kLanes) f(Lanes{}, i);
#endif
  for (; i < count; ++i) f(Floats<4>{}, -1 - i);
}

/// Sum of `taps` places; one place of weight 1 is a copy, which keeps NaN's bits.
inline void sum(const int32_t* index, const float* weight, int32_t taps, const float* x, ptrdiff_t stride, float* y,
                int64_t count) {
  if (taps == 1 && weight[0] == 1) {
    const float* from = x + index[0] * stride;
    each_register(count, [&](auto v, int64_t i) {
      using V = decltype(v);
      if (i >= 0) {
        V::store(y + i, V::load(from + i));
      } else {
        y[-1 - i] = from[-1 - i];
      }
    });
    return;
  }
  if (taps == 2) {
    const float *a = x + index[0] * stride, *b = x + index[1] * stride;
    const float wa = weight[0], wb = weight[1];
    each_register(count, [&](auto v, int64_t i) {
      using V = decltype(v);
      if (i >= 0) {
        V::store(y + i, V::multiply_add(V::load(b + i), V::all(wb), V::load(a + i) * V::all(wa)));
      } else {
        y[-1 - i] = a[-1 - i] * wa + b[-1 - i] * wb;
      }
    });
    return;
  }
  each_register(count, [&](auto v, int64_t i) {
    using V = decltype(v);
    if (i >= 0) {
      typename V::T total = V::load(x + index[0] * stride + i) * V::all(weight[0]);
      for (int32_t k = 1; k < taps; ++k) {
        total = V::multiply_add(V::load(x + index[k] * stride + i), V::all(weight[k]), total);
      }
      V::store(y + i, total);
    } else {
      float total = x[index[0] * stride - 1 - i] * weight[0];
      for (int32_t k = 1; k < taps; ++k) total += x[index[k] * stride - 1 - i] * weight[k];
      y[-1 - i] = total;
    }
  });
}

void across(const ResizeTapsF32& t, int64_t i, const float* x, ptrdiff_t stride, float* y, int64_t count) {
  sum(t.index + t.start[i], t.weight + t.start[i], t.start[i + 1] - t.start[i], x, stride, y, count);
}

void along(const ResizeTapsF32& t, int64_t out, const float* x, ptrdiff_t x_pitch, float* y, ptrdiff_t y_pitch,
           int64_t channels) {
  if (channels > 1) {
    for (int64_t o = 0; o < out; ++o) {
      sum(t.index + t.start[o], t.weight + t.start[o], t.start[o + 1] - t.start[o], x, x_pitch, y + o * y_pitch,
          channels);
    }
    return;
  }
  for (int64_t o = 0; o < out; ++o) {
    const int32_t first = t.start[o], last = t.start[o + 1];
    float total = last - first == 1 && t.weight[first] == 1 ? x[t.index[first] * x_pitch]
                                                            : x[t.index[first] * x_pitch] * t.weight[first];
    for (int32_t k = first + 1; k < last; ++k) total += x[t.index[k] * x_pitch] * t.weight[k];
    y[o * y_pitch] = total;
  }
}

}  // namespace
}  // namespace PINNACE_ISA

const ResizeF32Kernels PINNACE_FOR_ISA(resize_f32_kernels) = {PINNACE_ISA::across, PINNACE_ISA::along};

}  // namespace pinnace::cpu
