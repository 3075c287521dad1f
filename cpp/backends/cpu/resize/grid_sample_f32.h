// The float32 loops of grid_sample, compiled once per instruction set. Plain pointers and sizes only.
#pragma once

#include <cstdint>

namespace pinnace::cpu {

/// The pixels of up to kPlaces samples. Sample i is the sum of weight[k][i] * pixel index[k][i] over those k whose
/// weight is not 0: an infinity beside a sample does not count.
struct GridPixels {
  static constexpr int64_t kPlaces = 64;
  static constexpr int kMost = 16;  // of a cubic sample
  int32_t index[kMost][kPlaces];
  float weight[kMost][kPlaces];
};

/// An image that samples are taken of; its pixel (y, x) is number y * row + x * pixel.
struct GridImage {
  int32_t height, width;  // at most kMostSide for GridSampleF32Kernels
  int32_t row, pixel;
  bool align;   // -1 and 1 are the centres of the outermost pixels, not their outer edges
  bool border;  // what is outside has the value at the border; otherwise 0
  static constexpr int32_t kMostSide = 1 << 20;
};

struct GridSampleF32Kernels {
  /// The pixels and weights of samples at grid[2 * i] across and grid[2 * i + 1] down, for i in [0, count), count in
  /// [1, kPlaces], as grid_taps() of ops/grid_sample_taps.h has them but for the rounding of weights. The first member
  /// takes the nearest pixel, the second two in each direction, the third four.
  void (*pixels[3])(const GridImage& image, const float* grid, int64_t count, GridPixels& pixels);
  /// y[i] = sample i, of `taps` pixels, for i in [0, count); what `pixels` has from count on is read, and must be
  /// pixels of the image.
  void (*sums)(const GridPixels& pixels, int taps, int64_t count, const float* image, float* y);
};

#if defined(__x86_64__)
extern const GridSampleF32Kernels grid_sample_f32_kernels_avx2, grid_sample_f32_kernels_avx512;
#endif

}  // namespace pinnace::cpu
