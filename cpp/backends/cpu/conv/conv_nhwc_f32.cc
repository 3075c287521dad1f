// conv over NHWC-packed tensors, in float32 and on halves: a matrix product whose rows are read where they lie. Types
// and window were checked by the shape rule.
#include "backends/cpu/conv/conv_product_f32.h"

namespace pinnace::cpu {
NhwcConv nhwc_conv(const KernelNode& node, int bias) {
  const auto window = check_convolution(node, bias);
  assert(window.ok());
  const TensorType &x = node.input(0), &w = node.input(1);
  NhwcConv c{*window, node.attr_int("group"), w.shape[1].size, 0, false};
  c.out_channels = w.shape[0].size / c.groups;
  const int64_t channels = nhwc_sizes(x).c;
  // In 8 bits elements that fill up a quad count as channels whose weights are zero.
  const int64_t filled = dtype_bits(x.dtype) == 8 ? (channels + 3) / 4 * 4 : channels;
  c.touching = c.groups == 1 && window->dilation[2] == 1 && window->kernel[2] > 1 && nhwc_layout(x).pitch == filled;
  return c;
}

Border conv_border(const KernelNode& node) {
  return conv_border(nhwc_conv(node).window);
}

Border conv_border(const Window& w) {
  const auto beyond = [&](int d) {
    const int64_t last = (w.out[d] - 1) * w.stride[d] + (w.kernel[d] - 1) * w.dilation[d] - w.before[d];
    return static_cast<int32_t>(std::max<int64_t>(0, last - w.in[d] + 1));
  };
  return {static_cast<int32_t>(w.before[1]), static_cast<int32_t>(w.before[2]), beyond(1), beyond(2)};
}

Inside inside_of([[maybe_unused]] const Window& w) {
#if defined(__x86_64__)
  const auto pays = [&](size_t d) {
    // Each range's products count as one row more: their weights are read again.
    double all = static_cast<double>(w.out[d] + 1) * static_cast<double>(w.kernel[d]), some = 0;
    each_tap_range(w, d, true, [&](const TapRange& r) {
      some += static_cast<double>(r.end - r.begin + 1) * static_cast<double>(r.last - r.first);
    });
    return some <= 0.8 * all;
  };
  return {pays(1), pays(2)};
#else
  return {false, false};
#endif
}

RowWindow conv_reads_rows(const KernelNode& node) {
  const Window w = nhwc_conv(node).window;
  return {w.stride[1], w.before[1], (w.kernel[1] - 1) * w.dilation[1] + 1};
}

bool nhwc_conv_takes(const KernelNode& node, int bias) {
  if (!has_nhwc_sizes(node.input(0)) || node.input(0).elements() == 0 || node.input(1).elements() == 0) return false;
  if (node.input(bias > 0 && node.has_input(bias) ? bias : 1).elements() == 0) return false;
  const auto window = check_convolution(node, bias);
  // A border as wide as the image would be mostly zeros.
  return window.ok() && window->out_size() > 0 && window->before[1] <= 64 && window->before[2] <= 64 &&
         window->after[1] <= 64 && window->after[2] <= 64;
}

int64_t conv_packed_bytes(const KernelNode& node, const GemmTilesF32& tiles) {
  const NhwcConv c = nhwc_conv(node);
  return c.groups * panel_floats(tiles, padded_columns(tiles, c.out_channels), c.K()) * 4;
}

void conv_pack(const KernelNode& node, const GemmTilesF32& tiles, float* to) {
  const NhwcConv c = nhwc_conv(node);
  const auto* w = static_cast<const float*>(node.input_data(1));
  const float* bias = bias_of(node);
  const int64_t taps = c.window.taps(), row = c.in_channels * taps;
  for (int64_t g = 0; g < c.groups; ++g) {
    for (int64_t n = 0; n < c.out_channels; n += tiles.nr) {
      const int64_t width = panel_width(tiles, n, c.out_channels);
      const int64_t columns = std::min(width, c.out_channels - n), first = g * c.out_channels + n;
      for (int64_t j = 0; j < width; ++j) *to++ = bias && j < columns ? bias[first + j] : 0.0f;
      to = fill_panel(tiles, row, width, to, [&](int64_t first_row, int64_t rows, float* line) {
        if (taps == 1) return pack_panel(w + first * row + first_row, row, columns, rows, width, 1, line);
        for (int64_t i = first_row; i < first_row + rows; ++i) {
          const float* tap = w + first * row + i % c.in_channels * taps + i / c.in_channels;
          for (int64_t j = 0; j < width; ++j) *line++ = j < columns ? tap[j * row] : 0.0f;
        }
      });
    }
  }
}

namespace {

template <const auto& isa>
int64_t packed_bytes(const KernelNode& node) {
  const NhwcConv c = nhwc_conv(node);
  const auto& tiles = *isa.gemm;
  return c.groups * panel_elements(tiles, padded_columns(tiles, c.out_channels), c.K()) *
         static_cast<int64_t>(sizeof(ElementOf<isa>));
}

/// The same panels as conv_pack() makes of float32 weights.
[[maybe_unused]] void pack_halves(const KernelNode& node, const GemmTiles<uint16_t>& tiles, uint16_t* to) {
  const NhwcConv c = nhwc_conv(node);
  const auto* w = static_cast<const uint16_t*>(node.input_data(1));
  const auto* bias = node.has_input(2) ? static_cast<const uint16_t*>(node.input_data(2)) : nullptr;
  const int64_t taps = c.window.taps(), row = c.in_channels * taps;
  for (int64_t g = 0; g < c.groups; ++g) {
    for (int64_t n = 0; n < c.out_channels; n += tiles.nr) {
      const int64_t width = panel_width(tiles, n, c.out_channels);
      const int64_t columns = std::min(width, c.out_channels - n), first = g * c.out_channels + n;
      const auto line = [&](const uint16_t* from, ptrdiff_t step) {
        for (int64_t j = 0; j < width; ++j) *to++ = from && j < columns ? from[j * step] : uint16_t{0};
      };
      line(bias ? bias + first : nullptr, 1);
      for (int64_t i = 0; i < row; ++i) line(w + first * row + i % c.in_channels * taps + i / c.in_channels, row);
    }
  }
}

template <const auto& isa>
Status pack(const KernelNode& node, std::byte* packed) {
  if constexpr (std::is_same_v<ElementOf<isa>, float>) {
    conv_pack(node, *isa.gemm, reinterpret_cast<float*>(packed));
  } else {
    pack_halves(node, *isa.gemm, reinterpret_cast<uint16_t*>(packed));
  }
  return {};
}

/// Calls f(rows of outputs, columns of outputs, blocks, pixels of a block) for every phase.
template <class F>
void each_phase(const NhwcConv& c, F f) {
  const Inside inside = inside_of(c.window);
  each_tap_range(c.window, 1, inside.down, [&](const TapRange& down) {
    each_tap_range(c.window, 2, inside.across, [&](const TapRange& across) {
      const int64_t rows = down.last - down.first, taps = across.last - across.first;
      f(down, across, taps == 0 ? 0 : c.touching ? rows : rows * taps, c.touching ? taps : 1);
    });
  });
}

/// Zeros that taps read beyond the input: none where phases leave these taps out.
Border product_border(const KernelNode& node) {
  Border border = conv_border(node);
  const Inside inside = inside_of(nhwc_conv(node).window);
  if (inside.down) border.top = border.bottom = 0;
  if (inside.across) border.left = border.right = 0;
  return border;
}

int64_t conv_plan_bytes(const KernelNode& node) {
  int64_t phases = 0, blocks = 0;
  each_phase(nhwc_conv(node), [&](const TapRange&, const TapRange&, int64_t count, int64_t) {
    ++phases;
    blocks += count;
  });
  return ConvPlan::bytes(phases, 2 * blocks);
}

void conv_plan(const KernelNode& node, const Layout* layouts, std::byte* to) {
  const NhwcConv c = nhwc_conv(node);
  const Window& w = c.window;
  auto* plan = new (to) ConvPlan{.groups = c.groups,
                                 .in_channels = c.in_channels,
                                 .out_channels = c.out_channels,
                                 .stride_y = w.stride[1],
                                 .stride_x = w.stride[2],
                                 .step_y = 1,
                                 .step_x = 1,
                                 .phase_count = 0,
                                 .weight_rows_at = 0,
                                 .map = fused_unary(node)};
  int64_t blocks = 0;
  each_phase(c, [&](const TapRange& down, const TapRange& across, int64_t count, int64_t pixels) {
    new (plan->phases() + plan->phase_count++) ConvPhase{.y = down.begin,
                                                         .x = across.begin,
                                                         .end_y = down.end,
                                                         .end_x = across.end,
                                                         .first_block = blocks,
                                                         .block_count = count,
                                                         .block = pixels * c.in_channels,
                                                         .K = c.K(),
                                                         .packed = 0};
    blocks += count;
  });
  const Inside inside = inside_of(w);
  if (inside.down || inside.across) plan->weight_rows_at = blocks;
  const ptrdiff_t row = nhwc_row(node.input(0), layouts[0]), pitch = layouts[0].pitch;
  ptrdiff_t *block = plan->blocks(), *weight_row = block + blocks;
  each_phase(c, [&](const TapRange& down, const TapRange& across, int64_t count, int64_t pixels) {
    for (int64_t i = 0; i < count; ++i, ++block, ++weight_row) {
      const int64_t taps = (across.last - across.first) / pixels;
      const int64_t ky = down.first + i / taps, kx = across.first + i % taps;
      const int64_t x = across.begin * w.stride[2] + kx * w.dilation[2] - w.before[2];
      *block = (ky * w.dilation[1] - w.before[1]) * row + x * pitch;
      *weight_row = (ky * w.kernel[2] + kx) * c.in_channels;
    }
  });
}

template <const auto& isa>
Status conv_run(const KernelNode&, const KernelContext& context, std::span<const TensorView> in,
                std::span<const TensorView> out) {
  ConvRun<isa>(context, in, out).run(context);
  return {};
}

template <const auto& isa>
void conv_rows(const KernelContext& context, std::span<const TensorView> in, std::span<const TensorView> out,
               int64_t first, int64_t last) {
  const ConvRun<isa> conv(context, in, out);
  conv.part(first * conv.units_per_row(), last * conv.units_per_row(), 0, conv.panels());
}

template <const auto& isa>
constexpr CpuKernel make_conv() {
  return {.takes = nhwc_conv_takes,
          .packed_bytes = packed_bytes<isa>,
          .pack = pack<isa>,
          .packs = 0b110,
          .stores = true,
          .layouts = Layouts::kNhwc,
          .nhwc_inputs = 0b1,
          .fuses = kFusesResidual,
          .border = product_border,
          .precision = isa.precision,
          .error = kSumError<isa>,
          .plan_bytes = conv_plan_bytes,
          .plan = conv_plan,
          .run = conv_run<isa>,
          .rows = conv_rows<isa>,
          .reads_rows = conv_reads_rows};
}

// ----------------------------------------------------------------------------------------- channels multiplied first

// A 1 x 1 convolution of an image whose channels are multiplied by a fused channel scale first, as
// squeeze-and-excitation has it: weights are multiplied instead, where they are much fewer than the image's elements.

bool scaled_takes(const KernelNode& node) {
  if (!node.fusion().channel_scale || !nhwc_conv_takes(node)) return false;
  const NhwcConv c = nhwc_conv(node);
  const NhwcSizes x = nhwc_sizes(node.input(0));
  return c.groups == 1 && c.K() == c.in_channels && x.n == 1 && x.h * x.w >= 4 * c.out_channels;
}

template <const F32Isa& isa>
int64_t scaled_scratch_bytes(const KernelNode& node, int) {
  return packed_bytes<isa>(node);
}

template <const F32Isa& isa>
Status scaled_run(const KernelNode& node, const KernelContext& context, std::span<const TensorView> in,
                  std::span<const TensorView> out) {
  const auto& plan = *reinterpret_cast<const ConvPlan*>(context.plan);
  const auto* from = reinterpret_cast<const float*>(context.packed);
  const auto* scale = context.fusion->channel_scale->view.data<float>();
  float* to = reinterpret_cast<float*>(context.scratch);
  for (int64_t n = 0; n < plan.out_channels; n += isa.gemm->nr) {
    const int64_t width = panel_width(*isa.gemm, n, plan.out_channels);
    to = std::copy_n(from, width, to);  // the bias
    from += width;
    for (int64_t k = 0; k < plan.in_channels; ++k) {
      for (int64_t j = 0; j < width; ++j) *to++ = *from++ * scale[k];
    }
  }
  KernelContext scaled = context;
  scaled.packed = context.scratch;
  return conv_run<isa>(node, scaled, in, out);
}

template <const F32Isa& isa>
constexpr CpuKernel make_scaled() {
  CpuKernel kernel = make_conv<isa>();
  kernel.takes = scaled_takes;
  kernel.fuses = kFusesResidual | kFusesChannelScale;
  kernel.scratch_bytes = scaled_scratch_bytes<isa>;
  kernel.run = scaled_run<isa>;
  kernel.rows = nullptr;
  return kernel;
}

}  // namespace

PINNACE_KERNELS_F32_PACKED(conv_squeeze_excitation_f32, make_scaled)
PINNACE_KERNELS_F32_PACKED(conv_nhwc_f32, make_conv)
PINNACE_KERNELS_16_BIT_WEIGHTS(conv_nhwc_f16_weights, conv_nhwc_bf16_weights, make_conv)
PINNACE_KERNELS_F16(conv_nhwc_f16, make_conv)
PINNACE_KERNELS_SVE(conv_nhwc_f32, make_conv, f32_sve)
PINNACE_KERNELS_SVE(conv_squeeze_excitation_f32, make_scaled, f32_sve)

}  // namespace pinnace::cpu
