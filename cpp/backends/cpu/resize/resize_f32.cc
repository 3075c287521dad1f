// resize in float32 along the last two dimensions, over NHWC-packed tensors and over dense tensors: one dimension after
// the other. Places and weights are computed when the model is loaded, by the operator's own code, so that all pick the
// same.
#include <algorithm>
#include <cstring>

#include "backends/cpu/kernel.h"
#include "backends/cpu/move/strided_copy.h"
#include "backends/cpu/pace.h"
#include "backends/cpu/resize/resize_f32.h"
#include "backends/cpu/resize/resize_sizes.h"

namespace pinnace::cpu {
namespace {

/// The taps of both dimensions, those of weight 0 left out: infinities beside the filter do not count.
struct Tables {
  std::vector<int32_t> start[2], index[2];
  std::vector<float> weight[2];
};

Status tables_of(const KernelNode& node, ResizeSizes* sizes, Tables* tables) {
  std::vector<ResizeAxis> axes;
  ResizeSpec spec;
  if (!resize_sizes(node, sizes, &axes, &spec)) return unsupported(node.label());
  const int rank = node.input(0).rank();
  for (const ResizeAxis& a : axes) {
    const int d = a.axis - (rank - 2);
    tables->start[d].push_back(0);
    const auto add = [&](int64_t index, double weight) {
      tables->index[d].push_back(static_cast<int32_t>(index));
      tables->weight[d].push_back(static_cast<float>(weight));
    };
    if (spec.mode == ResizeMode::kNearest) {
      for (int64_t i = 0; i < a.out; ++i) {
        add(resize_nearest(spec, a, resize_coordinate(spec, a, i)), 1);
        tables->start[d].push_back(static_cast<int32_t>(i + 1));
      }
      continue;
    }
    PINNACE_ASSIGN(ResizeTaps taps, resize_taps(spec, a, node.label()));
    for (int64_t i = 0; i < a.out; ++i) {
      for (int64_t k = i * taps.count; k < (i + 1) * taps.count; ++k) {
        // Beyond the edge, the same place may come several times.
        const bool again = tables->index[d].size() > static_cast<size_t>(tables->start[d].back()) &&
                           tables->index[d].back() == taps.index[k];
        if (taps.weight[k] == 0) continue;
        if (again && spec.mode == ResizeMode::kLinear) {
          tables->weight[d].back() += static_cast<float>(taps.weight[k]);
        } else {
          add(taps.index[k], taps.weight[k]);
        }
      }
      if (tables->index[d].size() == static_cast<size_t>(tables->start[d].back())) add(0, 0);
      tables->start[d].push_back(static_cast<int32_t>(tables->index[d].size()));
    }
  }
  return {};
}

/// What is packed: sizes, then start, index and weight of both dimensions.
struct Packed {
  ResizeSizes sizes;
  int64_t taps[2];
  const int32_t* ints() const { return reinterpret_cast<const int32_t*>(this + 1); }
  ResizeTapsF32 of(int d) const {
    const int32_t* at = ints();
    if (d == 1 && sizes.resized[0]) at += sizes.out[0] + 1 + 2 * taps[0];
    const int32_t* index = at + sizes.out[d] + 1;
    return {at, index, reinterpret_cast<const float*>(index + taps[d])};
  }
};

int64_t packed_bytes(const KernelNode& node) {
  ResizeSizes sizes;
  Tables tables;
  if (!tables_of(node, &sizes, &tables).ok()) return 0;
  size_t words = 0;
  for (int d = 0; d < 2; ++d) words += tables.start[d].size() + 2 * tables.index[d].size();
  return static_cast<int64_t>(sizeof(Packed) + 4 * words);
}

Status pack(const KernelNode& node, std::byte* to) {
  Packed packed;
  Tables tables;
  PINNACE_TRY(tables_of(node, &packed.sizes, &tables));
  std::byte* at = to + sizeof packed;
  const auto put = [&](const auto& list) {
    if (!list.empty()) std::memcpy(at, list.data(), 4 * list.size());
    at += 4 * list.size();
  };
  for (int d = 0; d < 2; ++d) {
    packed.taps[d] = static_cast<int64_t>(tables.index[d].size());
    put(tables.start[d]);
    put(tables.index[d]);
    put(tables.weight[d]);
  }
  std::memcpy(to, &packed, sizeof packed);
  return {};
}

/// Rows (or planes) that one task takes, so that it has about 16,384 elements.
int64_t together(int64_t elements) {
  return std::max<int64_t>(1, 16384 / std::max<int64_t>(1, elements));
}

// -------------------------------------------------------------------------------------------------------- NHWC-packed

// An output row is made of input rows in scratch, then its pixels of that row's.
int64_t nhwc_scratch(const KernelNode& node, int threads) {
  const NhwcSizes s = nhwc_sizes(node.input(0));
  return 4 * threads * s.w * nhwc_pitch(s.c, s.h * s.w);
}

template <const ResizeF32Kernels& loops>
Status nhwc_run(const KernelNode&, const KernelContext& context, std::span<const TensorView> in,
                std::span<const TensorView> out) {
  const auto& packed = *reinterpret_cast<const Packed*>(context.packed);
  const NhwcF32 x = nhwc_of(in[0], context.layouts[0]), y = nhwc_of(out[0], context.layouts[in.size()]);
  const bool vertical = packed.sizes.resized[0], horizontal = packed.sizes.resized[1];
  const int64_t rows = y.size.n * y.size.h, each = together(y.size.w * y.pitch);
  const int64_t tasks = horizontal && vertical ? std::min<int64_t>(context.threads, rows) : (rows + each - 1) / each;
  const int64_t channels = std::min(x.pitch, y.pitch);
  // A single pixel has no padding, so its pitch may differ from that of its enlargement.
  const bool same = x.pitch == y.pitch;
  context.parallel(tasks, [&](int64_t t) {
    float* line = reinterpret_cast<float*>(context.scratch) + t * x.size.w * x.pitch;
    const bool whole = horizontal && vertical;
    const int64_t first = whole ? rows * t / tasks : t * each;
    const int64_t last = whole ? rows * (t + 1) / tasks : std::min(rows, (t + 1) * each);
    Pace pace(x.size.w * x.pitch + packed.taps[0] / y.size.h * x.size.w * x.pitch + packed.taps[1] * y.pitch);
    for (int64_t u = first; u < last && !pace.stops(); ++u) {
      const int64_t n = u / y.size.h, oy = u % y.size.h;
      const float* from = x.at + n * x.step;
      float* to = y.at + n * y.step + oy * y.row;
      if (!vertical) {
        from += oy * x.row;
      } else if (horizontal) {
        loops.across(packed.of(0), oy, from, x.row, line, x.size.w * x.pitch);
        from = line;
      } else if (same) {
        loops.across(packed.of(0), oy, from, x.row, to, x.size.w * x.pitch);
        continue;
      } else {
        for (int64_t p = 0; p < y.size.w; ++p) {
          loops.across(packed.of(0), oy, from + p * x.pitch, x.row, to + p * y.pitch, channels);
        }
        continue;
      }
      if (horizontal) {
        loops.along(packed.of(1), y.size.w, from, x.pitch, to, y.pitch, channels);
      } else {
        for (int64_t p = 0; p < y.size.w; ++p) {
          std::memcpy(to + p * y.pitch, from + p * x.pitch, sizeof(float) * static_cast<size_t>(y.size.c));
        }
      }
    }
  });
  return {};
}

template <const ResizeF32Kernels& loops>
constexpr CpuKernel make_nhwc() {
  return {.takes = resize_nhwc_takes,
          .packed_bytes = packed_bytes,
          .pack = pack,
          .packs = 0b1110,
          .packs_sizes = true,
          .layouts = Layouts::kFollows,
          .nhwc_inputs = 0b1,
          .scratch_bytes = nhwc_scratch,
          .run = nhwc_run<loops>};
}

// --------------------------------------------------------------------------------------------------------- dense

// Columns cost more than rows, so the rows are resized where there are fewer: before the columns where it grows, after
// them where it shrinks.
bool rows_first(const ResizeSizes& s) {
  return s.in[0] < s.out[0];
}

/// Rows whose columns are resized together: elements of a column stand side by side then, in whole registers.
constexpr int64_t kColumnRows = 32;

/// Floats that a thread needs: what the first of two passes leaves, and kColumnRows rows on their side, before and
/// after.
struct DenseScratch {
  int64_t between = 0, before = 0, after = 0;
  explicit DenseScratch(const ResizeSizes& s) {
    if (!s.resized[1]) return;
    if (s.resized[0]) between = rows_first(s) ? s.in[0] * s.out[1] : s.out[0] * s.in[1];
    before = kColumnRows * s.in[1];
    after = kColumnRows * s.out[1];
  }
  int64_t floats() const { return between + before + after; }
};
int64_t dense_scratch(const KernelNode& node, int threads) {
  ResizeSizes sizes;
  std::vector<ResizeAxis> axes;
  ResizeSpec spec;
  return resize_sizes(node, &sizes, &axes, &spec) ? 4 * threads * DenseScratch(sizes).floats() : 0;
}

/// The columns of `rows` rows.
template <const ResizeF32Kernels& loops>
void resize_columns(const ResizeTapsF32& taps, const ResizeSizes& s, int64_t rows, const float* x, float* before,
                    float* after, float* y) {
  Pace pace(kColumnRows * (s.in[1] + s.out[1]));
  for (int64_t row = 0; row < rows && !pace.stops(); row += kColumnRows) {
    const int64_t count = std::min(kColumnRows, rows - row);
    const float* from = x + row * s.in[1];
    float* to = y + row * s.out[1];
    if (count == 1) {
      constexpr int64_t kEach = 65536;
      for (int64_t first = 0; first < s.out[1] && !loop_stops(); first += kEach) {
        const ResizeTapsF32 some{taps.start + first, taps.index, taps.weight};
        loops.along(some, std::min(kEach, s.out[1] - first), from, 1, to + first, 1, 1);
      }
      continue;
    }
    transpose_floats(from, s.in[1], before, count, count, s.in[1]);
    loops.along(taps, s.out[1], before, count, after, count, count);
    transpose_floats(after, count, to, s.out[1], s.out[1], count);
  }
}

template <const ResizeF32Kernels& loops>
Status dense_run(const KernelNode&, const KernelContext& context, std::span<const TensorView> in,
                 std::span<const TensorView> out) {
  const auto& packed = *reinterpret_cast<const Packed*>(context.packed);
  const ResizeSizes& s = packed.sizes;
  const int64_t in_size = s.in[0] * s.in[1], out_size = s.out[0] * s.out[1], planes = in[0].elements() / in_size;
  const bool vertical = s.resized[0], horizontal = s.resized[1];
  if (!vertical && !horizontal) {
    std::memcpy(out[0].bytes, in[0].bytes, sizeof(float) * static_cast<size_t>(in[0].elements()));
    return {};
  }
  const DenseScratch scratch(s);
  const auto across = [&](const float* x, float* y, int64_t width) {
    Pace pace(packed.taps[0] / s.out[0] * width);
    for (int64_t row = 0; row < s.out[0] && !pace.stops(); ++row)
      loops.across(packed.of(0), row, x, width, y + row * width, width);
  };
  const int64_t each = together(out_size);
  const int64_t tasks = horizontal ? std::min<int64_t>(context.threads, planes) : (planes + each - 1) / each;
  context.parallel(tasks, [&](int64_t t) {
    float* between = reinterpret_cast<float*>(context.scratch) + t * scratch.floats();
    float *before = between + scratch.between, *after = before + scratch.before;
    const int64_t first = horizontal ? planes * t / tasks : t * each;
    const int64_t last = horizontal ? planes * (t + 1) / tasks : std::min(planes, (t + 1) * each);
    Pace pace(in_size + out_size);
    for (int64_t p = first; p < last && !pace.stops(); ++p) {
      const float* x = in[0].data<float>() + p * in_size;
      float* y = out[0].data<float>() + p * out_size;
      if (!horizontal) {
        across(x, y, s.out[1]);
      } else if (!vertical) {
        resize_columns<loops>(packed.of(1), s, s.in[0], x, before, after, y);
      } else if (rows_first(s)) {
        resize_columns<loops>(packed.of(1), s, s.in[0], x, before, after, between);
        across(between, y, s.out[1]);
      } else {
        across(x, between, s.in[1]);
        resize_columns<loops>(packed.of(1), s, s.out[0], between, before, after, y);
      }
    }
  });
  return {};
}

/// One row alone is summed in another order than several, and so are the columns behind the last whole register.
bool weights_by_shape(const KernelNode& node) {
  return node.attr_string("mode") != "nearest";
}

template <const ResizeF32Kernels& loops>
constexpr CpuKernel make_dense() {
  return {.takes = resize_takes,
          .packed_bytes = packed_bytes,
          .pack = pack,
          .packs = 0b1110,
          .packs_sizes = true,
          .by_shape = weights_by_shape,
          .scratch_bytes = dense_scratch,
          .run = dense_run<loops>};
}

}  // namespace

extern const CpuKernel resize_nhwc_f32_generic, resize_f32_generic;
const CpuKernel resize_nhwc_f32_generic = make_nhwc<resize_f32_kernels_generic>();
const CpuKernel resize_f32_generic = make_dense<resize_f32_kernels_generic>();
#if defined(__x86_64__)
extern const CpuKernel resize_nhwc_f32_avx2, resize_f32_avx2, resize_nhwc_f32_avx512, resize_f32_avx512;
const CpuKernel resize_nhwc_f32_avx2 = make_nhwc<resize_f32_kernels_avx2>();
const CpuKernel resize_f32_avx2 = make_dense<resize_f32_kernels_avx2>();
const CpuKernel resize_nhwc_f32_avx512 = make_nhwc<resize_f32_kernels_avx512>();
const CpuKernel resize_f32_avx512 = make_dense<resize_f32_kernels_avx512>();
#endif

}  // namespace pinnace::cpu
