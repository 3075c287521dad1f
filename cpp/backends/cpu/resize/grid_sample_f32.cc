// grid_sample of images in float32, over NHWC-packed tensors, where a place is a weighted sum of pixels by the loops of
// resize, and over dense planes, where the pixels and weights of some places serve all channels. Places and weights are
// the operator's own, so that all pick the same. ARM64, whose library has to stay small, runs the reference code.
#if defined(__x86_64__)
#include "ops/grid_sample_taps.h"

#include "backends/cpu/kernel.h"
#include "backends/cpu/pace.h"
#include "backends/cpu/resize/resize_f32.h"

namespace pinnace::cpu {
namespace {

bool takes(const KernelNode& node) {
  const TensorType &x = node.input(0), &grid = node.input(1);
  return x.rank() == 4 && grid.dtype == DType::kF32 && x.elements() >= 1 && x.elements() <= INT32_MAX &&
         grid_sample_spec(node).ok();
}

/// The pixels that a sample is made of, and their weights; none for one that is outside.
struct Pixels {
  static constexpr int kMost = 16;
  int32_t count;
  int32_t index[kMost];
  float weight[kMost];

  /// place: x and y. row, pixel: how far apart rows and pixels are.
  void find(const GridSpec& spec, const float* place, int64_t height, int64_t width, int64_t row, int64_t pixel) {
    count = 0;
    const GridTaps across = grid_taps(spec, place[0], width), down = grid_taps(spec, place[1], height);
    for (int r = 0; r < down.count; ++r) {
      for (int c = 0; c < across.count; ++c) {
        const double w = down.weight[r] * across.weight[c];
        if (w == 0) continue;  // infinities beside the sample do not count
        index[count] = static_cast<int32_t>(down.index[r] * row + across.index[c] * pixel);
        weight[count++] = static_cast<float>(w);
      }
    }
  }
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

template <const ResizeF32Kernels& loops>
Status nhwc_run(const KernelNode& node, const KernelContext& context, std::span<const TensorView> in,
                std::span<const TensorView> out) {
  PINNACE_ASSIGN(const GridSpec spec, grid_sample_spec(node));
  const NhwcF32 x = nhwc_of(in[0], context.layouts[0]), y = nhwc_of(out[0], context.layouts[in.size()]);
  const int64_t channels = std::min(x.pitch, y.pitch), places = y.size.h * y.size.w;
  each_part(context, y.size.n, places, channels, [&](int64_t n, int64_t first, int64_t last) {
    const float *from = x.at + n * x.step, *place = in[1].data<float>() + 2 * n * places;
    Pixels pixels;
    Pace pace(channels * spec.taps() * spec.taps());
    for (int64_t p = first; p < last && !pace.stops(); ++p) {
      float* to = y.at + n * y.step + p / y.size.w * y.row + p % y.size.w * y.pitch;
      pixels.find(spec, place + 2 * p, x.size.h, x.size.w, x.row, x.pitch);
      if (pixels.count == 0) {
        std::fill_n(to, channels, 0.0f);
        continue;
      }
      const int32_t start[2] = {0, pixels.count};
      loops.across({start, pixels.index, pixels.weight}, 0, from, 1, to, channels);
    }
  });
  return {};
}

/// Places whose pixels are found before the channels are gone through.
constexpr int64_t kTogether = 64;

Status dense_run(const KernelNode& node, const KernelContext& context, std::span<const TensorView> in,
                 std::span<const TensorView> out) {
  PINNACE_ASSIGN(const GridSpec spec, grid_sample_spec(node));
  const int64_t channels = in[0].dim(1), height = in[0].dim(2), width = in[0].dim(3), plane = height * width;
  const int64_t places = out[0].dim(2) * out[0].dim(3);
  if (places == 0) return {};
  each_part(context, in[0].dim(0), places, channels, [&](int64_t n, int64_t first, int64_t last) {
    const float *image = in[0].data<float>() + n * channels * plane, *place = in[1].data<float>() + 2 * n * places;
    Pixels pixels[kTogether];
    Pace pace(kTogether * channels * spec.taps() * spec.taps());
    for (int64_t p = first; p < last && !pace.stops(); p += kTogether) {
      const int64_t count = std::min(kTogether, last - p);
      for (int64_t i = 0; i < count; ++i) pixels[i].find(spec, place + 2 * (p + i), height, width, width, 1);
      const float* from = image;
      float* to = out[0].data<float>() + n * channels * places + p;
      for (int64_t c = 0; c < channels; ++c, from += plane, to += places) {
        for (int64_t i = 0; i < count; ++i) {
          float sum = 0;
          for (int32_t k = 0; k < pixels[i].count; ++k) sum += from[pixels[i].index[k]] * pixels[i].weight[k];
          to[i] = sum;
        }
      }
    }
  });
  return {};
}

template <const ResizeF32Kernels& loops>
constexpr CpuKernel make_nhwc() {
  return {.takes = takes, .layouts = Layouts::kFollows, .nhwc_inputs = 0b1, .run = nhwc_run<loops>};
}

}  // namespace

extern const CpuKernel grid_sample_nhwc_f32_avx2, grid_sample_nhwc_f32_avx512, grid_sample_f32_avx2;
const CpuKernel grid_sample_nhwc_f32_avx2 = make_nhwc<resize_f32_kernels_avx2>();
const CpuKernel grid_sample_nhwc_f32_avx512 = make_nhwc<resize_f32_kernels_avx512>();
const CpuKernel grid_sample_f32_avx2 = {.takes = takes, .run = dense_run};

}  // namespace pinnace::cpu
#endif
