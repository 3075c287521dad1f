// conv over images, in float32 and on halves: a matrix product whose rows are read where they lie, and depthwise
// convolutions. A sum that is added to the result (input 3, "residual") and the activation are applied before a tile
// leaves the registers. Types and window were checked by the shape rule.
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

int64_t conv_packed_bytes(const NodeView& node, const GemmTilesF32& tiles) {
  const ImageConv c = image_conv(node);
  return c.groups * panel_floats(tiles, padded_columns(tiles, c.out_channels), c.K()) * 4;
}

void conv_pack(const NodeView& node, const GemmTilesF32& tiles, float* to) {
  const ImageConv c = image_conv(node);
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

// ------------------------------------------------------------------------------------------------- matrix product

/// Elements that panels of `columns` columns (padded) and K rows take, with their biases.
int64_t panel_elements(const GemmTilesF32& tiles, int64_t columns, int64_t K) {
  return panel_floats(tiles, columns, K);
}
[[maybe_unused]] int64_t panel_elements(const GemmTiles<uint16_t>&, int64_t columns, int64_t K) {
  return columns * (1 + K);
}

template <const auto& level>
int64_t packed_bytes(const NodeView& node) {
  const ImageConv c = image_conv(node);
  const auto& tiles = *level.gemm;
  return c.groups * panel_elements(tiles, padded_columns(tiles, c.out_channels), c.K()) *
         static_cast<int64_t>(sizeof(ElementOf<level>));
}

/// The same panels as conv_pack() makes of float32 weights.
[[maybe_unused]] void pack_halves(const NodeView& node, const GemmTiles<uint16_t>& tiles, uint16_t* to) {
  const ImageConv c = image_conv(node);
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

template <const auto& level>
Status pack(const NodeView& node, std::byte* packed) {
  if constexpr (std::is_same_v<ElementOf<level>, float>) {
    conv_pack(node, *level.gemm, reinterpret_cast<float*>(packed));
  } else {
    pack_halves(node, *level.gemm, reinterpret_cast<uint16_t*>(packed));
  }
  return {};
}

/// What a run needs of types and layouts.
struct ConvPlan {
  ImageConv conv;
  MapF32 map;
  /// GemmRowsF32::blocks.
  ptrdiff_t* blocks() { return reinterpret_cast<ptrdiff_t*>(this + 1); }
  const ptrdiff_t* blocks() const { return reinterpret_cast<const ptrdiff_t*>(this + 1); }
};

int64_t conv_plan_bytes(const NodeView& node) {
  return static_cast<int64_t>(sizeof(ConvPlan)) + image_conv(node).blocks() * static_cast<int64_t>(sizeof(ptrdiff_t));
}

void conv_plan(const NodeView& node, const Layout* layouts, std::byte* to) {
  auto* plan = new (to) ConvPlan{image_conv(node), fused_map(node)};
  const Window& w = plan->conv.window;
  const ptrdiff_t row = image_row(node.input(0), layouts[0]), pitch = layouts[0].pitch;
  ptrdiff_t* block = plan->blocks();
  for (int64_t ky = 0; ky < w.kernel[1]; ++ky) {
    for (int64_t kx = 0; kx < (plan->conv.touching ? 1 : w.kernel[2]); ++kx) {
      *block++ = (ky * w.dilation[1] - w.before[1]) * row + (kx * w.dilation[2] - w.before[2]) * pitch;
    }
  }
}

/// Bytes of input that one task works on: they stay in the second-level cache while every panel passes by.
constexpr int64_t kBlockBytes = 128 * 1024;

/// One call's operands, and how its output divides into units: pixels where all of them stand at one distance, in the
/// input too, else rows.
template <const auto& level>
class ConvRun {
  using T = ElementOf<level>;

 public:
  ConvRun(const KernelContext& context, std::span<const TensorView> in, std::span<const TensorView> out)
      : plan_(*reinterpret_cast<const ConvPlan*>(context.plan)),
        packed_(reinterpret_cast<const T*>(context.packed)),
        x_(image_of<T>(in[0], context.layouts[0])),
        y_(image_of<T>(out[0], context.layouts[in.size()])),
        adds_(in.size() > 3 && in[3].present()),
        r_(adds_ ? image_of<T>(in[3], context.layouts[3]) : ImageOf<T>{}) {
    const Window& w = plan_.conv.window;
    const auto flat = [](const ImageOf<T>& i) { return i.row == i.size.w * i.pitch && i.step == i.size.h * i.row; };
    one_ = w.taps() == 1 && w.stride[1] == 1 && w.stride[2] == 1 && flat(x_) && flat(y_) && (!adds_ || flat(r_));
    const int64_t n = plan_.conv.out_channels;
    group_panels_ = (n + level.gemm->nr - 1) / level.gemm->nr;
  }
  int64_t units_per_row() const { return one_ ? y_.size.w : 1; }
  int64_t units() const { return y_.size.n * y_.size.h * units_per_row(); }
  int64_t panels() const { return group_panels_ * plan_.conv.groups; }
  bool pixels() const { return one_; }
  int64_t weights() const { return plan_.conv.groups * plan_.conv.out_channels * plan_.conv.K(); }
  int64_t unit_elements() const {
    const Window& w = plan_.conv.window;
    return one_ ? x_.pitch : x_.pitch * w.stride[1] * w.stride[2] * y_.size.w;
  }
  int64_t unit_bytes() const { return unit_elements() * static_cast<int64_t>(sizeof(T)); }

  /// Units [first, last) of panels [first_panel, last_panel).
  void part(int64_t first, int64_t last, int64_t first_panel, int64_t last_panel) const {
    const ImageConv& c = plan_.conv;
    const Window& w = c.window;
    const GemmTiles<T>& gemm = *level.gemm;
    const int64_t K = c.K(), padded = padded_columns(gemm, c.out_channels);
    for (int64_t p = first_panel; p < last_panel; ++p) {
      const int64_t group = p / group_panels_, n = p % group_panels_ * gemm.nr;
      const int64_t width = panel_width(gemm, n, c.out_channels), columns = std::min(width, c.out_channels - n);
      const int64_t channel = group * c.out_channels + n;
      // Pixels are padded to whole registers: what is stored there is of no value.
      const int64_t store = c.groups == 1 ? std::min(width, y_.pitch - channel) : columns;
      GemmRows<T> g{};
      g.a_row = w.stride[2] * x_.pitch;
      g.blocks = plan_.blocks();
      g.block_count = c.blocks();
      g.k = c.block();
      g.b = packed_ + group * panel_elements(gemm, padded, K) + panel_elements(gemm, n, K);
      g.c_row = y_.pitch;
      g.residual_row = r_.pitch;
      g.columns = static_cast<int32_t>(std::max(columns, adds_ ? std::min(store, r_.pitch - channel) : store));
      g.map = plan_.map;
      const T* a = x_.at + group * c.in_channels;
      if (one_) {
        g.a = a + first * x_.pitch;
        g.c = y_.at + channel + first * y_.pitch;
        g.residual = adds_ ? r_.at + channel + first * r_.pitch : nullptr;
        g.M = last - first;
        gemm.rows(g, static_cast<int32_t>(width));
        continue;
      }
      g.M = y_.size.w;
      for (int64_t u = first; u < last; ++u) {
        const int64_t image = u / y_.size.h, row = u % y_.size.h;
        g.a = a + image * x_.step + row * w.stride[1] * x_.row;
        g.c = y_.at + channel + image * y_.step + row * y_.row;
        g.residual = adds_ ? r_.at + channel + image * r_.step + row * r_.row : nullptr;
        gemm.rows(g, static_cast<int32_t>(width));
      }
    }
  }

 private:
  const ConvPlan& plan_;
  const T* packed_;
  ImageOf<T> x_, y_;
  bool adds_;
  ImageOf<T> r_;
  bool one_;
  int64_t group_panels_;
};

template <const auto& level>
Status conv_run(const NodeView&, const KernelContext& context, std::span<const TensorView> in,
                std::span<const TensorView> out) {
  const ConvRun<level> conv(context, in, out);
  // Units of a task; then panels of a task, so that there are enough of them.
  const int64_t units = conv.units(), panels = conv.panels();
  int64_t each = std::clamp<int64_t>(kBlockBytes / std::max<int64_t>(1, conv.unit_bytes()), 1, units);
  const auto threads = static_cast<int64_t>(context.threads);
  // Few tasks are made a multiple of the threads, so that all end together. Where they are cut changes no sum.
  int64_t row_tasks = (units + each - 1) / each;
  if (row_tasks < 8 * threads) row_tasks = std::min(units, (row_tasks + threads - 1) / threads * threads);
  each = (units + row_tasks - 1) / row_tasks;
  if (conv.pixels()) each = std::min(units, (each + 13) / 14 * 14);  // rows of a tile
  row_tasks = (units + each - 1) / each;
  const int64_t wanted = 4 * threads;
  const int64_t column_tasks = threads == 1 ? 1 : std::min(panels, (wanted + row_tasks - 1) / row_tasks);
  // Neighbouring tasks go to the same thread: they share rows where the input is larger, else weights.
  const bool by_rows = conv.weights() < units * conv.unit_elements();
  context.parallel(row_tasks * column_tasks, [&](int64_t t) {
    const int64_t first = (by_rows ? t / column_tasks : t % row_tasks) * each;
    const int64_t column_task = by_rows ? t % column_tasks : t / row_tasks;
    conv.part(first, std::min(units, first + each), panels * column_task / column_tasks,
              panels * (column_task + 1) / column_tasks);
  });
  return {};
}

template <const auto& level>
void conv_rows(const KernelContext& context, std::span<const TensorView> in, std::span<const TensorView> out,
               int64_t first, int64_t last) {
  const ConvRun<level> conv(context, in, out);
  conv.part(first * conv.units_per_row(), last * conv.units_per_row(), 0, conv.panels());
}

RowWindow conv_reads_rows(const NodeView& node) {
  const Window w = image_conv(node).window;
  return {w.stride[1], w.before[1], (w.kernel[1] - 1) * w.dilation[1] + 1};
}

/// Sums of halves round after every product: about sqrt(K) times where signs are mixed, at most K times 2^-12.
template <const auto& level>
constexpr float kSumError = std::is_same_v<ElementOf<level>, float> ? 0 : 0x1p-8f;

template <const auto& level>
constexpr CpuKernel make_conv() {
  return {.takes = image_conv_takes,
          .packed_bytes = packed_bytes<level>,
          .pack = pack<level>,
          .packs = 0b110,
          .stores = true,
          .layouts = Layouts::kImage,
          .images = 0b1001,
          .border = conv_border,
          .precision = level.precision,
          .error = kSumError<level>,
          .plan_bytes = conv_plan_bytes,
          .plan = conv_plan,
          .run = conv_run<level>,
          .rows = conv_rows<level>,
          .reads_rows = conv_reads_rows};
}

// ------------------------------------------------------------------------------------------------------ depthwise

bool depthwise_takes(const NodeView& node) {
  const int64_t groups = node.attr_int("group");
  const Shape& w = node.input(1).shape;
  // Channels that are not padded to whole registers would be stored beyond their pixel.
  return image_conv_takes(node) && groups > 1 && w[1].size == 1 && w[0].size == groups && !node.has_input(3) &&
         groups >= 8;
}

template <const auto& level>
int64_t depthwise_packed_bytes(const NodeView& node) {
  const ImageConv c = image_conv(node);
  const int64_t lanes = level.image->lanes;
  return (c.groups + lanes - 1) / lanes * lanes * (1 + c.window.taps()) *
         static_cast<int64_t>(sizeof(ElementOf<level>));
}

template <const auto& level>
Status depthwise_pack(const NodeView& node, std::byte* packed) {
  using T = ElementOf<level>;
  const ImageConv c = image_conv(node);
  const auto* w = static_cast<const T*>(node.input_data(1));
  const auto* bias = node.has_input(2) ? static_cast<const T*>(node.input_data(2)) : nullptr;
  const int64_t lanes = level.image->lanes, taps = c.window.taps();
  auto* to = reinterpret_cast<T*>(packed);
  for (int64_t first = 0; first < c.groups; first += lanes) {
    const auto put = [&](const T* from, int64_t step) {
      for (int64_t j = 0; j < lanes; ++j) *to++ = from && first + j < c.groups ? from[(first + j) * step] : T{0};
    };
    put(bias, 1);
    for (int64_t t = 0; t < taps; ++t) put(w + t, taps);
  }
  return {};
}

struct DepthwisePlan {
  Window window;
  MapF32 map;
};

int64_t depthwise_plan_bytes(const NodeView&) {
  return sizeof(DepthwisePlan);
}

void depthwise_plan(const NodeView& node, const Layout*, std::byte* to) {
  new (to) DepthwisePlan{image_conv(node).window, fused_map(node)};
}

template <const auto& level>
bool two_rows(const Window& w) {
  return (w.dilation[2] == 1 || w.stride[2] == 1) && w.stride[1] == w.stride[2] &&
         level.image->two_rows(static_cast<int32_t>(w.kernel[1]), static_cast<int32_t>(w.kernel[2]),
                               static_cast<int32_t>(w.stride[2]));
}

template <const auto& level>
void depthwise_rows(const KernelContext& context, std::span<const TensorView> in, std::span<const TensorView> out,
                    int64_t first, int64_t last) {
  using T = ElementOf<level>;
  const auto& plan = *reinterpret_cast<const DepthwisePlan*>(context.plan);
  const Window& w = plan.window;
  const auto x = image_of<T>(in[0], context.layouts[0]), y = image_of<T>(out[0], context.layouts[in.size()]);
  const int64_t step = std::min<int64_t>(level.image->lanes, 8);
  const bool two = two_rows<level>(w);
  const auto run = [&](int64_t u, int32_t count) {
    const int64_t image = u / y.size.h, row = u % y.size.h;
    DepthwiseRows<T> d{};
    d.rows = count;
    d.y_row = w.dilation[1] * y.row;
    d.x = x.at + image * x.step + (row * w.stride[1] - w.before[1]) * x.row - w.before[2] * x.pitch;
    d.pitch = x.pitch;
    d.tap_row = w.dilation[1] * x.row;
    d.weights = reinterpret_cast<const T*>(context.packed);
    d.y = y.at + image * y.step + row * y.row;
    d.y_pitch = y.pitch;
    d.channels = (y.size.c + step - 1) / step * step;
    d.out_w = y.size.w;
    d.kernel_h = static_cast<int32_t>(w.kernel[1]);
    d.kernel_w = static_cast<int32_t>(w.kernel[2]);
    d.stride_x = static_cast<int32_t>(w.stride[2]);
    d.dilation_x = static_cast<int32_t>(w.dilation[2]);
    d.map = plan.map;
    level.image->depthwise_rows(d);
  };
  // Rows that share taps stand a dilation apart.
  const int64_t apart = w.dilation[1];
  for (int64_t u = first; u < last;) {
    const int64_t end = std::min(last, (u / y.size.h + 1) * y.size.h);
    const int64_t pairs = two ? std::clamp<int64_t>(end - u - apart, 0, apart) : 0;
    const int64_t done = std::min(apart, end - u);
    for (int64_t i = 0; i < done; ++i) run(u + i, i < pairs ? 2 : 1);
    u += done + pairs;
  }
}

template <const auto& level>
Status depthwise_run(const NodeView&, const KernelContext& context, std::span<const TensorView> in,
                     std::span<const TensorView> out) {
  const auto y = image_of<ElementOf<level>>(out[0], context.layouts[in.size()]);
  const int64_t rows = y.size.n * y.size.h;
  int64_t each = std::max<int64_t>(1, std::min(rows / (4 * context.threads), 16384 / (y.size.w * y.pitch)));
  const Window& w = reinterpret_cast<const DepthwisePlan*>(context.plan)->window;
  if (const int64_t pair = 2 * w.dilation[1]; two_rows<level>(w)) each = (each + pair - 1) / pair * pair;
  context.parallel((rows + each - 1) / each, [&](int64_t t) {
    depthwise_rows<level>(context, in, out, t * each, std::min(rows, (t + 1) * each));
  });
  return {};
}

/// Pixels of one image are not padded where there is only one: its channels must be whole registers then.
template <const auto& level>
bool depthwise_fits(const NodeView& node) {
  if (!depthwise_takes(node)) return false;
  Shape shape;
  const auto window = check_convolution(node, 2, shape);
  const ImageSizes x = image_sizes(node.input(0));
  return x.c % 8 == 0 || (x.h * x.w > 1 && window->out[1] * window->out[2] > 1);
}

template <const auto& level>
constexpr CpuKernel make_depthwise() {
  return {.takes = depthwise_fits<level>,
          .packed_bytes = depthwise_packed_bytes<level>,
          .pack = depthwise_pack<level>,
          .packs = 0b110,
          .stores = true,
          .layouts = Layouts::kImage,
          .images = 0b0001,
          .border = conv_border,
          .precision = level.precision,
          .error = kSumError<level>,
          .plan_bytes = depthwise_plan_bytes,
          .plan = depthwise_plan,
          .run = depthwise_run<level>,
          .rows = depthwise_rows<level>,
          .reads_rows = conv_reads_rows};
}

// ---------------------------------------------------------------------------------------------- depthwise, dilated

// Every dilation-th pixel by itself, across and down, is a small image under a kernel without dilation. Its channels of
// one register, with zeros around, fit the first-level cache: they are copied there, and the image needs no border,
// which would be wider than half of it (16 x 16 pixels under 5 x 5 taps two apart: 24 x 24).

struct DilatedPlan {
  Window window;
  MapF32 map;
  /// Sizes of the largest of the small images, with zeros around.
  int64_t rows() const { return (window.out[1] + window.dilation[1] - 1) / window.dilation[1] + window.kernel[1] - 1; }
  int64_t columns() const {
    return (window.out[2] + window.dilation[2] - 1) / window.dilation[2] + window.kernel[2] - 1;
  }
};

/// Pixels of a small image: 16 KB and 32 KB.
constexpr int64_t kMostDilatedPixels = 512;

template <const F32Level& level>
bool dilated_takes(const NodeView& node) {
  if (!depthwise_fits<level>(node)) return false;
  const DilatedPlan plan{image_conv(node).window, {}};
  const Window& w = plan.window;
  return w.dilation[1] > 1 && w.dilation[2] > 1 && w.stride[1] == 1 && w.stride[2] == 1 &&
         plan.rows() * plan.columns() <= kMostDilatedPixels;
}

int64_t dilated_plan_bytes(const NodeView&) {
  return sizeof(DilatedPlan);
}

void dilated_plan(const NodeView& node, const Layout*, std::byte* to) {
  new (to) DilatedPlan{image_conv(node).window, fused_map(node)};
}

template <const F32Level& level>
int64_t dilated_scratch_bytes(const NodeView& node, int threads) {
  const DilatedPlan plan{image_conv(node).window, {}};
  return threads * plan.rows() * plan.columns() * level.image->lanes * 4;
}

/// `count` pixels of `channels` floats, a multiple of STEP, from every from_step-th float to every to_step-th.
template <int STEP>
void copy_pixels(const float* from, ptrdiff_t from_step, float* to, ptrdiff_t to_step, int64_t count,
                 int64_t channels) {
  for (int64_t i = 0; i < count; ++i, from += from_step, to += to_step) {
    for (int64_t c = 0; c < channels; c += STEP) std::memcpy(to + c, from + c, STEP * sizeof(float));
  }
}

template <const F32Level& level>
Status dilated_run(const NodeView&, const KernelContext& context, std::span<const TensorView> in,
                   std::span<const TensorView> out) {
  const auto& plan = *reinterpret_cast<const DilatedPlan*>(context.plan);
  const Window& w = plan.window;
  const Image x = image_of(in[0], context.layouts[0]), y = image_of(out[0], context.layouts[in.size()]);
  const int64_t lanes = level.image->lanes, columns = plan.columns(), phases = w.dilation[1] * w.dilation[2];
  const int64_t step = std::min<int64_t>(lanes, 8), channels = (y.size.c + step - 1) / step * step;
  const int64_t groups = (channels + lanes - 1) / lanes, jobs = y.size.n * groups;
  const int64_t tasks = std::min<int64_t>(context.threads, jobs);
  const auto floats = static_cast<size_t>(plan.rows() * columns * lanes);
  DepthwiseRowsF32 d{};
  d.pitch = lanes;
  d.tap_row = columns * lanes;
  d.y_row = w.dilation[1] * y.row;
  d.y_pitch = w.dilation[2] * y.pitch;
  d.kernel_h = static_cast<int32_t>(w.kernel[1]);
  d.kernel_w = static_cast<int32_t>(w.kernel[2]);
  d.stride_x = d.dilation_x = 1;
  d.map = plan.map;
  const bool two = level.image->two_rows(d.kernel_h, d.kernel_w, 1);

  /// Channels [c, c + lanes) of the small image that begins at pixel (py, px).
  const auto phase = [&](DepthwiseRowsF32 rows, float* small, int64_t n, int64_t c, int64_t py, int64_t px) {
    // Small pixel (i, j) is pixel (py - before + i * dilation, px - before + j * dilation).
    const int64_t out_h = (y.size.h - py + w.dilation[1] - 1) / w.dilation[1];
    rows.out_w = (y.size.w - px + w.dilation[2] - 1) / w.dilation[2];
    const int64_t wide = rows.out_w + w.kernel[2] - 1;
    // Columns [first, last) are pixels of x, the others zeros.
    const int64_t first = std::max<int64_t>(0, (w.before[2] - px + w.dilation[2] - 1) / w.dilation[2]);
    const int64_t beyond = (x.size.w - 1 - (px - w.before[2]) + w.dilation[2]) / w.dilation[2];
    const int64_t last = std::clamp(beyond, std::min(first, wide), wide);
    for (int64_t i = 0; i < out_h + w.kernel[1] - 1; ++i) {
      float* to = small + i * rows.tap_row;
      const int64_t iy = py - w.before[1] + i * w.dilation[1];
      if (iy < 0 || iy >= x.size.h) {
        std::fill_n(to, wide * lanes, 0.0f);
        continue;
      }
      std::fill_n(to, std::min(first, wide) * lanes, 0.0f);
      std::fill_n(to + last * lanes, (wide - last) * lanes, 0.0f);
      const float* from = x.at + n * x.step + iy * x.row + (px - w.before[2] + first * w.dilation[2]) * x.pitch + c;
      const auto copy = step == 8 ? copy_pixels<8> : copy_pixels<4>;
      copy(from, w.dilation[2] * x.pitch, to + first * lanes, lanes, last - first, rows.channels);
    }
    for (int64_t i = 0; i < out_h; i += rows.rows) {
      rows.rows = two && i + 1 < out_h ? 2 : 1;
      rows.x = small + i * rows.tap_row;
      rows.y = y.at + n * y.step + (py + i * w.dilation[1]) * y.row + px * y.pitch + c;
      level.image->depthwise_rows(rows);
    }
  };
  context.parallel(tasks, [&](int64_t t) {
    float* small = reinterpret_cast<float*>(context.scratch) + static_cast<size_t>(t) * floats;
    for (int64_t job = jobs * t / tasks; job < jobs * (t + 1) / tasks; ++job) {
      const int64_t n = job / groups, c = job % groups * lanes;
      DepthwiseRowsF32 rows = d;
      rows.channels = std::min(lanes, channels - c);
      rows.weights = reinterpret_cast<const float*>(context.packed) + c * (1 + w.taps());
      for (int64_t p = 0; p < phases && p / w.dilation[2] < y.size.h; ++p) {
        if (p % w.dilation[2] < y.size.w) phase(rows, small, n, c, p / w.dilation[2], p % w.dilation[2]);
      }
    }
  });
  return {};
}

template <const F32Level& level>
constexpr CpuKernel make_dilated() {
  return {.takes = dilated_takes<level>,
          .packed_bytes = depthwise_packed_bytes<level>,
          .pack = depthwise_pack<level>,
          .packs = 0b110,
          .stores = true,
          .layouts = Layouts::kImage,
          .images = 0b0001,
          .plan_bytes = dilated_plan_bytes,
          .plan = dilated_plan,
          .scratch_bytes = dilated_scratch_bytes<level>,
          .run = dilated_run<level>};
}

}  // namespace

PINNACE_F32_IMAGE_LEVELS(conv_image_dilated_f32, make_dilated)
PINNACE_F32_IMAGE_LEVELS(conv_image_depthwise_f32, make_depthwise)
PINNACE_F32_IMAGE_LEVELS(conv_image_f32, make_conv)
PINNACE_WEIGHT_LEVELS(conv_image, make_conv)
PINNACE_HALF_LEVELS(conv_image_depthwise, make_depthwise)
PINNACE_HALF_LEVELS(conv_image, make_conv)
PINNACE_SVE_LEVEL(conv_image_f32, make_conv, f32_sve)

}  // namespace pinnace
