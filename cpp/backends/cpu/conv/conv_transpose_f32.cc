// conv_transpose in float32 over NHWC-packed tensors, by phases (conv_transposed.h). Depthwise ones go through the
// depthwise convolution's rows.
#include "backends/cpu/conv/conv_product_f32.h"
#include "backends/cpu/conv/conv_transposed.h"

namespace pinnace::cpu {
namespace {

// ------------------------------------------------------------------------------------------------- matrix product

int64_t rows_of(const Transposed& t, const PhaseTaps& down, const PhaseTaps& across) {
  return std::max<int64_t>(1, down.count * across.count * t.in_channels);
}

template <const F32Isa& isa>
int64_t transposed_packed_bytes(const KernelNode& node) {
  const Transposed t = transposed(node);
  const int64_t columns = padded_columns(*isa.gemm, t.out_channels);
  int64_t floats = 0;
  t.each_phase([&](const PhaseTaps& down, const PhaseTaps& across, int64_t, int64_t) {
    floats += t.groups * panel_floats(*isa.gemm, columns, rows_of(t, down, across));
  });
  return floats * 4;
}

/// [phase][group][panel][bias, then taps in the order of the pixels that they read, channels within][column]
template <const F32Isa& isa>
Status transposed_pack(const KernelNode& node, std::byte* packed) {
  const Transposed t = transposed(node);
  const auto* w = static_cast<const float*>(node.input_data(1));
  const float* bias = bias_of(node);
  const int64_t taps = t.window.taps(), kernel_w = t.window.kernel[2], per_input = t.out_channels * taps;
  auto* to = reinterpret_cast<float*>(packed);
  t.each_phase([&](const PhaseTaps& down, const PhaseTaps& across, int64_t, int64_t) {
    const GemmTilesF32& tiles = *isa.gemm;
    const bool reached = down.count * across.count > 0;
    for (int64_t g = 0; g < t.groups; ++g) {
      for (int64_t n = 0; n < t.out_channels; n += tiles.nr) {
        const int64_t width = panel_width(tiles, n, t.out_channels), columns = std::min(width, t.out_channels - n);
        for (int64_t j = 0; j < width; ++j) *to++ = bias && j < columns ? bias[g * t.out_channels + n + j] : 0.0f;
        to = fill_panel(tiles, rows_of(t, down, across), width, to, [&](int64_t first, int64_t rows, float* line) {
          for (int64_t i = first; i < first + rows; ++i, line += width) {
            std::fill_n(line, width, 0.0f);
            if (!reached) continue;
            const int64_t tap = i / t.in_channels, channel = g * t.in_channels + i % t.in_channels;
            const int64_t ky = down.last_tap - tap / across.count * down.tap_step;
            const int64_t kx = across.last_tap - tap % across.count * across.tap_step;
            const float* from = w + channel * per_input + n * taps + ky * kernel_w + kx;
            for (int64_t j = 0; j < columns; ++j) line[j] = from[j * taps];
          }
        });
      }
    }
  });
  return {};
}

int64_t transposed_plan_bytes(const KernelNode& node) {
  const Transposed t = transposed(node);
  return ConvPlan::bytes(t.phases(1) * t.phases(2), t.window.taps());
}

template <const F32Isa& isa>
void transposed_plan(const KernelNode& node, const Layout* layouts, std::byte* to) {
  const Transposed t = transposed(node);
  auto* plan = new (to) ConvPlan{.groups = t.groups,
                                 .in_channels = t.in_channels,
                                 .out_channels = t.out_channels,
                                 .stride_y = 1,
                                 .stride_x = 1,
                                 .step_y = t.phases(1),
                                 .step_x = t.phases(2),
                                 .phase_count = t.phases(1) * t.phases(2),
                                 .weight_rows_at = 0,
                                 .map = fused_unary(node)};
  const ptrdiff_t row = nhwc_row(node.input(0), layouts[0]), pitch = layouts[0].pitch;
  const int64_t columns = padded_columns(*isa.gemm, t.out_channels);
  ConvPhase* phase = plan->phases();
  int64_t block = 0, packed = 0;
  t.each_phase([&](const PhaseTaps& down, const PhaseTaps& across, int64_t y, int64_t x) {
    const int64_t K = rows_of(t, down, across);
    new (phase++)
        ConvPhase{y, x, t.window.in[1], t.window.in[2], block, down.count * across.count, t.in_channels, K, packed};
    packed += t.groups * panel_floats(*isa.gemm, columns, K);
    for (int64_t i = 0; i < down.count; ++i) {
      for (int64_t j = 0; j < across.count; ++j) {
        plan->blocks()[block++] = (down.offset + i * down.apart) * row + (across.offset + j * across.apart) * pitch;
      }
    }
  });
}

template <const F32Isa& isa>
Status transposed_run(const KernelNode&, const KernelContext& context, std::span<const TensorView> in,
                      std::span<const TensorView> out) {
  ConvRun<isa>(context, in, out).run(context);
  return {};
}

template <const F32Isa& isa>
constexpr CpuKernel make_transposed() {
  return {.takes = transposed_takes,
          .packed_bytes = transposed_packed_bytes<isa>,
          .pack = transposed_pack<isa>,
          .packs = 0b110,
          .stores = true,
          .layouts = Layouts::kNhwc,
          .nhwc_inputs = 0b1,
          .border = transposed_border,
          .precision = isa.precision,
          .plan_bytes = transposed_plan_bytes,
          .plan = transposed_plan<isa>,
          .run = transposed_run<isa>};
}

// ------------------------------------------------------------------------------------------------------ depthwise

template <const F32Isa& isa>
bool depthwise_takes(const KernelNode& node) {
  if (!transposed_takes(node)) return false;
  const Transposed t = transposed(node);
  if (t.groups < 8 || t.in_channels != 1 || t.out_channels != 1) return false;
  // Pixels of one image are not padded where there is only one: its channels must be whole registers then.
  return t.groups % 8 == 0 || (t.window.out_size() > 1 && t.window.in_size() > 1);
}

/// Floats of a register of channels of one phase: bias and taps.
int64_t register_floats(const PhaseTaps& down, const PhaseTaps& across, int64_t lanes) {
  return lanes * (1 + down.count * across.count);
}

template <const F32Isa& isa>
int64_t depthwise_packed_bytes(const KernelNode& node) {
  const Transposed t = transposed(node);
  const int64_t lanes = isa.depthwise->lanes;
  int64_t floats = 0;
  t.each_phase([&](const PhaseTaps& down, const PhaseTaps& across, int64_t, int64_t) {
    floats += (t.groups + lanes - 1) / lanes * register_floats(down, across, lanes);
  });
  return floats * 4;
}

/// [phase][channels / lanes][bias, then taps][lanes]
template <const F32Isa& isa>
Status depthwise_pack(const KernelNode& node, std::byte* packed) {
  const Transposed t = transposed(node);
  const auto* w = static_cast<const float*>(node.input_data(1));
  const float* bias = bias_of(node);
  const int64_t lanes = isa.depthwise->lanes, taps = t.window.taps();
  auto* to = reinterpret_cast<float*>(packed);
  t.each_phase([&](const PhaseTaps& down, const PhaseTaps& across, int64_t, int64_t) {
    for (int64_t first = 0; first < t.groups; first += lanes) {
      const auto put = [&](const float* from, int64_t step) {
        for (int64_t j = first; j < first + lanes; ++j) *to++ = from && j < t.groups ? from[j * step] : 0.0f;
      };
      put(bias, 1);
      for (int64_t i = 0; i < down.count; ++i) {
        for (int64_t j = 0; j < across.count; ++j) {
          const int64_t ky = down.last_tap - i * down.tap_step, kx = across.last_tap - j * across.tap_step;
          put(w + ky * t.window.kernel[2] + kx, taps);
        }
      }
    }
  });
  return {};
}

template <const F32Isa& isa>
Status depthwise_run(const KernelNode& node, const KernelContext& context, std::span<const TensorView> in,
                     std::span<const TensorView> out) {
  const Transposed t = transposed(node);
  const Window& w = t.window;
  const NhwcF32 x = nhwc_of(in[0], context.layouts[0]), y = nhwc_of(out[0], context.layouts[in.size()]);
  const UnaryF32 map = fused_unary(node);
  const int64_t lanes = isa.depthwise->lanes, step = std::min<int64_t>(lanes, 8), rows = y.size.n * y.size.h;
  const int64_t each = std::max<int64_t>(1, std::min(rows / (4 * context.threads), 16384 / (y.size.w * y.pitch)));
  context.parallel((rows + each - 1) / each, [&](int64_t task) {
    const float* weights = reinterpret_cast<const float*>(context.packed);
    t.each_phase([&](const PhaseTaps& down, const PhaseTaps& across, int64_t first_y, int64_t first_x) {
      for (int64_t u = task * each; u < std::min(rows, (task + 1) * each); ++u) {
        const int64_t item = u / y.size.h, row = u % y.size.h;
        if (row % w.stride[1] != first_y) continue;
        DepthwiseRowsF32 d{};
        d.rows = 1;
        d.x = x.at + item * x.step + (row / w.stride[1] + down.offset) * x.row + across.offset * x.pitch;
        d.pitch = x.pitch;
        d.tap_row = down.apart * x.row;
        d.weights = weights;
        d.y = y.at + item * y.step + row * y.row + first_x * y.pitch;
        d.y_pitch = w.stride[2] * y.pitch;
        d.channels = (y.size.c + step - 1) / step * step;
        d.out_w = (y.size.w - first_x + w.stride[2] - 1) / w.stride[2];
        d.kernel_h = static_cast<int32_t>(across.count > 0 ? down.count : 0);
        d.kernel_w = static_cast<int32_t>(down.count > 0 ? across.count : 0);
        d.stride_x = 1;
        d.dilation_x = static_cast<int32_t>(across.apart);
        d.map = map;
        isa.depthwise->rows(d);
      }
      weights += (t.groups + lanes - 1) / lanes * register_floats(down, across, lanes);
    });
  });
  return {};
}

template <const F32Isa& isa>
constexpr CpuKernel make_depthwise() {
  return {.takes = depthwise_takes<isa>,
          .packed_bytes = depthwise_packed_bytes<isa>,
          .pack = depthwise_pack<isa>,
          .packs = 0b110,
          .stores = true,
          .layouts = Layouts::kNhwc,
          .nhwc_inputs = 0b1,
          .border = transposed_border,
          .run = depthwise_run<isa>};
}

}  // namespace

PINNACE_KERNELS_F32_PACKED(conv_transpose_depthwise_f32, make_depthwise)
PINNACE_KERNELS_F32_PACKED(conv_transpose_f32, make_transposed)
PINNACE_KERNELS_16_BIT_WEIGHTS(conv_transpose_f16_weights, conv_transpose_bf16_weights, make_transposed)

}  // namespace pinnace::cpu
