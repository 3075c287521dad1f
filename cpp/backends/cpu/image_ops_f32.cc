// Elementwise operators, pooling and concatenation over images (channels last), in float32 and on halves. Chosen where
// an operand is an image already; otherwise the dense kernels are as fast.
#include <cstring>

#include "backends/cpu/elementwise_f32.h"
#include "backends/cpu/f32_levels.h"
#include "base/half.h"
#include "ops/lines.h"
#include "ops/pool.h"

namespace pinnace {
namespace {

/// Rows of pixels that one task takes, so that it has about 16,384 elements.
template <class T>
int64_t rows_per_task(const ImageOf<T>& y) {
  return std::max<int64_t>(1, 16384 / std::max<int64_t>(1, y.size.w * y.pitch));
}

/// f(image n, row) for every row of y.
template <class T, class F>
void for_rows(const KernelContext& context, const ImageOf<T>& y, F f) {
  const int64_t rows = y.size.n * y.size.h, each = rows_per_task(y);
  context.parallel((rows + each - 1) / each, [&](int64_t t) {
    for (int64_t u = t * each; u < std::min(rows, (t + 1) * each); ++u) f(u / y.size.h, u % y.size.h);
  });
}

bool is_image(const NodeView& node, int i) {
  return has_image_sizes(node.input(i)) && node.input(i).elements() > 0;
}

// -------------------------------------------------------------------------------------------------------- elementwise

template <const auto& level>
Status map_run(const NodeView& node, const KernelContext& context, std::span<const TensorView> in,
               std::span<const TensorView> out) {
  using T = ElementOf<level>;
  const MapF32 map = map_of_op(node);
  const auto x = image_of<T>(in[0], context.layouts[0]), y = image_of<T>(out[0], context.layouts[in.size()]);
  for_rows(context, y, [&](int64_t n, int64_t row) {
    const T* from = x.at + n * x.step + row * x.row;
    T* to = y.at + n * y.step + row * y.row;
    if (x.pitch == y.pitch) return level.loops->map(map, from, to, y.size.w * y.pitch);
    for (int64_t i = 0; i < y.size.w; ++i) level.loops->map(map, from + i * x.pitch, to + i * y.pitch, y.size.c);
  });
  return {};
}

bool map_takes(const NodeView& node) {
  return is_image(node, 0) && (node.node().op != "clip" || clip_bounds_known(node));
}

template <const auto& level>
constexpr CpuKernel make_map() {
  return {.takes = map_takes,
          .layouts = Layouts::kFollows,
          .images = 0b1,
          .precision = level.precision,
          .run = map_run<level>};
}

/// How an operand meets the output: element by element, one pixel for all of an image, or one number.
enum class Meets : uint8_t { kNot, kWhole, kPixel, kNumber };

/// Constants stay dense: one number, or one for each channel. Others are images.
Meets meets(const TensorType& x, const Shape& y, bool constant) {
  if (constant && x.elements() == 1) return Meets::kNumber;
  if (!constant && x.shape == y) return x.elements() > 0 ? Meets::kWhole : Meets::kNot;
  const size_t spatial = y.size() - 2;
  if (x.shape.size() < spatial + 1 || x.shape.size() > y.size()) return Meets::kNot;
  for (size_t d = 0; d < spatial; ++d) {
    if (x.shape[x.shape.size() - 1 - d] != Dim(1)) return Meets::kNot;
  }
  if (x.shape[x.shape.size() - 1 - spatial] != y[1]) return Meets::kNot;
  const bool batch = x.shape.size() == y.size();
  if (constant) return !batch || x.shape[0] == Dim(1) ? Meets::kPixel : Meets::kNot;
  return batch && (x.shape[0] == y[0] || x.shape[0] == Dim(1)) ? Meets::kPixel : Meets::kNot;
}

bool binary_takes(const NodeView& node) {
  if (!node.has_input(1) || node.input_count() != 2) return false;
  const auto y = broadcast_shapes(node, node.input(0).shape, node.input(1).shape);
  if (!y || (y->size() != 3 && y->size() != 4)) return false;
  const Meets a = meets(node.input(0), *y, node.input_data(0)), b = meets(node.input(1), *y, node.input_data(1));
  return a != Meets::kNot && b != Meets::kNot && (a == Meets::kWhole || b == Meets::kWhole);
}

/// Where an operand's elements for a row of pixels begin, and how far from pixel to pixel.
template <class T>
struct Operand {
  const T* at;
  ptrdiff_t pixel, row, step;
  int64_t readable;  ///< channels that may be read
};
template <class T>
Operand<T> operand(const TensorView& view, const Layout& layout, Meets how) {
  if (!layout.image) return {view.data<T>(), 0, 0, 0, view.elements()};
  const ImageOf<T> i = image_of<T>(view, layout);
  if (how == Meets::kWhole) return {i.at, i.pitch, i.row, i.step, i.pitch};
  return {i.at, 0, 0, i.size.n == 1 ? 0 : i.step, i.pitch};
}

template <const auto& level>
Status binary_run(const NodeView& node, const KernelContext& context, std::span<const TensorView> in,
                  std::span<const TensorView> out) {
  using T = ElementOf<level>;
  const BinaryKind kind = binary_kind(node.node().op);
  const MapF32 map = node.node().op == "add" ? fused_map(node) : MapF32{};
  const auto y = image_of<T>(out[0], context.layouts[in.size()]);
  const Shape& shape = out[0].type->shape;
  const Meets how[2] = {meets(*in[0].type, shape, !context.layouts[0].image),
                        meets(*in[1].type, shape, !context.layouts[1].image)};
  const auto a = operand<T>(in[0], context.layouts[0], how[0]), b = operand<T>(in[1], context.layouts[1], how[1]);
  const bool number = how[0] == Meets::kNumber || how[1] == Meets::kNumber;
  // Pixels are padded to whole registers, which are faster; what is computed there is of no value.
  const int64_t channels = number ? y.pitch : std::min({y.pitch, a.readable, b.readable});
  for_rows(context, y, [&](int64_t n, int64_t row) {
    const T *from_a = a.at + n * a.step + row * a.row, *from_b = b.at + n * b.step + row * b.row;
    T* to = y.at + n * y.step + row * y.row;
    if (number) {
      level.loops->binary(kind, from_a, how[0] == Meets::kWhole, from_b, how[1] == Meets::kWhole, to,
                          y.size.w * y.pitch);
    } else {
      level.image->binary(kind, from_a, a.pixel, from_b, b.pixel, to, y.pitch, y.size.w, channels);
    }
    if (map.kind != MapKind::kNone) level.loops->map(map, to, to, y.size.w * y.pitch);
  });
  return {};
}

template <const auto& level>
constexpr CpuKernel make_binary() {
  return {.takes = binary_takes,
          .layouts = Layouts::kFollows,
          .images = 0b11,
          .precision = level.precision,
          .run = binary_run<level>};
}

// -------------------------------------------------------------------------------------------------------- pooling

Result<Window> pool_window(const NodeView& node) {
  PINNACE_ASSIGN(Shape kernel, kernel_shape_of(node, node.input(0)));
  return window_of(node, node.input(0).shape, kernel, node.attr_int("ceil_mode") != 0);
}

bool max_pool_takes(const NodeView& node) {
  if (node.output_count() != 1 || !is_image(node, 0)) return false;
  const auto window = pool_window(node);
  // It visits every tap of the window, see max_pool_f32_generic.
  return window.ok() && window->out_size() > 0 && window->kernel[1] <= 256 && window->kernel[2] <= 256;
}

int64_t max_pool_plan_bytes(const NodeView&) {
  return sizeof(Window);
}
void max_pool_plan(const NodeView& node, const Layout*, std::byte* to) {
  new (to) Window(*pool_window(node));
}

template <const auto& level>
void max_pool_rows(const KernelContext& context, std::span<const TensorView> in, std::span<const TensorView> out,
                   int64_t first, int64_t last) {
  using T = ElementOf<level>;
  const auto& w = *reinterpret_cast<const Window*>(context.plan);
  const auto x = image_of<T>(in[0], context.layouts[0]), y = image_of<T>(out[0], context.layouts[in.size()]);
  for (int64_t u = first; u < last; ++u) {
    const int64_t n = u / y.size.h, oy = u % y.size.h;
    const Taps taps = taps_at(w, 1, oy);
    level.image->max_pool_row({.x = x.at + n * x.step + (taps.start + taps.first * w.dilation[1]) * x.row,
                               .pitch = x.pitch,
                               .tap_row = w.dilation[1] * x.row,
                               .y = y.at + n * y.step + oy * y.row,
                               .y_pitch = y.pitch,
                               .channels = std::min(x.pitch, y.pitch),
                               .in_w = x.size.w,
                               .out_w = y.size.w,
                               .rows = taps.last - taps.first,
                               .kernel_w = w.kernel[2],
                               .stride_x = w.stride[2],
                               .dilation_x = w.dilation[2],
                               .before_x = w.before[2]});
  }
}

template <const auto& level>
Status max_pool_run(const NodeView&, const KernelContext& context, std::span<const TensorView> in,
                    std::span<const TensorView> out) {
  const auto y = image_of<ElementOf<level>>(out[0], context.layouts[in.size()]);
  const int64_t rows = y.size.n * y.size.h, each = rows_per_task(y);
  context.parallel((rows + each - 1) / each, [&](int64_t t) {
    max_pool_rows<level>(context, in, out, t * each, std::min(rows, (t + 1) * each));
  });
  return {};
}

RowWindow max_pool_reads_rows(const NodeView& node) {
  const Window w = *pool_window(node);
  return {w.stride[1], w.before[1], (w.kernel[1] - 1) * w.dilation[1] + 1};
}

template <const auto& level>
constexpr CpuKernel make_max_pool() {
  return {.takes = max_pool_takes,
          .layouts = Layouts::kFollows,
          .images = 0b1,
          .precision = level.precision,
          .plan_bytes = max_pool_plan_bytes,
          .plan = max_pool_plan,
          .run = max_pool_run<level>,
          .rows = max_pool_rows<level>,
          .reads_rows = max_pool_reads_rows};
}

bool global_pool_takes(const NodeView& node) {
  return is_image(node, 0);
}

/// Rows are summed in this many parts, by the threads that have made them; the parts' sums then in their order.
int64_t pool_parts(const ImageSizes& x) {
  return std::min<int64_t>(x.h, 8);
}

int64_t global_average_pool_scratch(const NodeView& node, int) {
  const ImageSizes x = image_sizes(node.input(0));
  return 4 * x.n * pool_parts(x) * x.c;
}

template <const auto& level>
Status global_average_pool_run(const NodeView&, const KernelContext& context, std::span<const TensorView> in,
                               std::span<const TensorView> out) {
  using T = ElementOf<level>;
  const auto x = image_of<T>(in[0], context.layouts[0]), y = image_of<T>(out[0], context.layouts[in.size()]);
  const int64_t parts = pool_parts(x.size), channels = x.size.c;
  auto* sums = reinterpret_cast<float*>(context.scratch);
  const auto part = [&](int64_t t) {
    const int64_t n = t / parts, p = t % parts;
    float* to = sums + t * channels;
    std::fill_n(to, channels, 0.0f);
    for (int64_t row = x.size.h * p / parts; row < x.size.h * (p + 1) / parts; ++row) {
      level.image->sum(x.at + n * x.step + row * x.row, x.pitch, x.size.w, channels, to);
    }
  };
  if (x.size.w * x.size.h * channels < 16384) {
    for (int64_t t = 0; t < x.size.n * parts; ++t) part(t);
  } else {
    context.parallel(x.size.n * parts, part);
  }
  const auto scale = static_cast<float>(1.0 / static_cast<double>(x.size.h * x.size.w));
  for (int64_t n = 0; n < x.size.n; ++n) {
    T* to = y.at + n * y.step;
    float* from = sums + n * parts * channels;
    for (int64_t p = 1; p < parts; ++p) {
      for (int64_t c = 0; c < channels; ++c) from[c] += from[p * channels + c];
    }
    for (int64_t c = 0; c < channels; ++c) {
      if constexpr (std::is_same_v<T, float>) {
        to[c] = from[c] * scale;
      } else {
        to[c] = float_to_half(from[c] * scale);
      }
    }
  }
  return {};
}

template <const auto& level>
constexpr CpuKernel make_global_average_pool() {
  return {.takes = global_pool_takes,
          .layouts = Layouts::kFollows,
          .images = 0b1,
          .precision = level.precision,
          .scratch_bytes = global_average_pool_scratch,
          .run = global_average_pool_run<level>};
}

// -------------------------------------------------------------------------------------------------- concatenation

/// Along channels: the parts of each pixel side by side.
bool concat_takes(const NodeView& node) {
  if (node.input_count() > 32) return false;
  for (int i = 0; i < node.input_count(); ++i) {
    if (!is_image(node, i) || node.input_data(i)) return false;
  }
  const auto axis = node.axis(node.attr_int("axis"), node.input(0).rank());
  return axis.ok() && *axis == 1;
}

template <const auto& level>
Status concat_run(const NodeView&, const KernelContext& context, std::span<const TensorView> in,
                  std::span<const TensorView> out) {
  using T = ElementOf<level>;
  const auto y = image_of<T>(out[0], context.layouts[in.size()]);
  for_rows(context, y, [&](int64_t n, int64_t row) {
    T* to = y.at + n * y.step + row * y.row;
    for (size_t i = 0; i < in.size(); ++i) {
      const auto x = image_of<T>(in[i], context.layouts[i]);
      const T* from = x.at + n * x.step + row * x.row;
      for (int64_t p = 0; p < y.size.w; ++p) {
        std::memcpy(to + p * y.pitch, from + p * x.pitch, sizeof(T) * static_cast<size_t>(x.size.c));
      }
      to += x.size.c;
    }
  });
  return {};
}

template <const auto& level>
constexpr CpuKernel make_concat() {
  return {.takes = concat_takes,
          .layouts = Layouts::kFollows,
          .images = ~0u,
          .precision = level.precision,
          .run = concat_run<level>};
}

}  // namespace

PINNACE_F32_IMAGE_LEVELS(map_image_f32, make_map)
PINNACE_F32_IMAGE_LEVELS(binary_image_f32, make_binary)
PINNACE_F32_IMAGE_LEVELS(max_pool_image_f32, make_max_pool)
PINNACE_F32_IMAGE_LEVELS(global_average_pool_image_f32, make_global_average_pool)

PINNACE_SVE_LEVEL(map_image_f32, make_map, map_sve)
PINNACE_HALF_LEVELS(map_image, make_map)
PINNACE_HALF_LEVELS(binary_image, make_binary)
PINNACE_HALF_LEVELS(max_pool_image, make_max_pool)
PINNACE_HALF_LEVELS(global_average_pool_image, make_global_average_pool)
PINNACE_HALF_LEVELS(concat_image, make_concat)

extern const CpuKernel concat_image_f32_generic;
const CpuKernel concat_image_f32_generic = make_concat<f32_generic>();

}  // namespace pinnace
