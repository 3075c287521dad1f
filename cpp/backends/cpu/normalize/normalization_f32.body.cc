// The loops of normalization_f32.h.
#include "backends/cpu/normalize/normalization_f32.h"
#include "backends/cpu/reduce/rows_f32.h"
#include "backends/cpu/simd/f32_channels.h"

namespace pinnace::cpu {
namespace PINNACE_ISA {
namespace {

/// The sums of x - centre and of its squares.
struct SumsAbout {
  double first = 0, squares = 0;
};
SumsAbout exact_sums_about(const float* x, int64_t count, double centre) {
  SumsAbout sums;
  for (int64_t i = 0; i < count; ++i) {
    const double v = static_cast<double>(x[i]) - centre;
    sums.first += v;
    sums.squares += v * v;
  }
  return sums;
}
/// As row_sum() adds them, the first sum only if FIRST; what single precision cannot hold is taken again in double.
template <bool FIRST>
SumsAbout sums_about(const float* x, int64_t count, float centre) {
  constexpr int kSums = 4;
  SumsAbout sums;
  for (int64_t i = 0; i < count;) {
    const int64_t last = count - i < 64 * kLanes ? count : i + 64 * kLanes;
    V first[kSums] = {}, squares[kSums] = {};
    const auto take = [&](V v, int j) __attribute__((always_inline)) {
      v = v - centre;
      if (FIRST) first[j] += v;
      squares[j] += v * v;
    };
    for (; i + kSums * kLanes <= last; i += kSums * kLanes) {
#pragma GCC unroll 4
      for (int j = 0; j < kSums; ++j) take(load(x + i + j * kLanes), j);
    }
    for (; i + kLanes <= last; i += kLanes) take(load(x + i), 0);
    if (i < last) take(load_part(x + i, last - i, centre), 0);
    i = last;
    sums.first += sum_of((first[0] + first[1]) + (first[2] + first[3]));
    sums.squares += sum_of((squares[0] + squares[1]) + (squares[2] + squares[3]));
  }
  return sums.squares < __builtin_inf() ? sums : exact_sums_about(x, count, static_cast<double>(centre));
}

MomentsF32 moments(const float* x, int64_t count) {
  const auto size = static_cast<double>(count);
  double sum = row_sum<4>(x, count, 0, [](V v, int64_t, int64_t) { return v; });
  if (!(__builtin_fabs(sum) < __builtin_inf())) sum = exact_sums_about(x, count, 0).first;
  // `centre` is the mean but for rounding: what that adds to all numbers and to all squares is taken off again.
  const auto centre = static_cast<float>(sum / size);
  const SumsAbout about = sums_about<true>(x, count, centre);
  const double rest = about.first / size, variance = about.squares / size - rest * rest;
  return {centre, rest, variance < 0 ? 0 : variance};
}

void normalize(const float* x, float* y, int64_t count, float epsilon, bool centred, const float* scale,
               const float* bias) {
  const MomentsF32 m = centred ? moments(x, count)
                               : MomentsF32{0, 0, sums_about<false>(x, count, 0).squares / static_cast<double>(count)};
  const float centre = m.centre;
  const double inverse = 1.0 / __builtin_sqrt(m.variance + static_cast<double>(epsilon));
  const auto factor = static_cast<float>(inverse), rest = static_cast<float>(m.rest * inverse);
  int64_t i = 0;
  for (; i + kLanes <= count; i += kLanes) {
    const V v = ((load(x + i) - centre) * factor - rest) * load(scale + i);
    store(y + i, bias ? v + load(bias + i) : v);
  }
  for (; i < count; ++i) y[i] = ((x[i] - centre) * factor - rest) * scale[i] + (bias ? bias[i] : 0.0f);
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
