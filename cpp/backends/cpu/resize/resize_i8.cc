// resize on bytes along the last two dimensions, over NHWC-packed tensors and over dense tensors. Nearest copies; other
// modes, of quantised types, sum in double, rows before columns, and quantise at the end.
#include "backends/cpu/resize/resize_i8.h"

#include <algorithm>
#include <cstring>

#include "backends/cpu/i8_isa.h"
#include "backends/cpu/move/strided_copy.h"
#include "backends/cpu/pace.h"
#include "backends/cpu/resize/resize_sizes.h"

namespace pinnace::cpu {
namespace {

/// Loops of one instruction set.
struct ResizeIsaI8 {
  const ResizeLoopsI8* loops;
  const QuantizeLoopsI8* quantize;
};
constexpr ResizeIsaI8 kGeneric{&resize_loops_i8_generic, &quantize_loops_i8_generic};
#if defined(__x86_64__)
constexpr ResizeIsaI8 kAvx2{&resize_loops_i8_avx2, &quantize_loops_i8_avx2};
constexpr ResizeIsaI8 kAvx512{&resize_loops_i8_avx512, &quantize_loops_i8_avx2};
#endif

bool takes(const KernelNode& node) {
  ResizeSizes sizes;
  std::vector<ResizeAxis> axes;
  ResizeSpec spec;
  if (!resize_sizes(node, &sizes, &axes, &spec)) return false;
  if (spec.mode == ResizeMode::kNearest) return true;
  // Numbers of an ordinary size: what a weight of 0 meets counts for nothing. Sums are made in the operator's order.
  const TensorType& x = node.input(0);
  const bool in_order = axes.size() < 2 || axes[0].axis < axes[1].axis;
  return fits_nhwc_i8(x) && node.output_quantization(0) && x.quantization->scales[0] < 1e30f && in_order;
}

bool nhwc_takes(const KernelNode& node) {
  return fits_nhwc_i8(node.input(0)) && resize_nhwc_takes(node) && takes(node);
}

/// What is packed: sizes, then weights, then indices of both dimensions.
struct Packed {
  ResizeSizes sizes;
  bool nearest;
  int64_t count[2];  ///< taps of a place; 0 where the dimension is not resized
  int64_t entries(int d) const { return sizes.out[d] * count[d]; }
  int64_t bytes() const { return static_cast<int64_t>(sizeof(Packed)) + (entries(0) + entries(1)) * 12; }
  ResizeTapsI8 taps(int d) const {
    const auto* weight = reinterpret_cast<const double*>(this + 1);
    const auto* index = reinterpret_cast<const int32_t*>(weight + entries(0) + entries(1));
    const int64_t skipped = d == 1 ? entries(0) : 0;
    return {count[d], index + skipped, weight + skipped};
  }
};

/// Sizes and counts; with `to` not null all of it.
Status fill(const KernelNode& node, Packed* packed, std::byte* to) {
  std::vector<ResizeAxis> axes;
  ResizeSpec spec;
  if (!resize_sizes(node, &packed->sizes, &axes, &spec)) return unsupported(node.label());
  packed->nearest = spec.mode == ResizeMode::kNearest;
  for (const bool counts : {true, false}) {
    if (!counts && !to) break;
    if (!counts) std::memcpy(to, packed, sizeof *packed);
    for (const ResizeAxis& a : axes) {
      const int d = a.axis - (node.input(0).rank() - 2);
      const ResizeTapsI8 at = counts ? ResizeTapsI8{} : reinterpret_cast<const Packed*>(to)->taps(d);
      const auto put = [&at](int64_t i, int64_t index, double weight) {
        const_cast<int32_t*>(at.index)[i] = static_cast<int32_t>(index);
        const_cast<double*>(at.weight)[i] = weight;
      };
      if (packed->nearest) {
        packed->count[d] = 1;
        for (int64_t i = 0; i < (counts ? 0 : a.out); ++i) {
          put(i, resize_nearest(spec, a, resize_coordinate(spec, a, i)), 1);
        }
        continue;
      }
      // Taps of weight 0 count for nothing; a place that has fewer than others is filled up with them.
      PINNACE_ASSIGN(ResizeTaps taps, resize_taps(spec, a, node.label()));
      const int64_t most = packed->count[d];
      for (int64_t i = 0; i < a.out; ++i) {
        int64_t count = 0;
        for (int64_t k = i * taps.count; k < (i + 1) * taps.count; ++k) {
          if (taps.weight[k] == 0) continue;
          if (!counts) put(i * most + count, taps.index[k], taps.weight[k]);
          ++count;
        }
        if (counts) packed->count[d] = std::max({packed->count[d], count, int64_t{1}});
        for (; !counts && count < most; ++count) put(i * most + count, 0, 0);
      }
    }
  }
  return {};
}

int64_t packed_bytes(const KernelNode& node) {
  Packed packed{};
  return fill(node, &packed, nullptr).ok() ? packed.bytes() : 0;
}

Status pack(const KernelNode& node, std::byte* to) {
  Packed packed{};
  return fill(node, &packed, to);
}

/// A plane or an image: rows of `pixels` units of `unit` bytes.
struct Rows {
  const uint8_t* x;
  uint8_t* y;
  ptrdiff_t x_row, y_row;
  int64_t unit;
};

/// Row `row` of y by copies. `again`: the row before is there, and perhaps the same.
void nearest_row(const Packed& packed, const Rows& r, int64_t row, bool again) {
  const int32_t* down = packed.taps(0).index;
  const int32_t* across = packed.taps(1).index;
  const bool vertical = packed.sizes.resized[0];
  const int64_t out = packed.sizes.out[1];
  uint8_t* y = r.y + row * r.y_row;
  if (vertical && again && row > 0 && down[row] == down[row - 1]) {
    std::memcpy(y, y - r.y_row, static_cast<size_t>(out * r.unit));
    return;
  }
  const uint8_t* x = r.x + (vertical ? down[row] : row) * r.x_row;
  if (!packed.sizes.resized[1]) {
    std::memcpy(y, x, static_cast<size_t>(out * r.unit));
  } else if (r.unit == 1) {
    for (int64_t i = 0; i < out; ++i) y[i] = x[across[i]];
  } else if (r.unit % 16 == 0) {
    for (int64_t i = 0; i < out; ++i, y += r.unit) {
      const uint8_t* from = x + across[i] * r.unit;
      for (int64_t c = 0; c < r.unit; c += 16) std::memcpy(y + c, from + c, 16);
    }
  } else {
    for (int64_t i = 0; i < out; ++i, y += r.unit) {
      std::memcpy(y, x + across[i] * r.unit, static_cast<size_t>(r.unit));
    }
  }
}

/// A thread's memory: a row of x in double, one of y in float32.
int64_t thread_bytes(const ResizeSizes& s, int64_t unit) {
  return (8 * s.in[1] * unit + 4 * s.out[1] * unit + 63) / 64 * 64;
}

/// Row `row` of y, not yet quantised.
void summed_row(const ResizeLoopsI8& loops, const Packed& packed, const Rows& r, int64_t row, RealI8 from, uint8_t flip,
                double* line, float* result) {
  static constexpr int32_t kHere = 0;
  static constexpr double kOne = 1;
  constexpr ResizeTapsI8 kItself{1, &kHere, &kOne};
  const ResizeSizes& s = packed.sizes;
  const int64_t read = s.in[1] * r.unit;
  const uint8_t* x = s.resized[0] ? r.x : r.x + row * r.x_row;
  loops.across(s.resized[0] ? packed.taps(0) : kItself, s.resized[0] ? row : 0, x, r.x_row, from.zero, from.scale, flip,
               line, read);
  if (s.resized[1]) return loops.along(packed.taps(1), s.out[1], line, r.unit, result);
  loops.along(kItself, 1, line, read, result);
}

/// About what a row of y of `unit` bytes each costs.
int64_t row_elements(const Packed& packed, int64_t unit) {
  const ResizeSizes& s = packed.sizes;
  return unit * (s.in[1] * std::max<int64_t>(1, packed.count[0]) + s.out[1] * std::max<int64_t>(1, packed.count[1]));
}

/// f(t, first, last) for parts of `rows` rows of so many bytes.
template <class F>
void in_tasks(const KernelContext& context, int64_t rows, int64_t bytes, F f) {
  const int64_t tasks = std::min({rows, int64_t{context.threads}, rows * bytes / 8192 + 1});
  context.parallel(tasks, [&](int64_t t) { f(t, rows * t / tasks, rows * (t + 1) / tasks); });
}

// --------------------------------------------------------------------------------------------------------- NHWC-packed

Status nhwc_run(const ResizeIsaI8& isa, const KernelContext& context, std::span<const TensorView> in,
                std::span<const TensorView> out) {
  const auto& packed = *reinterpret_cast<const Packed*>(context.packed);
  const NhwcI8 x = nhwc_i8_of(in[0], context.layouts[0]), y = nhwc_i8_of(out[0], context.layouts[in.size()]);
  const RealI8 from = real_i8(*in[0].type), to = real_i8(*out[0].type);
  const int64_t width = y.size.w * y.pitch;
  in_tasks(context, y.size.n * y.size.h, width, [&](int64_t t, int64_t first, int64_t last) {
    auto* line = reinterpret_cast<double*>(context.scratch + t * thread_bytes(packed.sizes, y.pitch));
    auto* result = reinterpret_cast<float*>(line + packed.sizes.in[1] * y.pitch);
    Pace pace(row_elements(packed, y.pitch));
    for (int64_t u = first; u < last && !pace.stops(); ++u) {
      const int64_t n = u / y.size.h, row = u % y.size.h;
      const Rows r{x.at + n * x.step, y.at + n * y.step, x.row, y.row, y.pitch};
      if (packed.nearest) {
        nearest_row(packed, r, row, u > first);
        continue;
      }
      summed_row(*isa.loops, packed, r, row, from, 0, line, result);
      isa.quantize->quantize(result, to, 0, r.y + row * r.y_row, width);
    }
  });
  return {};
}

bool nearest(const KernelNode& node) {
  const auto spec = resize_spec(node);
  return spec.ok() && spec->mode == ResizeMode::kNearest;
}

template <const ResizeIsaI8& isa>
constexpr CpuKernel make_nhwc() {
  return {.takes = nhwc_takes,
          .packed_bytes = packed_bytes,
          .pack = pack,
          .packs = 0b1110,
          .packs_sizes = true,
          .layouts = Layouts::kFollows,
          .nhwc_inputs = 0b1,
          .scratch_bytes = [](const KernelNode& node, int threads) -> int64_t {
            Packed packed{};
            const int64_t unit = nhwc_pitch_i8(nhwc_sizes(node.input(0)).c);
            return nearest(node) || !fill(node, &packed, nullptr).ok() ? 0 : threads * thread_bytes(packed.sizes, unit);
          },
          .run = [](const KernelNode&, const KernelContext& context, std::span<const TensorView> in,
                    std::span<const TensorView> out) { return nhwc_run(isa, context, in, out); }};
}

// ---------------------------------------------------------------------------------------------------------- dense

/// Planes whose numbers are brought side by side, in whole registers; of fewer than half as many each by itself.
constexpr int64_t kPlanes = 16;
int64_t planes_together(int64_t planes) {
  return planes < kPlanes / 2 ? 1 : kPlanes;
}

/// A thread's memory behind thread_bytes(): planes of x side by side, and a row of y.
int64_t side_by_side_bytes(const ResizeSizes& s, int64_t unit) {
  return unit == 1 ? 0 : ((s.in[0] * s.in[1] + s.out[1]) * unit + 63) / 64 * 64;
}

Status dense_run(const ResizeIsaI8& isa, const KernelContext& context, std::span<const TensorView> in,
                 std::span<const TensorView> out) {
  const auto& packed = *reinterpret_cast<const Packed*>(context.packed);
  const ResizeSizes& s = packed.sizes;
  const int64_t in_size = s.in[0] * s.in[1], out_size = s.out[0] * s.out[1], planes = in[0].elements() / in_size;
  const auto* x = in[0].data<uint8_t>();
  auto* y = out[0].data<uint8_t>();
  if (packed.nearest) {
    in_tasks(context, planes * s.out[0], s.out[1], [&](int64_t, int64_t first, int64_t last) {
      Pace pace(row_elements(packed, 1));
      for (int64_t u = first; u < last && !pace.stops(); ++u) {
        const int64_t plane = u / s.out[0];
        nearest_row(packed, {x + plane * in_size, y + plane * out_size, s.in[1], s.out[1], 1}, u % s.out[0], u > first);
      }
    });
    return {};
  }
  const RealI8 from = real_i8(*in[0].type), to = real_i8(*out[0].type);
  const auto flip = static_cast<uint8_t>(nhwc_offset(in[0].dtype()));
  const int64_t unit = planes_together(planes), groups = (planes + unit - 1) / unit, width = s.out[1] * unit;
  in_tasks(context, groups * s.out[0], width, [&](int64_t t, int64_t first, int64_t last) {
    std::byte* const own = context.scratch + t * (thread_bytes(s, unit) + side_by_side_bytes(s, unit));
    auto* line = reinterpret_cast<double*>(own);
    auto* result = reinterpret_cast<float*>(line + s.in[1] * unit);
    auto* joined = reinterpret_cast<uint8_t*>(own + thread_bytes(s, unit));
    uint8_t* const row_of_all = joined + in_size * unit;
    Pace pace(row_elements(packed, unit));
    for (int64_t u = first; u < last && !pace.stops(); ++u) {
      const int64_t plane = u / s.out[0] * unit, row = u % s.out[0], count = std::min(unit, planes - plane);
      const uint8_t* own_x = x + plane * in_size;
      uint8_t* own_y = y + plane * out_size + row * s.out[1];
      if (unit > 1 && (u == first || row == 0)) transpose_bytes(own_x, in_size, joined, kPlanes, count, in_size);
      const Rows r{unit > 1 ? joined : own_x, nullptr, s.in[1] * unit, 0, unit};
      summed_row(*isa.loops, packed, r, row, from, flip, line, result);
      isa.quantize->quantize(result, to, flip, unit > 1 ? row_of_all : own_y, width);
      if (unit > 1) transpose_bytes(row_of_all, kPlanes, own_y, out_size, s.out[1], count);
    }
  });
  return {};
}

template <const ResizeIsaI8& isa>
constexpr CpuKernel make_dense() {
  return {.takes = takes,
          .packed_bytes = packed_bytes,
          .pack = pack,
          .packs = 0b1110,
          .packs_sizes = true,
          .scratch_bytes = [](const KernelNode& node, int threads) -> int64_t {
            Packed packed{};
            if (nearest(node) || !fill(node, &packed, nullptr).ok()) return 0;
            const ResizeSizes& s = packed.sizes;
            const int64_t unit = planes_together(node.input(0).elements() / (s.in[0] * s.in[1]));
            return threads * (thread_bytes(s, unit) + side_by_side_bytes(s, unit));
          },
          .run = [](const KernelNode&, const KernelContext& context, std::span<const TensorView> in,
                    std::span<const TensorView> out) { return dense_run(isa, context, in, out); }};
}

}  // namespace

extern const CpuKernel resize_nhwc_i8_generic, resize_i8_generic;
const CpuKernel resize_nhwc_i8_generic = make_nhwc<kGeneric>();
const CpuKernel resize_i8_generic = make_dense<kGeneric>();
#if defined(__x86_64__)
extern const CpuKernel resize_nhwc_i8_avx2, resize_i8_avx2, resize_nhwc_i8_avx512, resize_i8_avx512;
const CpuKernel resize_nhwc_i8_avx2 = make_nhwc<kAvx2>();
const CpuKernel resize_i8_avx2 = make_dense<kAvx2>();
const CpuKernel resize_nhwc_i8_avx512 = make_nhwc<kAvx512>();
const CpuKernel resize_i8_avx512 = make_dense<kAvx512>();
#endif

}  // namespace pinnace::cpu
