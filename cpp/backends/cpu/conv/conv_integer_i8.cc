// conv_integer with constant weights, in one or two dimensions, on x86-64: the tiles of the 8-bit convolution over an
// image that is copied first, NHWC-packed and unsigned, with the zero point around it. Types and window were checked by
// the shape rule.
#include <cstring>

#include "backends/cpu/conv/conv_nhwc.h"
#include "backends/cpu/i8_isa.h"
#include "backends/cpu/matmul/weights_i8.h"

#if defined(__x86_64__)
namespace pinnace::cpu {
namespace {

/// Outputs of one product, and of one task: their sums are on the stack.
constexpr int64_t kRunPixels = 64, kTaskRuns = 16;

/// The zero point of x is one number, known when it runs; those of w are constants.
template <const I8Isa& isa>
bool takes(const KernelNode& node) {
  if (!isa.gemm->weight_zeros || !nhwc_conv_takes(node, -1)) return false;
  if (node.has_input(2) && node.input(2).elements() != 1) return false;
  return !node.has_input(3) || (node.input_data(3) && node.input(3).elements() > 0);
}

/// What a run needs of the node.
struct Plan {
  NhwcConv conv;
  Layout layout;  ///< of the copy of x
  bool zeros;     ///< weights have zero points once they are signed
  int64_t pixels() const { return conv.window.out[1] * conv.window.out[2]; }
  /// Outputs in lines whose pixels stand at one distance: rows, or, one pixel wide, the column.
  bool column() const { return conv.window.out[2] == 1; }
  int64_t length() const { return column() ? conv.window.out[1] : conv.window.out[2]; }
  int64_t runs_per_line() const { return (length() + kRunPixels - 1) / kRunPixels; }
  int64_t runs() const { return pixels() / length() * runs_per_line(); }
};

Plan plan_of(const KernelNode& node) {
  Plan plan{nhwc_conv(node, -1), nhwc_layout(node.input(0)), IntegerZeros(node).any()};
  plan.layout.border = conv_border(plan.conv.window);
  return plan;
}

int64_t plan_bytes(const KernelNode&) {
  return sizeof(Plan);
}
void write_plan(const KernelNode& node, const Layout*, std::byte* to) {
  new (to) Plan(plan_of(node));
}

int64_t group_bytes(const GemmTilesI8& gemm, const NhwcConv& c) {
  return panel_bytes(padded_columns(gemm, c.out_channels), c.blocks() * block_quads(c));
}
int64_t ones_bytes(const GemmTilesI8& gemm, const NhwcConv& c) {
  return panel_bytes(gemm.step, c.blocks() * block_quads(c));
}

template <const I8Isa& isa>
int64_t packed_bytes(const KernelNode& node) {
  const NhwcConv c = nhwc_conv(node, -1);
  const int64_t bytes = c.groups * group_bytes(*isa.gemm, c);
  if (!IntegerZeros(node).any()) return bytes;
  return bytes + ones_bytes(*isa.gemm, c) + c.groups * padded_columns(*isa.gemm, c.out_channels) * 4;
}

/// [group][panel]; weights with zero points: then a panel whose first column is of ones, and [group][column] zero
/// points.
template <const I8Isa& isa>
Status pack(const KernelNode& node, std::byte* packed) {
  const NhwcConv c = nhwc_conv(node, -1);
  const GemmTilesI8& gemm = *isa.gemm;
  const auto* w = static_cast<const uint8_t*>(node.input_data(1));
  const auto flip = static_cast<uint8_t>(node.input(1).dtype == DType::kU8 ? 0x80 : 0);
  const int64_t taps = c.window.taps(), pixel = (c.in_channels + 3) / 4 * 4;
  const auto one = [&](int64_t, int64_t k) { return static_cast<int8_t>(k % pixel < c.in_channels ? 1 : 0); };
  const auto weight = [&](int64_t m, int64_t k) {
    if (one(m, k) == 0) return int8_t{0};
    return static_cast<int8_t>(w[(m * c.in_channels + k % pixel) * taps + k / pixel] ^ flip);
  };
  for (int64_t g = 0; g < c.groups; ++g) {
    for (int64_t n = 0; n < c.out_channels; n += gemm.nr) {
      const int64_t width = panel_width(gemm, n, c.out_channels);
      packed = pack_integer_panel(gemm, g * c.out_channels + n, std::min(width, c.out_channels - n), width, c.blocks(),
                                  block_quads(c), weight, packed);
    }
  }
  const IntegerZeros zeros(node);
  if (!zeros.any()) return {};
  packed = pack_integer_panel(gemm, 0, 1, gemm.step, c.blocks(), block_quads(c), one, packed);
  auto* to = reinterpret_cast<int32_t*>(packed);
  for (int64_t g = 0; g < c.groups; ++g) {
    for (int64_t n = 0; n < padded_columns(gemm, c.out_channels); ++n) {
      *to++ = n < c.out_channels ? zeros[g * c.out_channels + n] : 0;
    }
  }
  return {};
}

int64_t table_bytes(const NhwcConv& c) {
  return (c.blocks() * static_cast<int64_t>(sizeof(ptrdiff_t)) + 63) / 64 * 64;
}

int64_t scratch_bytes(const KernelNode& node, int) {
  const Plan plan = plan_of(node);
  return table_bytes(plan.conv) + layout_bytes(node.input(0), plan.layout);
}

template <const I8Isa& isa>
Status run(const KernelNode&, const KernelContext& context, std::span<const TensorView> in,
           std::span<const TensorView> out) {
  const auto& plan = *reinterpret_cast<const Plan*>(context.plan);
  const NhwcConv& c = plan.conv;
  const Window& w = c.window;
  const GemmTilesI8& gemm = *isa.gemm;
  const int32_t zero = (in.size() > 2 && in[2].present() ? load_int(in[2], 0) : 0) + nhwc_offset(in[0].dtype());
  const TensorView image{in[0].type, context.scratch + table_bytes(c)};
  if (!plan.layout.border.none()) {
    std::memset(image.bytes, zero, static_cast<size_t>(layout_bytes(*image.type, plan.layout)));
  }
  to_nhwc(context, in[0], image, plan.layout);
  const NhwcI8 x = nhwc_i8_of(image, plan.layout);
  auto* blocks = reinterpret_cast<ptrdiff_t*>(context.scratch);
  for (int64_t ky = 0, i = 0; ky < w.kernel[1]; ++ky) {
    for (int64_t kx = 0; kx < (c.touching ? 1 : w.kernel[2]); ++kx) {
      blocks[i++] = (ky * w.dilation[1] - w.before[1]) * x.row + (kx * w.dilation[2] - w.before[2]) * x.pitch;
    }
  }

  const int64_t pixels = plan.pixels(), runs = plan.runs();
  const int64_t quads = block_quads(c), all_quads = c.blocks() * quads;
  const int64_t row_tasks = (runs + kTaskRuns - 1) / kTaskRuns;
  const std::byte* const ones = context.packed + c.groups * group_bytes(gemm, c);
  const auto* weight_zeros = reinterpret_cast<const int32_t*>(ones + ones_bytes(gemm, c));
  const uint32_t sum_of_zeros = static_cast<uint32_t>(c.in_channels * w.taps()) * static_cast<uint32_t>(zero);
  auto* const y = out[0].data<uint32_t>();  // modulo 2^32
  context.parallel(x.size.n * c.groups * row_tasks, [&](int64_t task) {
    const GemmTilesI8& tiles = *isa.gemm;
    const int64_t item = task / row_tasks / c.groups, group = task / row_tasks % c.groups;
    const int64_t first = task % row_tasks * kTaskRuns, last = std::min(runs, first + kTaskRuns);
    int32_t sums[kRunPixels * 32], row_sums[kTaskRuns][kRunPixels];
    GemmRowsI8 g{};
    g.a_row = plan.column() ? w.stride[1] * x.row : w.stride[2] * x.pitch;
    g.blocks = blocks;
    g.block_count = c.blocks();
    g.quads = quads;
    /// Aims g at a run; returns its first output pixel.
    const auto aim = [&](int64_t run) {
      const int64_t line = run / plan.runs_per_line(), begin = run % plan.runs_per_line() * kRunPixels;
      g.a = x.at + item * x.step + line * w.stride[1] * x.row + begin * g.a_row + group * c.in_channels;
      g.M = std::min(kRunPixels, plan.length() - begin);
      return line * plan.length() + begin;
    };
    for (int64_t run = first; plan.zeros && run < last; ++run) {
      aim(run);
      g.b = ones;
      g.sums = row_sums[run - first];
      g.c_row = g.columns = 1;
      tiles.rows(g, tiles.step);
      for (int64_t i = 0; i < g.M; ++i)
        g.sums[i] = static_cast<int32_t>(static_cast<uint32_t>(g.sums[i]) - sum_of_zeros);
    }
    for (int64_t n = 0; n < c.out_channels; n += tiles.nr) {
      const int64_t width = panel_width(tiles, n, c.out_channels), columns = std::min(width, c.out_channels - n);
      g.b = context.packed + group * group_bytes(tiles, c) + panel_bytes(n, all_quads);
      g.sums = sums;
      g.c_row = width;
      g.columns = static_cast<int32_t>(columns);
      if (plan.zeros) g.weight_zeros = weight_zeros + group * padded_columns(tiles, c.out_channels) + n;
      const auto* column_sums = reinterpret_cast<const int32_t*>(g.b) + width;
      for (int64_t run = first; run < last; ++run) {
        uint32_t* const to = y + (item * c.groups + group) * c.out_channels * pixels + n * pixels + aim(run);
        if (plan.zeros) g.row_sums = row_sums[run - first];
        tiles.rows(g, static_cast<int32_t>(width));
        for (int64_t j = 0; j < columns; ++j) {
          const uint32_t less = static_cast<uint32_t>(column_sums[j]) * static_cast<uint32_t>(zero);
          for (int64_t i = 0; i < g.M; ++i) to[j * pixels + i] = static_cast<uint32_t>(sums[i * width + j]) - less;
        }
      }
      g.row_sums = nullptr;
    }
  });
  return {};
}

template <const I8Isa& isa>
constexpr CpuKernel make() {
  return {.takes = takes<isa>,
          .packed_bytes = packed_bytes<isa>,
          .pack = pack<isa>,
          .packs = 0b1010,
          .stores = true,
          .plan_bytes = plan_bytes,
          .plan = write_plan,
          .scratch_bytes = scratch_bytes,
          .run = run<isa>};
}

}  // namespace

extern const CpuKernel conv_integer_i8_avx2, conv_integer_i8_avx512_vnni;
const CpuKernel conv_integer_i8_avx2 = make<i8_avx2>();
const CpuKernel conv_integer_i8_avx512_vnni = make<i8_avx512_vnni>();
PINNACE_KERNELS_AVX_VNNI(conv_integer_i8, make)
PINNACE_KERNELS_AMX_INT8(conv_integer_i8, make)

}  // namespace pinnace::cpu
#endif
