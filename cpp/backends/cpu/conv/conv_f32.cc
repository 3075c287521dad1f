// conv in float32 over dense tensors, of any rank: a matrix product of the weights, whose rows are read where they lie,
// with columns gathered from the image ("im2col"), gathered block by block into scratch; depthwise convolutions channel
// by channel. Types and window were checked by the shape rule.
#include <algorithm>
#include <cstring>
#include <new>

#include "backends/cpu/conv/conv_nhwc.h"
#include "backends/cpu/conv/depthwise_plane_f32.h"
#include "backends/cpu/pace.h"

namespace pinnace::cpu {
namespace {

/// Columns [first, last), which are whole planes of outputs, and the planes of taps [taps.first, taps.last) that they
/// read within the image. Products of other planes are left out.
struct VolumePart {
  TapRange taps;
  int64_t first, last;
  int64_t K;
};

struct ConvShape {
  Window window;
  int64_t batch, groups, in_channels, out_channels, K, columns;  // channels per group
  int64_t part_count = 1;  ///< VolumePart[part_count] follow a plan, then where each part's in_channels blocks begin
  const VolumePart* parts() const { return reinterpret_cast<const VolumePart*>(this + 1); }
  VolumePart* parts() { return reinterpret_cast<VolumePart*>(this + 1); }
  const ptrdiff_t* blocks(const VolumePart& part) const {
    return reinterpret_cast<const ptrdiff_t*>(parts() + part_count) + (&part - parts()) * in_channels;
  }
  /// Weights of a channel that such a part reads, which touch.
  int64_t block(const VolumePart& part) const {
    return (part.taps.last - part.taps.first) * window.kernel[1] * window.kernel[2];
  }
};

/// Whether planes of outputs are told apart by the planes of taps that they read: where that saves a twentieth. x86-64
/// alone.
bool in_parts([[maybe_unused]] const Window& w) {
#if defined(__x86_64__)
  int64_t products = 0;
  bool none = false;
  each_tap_range(w, 0, true, [&](const TapRange& r) {
    products += (r.end - r.begin) * (r.last - r.first);
    none |= r.last == r.first;
  });
  return !none && static_cast<double>(products) <= 0.95 * static_cast<double>(w.out[0] * w.kernel[0]);
#else
  return false;
#endif
}

ConvShape shape_of(const KernelNode& node) {
  const auto window = check_convolution(node, 2);
  assert(window.ok());
  ConvShape s{*window, node.input(0).shape[0].size, node.attr_int("group"), node.input(1).shape[1].size, 0, 0, 0};
  s.out_channels = node.input(1).shape[0].size / s.groups;
  s.K = s.in_channels * s.window.taps();
  s.columns = s.window.out_size();
  return s;
}

int64_t shape_plan_bytes(const KernelNode& node) {
  const ConvShape s = shape_of(node);
  int64_t parts = 0;
  each_tap_range(s.window, 0, in_parts(s.window), [&](const TapRange&) { ++parts; });
  return static_cast<int64_t>(sizeof(ConvShape)) +
         parts * (static_cast<int64_t>(sizeof(VolumePart)) + s.in_channels * static_cast<int64_t>(sizeof(ptrdiff_t)));
}
void plan_shape(const KernelNode& node, const Layout*, std::byte* to) {
  auto& s = *new (to) ConvShape(shape_of(node));
  const int64_t plane = s.window.out[1] * s.window.out[2], taps = s.window.kernel[1] * s.window.kernel[2];
  s.part_count = 0;
  each_tap_range(s.window, 0, in_parts(s.window), [&](const TapRange& r) {
    const int64_t K = s.in_channels * (r.last - r.first) * taps;
    new (s.parts() + s.part_count++) VolumePart{r, r.begin * plane, r.end * plane, K};
  });
  auto* block = reinterpret_cast<ptrdiff_t*>(s.parts() + s.part_count);
  for (const VolumePart& part : std::span(s.parts(), static_cast<size_t>(s.part_count))) {
    for (int64_t c = 0; c < s.in_channels; ++c) *block++ = (c * s.window.kernel[0] + part.taps.first) * taps;
  }
}
const ConvShape& planned_shape(const KernelContext& context) {
  return *reinterpret_cast<const ConvShape*>(context.plan);
}

bool depthwise(const KernelNode& node) {
  const int64_t groups = node.attr_int("group");
  return groups > 1 && node.input(1).shape[1].size == 1 && node.input(1).shape[0].size == groups &&
         node.input(0).rank() <= 4;
}

// ------------------------------------------------------------------------------------------------- matrix product

/// Columns that one task gathers and multiplies: the gathered block (K x 64 floats) stays in the second-level cache. A
/// multiple of every panel's width.
constexpr int64_t kBlockColumns = 64;
/// Weights that are multiplied with every panel of a block before the next ones are read.
constexpr int64_t kWeightFloats = 32 * 1024;

/// Where rows of constant weights would push each other out of the first-level cache, they are copied, a line apart.
ptrdiff_t weights_row(const ConvShape& s) {
  return row_distance(s.out_channels, s.K);
}

int64_t conv_packed_bytes(const KernelNode& node) {
  const ConvShape s = shape_of(node);
  return weights_row(s) == s.K ? 0 : s.groups * s.out_channels * weights_row(s) * 4;
}

Status conv_pack(const KernelNode& node, std::byte* packed) {
  const ConvShape s = shape_of(node);
  const ptrdiff_t row = weights_row(s);
  const auto* w = static_cast<const float*>(node.input_data(1));
  auto* to = reinterpret_cast<float*>(packed);
  for (int64_t m = 0; m < s.groups * s.out_channels; ++m, w += s.K, to += row) {
    std::fill(std::copy_n(w, s.K, to), to + row, 0.0f);
  }
  return {};
}

/// Gathers columns [first, first + width) of one group into a panel as GemmRowsF32 wants it: a row of zeros, in the
/// bias's place, then [K][width]. Columns past the last are zero.
void gather_panel(const ConvShape& s, const VolumePart& part, const float* x, int64_t first, int64_t width,
                  float* panel) {
  const Window& w = s.window;
  const int64_t in_size = w.in_size(), count = std::min(width, part.last - first);
  std::memset(panel, 0, sizeof(float) * static_cast<size_t>(count < width ? (1 + part.K) * width : width));
  panel += width;
  if (w.taps() == 1 && w.stride[1] == 1 && w.stride[2] == 1 && w.stride[0] == 1 && s.columns == in_size) {
    for (int64_t c = 0; c < s.K; ++c) {
      std::memcpy(panel + c * width, x + c * in_size + first, sizeof(float) * static_cast<size_t>(count));
    }
    return;
  }
  float* to = panel;
  for (int64_t c = 0; c < s.in_channels; ++c) {
    const float* plane = x + c * in_size;
    for (int64_t kz = part.taps.first; kz < part.taps.last; ++kz) {
      for (int64_t ky = 0; ky < w.kernel[1]; ++ky) {
        for (int64_t kx = 0; kx < w.kernel[2]; ++kx, to += width) {
          // Runs of columns within one output row.
          for (int64_t done = 0; done < count;) {
            const int64_t column = first + done;
            const int64_t ox = column % w.out[2], oy = column / w.out[2] % w.out[1], oz = column / w.out[2] / w.out[1];
            const int64_t run = std::min(count - done, w.out[2] - ox);
            const int64_t iz = oz * w.stride[0] + kz * w.dilation[0] - w.before[0];
            const int64_t iy = oy * w.stride[1] + ky * w.dilation[1] - w.before[1];
            float* out = to + done;
            done += run;
            if (iz < 0 || iz >= w.in[0] || iy < 0 || iy >= w.in[1]) {
              std::memset(out, 0, sizeof(float) * static_cast<size_t>(run));
              continue;
            }
            const float* line = plane + (iz * w.in[1] + iy) * w.in[2];
            const int64_t step = w.stride[2], ix = ox * step + kx * w.dilation[2] - w.before[2];
            int64_t i = 0;
            for (; i < run && ix + i * step < 0; ++i) out[i] = 0;
            const int64_t inside = std::min(run, ix >= w.in[2] ? 0 : (w.in[2] - 1 - ix) / step + 1);
            if (step == 1) {
              if (inside > i) std::memcpy(out + i, line + ix + i, sizeof(float) * static_cast<size_t>(inside - i));
              i = std::max(i, inside);
            } else {
              for (; i < inside; ++i) out[i] = line[ix + i * step];
            }
            for (; i < run; ++i) out[i] = 0;
          }
        }
      }
    }
  }
}

/// One group of one image: y = map(weights x gathered columns + bias). Weights are the product's rows, so that results
/// are dense rows of y, and pixels its columns. The bias, one number for each row, is written to y first, to which the
/// product is added.
struct ConvProduct {
  const ConvShape& s;
  const VolumePart& part;
  const GemmTilesF32& tiles;
  const float* weights;  ///< [out_channels, K]
  ptrdiff_t weights_row;
  const float* bias;  ///< [out_channels] or null
  float* y;
  UnaryF32 map;

  /// Floats of the panels of `count` columns.
  static int64_t floats(const ConvShape& s, const GemmTilesF32& tiles, int64_t count) {
    return panel_floats(tiles, padded_columns(tiles, count), s.K);
  }
  /// Rows [m0, m1) of columns [first, first + count), whose panels stand one behind the other. Every element's sum runs
  /// over ascending k, whatever is cut where.
  void block(int64_t m0, int64_t m1, int64_t first, int64_t count, const float* panels) const {
    const ptrdiff_t zero = 0;
    const bool whole = part.K == s.K;
    const int64_t rows = std::max<int64_t>(1, kWeightFloats / part.K / 42) * 42;  // whole tiles, of 6 rows or of 14
    for (int64_t m = m0; m < m1; m += rows) {
      const int64_t last = std::min(m1, m + rows);
      for (int64_t i = m; bias && i < last; ++i) std::fill_n(y + i * s.columns + first, count, bias[i]);
      for (int64_t n = 0; n < count; n += tiles.nr) {
        const int64_t width = panel_width(tiles, n, count);
        GemmRowsF32 g{};
        g.a = weights + m * weights_row;
        g.a_row = weights_row;
        g.blocks = whole ? &zero : s.blocks(part);
        g.block_count = whole ? 1 : s.in_channels;
        g.k = whole ? s.K : s.block(part);
        g.b = panels + panel_floats(tiles, n, part.K);
        g.c = y + m * s.columns + first + n;
        g.c_row = s.columns;
        g.residual = bias ? g.c : nullptr;
        g.residual_row = s.columns;
        g.M = last - m;
        g.columns = static_cast<int32_t>(std::min(width, count - n));
        g.map = map;
        tiles.rows(g, static_cast<int32_t>(width));
      }
    }
  }
};

/// Few columns (deep layers) are gathered once, and tasks split rows too; many columns are gathered block by block.
bool gathers_all(const ConvShape& s) {
  return s.columns <= 4 * kBlockColumns;
}

template <const F32Isa& isa>
int64_t conv_scratch_bytes(const KernelNode& node, int threads) {
  const ConvShape s = shape_of(node);
  const int64_t floats = gathers_all(s) ? ConvProduct::floats(s, *isa.gemm, s.columns)
                                        : ConvProduct::floats(s, *isa.gemm, kBlockColumns) * threads;
  return floats * 4;
}

template <const F32Isa& isa>
Status conv_run(const KernelNode& node, const KernelContext& context, std::span<const TensorView> in,
                std::span<const TensorView> out) {
  const ConvShape& s = planned_shape(context);
  const UnaryF32 map = fused_unary(node);
  auto* scratch = reinterpret_cast<float*>(context.scratch);
  const float* weights = context.packed ? reinterpret_cast<const float*>(context.packed) : in[1].data<float>();
  const ptrdiff_t row = context.packed ? weights_row(s) : s.K;
  const float* bias = in.size() > 2 && in[2].present() ? in[2].data<float>() : nullptr;
  /// One group of one image, the outputs of one part.
  const auto run = [&](int64_t n, int64_t g, const VolumePart& part) {
    const float* x = in[0].data<float>() + (n * s.groups + g) * s.in_channels * s.window.in_size();
    const ConvProduct product{s,
                              part,
                              *isa.gemm,
                              weights + g * s.out_channels * row,
                              row,
                              bias ? bias + g * s.out_channels : nullptr,
                              out[0].data<float>() + (n * s.groups + g) * s.out_channels * s.columns,
                              map};
    // Panels of columns [from, to) of `count` that begin at column `first`.
    const auto gather = [&](int64_t first, int64_t count, int64_t from, int64_t to, float* panels) {
      const GemmTilesF32& tiles = *isa.gemm;
      for (int64_t p = from; p < to; p += tiles.nr) {
        gather_panel(s, part, x, first + p, panel_width(tiles, p, count), panels + panel_floats(tiles, p, part.K));
      }
    };
    const int64_t columns = part.last - part.first;
    if (gathers_all(s)) {
      const int64_t width = isa.gemm->nr;
      context.parallel((columns + width - 1) / width, [&](int64_t p) {
        gather(part.first, columns, p * width, std::min(columns, (p + 1) * width), scratch);
      });
      const int64_t rows = (s.out_channels + 16 * 14 - 1) / (16 * 14) * 14;  // at most 16 tasks of whole tiles
      context.parallel((s.out_channels + rows - 1) / rows, [&](int64_t t) {
        product.block(t * rows, std::min(s.out_channels, (t + 1) * rows), part.first, columns, scratch);
      });
      return;
    }
    const int64_t blocks = (columns + kBlockColumns - 1) / kBlockColumns;
    const int64_t tasks = std::min<int64_t>(context.threads, blocks);
    context.parallel(tasks, [&](int64_t t) {
      float* own = scratch + t * ConvProduct::floats(s, *isa.gemm, kBlockColumns);
      for (int64_t block = blocks * t / tasks; block < blocks * (t + 1) / tasks && !loop_stops(); ++block) {
        const int64_t first = part.first + block * kBlockColumns, count = std::min(part.last - first, kBlockColumns);
        gather(first, count, 0, count, own);
        product.block(0, s.out_channels, first, count, own);
      }
    });
  };
  for (int64_t n = 0; n < s.batch; ++n) {
    for (int64_t g = 0; g < s.groups; ++g) {
      for (int64_t p = 0; p < s.part_count; ++p) run(n, g, s.parts()[p]);
    }
  }
  return {};
}

bool conv_takes(const KernelNode& node) {
  return node.input(1).elements() > 0 && shape_of(node).K > 0;
}

template <const F32Isa& isa>
constexpr CpuKernel make_conv() {
  return {.takes = conv_takes,
          .packed_bytes = conv_packed_bytes,
          .pack = conv_pack,
          .packs = 0b10,
          .plan_bytes = shape_plan_bytes,
          .plan = plan_shape,
          .scratch_bytes = conv_scratch_bytes<isa>,
          .run = conv_run<isa>};
}

/// The same of weights that are no constants, which are read as they are.
template <const F32Isa& isa>
constexpr CpuKernel make_variable() {
  CpuKernel kernel = make_conv<isa>();
  kernel.packed_bytes = nullptr;
  kernel.pack = nullptr;
  kernel.packs = 0;
  return kernel;
}

// ------------------------------------------------------------------------------------------------------ depthwise

/// A padded plane whose columns are sorted by phase; see DepthwisePlaneF32.
struct PaddedPlane {
  int64_t rows, row, phase, floats;
};

/// Rows or columns that some output reads.
int64_t padded_size(const Window& w, int d) {
  return (w.out[d] - 1) * w.stride[d] + (w.kernel[d] - 1) * w.dilation[d] + 1;
}

PaddedPlane padded_plane(const Window& w) {
  const int64_t rows = padded_size(w, 1), columns = padded_size(w, 2);
  // The last register of outputs reads up to 32 columns more.
  const int64_t row = (columns + w.stride[2] - 1) / w.stride[2] + 32;
  return {rows, row, rows * row, rows * row * w.stride[2] + 32};
}

int64_t depthwise_scratch_bytes(const KernelNode& node, int threads) {
  return padded_plane(shape_of(node).window).floats * 4 * threads;
}

void pad_plane(const Window& w, const PaddedPlane& p, const float* x, float* to) {
  std::memset(to, 0, sizeof(float) * static_cast<size_t>(p.floats));
  const int64_t step = w.stride[2];
  for (int64_t r = 0; r < p.rows; ++r) {
    const int64_t iy = r - w.before[1];
    if (iy < 0 || iy >= w.in[1]) continue;
    const float* line = x + iy * w.in[2];
    float* row = to + r * p.row;
    if (step == 1) {
      std::memcpy(row + w.before[2], line, sizeof(float) * static_cast<size_t>(std::min(w.in[2], p.row - w.before[2])));
    } else {
      for (int64_t i = 0; i < w.in[2]; ++i) {
        const int64_t column = i + w.before[2];
        if (column / step < p.row) row[column % step * p.phase + column / step] = line[i];
      }
    }
  }
}

template <const F32Isa& isa>
Status depthwise_run(const KernelNode& node, const KernelContext& context, std::span<const TensorView> in,
                     std::span<const TensorView> out) {
  const ConvShape& s = planned_shape(context);
  const Window& w = s.window;
  const PaddedPlane plane = padded_plane(w);
  const UnaryF32 map = fused_unary(node);
  const int64_t planes = s.batch * s.groups;
  const int64_t tasks = std::min<int64_t>(context.threads, planes);
  context.parallel(tasks, [&](int64_t t) {
    float* own = reinterpret_cast<float*>(context.scratch) + t * plane.floats;
    Pace pace(w.out_size() * w.taps());
    for (int64_t i = planes * t / tasks; i < planes * (t + 1) / tasks && !pace.stops(); ++i) {
      const int64_t c = i % s.groups;
      pad_plane(w, plane, in[0].data<float>() + i * w.in_size(), own);
      depthwise_plane_f32<isa.loops>({own, plane.phase, plane.row, in[1].data<float>() + c * w.taps(),
                                      in.size() > 2 && in[2].present() ? in[2].data<float>()[c] : 0.0f,
                                      out[0].data<float>() + i * w.out_size(), w.out[1], w.out[2], w.kernel[1],
                                      w.kernel[2], w.stride[1], w.stride[2], w.dilation[1], w.dilation[2], map});
    }
  });
  return {};
}

/// A plane that would be mostly zeros is not made: pads, dilations and strides are numbers of up to 2^31, and their
/// product is the plane's size. conv_f32 takes such a node.
bool depthwise_takes(const KernelNode& node) {
  if (!depthwise(node) || node.input(0).elements() == 0 || !conv_takes(node)) return false;
  const Window w = shape_of(node).window;
  constexpr int64_t kMostZeros = 128, kMostStride = 64;
  return padded_size(w, 1) <= 2 * w.in[1] + kMostZeros && padded_size(w, 2) <= 2 * w.in[2] + kMostZeros &&
         w.stride[2] <= kMostStride;
}

template <const F32Isa& isa>
constexpr CpuKernel make_depthwise() {
  return {.takes = depthwise_takes,
          .by_shape = always_by_shape,
          .plan_bytes = shape_plan_bytes,
          .plan = plan_shape,
          .scratch_bytes = depthwise_scratch_bytes,
          .run = depthwise_run<isa>};
}

}  // namespace

PINNACE_KERNELS_F32(conv_depthwise_f32, make_depthwise)
PINNACE_KERNELS_F32(conv_f32, make_conv)
PINNACE_KERNELS_F32(conv_variable_f32, make_variable)

}  // namespace pinnace::cpu
