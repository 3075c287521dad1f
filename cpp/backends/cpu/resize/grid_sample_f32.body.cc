// The float32 loops of grid_sample (grid_sample_f32.h).
#include "backends/cpu/resize/grid_sample_f32.h"

#include "backends/cpu/simd/f32.h"

namespace pinnace::cpu {
namespace PINNACE_ISA {
namespace {

using T = Wide::T;
using I = Wide::I;

static_assert(GridPixels::kPlaces % Wide::kLanes == 0);

inline I select(I mask, I yes, I no) {
  return (yes & mask) | (no & ~mask);
}

inline T gathered(const float* from, const int32_t* index) {
#if PINNACE_LANES == 16
  return _mm512_i32gather_ps(_mm512_loadu_si512(index), from, 4);
#else
  return _mm256_i32gather_ps(from, _mm256_loadu_si256(reinterpret_cast<const __m256i*>(index)), 4);
#endif
}

/// The pixels along a dimension that make up a sample, and their weights.
template <int TAPS>
struct Along {
  I index[TAPS];
  T weight[TAPS];
};

/// Of places in [-1, 1]; sizes and places are those of grid_taps(), in the same arithmetic.
template <int TAPS>
inline Along<TAPS> along(T place, int32_t size, bool align, bool border) {
  const auto n = static_cast<float>(size);
  T x = align ? (place + 1.0f) * 0.5f * (n - 1) : ((place + 1.0f) * n - 1.0f) * 0.5f;
  if (border) {
    constexpr float kMargin = TAPS == 4 ? 2 : 0;
    x = Wide::at_most(Wide::at_least(x, Wide::all(-kMargin)), Wide::all(n - 1 + kMargin));
    x = Wide::select(x == x, x, Wide::all(0));
  } else {
    x = Wide::select((x > -4.0f) & (x < n + 4), x, Wide::all(-4));  // far outside, or NaN: only zeros
  }
  constexpr float kEven = 0x1.8p23f;  // the sum has no fraction left: to the nearest, half to even
  I first = __builtin_convertvector(TAPS == 1 ? (x + kEven) - kEven : x, I);
  const T whole = __builtin_convertvector(first, T);
  const I above = TAPS == 1 ? I{} : whole > x;  // -1 where truncation went up
  first += above;
  const T t = x - Wide::select(above, whole - 1.0f, whole);
  Along<TAPS> made;
  if constexpr (TAPS == 1) made.weight[0] = Wide::all(1);
  if constexpr (TAPS == 2) {
    made.weight[0] = 1.0f - t;
    made.weight[1] = t;
  }
  if constexpr (TAPS == 4) {
    first -= 1;
    constexpr float a = -0.75f;
    const auto inner = [](T d) { return ((a + 2) * d - (a + 3)) * d * d + 1.0f; };
    const auto outer = [](T d) { return ((a * d - 5 * a) * d + 8 * a) * d - 4 * a; };
    made.weight[0] = outer(t + 1.0f);
    made.weight[1] = inner(t);
    made.weight[2] = inner(1.0f - t);
    made.weight[3] = outer(2.0f - t);
  }
  for (int k = 0; k < TAPS; ++k) {
    const I at = first + k, last = I{} + (size - 1);
    made.index[k] = select(at < 0, I{}, select(at > last, last, at));
    if (!border) made.weight[k] = Wide::select(made.index[k] == at, made.weight[k], Wide::all(0));
  }
  return made;
}

template <int TAPS>
void pixels_of(const GridImage& image, const float* grid, int64_t count, GridPixels& pixels) {
  float x[GridPixels::kPlaces], y[GridPixels::kPlaces];
  for (int64_t i = 0; i < count; ++i) x[i] = grid[2 * i], y[i] = grid[2 * i + 1];
  const int64_t whole = (count + Wide::kLanes - 1) / Wide::kLanes * Wide::kLanes;
  for (int64_t i = count; i < whole; ++i) x[i] = y[i] = 0;
  for (int64_t i = 0; i < whole; i += Wide::kLanes) {
    const auto across = along<TAPS>(Wide::load(x + i), image.width, image.align, image.border);
    const auto down = along<TAPS>(Wide::load(y + i), image.height, image.align, image.border);
    for (int k = 0; k < TAPS * TAPS; ++k) {
      const I index = down.index[k / TAPS] * image.row + across.index[k % TAPS] * image.pixel;
      __builtin_memcpy(pixels.index[k] + i, &index, sizeof index);
      Wide::store(pixels.weight[k] + i, down.weight[k / TAPS] * across.weight[k % TAPS]);
    }
  }
}

void sums(const GridPixels& pixels, int taps, int64_t count, const float* image, float* y) {
  for (int64_t i = 0; i < count; i += Wide::kLanes) {
    T total{};
    for (int k = 0; k < taps; ++k) {
      const T weight = Wide::load(pixels.weight[k] + i), value = gathered(image, pixels.index[k] + i);
      total = Wide::multiply_add(Wide::select(weight != 0.0f, value, T{}), weight, total);
    }
    if (i + Wide::kLanes <= count) {
      Wide::store(y + i, total);
    } else {
      __builtin_memcpy(y + i, &total, static_cast<size_t>(count - i) * sizeof(float));
    }
  }
}

}  // namespace
}  // namespace PINNACE_ISA

const GridSampleF32Kernels PINNACE_FOR_ISA(grid_sample_f32_kernels) = {
    {PINNACE_ISA::pixels_of<1>, PINNACE_ISA::pixels_of<2>, PINNACE_ISA::pixels_of<4>}, PINNACE_ISA::sums};

}  // namespace pinnace::cpu
