// roi_align by averages in float32, over NHWC-packed tensors and over dense planes: a row of bins is a weighted sum of
// rows of x, and its bins are weighted sums of what that gave, both by the loops of resize. Places and weights are the
// operator's own, so that all pick the same. ARM64, whose library has to stay small, runs the reference code.
#if defined(__x86_64__)
#include "ops/roi_align.h"

#include <cassert>

#include "backends/cpu/kernel.h"
#include "backends/cpu/pace.h"
#include "backends/cpu/resize/resize_f32.h"
#include "ops/move.h"

namespace pinnace::cpu {
namespace {

/// The sizes along one direction, 0: down, 1: across.
struct Direction {
  int64_t size, bins, ratio;

  /// Neighbours of all samples of a box that are not outside. Where their number follows from the box, there is one for
  /// a bin, or they lie more than half an element apart.
  int64_t most_taps() const { return 2 * (ratio > 0 ? bins * ratio : 2 * size + bins + 8); }
  /// 32-bit words: starts, places, weights.
  int64_t words() const { return bins + 1 + 2 * most_taps(); }
};

Direction direction(const KernelNode& node, bool across) {
  const Shape& x = node.input(0).shape;
  return {x[across ? 3 : 2].size, node.attr_int(across ? "output_width" : "output_height"),
          roi_sampling_ratio(node, across)};
}

bool takes(const KernelNode& node) {
  const TensorType& x = node.input(0);
  if (node.attr_string("mode") != "avg" || x.elements() < 1 || x.elements() > INT32_MAX) return false;
  for (const bool across : {false, true}) {
    const Direction d = direction(node, across);
    if (d.ratio == 0 && node.attr_string("outside") == "edge") return false;  // any number of samples takes the edge
    if (d.bins > 4096 || d.ratio > 64) return false;
  }
  return true;
}

/// Neighbours of the samples of one direction of a box.
struct Taps {
  int32_t* start;
  int32_t* index;
  float* weight;
  int64_t first = 0, count = 0;  ///< the places that they lie in

  /// by: factor of all weights. False: the run is to end, and there are none.
  bool make(const RoiExtent<float>& e, const Direction& d, bool edge, double by) {
    int32_t taps = 0;
    int64_t least = d.size, most = -1;
    start[0] = 0;
    for (int64_t bin = 0; bin < d.bins; ++bin) {
      if (loop_stops()) return false;
      for (int64_t i = 0; i < e.samples; ++i) {
        const RoiNeighbours n = roi_neighbours(e.place(bin, i), d.size, edge);
        if (n.outside) continue;
        assert(taps + 2 <= d.most_taps());
        for (const auto& [at, part] : {std::pair{n.low, n.weight_low}, {n.high, n.weight_high}}) {
          index[taps] = static_cast<int32_t>(at);
          weight[taps++] = static_cast<float>(part * by);
        }
        least = std::min(least, n.low), most = std::max(most, n.high);
      }
      start[bin + 1] = taps;
    }
    first = most < 0 ? 0 : least, count = most < 0 ? 0 : most - least + 1;
    for (int32_t k = 0; k < taps; ++k) index[k] -= static_cast<int32_t>(first);
    return true;
  }
  bool empty(int64_t bin) const { return start[bin] == start[bin + 1]; }
  ResizeTapsF32 view() const { return {start, index, weight}; }
};

int64_t scratch_words(const KernelNode& node, int64_t pitch) {
  const Direction down = direction(node, false), across = direction(node, true);
  return down.words() + across.words() + across.size * pitch;
}

/// f(box, image, down, across, row): taps of each box, and floats for a row of x.
template <class F>
Status each_box(const KernelNode& node, const KernelContext& context, std::span<const TensorView> in, int64_t pitch,
                int64_t channels, F f) {
  const TensorView &x = in[0], &rois = in[1], &batch = in[2];
  const Direction down = direction(node, false), across = direction(node, true);
  const auto extent = [&](int64_t r, const Direction& d, int i) {
    const float* box = rois.data<float>() + 4 * r;
    return roi_extent(node, box[i], box[i + 2], d.bins, d.ratio, r);
  };
  const int64_t boxes = rois.dim(0);
  for (int64_t r = 0; r < boxes; ++r) {
    const int64_t image = load_index(batch, r);
    if (image < 0 || image >= x.dim(0))
      return node.error("batch index ", image, " of box ", r, " is outside [0,", x.dim(0), ")");
    PINNACE_TRY(extent(r, across, 0).status());
    PINNACE_TRY(extent(r, down, 1).status());
  }
  const bool edge = node.attr_string("outside") == "edge";
  const int64_t tasks = std::min<int64_t>(context.threads, boxes), words = scratch_words(node, pitch);
  context.parallel(tasks, [&](int64_t t) {
    auto* at = reinterpret_cast<int32_t*>(context.scratch) + t * words;
    const auto taps = [&](const Direction& d) {
      int32_t* start = at;
      at += d.words();
      int32_t* index = start + d.bins + 1;
      return Taps{start, index, reinterpret_cast<float*>(index + d.most_taps())};
    };
    Taps rows = taps(down), columns = taps(across);
    auto* line = reinterpret_cast<float*>(at);
    Pace pace(8 * channels * down.bins * across.bins);
    for (int64_t r = boxes * t / tasks; r < boxes * (t + 1) / tasks && !pace.stops(); ++r) {
      const RoiExtent<float> v = *extent(r, down, 1), h = *extent(r, across, 0);
      if (!rows.make(v, down, edge, 1.0 / static_cast<double>(std::max<int64_t>(1, v.samples)))) return;
      if (!columns.make(h, across, edge, 1.0 / static_cast<double>(std::max<int64_t>(1, h.samples)))) return;
      f(r, load_index(batch, r), rows, columns, line);
    }
  });
  return {};
}

// -------------------------------------------------------------------------------------------------------- NHWC-packed

int64_t nhwc_scratch(const KernelNode& node, int threads) {
  const NhwcSizes s = nhwc_sizes(node.input(0));
  return 4 * threads * scratch_words(node, nhwc_pitch(s.c, s.h * s.w));
}

template <const ResizeF32Kernels& loops>
Status nhwc_run(const KernelNode& node, const KernelContext& context, std::span<const TensorView> in,
                std::span<const TensorView> out) {
  const NhwcF32 x = nhwc_of(in[0], context.layouts[0]), y = nhwc_of(out[0], context.layouts[in.size()]);
  const int64_t channels = std::min(x.pitch, y.pitch);
  return each_box(node, context, in, x.pitch, channels,
                  [&](int64_t r, int64_t image, const Taps& rows, const Taps& columns, float* line) {
                    const float* from = x.at + image * x.step + rows.first * x.row + columns.first * x.pitch;
                    for (int64_t row = 0; row < y.size.h; ++row) {
                      float* to = y.at + r * y.step + row * y.row;
                      const bool empty = rows.empty(row) || columns.count == 0;
                      if (!empty) loops.across(rows.view(), row, from, x.row, line, columns.count * x.pitch);
                      for (int64_t column = 0; column < y.size.w; ++column, to += y.pitch) {
                        if (empty || columns.empty(column)) {
                          std::fill_n(to, channels, 0.0f);
                        } else {
                          loops.across(columns.view(), column, line, x.pitch, to, channels);
                        }
                      }
                    }
                  });
}

template <const ResizeF32Kernels& loops>
constexpr CpuKernel make_nhwc() {
  return {.takes = takes,
          .layouts = Layouts::kFollows,
          .nhwc_inputs = 0b1,
          .scratch_bytes = nhwc_scratch,
          .run = nhwc_run<loops>};
}

// -------------------------------------------------------------------------------------------------------------- dense

int64_t dense_scratch(const KernelNode& node, int threads) {
  return 4 * threads * scratch_words(node, 1);
}

template <const ResizeF32Kernels& loops>
Status dense_run(const KernelNode& node, const KernelContext& context, std::span<const TensorView> in,
                 std::span<const TensorView> out) {
  const int64_t channels = in[0].dim(1), width = in[0].dim(3), plane = in[0].dim(2) * width;
  const int64_t height = out[0].dim(2), bins = out[0].dim(3);
  return each_box(node, context, in, 1, channels,
                  [&](int64_t r, int64_t image, const Taps& rows, const Taps& columns, float* line) {
                    const float* from =
                        in[0].data<float>() + image * channels * plane + rows.first * width + columns.first;
                    float* to = out[0].data<float>() + r * channels * height * bins;
                    for (int64_t c = 0; c < channels; ++c, from += plane) {
                      for (int64_t row = 0; row < height; ++row, to += bins) {
                        const bool empty = rows.empty(row) || columns.count == 0;
                        if (!empty) loops.across(rows.view(), row, from, width, line, columns.count);
                        for (int64_t column = 0; column < bins; ++column) {
                          float sum = 0;
                          for (int32_t k = columns.start[column]; k < columns.start[column + 1] && !empty; ++k) {
                            sum += line[columns.index[k]] * columns.weight[k];
                          }
                          to[column] = sum;
                        }
                      }
                    }
                  });
}

template <const ResizeF32Kernels& loops>
constexpr CpuKernel make_dense() {
  return {.takes = takes, .scratch_bytes = dense_scratch, .run = dense_run<loops>};
}

}  // namespace

extern const CpuKernel roi_align_nhwc_f32_avx2, roi_align_f32_avx2, roi_align_nhwc_f32_avx512, roi_align_f32_avx512;
const CpuKernel roi_align_nhwc_f32_avx2 = make_nhwc<resize_f32_kernels_avx2>();
const CpuKernel roi_align_f32_avx2 = make_dense<resize_f32_kernels_avx2>();
const CpuKernel roi_align_nhwc_f32_avx512 = make_nhwc<resize_f32_kernels_avx512>();
const CpuKernel roi_align_f32_avx512 = make_dense<resize_f32_kernels_avx512>();

}  // namespace pinnace::cpu
#endif
