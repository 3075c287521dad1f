// conv_transpose on 8-bit quantised types over NHWC-packed tensors, by phases (conv_transposed.h): each a matrix
// product of 8-bit tiles. What lies beyond x is its zero point, which packed biases make nothing of.
#include <utility>

#include "backends/cpu/conv/conv_tasks.h"
#include "backends/cpu/conv/conv_transposed.h"
#include "backends/cpu/i8_isa.h"
#include "backends/cpu/matmul/weights_i8.h"

namespace pinnace::cpu {
namespace {

bool takes(const KernelNode& node) {
  return fits_nhwc_i8(node.input(0)) && signed_weights(node.input(1)) && transposed_takes(node);
}

/// A block is a pixel. A phase that no tap reaches has one of zeros: its outputs are the bias.
int64_t pixel_quads(const Transposed& t) {
  return (t.in_channels + 3) / 4;
}
int64_t blocks_of(const PhaseTaps& down, const PhaseTaps& across) {
  return std::max<int64_t>(1, down.count * across.count);
}

/// Bytes of a phase's panels: [group][panel].
int64_t group_bytes(const GemmTilesI8& gemm, const Transposed& t, int64_t blocks) {
  return panel_bytes(padded_columns(gemm, t.out_channels), blocks * pixel_quads(t));
}

int64_t packed_bytes(const GemmTilesI8& gemm, const KernelNode& node) {
  const Transposed t = transposed(node);
  int64_t bytes = 0;
  t.each_phase([&](const PhaseTaps& down, const PhaseTaps& across, int64_t, int64_t) {
    bytes += t.groups * group_bytes(gemm, t, blocks_of(down, across));
  });
  return bytes;
}

/// [phase][group][panel], taps in the order of the pixels that they read.
Status pack(const GemmTilesI8& gemm, const KernelNode& node, std::byte* packed) {
  const Transposed t = transposed(node);
  PINNACE_ASSIGN(const Activation activation, parse_activation(node));
  const TensorType y{node.input(0).dtype, {}, node.output_quantization(0)};
  const Requantize requantize(node.input(0), node.input(1), y, activation);
  const auto* w = static_cast<const uint8_t*>(node.input_data(1));
  const auto* bias = node.has_input(2) ? static_cast<const int32_t*>(node.input_data(2)) : nullptr;
  const auto flip = static_cast<uint8_t>(node.input(1).dtype == DType::kU8 ? 0x80 : 0);
  const int64_t taps = t.window.taps(), kernel_w = t.window.kernel[2], quads = pixel_quads(t);
  t.each_phase([&](const PhaseTaps& down, const PhaseTaps& across, int64_t, int64_t) {
    const bool reached = down.count * across.count > 0;
    for (int64_t g = 0; g < t.groups; ++g) {
      const auto weight = [&](int64_t m, int64_t k) {
        const int64_t tap = k / (4 * quads), channel = k % (4 * quads);
        if (!reached || channel >= t.in_channels) return int8_t{0};
        const int64_t ky = down.last_tap - tap / across.count * down.tap_step;
        const int64_t kx = across.last_tap - tap % across.count * across.tap_step;
        const int64_t at = ((g * t.in_channels + channel) * t.out_channels + m) * taps + ky * kernel_w + kx;
        return static_cast<int8_t>(w[at] ^ flip);
      };
      for (int64_t n = 0; n < t.out_channels; n += gemm.nr) {
        const int64_t width = panel_width(gemm, n, t.out_channels);
        packed =
            pack_panel_i8(gemm, requantize, bias ? bias + g * t.out_channels : nullptr, nhwc_zero(node.input(0)), n,
                          std::min(width, t.out_channels - n), width, blocks_of(down, across), quads, weight, packed);
      }
    }
  });
  return {};
}

int64_t scratch_bytes(const KernelNode& node, int) {
  const Transposed t = transposed(node);
  return (t.window.taps() + t.phases(1) * t.phases(2)) * static_cast<int64_t>(sizeof(ptrdiff_t));
}

Status run(const GemmTilesI8& gemm, const KernelNode& node, const KernelContext& context,
           std::span<const TensorView> in, std::span<const TensorView> out) {
  const Transposed t = transposed(node);
  const NhwcI8 x = nhwc_i8_of(in[0], context.layouts[0]), y = nhwc_i8_of(out[0], context.layouts[in.size()]);
  PINNACE_ASSIGN(const Activation activation, parse_activation(node));
  const StoreI8 store = store_i8(*out[0].type, activation_range(activation, *out[0].type));
  const int64_t step_y = t.phases(1), step_x = t.phases(2), quads = pixel_quads(t);

  auto* const all_blocks = reinterpret_cast<ptrdiff_t*>(context.scratch);
  ptrdiff_t* block = all_blocks;
  t.each_phase([&](const PhaseTaps& down, const PhaseTaps& across, int64_t, int64_t) {
    if (down.count * across.count == 0) *block++ = 0;
    for (int64_t i = 0; i < down.count; ++i) {
      for (int64_t j = 0; j < across.count; ++j) {
        *block++ = (down.offset + i * down.apart) * x.row + (across.offset + j * across.apart) * x.pitch;
      }
    }
  });

  const int64_t panels = (t.out_channels + gemm.nr - 1) / gemm.nr * t.groups, group_panels = panels / t.groups;
  const ConvTasks tasks = conv_tasks({.units = y.size.n * y.size.h,
                                      .unit_bytes = x.pitch * std::max<int64_t>(1, y.size.w / (step_y * step_x)),
                                      .unit_pixels = y.size.w,
                                      .panels = panels},
                                     context.threads);
  context.parallel(tasks.count(), [&](int64_t task) {
    const auto [first, last, first_panel, last_panel] = tasks.part(task);
    for (int64_t p = first_panel; p < last_panel; ++p) {
      const int64_t group = p / group_panels, n = p % group_panels * gemm.nr;
      const int64_t width = panel_width(gemm, n, t.out_channels), columns = std::min(width, t.out_channels - n);
      const int64_t channel = group * t.out_channels + n;
      const ptrdiff_t* blocks = all_blocks;
      const std::byte* packed = context.packed;
      t.each_phase([&](const PhaseTaps& down, const PhaseTaps& across, int64_t phase_y, int64_t phase_x) {
        const bool reached = down.count * across.count > 0;
        GemmRowsI8 g{};
        g.block_count = blocks_of(down, across);
        g.blocks = blocks;
        g.quads = quads;
        g.b = packed + group * group_bytes(gemm, t, g.block_count) + panel_bytes(n, g.block_count * quads);
        blocks += g.block_count;
        packed += t.groups * group_bytes(gemm, t, g.block_count);
        g.a_row = reached ? x.pitch : 0;
        g.a_run = reached ? x.row : 0;
        g.c_row = step_x * y.pitch;
        g.c_run = step_y * y.row;
        g.M = (y.size.w - phase_x + step_x - 1) / step_x;
        // Pixels are padded to whole registers: what is stored there is of no value.
        g.columns = static_cast<int32_t>(t.groups == 1 ? std::min(width, y.pitch - channel) : columns);
        g.store = store;
        // All rows of the phase in an image at once.
        for (int64_t u = first, next = 0; u < last; u = next) {
          const int64_t item = u / y.size.h, begin = item * y.size.h;
          next = std::min(last, begin + y.size.h);
          const int64_t row = u - begin + (phase_y + step_y - (u - begin) % step_y) % step_y;
          if (begin + row >= next) continue;
          g.runs = (next - begin - row + step_y - 1) / step_y;
          if (y.size.w == 1) {  // rows of one pixel are the product's rows
            g.M = std::exchange(g.runs, 1);
            g.a_row = g.a_run;
            g.c_row = g.c_run;
          }
          g.a = x.at + item * x.step + group * t.in_channels + (reached ? row / step_y * x.row : 0);
          g.c = y.at + item * y.step + row * y.row + phase_x * y.pitch + channel;
          gemm.rows(g, static_cast<int32_t>(width));
        }
      });
    }
  });
  return {};
}

template <const I8Isa& isa>
constexpr CpuKernel make() {
  return {.takes = takes,
          .packed_bytes = [](const KernelNode& node) { return packed_bytes(*isa.gemm, node); },
          .pack = [](const KernelNode& node, std::byte* packed) { return pack(*isa.gemm, node, packed); },
          .packs = 0b110,
          .stores = true,
          .layouts = Layouts::kNhwc,
          .nhwc_inputs = 0b1,
          .border = transposed_border,
          .scratch_bytes = scratch_bytes,
          .run = [](const KernelNode& node, const KernelContext& context, std::span<const TensorView> in,
                    std::span<const TensorView> out) { return run(*isa.gemm, node, context, in, out); }};
}

}  // namespace

PINNACE_KERNELS_I8(conv_transpose_i8, make)
PINNACE_KERNELS_AVX_VNNI(conv_transpose_i8, make)
PINNACE_KERNELS_AMX_INT8(conv_transpose_i8, make)

}  // namespace pinnace::cpu
