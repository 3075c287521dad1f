// The loops of normalization_f32.h.
#include "backends/cpu/normalize/normalization_f32.h"
#include "backends/cpu/reduce/rows_f32.h"
#include "backends/cpu/simd/f32_channels.h"

namespace pinnace::cpu {
namespace PINNACE_ISA {
namespace {

/// The sum of (x - centre)^2. Squares that single precision cannot hold are taken again in double.
double squares_about(const float* x, int64_t count, float centre) {
  const double sum = row_sum<4>(x, count, centre, [&](V v, int64_t, int64_t) { return (v - centre) * (v - centre); });
  if (sum < __builtin_inf()) return sum;
  double exact = 0;
  for (int64_t i = 0; i < count; ++i) {
    const double v = static_cast<double>(x[i]) - static_cast<double>(centre);
    exact += v * v;
  }
  return exact;
}

MomentsF32 moments(const float* x, int64_t count) {
  const double mean = row_sum<4>(x, count, 0, [](V v, int64_t, int64_t) { return v; }) / static_cast<double>(count);
  const auto centre = static_cast<float>(mean);
  // `centre` is the mean rounded: what that adds to every square is taken off again.
  const double rest = mean - static_cast<double>(centre);
  return {centre, rest, squares_about(x, count, centre) / static_cast<double>(count) - rest * rest};
}

void normalize(const float* x, float* y, int64_t count, float epsilon, bool centred, const float* scale,
               const float* bias) {
  const MomentsF32 m =
      centred ? moments(x, count) : MomentsF32{0, 0, squares_about(x, count, 0) / static_cast<double>(count)};
  const float centre = m.centre;
  const auto factor = static_cast<float>(1.0 / __builtin_sqrt(m.variance + static_cast<double>(epsilon)));
  int64_t i = 0;
  for (; i + kLanes <= count; i += kLanes) {
    const V v = (load(x + i) - centre) * factor * load(scale + i);
    store(y + i, bias ? v + load(bias + i) : v);
  }
  for (; i < count; ++i) y[i] = (x[i] - centre) * factor * scale[i] + (bias ? bias[i] : 0.0f);
}

void affine(const float* x, float* y, int64_t count, float centre, float factor, float bias) {
  int64_t i = 0;
  for (; i + kLanes <= count; i += kLanes) store(y + i, (load(x + i) - centre) * factor + bias);
  for (; i < count; ++i) y[i] = (x[i] - centre) * factor + bias;
}

template <class V>
inline int64_t affine_lanes(const float* x, ptrdiff_t x_step, float* y, ptrdiff_t y_step, int64_t pixels, int64_t c,
                            int64_t channels, const float* centre, const float* factor, const float* bias) {
  for (; c + V::kLanes <= channels; c += V::kLanes) {
    const typename V::T m = V::load(centre + c), f = V::load(factor + c), b = V::load(bias + c);
    for (int64_t p = 0; p < pixels; ++p) V::store(y + p * y_step + c, (V::load(x + p * x_step + c) - m) * f + b);
  }
  return c;
}
void affine_pixels(const float* x, ptrdiff_t x_step, float* y, ptrdiff_t y_step, int64_t pixels, int64_t channels,
                   const float* centre, const float* factor, const float* bias) {
  int64_t c = affine_lanes<Wide>(x, x_step, y, y_step, pixels, 0, channels, centre, factor, bias);
  c = affine_lanes<Lanes>(x, x_step, y, y_step, pixels, c, channels, centre, factor, bias);
  affine_lanes<Single>(x, x_step, y, y_step, pixels, c, channels, centre, factor, bias);
}

}  // namespace
}  // namespace PINNACE_ISA

const NormalizationLoops PINNACE_FOR_ISA(normalization_loops_f32) = {PINNACE_ISA::moments, PINNACE_ISA::normalize,
                                                                     PINNACE_ISA::affine, PINNACE_ISA::affine_pixels};

}  // namespace pinnace::cpu
