// grid_sample of images in float32, over NHWC-packed tensors, where a sample is a weighted sum of pixels by the loops
// of resize, and over dense planes, where the pixels and weights of some samples serve all channels. They are found a
// register of samples at a time, for padding by reflection by the operator's own code. ARM64, whose library has to stay
// small, runs the reference code.
#if defined(__x86_64__)
#include "ops/grid_sample_taps.h"

#include "backends/cpu/kernel.h"
#include "backends/cpu/pace.h"
#include "backends/cpu/resize/grid_sample_f32.h"
#include "backends/cpu/resize/resize_f32.h"

namespace pinnace::cpu {
namespace {

bool takes(const KernelNode& node) {
  const TensorType &x = node.input(0), &grid = node.input(1);
  return x.rank() == 4 && grid.dtype == DType::kF32 && x.elements() >= 1 && x.elements() <= INT32_MAX &&
         grid_sample_spec(node).ok();
}

/// Pixels of an image are counted in 32 bits, with the elements between them. The border is not known yet: nhwc_run()
/// looks again.
bool nhwc_takes(const KernelNode& node) {
  if (!takes(node)) return false;
  const NhwcSizes s = nhwc_sizes(node.input(0));
  return s.h * s.w * nhwc_layout(node.input(0)).pitch <= INT32_MAX;
}

/// The loops of an instruction set; those of resize add up pixels of many channels.
struct Loops {
  const GridSampleF32Kernels& grid;
  const ResizeF32Kernels& resize;
};

/// Finds the pixels of samples, some at a time.
class Places {
 public:
  /// row, pixel: how far apart rows and pixels are, in any unit. takes() has seen that 32 bits hold the sizes.
  Places(const Loops& loops, const GridSpec& spec, int64_t height, int64_t width, int64_t row, int64_t pixel)
      : loops_(loops),
        spec_(spec),
        image_{static_cast<int32_t>(height),
               static_cast<int32_t>(width),
               static_cast<int32_t>(row),
               static_cast<int32_t>(pixel),
               spec.align,
               spec.padding == GridPadding::kBorder},
        together_(spec.padding != GridPadding::kReflection && std::max(height, width) <= GridImage::kMostSide) {
    if (!together_) pixels = {};  // what no sample has is the first pixel
  }

  GridPixels pixels;
  /// Of a sample, most with a weight.
  int taps() const { return spec_.taps() * spec_.taps(); }

  /// grid: x and y of each sample. count: at most GridPixels::kPlaces.
  void find(const float* grid, int64_t count) {
    if (together_) return loops_.grid.pixels[static_cast<size_t>(spec_.mode)](image_, grid, count, pixels);
    for (int64_t i = 0; i < count; ++i) {
      const GridTaps across = grid_taps(spec_, grid[2 * i], image_.width);
      const GridTaps down = grid_taps(spec_, grid[2 * i + 1], image_.height);
      for (int k = 0; k < taps(); ++k) {
        const int r = k / spec_.taps(), c = k % spec_.taps();
        pixels.index[k][i] = static_cast<int32_t>(down.index[r] * image_.row + across.index[c] * image_.pixel);
        pixels.weight[k][i] = static_cast<float>(down.weight[r] * across.weight[c]);
      }
    }
  }

 private:
  const Loops& loops_;
  const GridSpec& spec_;
  const GridImage image_;
  const bool together_;  // a register of samples at a time, which sides above kMostSide and reflections are not
};

/// f(image, first, last): places of an image, about 16,384 elements of the result at a time.
template <class F>
void each_part(const KernelContext& context, int64_t images, int64_t places, int64_t channels, F f) {
  const int64_t each = std::max<int64_t>(1, 16384 / std::max<int64_t>(1, channels)), parts = (places + each - 1) / each;
  context.parallel(images * parts, [&](int64_t t) {
    const int64_t first = t % parts * each;
    f(t / parts, first, std::min(places, first + each));
  });
}

template <const Loops& loops>
Status nhwc_run(const KernelNode& node, const KernelContext& context, std::span<const TensorView> in,
                std::span<const TensorView> out) {
  PINNACE_ASSIGN(const GridSpec spec, grid_sample_spec(node));
  const NhwcF32 x = nhwc_of(in[0], context.layouts[0]), y = nhwc_of(out[0], context.layouts[in.size()]);
  const int64_t channels = std::min(x.pitch, y.pitch), samples = y.size.h * y.size.w;
  if (x.size.h * x.row > INT32_MAX) {
    return unsupported(node.label(), ": an image of ", x.size.h * x.row,
                       " elements with the border around it, must be below 2^31");
  }
  each_part(context, y.size.n, samples, channels, [&](int64_t n, int64_t first, int64_t last) {
    const float *from = x.at + n * x.step, *grid = in[1].data<float>() + 2 * n * samples;
    Places places(loops, spec, x.size.h, x.size.w, x.row, x.pitch);
    Pace pace(channels * places.taps());
    for (int64_t p = first; p < last && !pace.stops(); ++p) {
      const int64_t i = (p - first) % GridPixels::kPlaces;
      if (i == 0) places.find(grid + 2 * p, std::min(GridPixels::kPlaces, last - p));
      int32_t index[GridPixels::kMost], start[2] = {0, 0};
      float weight[GridPixels::kMost];
      for (int k = 0; k < places.taps(); ++k) {
        if (places.pixels.weight[k][i] == 0) continue;
        index[start[1]] = places.pixels.index[k][i];
        weight[start[1]++] = places.pixels.weight[k][i];
      }
      float* to = y.at + n * y.step + p / y.size.w * y.row + p % y.size.w * y.pitch;
      if (start[1] == 0) {
        std::fill_n(to, channels, 0.0f);
        continue;
      }
      loops.resize.across({start, index, weight}, 0, from, 1, to, channels);
    }
  });
  return {};
}

template <const Loops& loops>
Status dense_run(const KernelNode& node, const KernelContext& context, std::span<const TensorView> in,
                 std::span<const TensorView> out) {
  PINNACE_ASSIGN(const GridSpec spec, grid_sample_spec(node));
  const int64_t channels = in[0].dim(1), height = in[0].dim(2), width = in[0].dim(3), plane = height * width;
  const int64_t samples = out[0].dim(2) * out[0].dim(3);
  if (samples == 0) return {};
  each_part(context, in[0].dim(0), samples, channels, [&](int64_t n, int64_t first, int64_t last) {
    const float *image = in[0].data<float>() + n * channels * plane, *grid = in[1].data<float>() + 2 * n * samples;
    Places places(loops, spec, height, width, width, 1);
    Pace pace(GridPixels::kPlaces * channels * places.taps());
    for (int64_t p = first; p < last && !pace.stops(); p += GridPixels::kPlaces) {
      const int64_t count = std::min(GridPixels::kPlaces, last - p);
      places.find(grid + 2 * p, count);
      float* to = out[0].data<float>() + n * channels * samples + p;
      for (int64_t c = 0; c < channels; ++c) {
        loops.grid.sums(places.pixels, places.taps(), count, image + c * plane, to + c * samples);
      }
    }
  });
  return {};
}

template <const Loops& loops>
constexpr CpuKernel make_nhwc() {
  return {.takes = nhwc_takes, .layouts = Layouts::kFollows, .nhwc_inputs = 0b1, .run = nhwc_run<loops>};
}

template <const Loops& loops>
constexpr CpuKernel make_dense() {
  return {.takes = takes, .run = dense_run<loops>};
}

constexpr Loops avx2{grid_sample_f32_kernels_avx2, resize_f32_kernels_avx2};
constexpr Loops avx512{grid_sample_f32_kernels_avx512, resize_f32_kernels_avx512};

}  // namespace

extern const CpuKernel grid_sample_nhwc_f32_avx2, grid_sample_nhwc_f32_avx512, grid_sample_f32_avx2,
    grid_sample_f32_avx512;
const CpuKernel grid_sample_nhwc_f32_avx2 = make_nhwc<avx2>(), grid_sample_nhwc_f32_avx512 = make_nhwc<avx512>();
const CpuKernel grid_sample_f32_avx2 = make_dense<avx2>(), grid_sample_f32_avx512 = make_dense<avx512>();

}  // namespace pinnace::cpu
#endif
