// conv in float32 over images: a matrix product whose rows are read where they lie. A sum that is added to the result
// (input 3, "residual") and the activation are applied before a tile leaves the registers. Types and window were
// checked by the shape rule.
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

RowWindow conv_reads_rows(const NodeView& node) {
  const Window w = image_conv(node).window;
  return {w.stride[1], w.before[1], (w.kernel[1] - 1) * w.dilation[1] + 1};
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

template <const F32Level& level>
int64_t packed_bytes(const NodeView& node) {
  return conv_packed_bytes(node, *level.gemm);
}

template <const F32Level& level>
Status pack(const NodeView& node, std::byte* packed) {
  conv_pack(node, *level.gemm, reinterpret_cast<float*>(packed));
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

/// Floats of input that one task works on: they stay in the second-level cache while every panel passes by.
constexpr int64_t kBlockFloats = 32 * 1024;

/// One call's operands, and how its output divides into units: pixels where all of them stand at one distance, in the
/// input too, else rows.
template <const F32Level& level>
class ConvRun {
 public:
  ConvRun(const KernelContext& context, std::span<const TensorView> in, std::span<const TensorView> out)
      : plan_(*reinterpret_cast<const ConvPlan*>(context.plan)),
        packed_(reinterpret_cast<const float*>(context.packed)),
        x_(image_of(in[0], context.layouts[0])),
        y_(image_of(out[0], context.layouts[in.size()])),
        adds_(in.size() > 3 && in[3].present()),
        r_(adds_ ? image_of(in[3], context.layouts[3]) : Image{}) {
    const Window& w = plan_.conv.window;
    const auto flat = [](const Image& i) { return i.row == i.size.w * i.pitch && i.step == i.size.h * i.row; };
    one_ = w.taps() == 1 && w.stride[1] == 1 && w.stride[2] == 1 && flat(x_) && flat(y_) && (!adds_ || flat(r_));
    const int64_t n = plan_.conv.out_channels;
    group_panels_ = (n + level.gemm->nr - 1) / level.gemm->nr;
  }
  int64_t units_per_row() const { return one_ ? y_.size.w : 1; }
  int64_t units() const { return y_.size.n * y_.size.h * units_per_row(); }
  int64_t panels() const { return group_panels_ * plan_.conv.groups; }
  bool pixels() const { return one_; }
  int64_t weights() const { return plan_.conv.groups * plan_.conv.out_channels * plan_.conv.K(); }
  int64_t unit_floats() const {
    const Window& w = plan_.conv.window;
    return one_ ? x_.pitch : x_.pitch * w.stride[1] * w.stride[2] * y_.size.w;
  }

  /// Units [first, last) of panels [first_panel, last_panel).
  void part(int64_t first, int64_t last, int64_t first_panel, int64_t last_panel) const {
    const ImageConv& c = plan_.conv;
    const Window& w = c.window;
    const GemmTilesF32& gemm = *level.gemm;
    const int64_t K = c.K(), padded = padded_columns(gemm, c.out_channels);
    for (int64_t p = first_panel; p < last_panel; ++p) {
      const int64_t group = p / group_panels_, n = p % group_panels_ * gemm.nr;
      const int64_t width = panel_width(gemm, n, c.out_channels), columns = std::min(width, c.out_channels - n);
      const int64_t channel = group * c.out_channels + n;
      // Pixels are padded to whole registers: what is stored there is of no value.
      const int64_t store = c.groups == 1 ? std::min(width, y_.pitch - channel) : columns;
      GemmRowsF32 g{};
      g.a_row = w.stride[2] * x_.pitch;
      g.blocks = plan_.blocks();
      g.block_count = c.blocks();
      g.k = c.block();
      g.b = packed_ + group * panel_floats(gemm, padded, K) + panel_floats(gemm, n, K);
      g.c_row = y_.pitch;
      g.residual_row = r_.pitch;
      g.columns = static_cast<int32_t>(std::max(columns, adds_ ? std::min(store, r_.pitch - channel) : store));
      g.map = plan_.map;
      const float* a = x_.at + group * c.in_channels;
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
  const float* packed_;
  Image x_, y_;
  bool adds_;
  Image r_;
  bool one_;
  int64_t group_panels_;
};

template <const F32Level& level>
Status conv_run(const NodeView&, const KernelContext& context, std::span<const TensorView> in,
                std::span<const TensorView> out) {
  const ConvRun<level> conv(context, in, out);
  // Units of a task; then panels of a task, so that there are enough of them.
  const int64_t units = conv.units(), panels = conv.panels();
  int64_t each = std::clamp<int64_t>(kBlockFloats / std::max<int64_t>(1, conv.unit_floats()), 1, units);
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
  const bool by_rows = conv.weights() < units * conv.unit_floats();
  context.parallel(row_tasks * column_tasks, [&](int64_t t) {
    const int64_t first = (by_rows ? t / column_tasks : t % row_tasks) * each;
    const int64_t column_task = by_rows ? t % column_tasks : t / row_tasks;
    conv.part(first, std::min(units, first + each), panels * column_task / column_tasks,
              panels * (column_task + 1) / column_tasks);
  });
  return {};
}

template <const F32Level& level>
void conv_rows(const KernelContext& context, std::span<const TensorView> in, std::span<const TensorView> out,
               int64_t first, int64_t last) {
  const ConvRun<level> conv(context, in, out);
  conv.part(first * conv.units_per_row(), last * conv.units_per_row(), 0, conv.panels());
}

template <const F32Level& level>
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
          .plan_bytes = conv_plan_bytes,
          .plan = conv_plan,
          .run = conv_run<level>,
          .rows = conv_rows<level>,
          .reads_rows = conv_reads_rows};
}

}  // namespace

PINNACE_F32_IMAGE_LEVELS(conv_image_f32, make_conv)
PINNACE_WEIGHT_LEVELS(conv_image, make_conv)

}  // namespace pinnace
