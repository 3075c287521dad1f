// conv in float32 over images: a matrix product whose rows are read where they lie, and depthwise convolutions. A sum
// that is added to the result (input 3, "residual") and the activation are applied before a tile leaves the registers.
// Types and window were checked by the shape rule.
#include <cstring>

#include "backends/cpu/conv_image.h"

namespace pinnace {
ImageConv image_conv(const NodeView& node) {
  Shape y;
  const auto window = check_convolution(node, 2, y);
  assert(window.ok());
  const TensorType &x = node.input(0), &w = node.input(1);
  ImageConv c{*window, node.attr_int("group"), w.shape[1].size, 0, false};
  c.out_channels = w.shape[0].size / c.groups;
  const int64_t channels = image_sizes(x).c;
  // In 8 bits elements that fill up a quad count as channels whose weights are zero.
  const int64_t filled = dtype_bits(x.dtype) == 8 ? (channels + 3) / 4 * 4 : channels;
  c.touching = c.groups == 1 && window->dilation[2] == 1 && window->kernel[2] > 1 && image_layout(x).pitch == filled;
  return c;
}

Border conv_border(const NodeView& node) {
  const Window w = image_conv(node).window;
  const auto beyond = [&](int d) {
    const int64_t last = (w.out[d] - 1) * w.stride[d] + (w.kernel[d] - 1) * w.dilation[d] - w.before[d];
    return static_cast<int32_t>(std::max<int64_t>(0, last - w.in[d] + 1));
  };
  return {static_cast<int32_t>(w.before[1]), static_cast<int32_t>(w.before[2]), beyond(1), beyond(2)};
}

bool image_conv_takes(const NodeView& node) {
  if (!has_image_sizes(node.input(0)) || node.input(0).elements() == 0 || node.input(1).elements() == 0) return false;
  if (node.input(2 < node.input_count() && node.has_input(2) ? 2 : 1).elements() == 0) return false;
  Shape y;
  const auto window = check_convolution(node, 2, y);
  // A border as wide as the image would be mostly zeros.
  return window.ok() && window->out_size() > 0 && window->before[1] <= 64 && window->before[2] <= 64 &&
         window->after[1] <= 64 && window->after[2] <= 64;
}

namespace {

// ------------------------------------------------------------------------------------------------- matrix product

template <const F32Level& level>
int64_t conv_packed_bytes(const NodeView& node) {
  const ImageConv c = image_conv(node);
  return c.groups * padded_columns(*level.gemm, c.out_channels) * (1 + c.K()) * 4;
}

/// [group][panel][bias, then taps in order of (ky, kx, channel)][column]
template <const F32Level& level>
Status conv_pack(const NodeView& node, std::byte* packed) {
  const ImageConv c = image_conv(node);
  const auto* w = static_cast<const float*>(node.input_data(1));
  const float* bias = bias_of(node);
  const int64_t taps = c.window.taps(), row = c.in_channels * taps;
  auto* to = reinterpret_cast<float*>(packed);
  for (int64_t g = 0; g < c.groups; ++g) {
    for (int64_t n = 0; n < c.out_channels; n += level.gemm->nr) {
      const int64_t width = panel_width(*level.gemm, n, c.out_channels);
      const int64_t columns = std::min(width, c.out_channels - n), first = g * c.out_channels + n;
      for (int64_t j = 0; j < width; ++j) *to++ = bias && j < columns ? bias[first + j] : 0.0f;
      if (taps == 1) {
        pack_panel(w + first * row, row, columns, row, width, 1, to);
        to += row * width;
        continue;
      }
      for (int64_t t = 0; t < taps; ++t) {
        for (int64_t k = 0; k < c.in_channels; ++k) {
          for (int64_t j = 0; j < width; ++j) *to++ = j < columns ? w[(first + j) * row + k * taps + t] : 0.0f;
        }
      }
    }
  }
  return {};
}

int64_t conv_scratch_bytes(const NodeView& node, int) {
  return image_conv(node).blocks() * static_cast<int64_t>(sizeof(ptrdiff_t));
}

/// Floats of input that one task works on: they stay in the second-level cache while every panel passes by.
constexpr int64_t kBlockFloats = 32 * 1024;

template <const F32Level& level>
Status conv_run(const NodeView& node, const KernelContext& context, std::span<const TensorView> in,
                std::span<const TensorView> out) {
  const ImageConv c = image_conv(node);
  const Window& w = c.window;
  const Image x = image_of(in[0], context.layouts[0]), y = image_of(out[0], context.layouts[in.size()]);
  const bool adds = in.size() > 3 && in[3].present();
  const Image r = adds ? image_of(in[3], context.layouts[3]) : Image{};
  const MapF32 map = fused_map(node);
  const GemmTilesF32& gemm = *level.gemm;

  auto* blocks = reinterpret_cast<ptrdiff_t*>(context.scratch);
  for (int64_t ky = 0, i = 0; ky < w.kernel[1]; ++ky) {
    for (int64_t kx = 0; kx < (c.touching ? 1 : w.kernel[2]); ++kx) {
      blocks[i++] = (ky * w.dilation[1] - w.before[1]) * x.row + (kx * w.dilation[2] - w.before[2]) * x.pitch;
    }
  }

  // Runs of output pixels that stand at one distance, in the input too: a row, or everything where nothing lies
  // between.
  const bool pixels_only = w.taps() == 1 && w.stride[1] == 1 && w.stride[2] == 1;
  const auto flat = [](const Image& i) { return i.row == i.size.w * i.pitch && i.step == i.size.h * i.row; };
  const bool one = pixels_only && flat(x) && flat(y) && (!adds || flat(r));
  const int64_t runs = one ? 1 : y.size.n * y.size.h, length = one ? y.size.n * y.size.h * y.size.w : y.size.w;

  const int64_t panels = (c.out_channels + gemm.nr - 1) / gemm.nr * c.groups, group_panels = panels / c.groups;
  const int64_t padded = padded_columns(gemm, c.out_channels);
  const int64_t per_pixel = x.pitch * (one ? 1 : w.stride[1] * w.stride[2]);
  // Rows of a task, in pixels of the one run or in whole runs; then panels of a task, so that there are enough of them.
  const int64_t units = one ? length : runs;
  const int64_t unit_floats = one ? per_pixel : per_pixel * length;
  int64_t each = std::clamp<int64_t>(kBlockFloats / std::max<int64_t>(1, unit_floats), 1, units);
  const auto threads = static_cast<int64_t>(context.threads);
  // Few tasks are made a multiple of the threads, so that all end together. Where they are cut changes no sum.
  int64_t row_tasks = (units + each - 1) / each;
  if (row_tasks < 8 * threads) row_tasks = std::min(units, (row_tasks + threads - 1) / threads * threads);
  each = (units + row_tasks - 1) / row_tasks;
  if (one) each = std::min(units, (each + 13) / 14 * 14);  // rows of a tile
  row_tasks = (units + each - 1) / each;
  const int64_t wanted = 4 * threads;
  const int64_t column_tasks = context.threads == 1 ? 1 : std::min(panels, (wanted + row_tasks - 1) / row_tasks);
  const auto* packed = reinterpret_cast<const float*>(context.packed);
  const int64_t K = c.K();

  context.parallel(row_tasks * column_tasks, [&](int64_t t) {
    const int64_t first = t % row_tasks * each, last = std::min(units, first + each);
    const int64_t column_task = t / row_tasks;
    for (int64_t p = panels * column_task / column_tasks; p < panels * (column_task + 1) / column_tasks; ++p) {
      const int64_t group = p / group_panels, n = p % group_panels * gemm.nr;
      const int64_t width = panel_width(gemm, n, c.out_channels), columns = std::min(width, c.out_channels - n);
      const int64_t channel = group * c.out_channels + n;
      // Pixels are padded to whole registers: what is stored there is of no value.
      const int64_t store = c.groups == 1 ? std::min(width, y.pitch - channel) : columns;
      GemmRowsF32 g{};
      g.a_row = w.stride[2] * x.pitch;
      g.blocks = blocks;
      g.block_count = c.blocks();
      g.k = c.block();
      g.b = packed + group * padded * (1 + K) + n * (1 + K);
      g.c_row = y.pitch;
      g.residual_row = r.pitch;
      g.columns = static_cast<int32_t>(std::max(columns, adds ? std::min(store, r.pitch - channel) : store));
      g.map = map;
      const float* a = x.at + group * c.in_channels;
      if (one) {
        g.a = a + first * x.pitch;
        g.c = y.at + channel + first * y.pitch;
        g.residual = adds ? r.at + channel + first * r.pitch : nullptr;
        g.M = last - first;
        gemm.rows(g, static_cast<int32_t>(width));
        continue;
      }
      g.M = length;
      for (int64_t u = first; u < last; ++u) {
        const int64_t image = u / y.size.h, row = u % y.size.h;
        g.a = a + image * x.step + row * w.stride[1] * x.row;
        g.c = y.at + channel + image * y.step + row * y.row;
        g.residual = adds ? r.at + channel + image * r.step + row * r.row : nullptr;
        gemm.rows(g, static_cast<int32_t>(width));
      }
    }
  });
  return {};
}

template <const F32Level& level>
constexpr CpuKernel make_conv() {
  return {.takes = image_conv_takes,
          .packed_bytes = conv_packed_bytes<level>,
          .pack = conv_pack<level>,
          .packs = 0b110,
          .stores = true,
          .layouts = Layouts::kImage,
          .images = 0b1001,
          .border = conv_border,
          .scratch_bytes = conv_scratch_bytes,
          .run = conv_run<level>};
}

// ------------------------------------------------------------------------------------------------------ depthwise

bool depthwise_takes(const NodeView& node) {
  const int64_t groups = node.attr_int("group");
  const Shape& w = node.input(1).shape;
  // Channels that are not padded to whole registers would be stored beyond their pixel.
  return image_conv_takes(node) && groups > 1 && w[1].size == 1 && w[0].size == groups && !node.has_input(3) &&
         groups >= 8;
}

template <const F32Level& level>
int64_t depthwise_packed_bytes(const NodeView& node) {
  const ImageConv c = image_conv(node);
  const int64_t lanes = level.image->lanes;
  return (c.groups + lanes - 1) / lanes * lanes * (1 + c.window.taps()) * 4;
}

template <const F32Level& level>
Status depthwise_pack(const NodeView& node, std::byte* packed) {
  const ImageConv c = image_conv(node);
  const auto* w = static_cast<const float*>(node.input_data(1));
  const float* bias = bias_of(node);
  const int64_t lanes = level.image->lanes, taps = c.window.taps();
  auto* to = reinterpret_cast<float*>(packed);
  for (int64_t first = 0; first < c.groups; first += lanes) {
    const auto put = [&](const float* from, int64_t step) {
      for (int64_t j = 0; j < lanes; ++j) *to++ = from && first + j < c.groups ? from[(first + j) * step] : 0.0f;
    };
    put(bias, 1);
    for (int64_t t = 0; t < taps; ++t) put(w + t, taps);
  }
  return {};
}

template <const F32Level& level>
Status depthwise_run(const NodeView& node, const KernelContext& context, std::span<const TensorView> in,
                     std::span<const TensorView> out) {
  const Window w = image_conv(node).window;
  const Image x = image_of(in[0], context.layouts[0]), y = image_of(out[0], context.layouts[in.size()]);
  const MapF32 map = fused_map(node);
  const int64_t lanes = level.image->lanes;
  const int64_t step = std::min<int64_t>(lanes, 8), channels = (y.size.c + step - 1) / step * step;
  const bool two = w.dilation[1] == 1 && w.dilation[2] == 1 && w.stride[1] == w.stride[2] &&
                   level.image->two_rows(static_cast<int32_t>(w.kernel[1]), static_cast<int32_t>(w.kernel[2]),
                                         static_cast<int32_t>(w.stride[2]));
  const int64_t rows = y.size.n * y.size.h;
  int64_t each = std::max<int64_t>(1, std::min(rows / (4 * context.threads), 16384 / (y.size.w * y.pitch)));
  if (two) each = (each + 1) / 2 * 2;
  context.parallel((rows + each - 1) / each, [&](int64_t t) {
    const int64_t last = std::min(rows, (t + 1) * each);
    for (int64_t u = t * each, next = 0; u < last; u = next) {
      const int64_t image = u / y.size.h, row = u % y.size.h;
      next = u + (two && u + 1 < last && row + 1 < y.size.h ? 2 : 1);
      DepthwiseRowsF32 d{};
      d.rows = static_cast<int32_t>(next - u);
      d.y_row = y.row;
      d.x = x.at + image * x.step + (row * w.stride[1] - w.before[1]) * x.row - w.before[2] * x.pitch;
      d.pitch = x.pitch;
      d.tap_row = w.dilation[1] * x.row;
      d.weights = reinterpret_cast<const float*>(context.packed);
      d.y = y.at + image * y.step + row * y.row;
      d.y_pitch = y.pitch;
      d.channels = channels;
      d.out_w = y.size.w;
      d.kernel_h = static_cast<int32_t>(w.kernel[1]);
      d.kernel_w = static_cast<int32_t>(w.kernel[2]);
      d.stride_x = static_cast<int32_t>(w.stride[2]);
      d.dilation_x = static_cast<int32_t>(w.dilation[2]);
      d.map = map;
      level.image->depthwise_rows(d);
    }
  });
  return {};
}

/// Pixels of one image are not padded where there is only one: its channels must be whole registers then.
template <const F32Level& level>
bool depthwise_fits(const NodeView& node) {
  if (!depthwise_takes(node)) return false;
  Shape shape;
  const auto window = check_convolution(node, 2, shape);
  const ImageSizes x = image_sizes(node.input(0));
  return x.c % 8 == 0 || (x.h * x.w > 1 && window->out[1] * window->out[2] > 1);
}

template <const F32Level& level>
constexpr CpuKernel make_depthwise() {
  return {.takes = depthwise_fits<level>,
          .packed_bytes = depthwise_packed_bytes<level>,
          .pack = depthwise_pack<level>,
          .packs = 0b110,
          .stores = true,
          .layouts = Layouts::kImage,
          .images = 0b0001,
          .border = conv_border,
          .run = depthwise_run<level>};
}

}  // namespace

PINNACE_F32_IMAGE_LEVELS(conv_image_depthwise_f32, make_depthwise)
PINNACE_F32_IMAGE_LEVELS(conv_image_f32, make_conv)

}  // namespace pinnace
