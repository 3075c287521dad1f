// conv on 8-bit quantised types over NHWC-packed tensors: a matrix product whose rows are read where they lie; relu and
// clip are part of the clamp. A fused residual is added before a tile leaves the registers, to the bits of conv and
// add. Types and window were checked by the shape rule.
#include <cmath>

#include "backends/cpu/conv/conv_nhwc.h"
#include "backends/cpu/conv/conv_tasks.h"
#include "backends/cpu/i8_isa.h"
#include "backends/cpu/matmul/weights_i8.h"
#include "base/cancel.h"

namespace pinnace::cpu {
namespace {

/// Whatever the weights' zero points.
bool operands_fit(const KernelNode& node) {
  const TensorType &x = node.input(0), &w = node.input(1);
  const auto& residual = node.fusion().residual;
  return fits_nhwc_i8(x) && w.quantized() && (w.dtype == DType::kI8 || w.dtype == DType::kU8) &&
         (!residual || fits_nhwc_i8(*residual->addend.view.type)) && nhwc_conv_takes(node);
}

template <const I8Isa& isa>
bool conv_takes(const KernelNode& node) {
  return operands_fit(node) && weights_fit(*isa.gemm, node.input(1));
}

/// What sums of products become: the result, whose declared type the node gives, or what a residual is added to.
Requantize requantize_of(const KernelNode& node) {
  const auto activation = parse_activation(node);
  assert(activation.ok());
  TensorType y{node.input(0).dtype, {}, node.output_quantization(0)};
  if (const auto& residual = node.fusion().residual) {
    y.quantization = std::make_shared<Quantization>(Quantization{{residual->own_scale}, {residual->own_zero_point}});
  }
  return Requantize(node.input(0), node.input(1), y, *activation);
}

/// Bytes of all groups' panels.
int64_t conv_panel_bytes(const GemmTilesI8& gemm, const NhwcConv& c) {
  return c.groups * panel_bytes(padded_columns(gemm, c.out_channels), c.blocks() * block_quads(c));
}
/// Bytes of the panel that sums rows, which is narrow.
int64_t ones_bytes(const GemmTilesI8& gemm, const NhwcConv& c) {
  return panel_bytes(gemm.step, c.blocks() * block_quads(c));
}

template <const I8Isa& isa>
int64_t conv_packed_bytes(const KernelNode& node) {
  const NhwcConv c = nhwc_conv(node);
  const int64_t bytes = conv_panel_bytes(*isa.gemm, c);
  if (!has_zeros(node.input(1))) return bytes;
  return bytes + ones_bytes(*isa.gemm, c) + c.groups * padded_columns(*isa.gemm, c.out_channels) * 4;
}

/// [group][panel], elements in order of (ky, kx, channel). Weights with zero points: then a panel whose first column is
/// of ones, and zero points, [group][column].
template <const I8Isa& isa>
Status conv_pack(const KernelNode& node, std::byte* packed) {
  const NhwcConv c = nhwc_conv(node);
  const Requantize requantize = requantize_of(node);
  const auto* w = static_cast<const uint8_t*>(node.input_data(1));
  const auto* bias = node.has_input(2) ? static_cast<const int32_t*>(node.input_data(2)) : nullptr;
  const auto flip = static_cast<uint8_t>(node.input(1).dtype == DType::kU8 ? 0x80 : 0);
  const int64_t taps = c.window.taps(), pixel = (c.in_channels + 3) / 4 * 4;
  const auto weight = [&](int64_t m, int64_t k) {
    const int64_t channel = k % pixel;
    if (channel >= c.in_channels) return int8_t{0};
    return static_cast<int8_t>(w[(m * c.in_channels + channel) * taps + k / pixel] ^ flip);
  };
  for (int64_t g = 0; g < c.groups; ++g) {
    for (int64_t n = 0; n < c.out_channels; n += isa.gemm->nr) {
      const int64_t width = panel_width(*isa.gemm, n, c.out_channels);
      packed = pack_panel_i8(*isa.gemm, requantize, bias, nhwc_zero(node.input(0)), g * c.out_channels + n,
                             std::min(width, c.out_channels - n), width, c.blocks(), block_quads(c), weight, packed);
    }
  }
  if (!has_zeros(node.input(1))) return {};
  const auto one = [&](int64_t, int64_t k) { return static_cast<int8_t>(k % pixel < c.in_channels ? 1 : 0); };
  packed = pack_panel_i8(*isa.gemm, requantize, nullptr, nhwc_zero(node.input(0)), 0, 1, isa.gemm->step, c.blocks(),
                         block_quads(c), one, packed);
  auto* zero = reinterpret_cast<int32_t*>(packed);
  for (int64_t g = 0; g < c.groups; ++g) {
    for (int64_t n = 0; n < padded_columns(*isa.gemm, c.out_channels); ++n) {
      *zero++ = n < c.out_channels ? signed_zero(node.input(1), g * c.out_channels + n) : 0;
    }
  }
  return {};
}

/// gemm.rows(), which looks whether to stop where a run is long.
__attribute__((noinline)) void product_rows(const GemmTilesI8& gemm, const GemmRowsI8& all, int32_t width) {
  const int64_t each = rows_between_looks(4 * all.block_count * all.quads * width);
  if (all.M <= each || all.runs > 1) return gemm.rows(all, width);
  GemmRowsI8 g = all;
  for (int64_t left = all.M; left > 0 && !loop_stops(); left -= each) {
    g.M = std::min(left, each);
    gemm.rows(g, width);
    g.a += each * g.a_row;
    g.c += each * g.c_row;
    if (g.added.at) g.added.at += each * g.added.row;
    if (g.row_sums) g.row_sums += each;
  }
}

int64_t table_bytes(const NhwcConv& c) {
  return c.blocks() * static_cast<int64_t>(sizeof(ptrdiff_t));
}

/// Where rows lie, then sums of rows, [group][output pixel].
int64_t conv_scratch_bytes(const KernelNode& node, int) {
  const NhwcConv c = nhwc_conv(node);
  if (!has_zeros(node.input(1))) return table_bytes(c);
  return table_bytes(c) + c.groups * node.input(0).shape[0].size * c.window.out_size() * 4;
}

template <const I8Isa& isa>
Status conv_run(const KernelNode& node, const KernelContext& context, std::span<const TensorView> in,
                std::span<const TensorView> out) {
  const NhwcConv c = nhwc_conv(node);
  const Window& w = c.window;
  const NhwcI8 x = nhwc_i8_of(in[0], context.layouts[0]), y = nhwc_i8_of(out[0], context.layouts[in.size()]);
  PINNACE_ASSIGN(const Activation activation, parse_activation(node));
  const StoreI8 store = store_i8(*out[0].type, activation_range(activation, *out[0].type));
  const GemmTilesI8& gemm = *isa.gemm;
  const auto& residual = context.fusion->residual;
  const bool adds = residual.has_value();
  const NhwcI8 r = residual_of<uint8_t>(*context.fusion);
  AddedI8 added{};
  if (adds) {
    added = {nullptr,
             r.pitch,
             r.row,
             {residual->own_scale, residual->own_zero_point + nhwc_offset(out[0].dtype())},
             real_i8(*residual->addend.view.type),
             scale_zero(*out[0].type).scale};
  }

  auto* blocks = reinterpret_cast<ptrdiff_t*>(context.scratch);
  for (int64_t ky = 0, i = 0; ky < w.kernel[1]; ++ky) {
    for (int64_t kx = 0; kx < (c.touching ? 1 : w.kernel[2]); ++kx) {
      blocks[i++] = (ky * w.dilation[1] - w.before[1]) * x.row + (kx * w.dilation[2] - w.before[2]) * x.pitch;
    }
  }

  // Runs of output pixels that stand at one distance, in the input too: a row, or everything where nothing lies
  // between. Outputs one pixel wide: the rows of an image, or images of one row.
  const bool pixels_only = w.taps() == 1 && w.stride[1] == 1 && w.stride[2] == 1;
  const auto flat = [](const NhwcI8& i) { return i.row == i.size.w * i.pitch && i.step == i.size.h * i.row; };
  const bool one = pixels_only && flat(x) && flat(y) && (!adds || flat(r));
  const int64_t runs = one ? 1 : y.size.n * y.size.h, length = one ? y.size.n * y.size.h * y.size.w : y.size.w;

  const int64_t panels = (c.out_channels + gemm.nr - 1) / gemm.nr * c.groups, group_panels = panels / c.groups;
  const int64_t quads = block_quads(c), all_quads = c.blocks() * quads;
  const int64_t group_bytes = panel_bytes(padded_columns(gemm, c.out_channels), all_quads);
  const int64_t per_pixel = x.pitch * (one ? 1 : w.stride[1] * w.stride[2]);
  const ConvTasks tasks = conv_tasks({.units = one ? length : runs,
                                      .unit_bytes = one ? per_pixel : per_pixel * length,
                                      .unit_pixels = one ? 1 : length,
                                      .panels = panels},
                                     context.threads);

  const bool column = y.size.w == 1 && !one, images = column && y.size.h == 1;

  const auto place = [&](const NhwcI8& i, int64_t unit, int64_t stride) {
    return i.at + (one ? unit * i.pitch : unit / y.size.h * i.step + unit % y.size.h * stride * i.row);
  };

  // All rows of an image at once: f(g, unit) with g ready but for its results.
  const auto each_run = [&](GemmRowsI8& g, int64_t group, int64_t first, int64_t last, auto f) {
    g.a_row = w.stride[2] * x.pitch;
    g.a_run = w.stride[1] * x.row;
    if (column) g.a_row = images ? x.step : g.a_run;
    g.blocks = blocks;
    g.block_count = c.blocks();
    g.quads = quads;
    for (int64_t u = first, next = 0; u < last; u = next) {
      next = one || images ? last : std::min(last, (u / y.size.h + 1) * y.size.h);
      g.a = place(x, u, w.stride[1]) + group * c.in_channels;
      g.M = one ? last - first : column ? next - u : length;
      g.runs = one || column ? 1 : next - u;
      f(g, u);
    }
  };

  const bool zeros = has_zeros(*in[1].type);
  auto* row_sums = reinterpret_cast<int32_t*>(context.scratch + table_bytes(c));
  const int64_t unit_pixels = one ? 1 : length, all_pixels = tasks.units * unit_pixels;
  const std::byte* const ones = context.packed + conv_panel_bytes(gemm, c);
  const auto* weight_zeros = reinterpret_cast<const int32_t*>(ones + ones_bytes(gemm, c));
  if (zeros) {
    context.parallel(c.groups * tasks.row_tasks, [&](int64_t t) {
      const int64_t group = t / tasks.row_tasks, first = t % tasks.row_tasks * tasks.each;
      GemmRowsI8 g{};
      g.b = ones;
      g.c_row = g.columns = 1;
      g.c_run = length;
      each_run(g, group, first, std::min(tasks.units, first + tasks.each), [&](GemmRowsI8& run, int64_t u) {
        run.sums = row_sums + group * all_pixels + u * unit_pixels;
        isa.gemm->rows(run, isa.gemm->step);
      });
    });
  }

  context.parallel(tasks.count(), [&](int64_t t) {
    const GemmTilesI8& tiles = *isa.gemm;
    const auto [first, last, first_panel, last_panel] = tasks.part(t);
    for (int64_t p = first_panel; p < last_panel; ++p) {
      const int64_t group = p / group_panels, n = p % group_panels * tiles.nr;
      const int64_t width = panel_width(tiles, n, c.out_channels), columns = std::min(width, c.out_channels - n);
      const int64_t channel = group * c.out_channels + n;
      GemmRowsI8 g{};
      g.c_run = y.row;
      g.b = context.packed + group * group_bytes + panel_bytes(n, all_quads);
      g.c_row = y.pitch;
      // Pixels are padded to whole registers: what is stored there is of no value.
      g.columns = static_cast<int32_t>(c.groups == 1 ? std::min(width, y.pitch - channel) : columns);
      g.store = store;
      g.added = added;
      if (column) {
        g.c_row = images ? y.step : y.row;
        g.added.row = images ? r.step : r.row;
      }
      if (zeros) g.weight_zeros = weight_zeros + group * padded_columns(tiles, c.out_channels) + n;
      each_run(g, group, first, last, [&](GemmRowsI8& run, int64_t u) {
        run.c = place(y, u, 1) + channel;
        if (adds) run.added.at = place(r, u, 1) + channel;
        if (zeros) run.row_sums = row_sums + group * all_pixels + u * unit_pixels;
        product_rows(tiles, run, static_cast<int32_t>(width));
      });
    }
  });
  return {};
}

template <const I8Isa& isa>
constexpr CpuKernel make_conv() {
  return {.takes = conv_takes<isa>,
          .packed_bytes = conv_packed_bytes<isa>,
          .pack = conv_pack<isa>,
          .packs = 0b110,
          .stores = true,
          .layouts = Layouts::kNhwc,
          .nhwc_inputs = 0b1,
          .fuses = kFusesResidual,
          .border = conv_border,
          .scratch_bytes = conv_scratch_bytes,
          .run = conv_run<isa>};
}

// ------------------------------------------------------------------------------------------------------ depthwise

/// How rows of taps are dealt to quads, and how many sets of weights read a quad (depthwise_i8.h).
struct DepthwiseQuads {
  int32_t weight_sets, own_quads;
  int32_t parts = 1;  ///< weights with zero points, less these, are sums of two signed bytes, or three: 255
  int32_t row_quads() const { return own_quads * parts; }
};
DepthwiseQuads depthwise_quads(const Window& w, const TensorType& weights) {
  if (has_zeros(weights)) {
    int32_t least = 0;
    for (size_t i = 0; i < weights.quantization->zero_points.size(); ++i) {
      least = std::min(least, signed_zero(weights, static_cast<int64_t>(i)));
    }
    return {1, static_cast<int32_t>((w.kernel[1] + 3) / 4), least == -128 ? 3 : 2};
  }
  const auto quads = [](int64_t rows) { return static_cast<int32_t>((rows + 3) / 4); };
  // The kernel for 3 x 3 taps goes row by row.
  if (w.kernel[1] == 3 && w.kernel[2] == 3 && w.dilation[2] == 1 && w.stride[2] <= 2) return {1, 1};
  const int32_t one = quads(w.kernel[1]), two = quads(w.kernel[1] + w.stride[1]);
  // Two rows of outputs share quads where their taps lie in the same rows, if that saves some.
  if (w.dilation[1] == 1 && w.out[1] > 1 && two < 2 * one) return {2, two};
  return {1, one};
}

template <const I8Isa& isa>
bool depthwise_takes(const KernelNode& node) {
  if (!operands_fit(node) || !weights_fit(*isa.gemm, node.input(1))) return false;
  const int64_t groups = node.attr_int("group");
  const Shape& w = node.input(1).shape;
  // Channels that are not padded to whole registers would be stored beyond their pixel.
  if (groups <= 8 || w[1].size != 1 || w[0].size != groups) return false;
  const auto window = check_convolution(node, 2);
  const int64_t columns = (kDepthwiseBlock - 1) * window->stride[2] + (window->kernel[2] - 1) * window->dilation[2] + 1;
  return window->stride[2] <= 64 && window->kernel[2] <= 64 && window->dilation[2] <= 64 && window->kernel[1] <= 64 &&
         columns * depthwise_quads(*window, node.input(1)).row_quads() <= kDepthwiseColumns;
}

int64_t padded_channels(int64_t channels) {
  return (channels + 15) / 16 * 16;
}

/// Chunks of weights; behind them a byte for DepthwiseRowsI8::large.
int64_t depthwise_chunk_bytes(const KernelNode& node) {
  const Window w = nhwc_conv(node).window;
  const DepthwiseQuads q = depthwise_quads(w, node.input(1));
  return padded_channels(node.attr_int("group")) * (8 + 4 * q.weight_sets * q.row_quads() * w.kernel[2]);
}
int64_t depthwise_packed_bytes(const KernelNode& node) {
  return depthwise_chunk_bytes(node) + 1;
}

template <const I8Isa& isa>
Status depthwise_pack(const KernelNode& node, std::byte* packed) {
  const Window w = nhwc_conv(node).window;
  const DepthwiseQuads q = depthwise_quads(w, node.input(1));
  const Requantize requantize = requantize_of(node);
  const auto* weights = static_cast<const uint8_t*>(node.input_data(1));
  const auto* bias = node.has_input(2) ? static_cast<const int32_t*>(node.input_data(2)) : nullptr;
  const auto flip = static_cast<uint8_t>(node.input(1).dtype == DType::kU8 ? 0x80 : 0);
  const int64_t channels = node.attr_int("group"), taps = w.taps();
  const auto weight = [&](int64_t channel, int64_t ky, int64_t kx) {
    if (channel >= channels || ky < 0 || ky >= w.kernel[1]) return 0;
    return static_cast<int8_t>(weights[channel * taps + ky * w.kernel[2] + kx] ^ flip) -
           signed_zero(node.input(1), channel);
  };
  bool large = false;
  for (int64_t first = 0; first < padded_channels(channels);) {
    const int64_t chunk = depthwise_chunk(first, padded_channels(channels), isa.depthwise->widest);
    auto* start = reinterpret_cast<int32_t*>(packed);
    auto* m = reinterpret_cast<float*>(packed) + chunk;
    auto* quad = reinterpret_cast<int8_t*>(packed) + 8 * chunk;
    const int64_t lanes = chunk / 4;
    for (int64_t i = 0; i < chunk; ++i) {
      const int64_t v = i / lanes, l = i % lanes, channel = first + l / 4 * 16 + v * 4 + l % 4;
      int32_t sum = 0;
      for (int64_t t = 0; t < taps; ++t) sum += weight(channel, t / w.kernel[2], t % w.kernel[2]);
      const auto zero = static_cast<uint32_t>(nhwc_zero(node.input(0)) - isa.depthwise->activation_offset);
      const uint32_t less = static_cast<uint32_t>(sum) * zero;
      start[i] = static_cast<int32_t>((bias && channel < channels ? static_cast<uint32_t>(bias[channel]) : 0u) - less);
      m[i] = channel < channels ? requantize.m[requantize.m.size() > 1 ? static_cast<size_t>(channel) : 0] : 0.0f;
      const float most = std::fabs(static_cast<float>(start[i])) + static_cast<float>(taps) * (q.parts * 255 * 128);
      large |= !(std::min(most, 0x1p31f) * m[i] < 0x1p30f);
      for (int32_t set = 0; set < q.weight_sets; ++set) {
        for (int32_t g = 0; g < q.row_quads(); ++g) {
          for (int64_t kx = 0; kx < w.kernel[2]; ++kx) {
            for (int64_t r = 0; r < 4; ++r) {
              int32_t rest = weight(channel, 4 * (g % q.own_quads) + r - set * w.stride[1], kx);
              for (int32_t part = g / q.own_quads; part > 0; --part) rest -= std::clamp(rest, -128, 127);
              quad[((((set * q.row_quads() + g) * w.kernel[2] + kx) * 4 + v) * lanes + l) * 4 + r] =
                  static_cast<int8_t>(std::clamp(rest, -128, 127));
            }
          }
        }
      }
    }
    packed += chunk * (8 + 4 * q.weight_sets * q.row_quads() * w.kernel[2]);
    first += chunk;
  }
  *packed = static_cast<std::byte>(large);
  return {};
}

template <const I8Isa& isa>
Status depthwise_run(const KernelNode& node, const KernelContext& context, std::span<const TensorView> in,
                     std::span<const TensorView> out) {
  const Window w = nhwc_conv(node).window;
  const DepthwiseQuads q = depthwise_quads(w, node.input(1));
  const NhwcI8 x = nhwc_i8_of(in[0], context.layouts[0]), y = nhwc_i8_of(out[0], context.layouts[in.size()]);
  PINNACE_ASSIGN(const Activation activation, parse_activation(node));
  const StoreI8 store = store_i8(*out[0].type, activation_range(activation, *out[0].type));
  // Units are pairs of rows where two share quads. Few tasks are made a multiple of the threads.
  const int64_t pairs = (y.size.h + q.weight_sets - 1) / q.weight_sets, units = y.size.n * pairs;
  const bool large = context.packed[depthwise_chunk_bytes(node)] != std::byte{0};
  const auto threads = static_cast<int64_t>(context.threads);
  int64_t tasks = std::min(units, (y.size.n * y.size.h * y.size.w * y.pitch + 65535) / 65536);
  if (tasks < 8 * threads) tasks = std::min(units, (tasks + threads - 1) / threads * threads);
  context.parallel(tasks, [&](int64_t t) {
    for (int64_t u = units * t / tasks; u < units * (t + 1) / tasks; ++u) {
      const int64_t item = u / pairs, row = u % pairs * q.weight_sets;
      DepthwiseRowsI8 d{};
      d.rows = static_cast<int32_t>(std::min<int64_t>(q.weight_sets, y.size.h - row));
      d.x = x.at + item * x.step + (row * w.stride[1] - w.before[1]) * x.row - w.before[2] * x.pitch;
      d.pitch = x.pitch;
      d.tap_row = w.dilation[1] * x.row;
      d.tap_rows = static_cast<int32_t>(w.kernel[1] + (d.rows - 1) * w.stride[1]);
      d.weights = context.packed;
      d.y = y.at + item * y.step + row * y.row;
      d.y_pitch = y.pitch;
      d.y_row = y.row;
      d.channels = padded_channels(y.size.c);
      d.out_w = y.size.w;
      d.kernel_w = static_cast<int32_t>(w.kernel[2]);
      d.stride_x = static_cast<int32_t>(w.stride[2]);
      d.dilation_x = static_cast<int32_t>(w.dilation[2]);
      d.row_quads = q.row_quads();
      d.own_quads = q.own_quads;
      d.weight_sets = q.weight_sets;
      d.large = large;
      d.store = store;
      isa.depthwise->rows(d);
    }
  });
  return {};
}

template <const I8Isa& isa>
constexpr CpuKernel make_depthwise() {
  return {.takes = depthwise_takes<isa>,
          .packed_bytes = depthwise_packed_bytes,
          .pack = depthwise_pack<isa>,
          .packs = 0b110,
          .stores = true,
          .layouts = Layouts::kNhwc,
          .nhwc_inputs = 0b1,
          .border = conv_border,
          .run = depthwise_run<isa>};
}

}  // namespace

PINNACE_KERNELS_I8(conv_nhwc_depthwise_i8, make_depthwise)
PINNACE_KERNELS_AVX_VNNI(conv_nhwc_depthwise_i8, make_depthwise)
PINNACE_KERNELS_I8(conv_nhwc_i8, make_conv)
PINNACE_KERNELS_AVX_VNNI(conv_nhwc_i8, make_conv)
PINNACE_KERNELS_AMX_INT8(conv_nhwc_i8, make_conv)

}  // namespace pinnace::cpu
