// conv over NHWC-packed tensors in bfloat16: each thread rounds the pixels that a block of outputs reads, which then
// stay in its second-level cache while every panel of weights passes by. Images stay float32: what is not a product
// loses nothing.
#include "backends/cpu/conv/conv_nhwc.h"
#include "base/cancel.h"

#if defined(__x86_64__)
namespace pinnace::cpu {
namespace {

/// Floats of input that are rounded at a time.
constexpr int64_t kBlockFloats = 64 * 1024;

/// How outputs are cut into blocks of rows, and how a block's input stands once it is rounded: rows of `pixels` pixels,
/// which lie at the input's pitch.
struct Blocks {
  int64_t rows, pixels, each;  ///< rows of the input that a block reads; output rows of a block
  ptrdiff_t row;               ///< floats
  Blocks(const NhwcConv& c, int64_t pitch) {
    const Window& w = c.window;
    pixels = (w.out[2] - 1) * w.stride[2] + (w.kernel[2] - 1) * w.dilation[2] + 1;
    row = pixels * pitch;
    each = std::clamp<int64_t>(kBlockFloats / (row * w.stride[1]), 1, w.out[1]);
    rows = (each - 1) * w.stride[1] + (w.kernel[1] - 1) * w.dilation[1] + 1;
  }
  int64_t floats() const { return rows * row; }
};

/// 1 x 1 convolutions whose pixels all stand at one distance are one product.
bool flat(const NhwcConv& c, const NhwcF32& i) {
  const Window& w = c.window;
  return w.taps() == 1 && w.stride[1] == 1 && w.stride[2] == 1 && i.row == i.size.w * i.pitch &&
         i.step == i.size.h * i.row;
}
/// Pixels of a block then: whole tiles.
int64_t flat_pixels(int64_t pitch) {
  return (kBlockFloats / pitch + 13) / 14 * 14;
}

int64_t pitch_of(const KernelNode& node) {
  return nhwc_layout(node.input(0)).pitch;
}

/// Pairs lie within a pixel, or within pixels that touch.
bool takes(const KernelNode& node) {
  if (!nhwc_conv_takes(node)) return false;
  const NhwcConv c = nhwc_conv(node);
  return c.in_channels % 2 == 0 && pitch_of(node) % 2 == 0;
}

int64_t thread_floats(const NhwcConv& c, int64_t pitch) {
  const int64_t rounded = std::max(Blocks(c, pitch).floats(), flat_pixels(pitch) * pitch);
  return (rounded / 2 + 15) / 16 * 16;
}

int64_t table_bytes(const NhwcConv& c) {
  return (c.blocks() * static_cast<int64_t>(sizeof(ptrdiff_t)) + 63) / 64 * 64;
}

int64_t scratch_bytes(const KernelNode& node, int threads) {
  const NhwcConv c = nhwc_conv(node);
  return table_bytes(c) + threads * thread_floats(c, pitch_of(node)) * 4;
}

template <const F32Isa& isa>
int64_t packed_bytes(const KernelNode& node) {
  return conv_packed_bytes(node, *isa.gemm);
}

template <const F32Isa& isa>
Status pack(const KernelNode& node, std::byte* packed) {
  conv_pack(node, *isa.gemm, reinterpret_cast<float*>(packed));
  return {};
}

template <const F32Isa& isa>
Status run(const KernelNode& node, const KernelContext& context, std::span<const TensorView> in,
           std::span<const TensorView> out) {
  const NhwcConv c = nhwc_conv(node);
  const Window& w = c.window;
  const NhwcF32 x = nhwc_of(in[0], context.layouts[0]), y = nhwc_of(out[0], context.layouts[in.size()]);
  const bool adds = context.fusion->residual.has_value();
  const NhwcF32 r = residual_of<float>(*context.fusion);
  const UnaryF32 map = fused_unary(node);
  const Blocks blocks(c, x.pitch);
  const bool one = flat(c, x) && flat(c, y) && (!adds || flat(c, r));

  auto* table = reinterpret_cast<ptrdiff_t*>(context.scratch);
  for (int64_t ky = 0, i = 0; ky < w.kernel[1]; ++ky) {
    for (int64_t kx = 0; kx < (c.touching ? 1 : w.kernel[2]); ++kx) {
      table[i++] = (ky * w.dilation[1] * blocks.row + kx * w.dilation[2] * x.pitch) / 2;
    }
  }

  // Blocks of rows (of pixels, where all are one product), then panels, so that there are enough tasks.
  const int64_t units = one ? y.size.n * y.size.h * y.size.w : y.size.h, items = one ? 1 : y.size.n;
  const auto threads = static_cast<int64_t>(context.threads);
  int64_t each = one ? flat_pixels(x.pitch) : blocks.each;
  if (threads > 1) each = std::min(each, std::max<int64_t>(one ? 14 : 1, (units * items + threads - 1) / threads));
  each = std::min(each, units);
  const int64_t row_tasks = (units + each - 1) / each;
  const int64_t group_panels = (c.out_channels + isa.gemm->nr - 1) / isa.gemm->nr, panels = group_panels * c.groups;
  const int64_t few = row_tasks * items < 2 * threads && threads > 1;
  const int64_t column_tasks = few ? std::min(panels, 2 * threads) : 1;
  const int64_t tasks = row_tasks * items * column_tasks, parts = std::min(tasks, threads);
  const int64_t padded = padded_columns(*isa.gemm, c.out_channels), K = c.K();
  const auto* packed = reinterpret_cast<const float*>(context.packed);
  auto* rounded = reinterpret_cast<float*>(context.scratch + table_bytes(c));
  const int64_t own_floats = thread_floats(c, x.pitch);

  context.parallel(parts, [&](int64_t part) {
    float* const own = rounded + part * own_floats;
    auto* const bits = reinterpret_cast<uint16_t*>(own);
    int64_t held = -1;  // the rows that are rounded
    for (int64_t t = tasks * part / parts; t < tasks * (part + 1) / parts && !loop_stops(); ++t) {
      const int64_t block = t / column_tasks, item = block / row_tasks, first = block % row_tasks * each;
      const int64_t last = std::min(units, first + each);
      if (block != held && one) {
        isa.half->narrow(HalfKind::kBf16, x.at + first * x.pitch, (last - first) * x.pitch, bits);
      } else if (block != held) {
        const float* from = x.at + item * x.step + (first * w.stride[1] - w.before[1]) * x.row - w.before[2] * x.pitch;
        const int64_t rows = (last - first - 1) * w.stride[1] + (w.kernel[1] - 1) * w.dilation[1] + 1;
        for (int64_t i = 0; i < rows; ++i) {
          isa.half->narrow(HalfKind::kBf16, from + i * x.row, blocks.row, bits + i * blocks.row);
        }
      }
      held = block;
      const int64_t column_task = t % column_tasks;
      for (int64_t p = panels * column_task / column_tasks; p < panels * (column_task + 1) / column_tasks; ++p) {
        const int64_t group = p / group_panels, n = p % group_panels * isa.gemm->nr;
        const int64_t width = panel_width(*isa.gemm, n, c.out_channels), columns = std::min(width, c.out_channels - n);
        const int64_t channel = group * c.out_channels + n;
        // Pixels are padded to whole registers: what is stored there is of no value.
        const int64_t store = c.groups == 1 ? std::min(width, y.pitch - channel) : columns;
        GemmRowsF32 g{};
        g.a_row = w.stride[2] * x.pitch / 2;
        g.blocks = table;
        g.block_count = c.blocks();
        g.k = c.block() / 2;
        g.b = packed + group * panel_floats(*isa.gemm, padded, K) + panel_floats(*isa.gemm, n, K);
        g.c_row = y.pitch;
        g.residual_row = r.pitch;
        g.columns = static_cast<int32_t>(std::max(columns, adds ? std::min(store, r.pitch - channel) : store));
        g.map = map;
        const float* a = own + group * c.in_channels / 2;
        if (one) {
          g.a = a;
          g.c = y.at + channel + first * y.pitch;
          g.residual = adds ? r.at + channel + first * r.pitch : nullptr;
          g.M = last - first;
          isa.gemm->rows(g, static_cast<int32_t>(width));
          continue;
        }
        const bool column = y.size.w == 1;  // rows of one pixel are the product's rows
        g.M = column ? last - first : y.size.w;
        if (column) {
          g.a_row = w.stride[1] * blocks.row / 2;
          g.c_row = y.row;
          g.residual_row = r.row;
        } else if (isa.gemm->takes_runs) {
          g.runs = last - first;
          g.a_run = w.stride[1] * blocks.row / 2;
          g.c_run = y.row;
          g.residual_run = r.row;
        }
        for (int64_t u = first; u < last; u += column ? g.M : g.runs) {
          g.a = a + (u - first) * w.stride[1] * blocks.row / 2;
          g.c = y.at + channel + item * y.step + u * y.row;
          g.residual = adds ? r.at + channel + item * r.step + u * r.row : nullptr;
          isa.gemm->rows(g, static_cast<int32_t>(width));
        }
      }
    }
  });
  return {};
}

template <const F32Isa& isa>
constexpr CpuKernel make_conv() {
  return {.takes = takes,
          .packed_bytes = packed_bytes<isa>,
          .pack = pack<isa>,
          .packs = 0b110,
          .layouts = Layouts::kNhwc,
          .nhwc_inputs = 0b1,
          .fuses = kFusesResidual,
          .border = conv_border,
          .precision = isa.precision,
          .scratch_bytes = scratch_bytes,
          .run = run<isa>};
}

}  // namespace

PINNACE_KERNELS_BF16_PAIRS(conv_nhwc_bf16_weights, make_conv)

}  // namespace pinnace::cpu
#endif
