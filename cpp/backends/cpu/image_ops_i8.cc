// Elementwise operators, pooling and concatenation on 8-bit quantised types over images (channels last, unsigned).
// Chosen where an operand is an image already.
#include <cstring>

#include "backends/cpu/i8_levels.h"
#include "backends/cpu/i8_table.h"
#include "ops/pool.h"

namespace pinnace {
namespace {

/// f(image n, row) for every row of y, in tasks of about 64 KiB.
template <class F>
void for_rows(const KernelContext& context, const ImageI8& y, F f) {
  const int64_t rows = y.size.n * y.size.h;
  const int64_t tasks = std::min(rows, (rows * y.size.w * y.pitch + 65535) / 65536);
  context.parallel(tasks, [&](int64_t t) {
    for (int64_t u = rows * t / tasks; u < rows * (t + 1) / tasks; ++u) f(u / y.size.h, u % y.size.h);
  });
}

/// Constants stay dense.
bool is_image(const NodeView& node, int i) {
  const TensorType& type = node.input(i);
  return has_image_sizes(type) && type.elements() > 0 && is_image_i8(type) && !node.input_data(i);
}

// -------------------------------------------------------------------------------------------------------- elementwise

template <LookupI8& lookup>
Status map_run(const NodeView&, const KernelContext& context, std::span<const TensorView> in,
               std::span<const TensorView> out) {
  const ImageI8 x = image_i8_of(in[0], context.layouts[0]), y = image_i8_of(out[0], context.layouts[in.size()]);
  const auto* table = reinterpret_cast<const uint8_t*>(context.packed);
  for_rows(context, y, [&](int64_t n, int64_t row) {
    lookup(table, x.at + n * x.step + row * x.row, y.at + n * y.step + row * y.row, y.size.w * y.pitch);
  });
  return {};
}

bool map_takes(const NodeView& node) {
  return is_image(node, 0) && table_i8_takes(node);
}

template <LookupI8& lookup>
constexpr CpuKernel make_map() {
  return {.takes = map_takes,
          .packed_bytes = [](const NodeView&) -> int64_t { return 256; },
          .pack = pack_table_i8<true>,
          .packs = 0b110,
          .layouts = Layouts::kFollows,
          .images = 0b1,
          .run = map_run<lookup>};
}

/// How an operand meets the output: element by element, one pixel for all of an image, or one number.
enum class Meets : uint8_t { kNot, kWhole, kPixel, kNumber };

/// Constants stay dense, and may be one number; others are images.
Meets meets(const TensorType& x, const Shape& y, bool constant) {
  if (!x.quantized() || x.quantization->axis >= 0 || x.elements() == 0) return Meets::kNot;
  if (constant) return x.elements() == 1 ? Meets::kNumber : Meets::kNot;
  if (x.shape == y) return Meets::kWhole;
  if (x.shape.size() != y.size() || x.shape[1] != y[1] || (x.shape[0] != y[0] && x.shape[0] != Dim(1))) {
    return Meets::kNot;
  }
  for (size_t d = 2; d < y.size(); ++d) {
    if (x.shape[d] != Dim(1)) return Meets::kNot;
  }
  return Meets::kPixel;
}

bool binary_takes(const NodeView& node) {
  if (!node.has_input(1) || !node.output_quantization(0)) return false;
  const auto y = broadcast_shapes(node, node.input(0).shape, node.input(1).shape);
  if (!y || (y->size() != 3 && y->size() != 4)) return false;
  const Meets a = meets(node.input(0), *y, node.input_data(0)), b = meets(node.input(1), *y, node.input_data(1));
  return a != Meets::kNot && b != Meets::kNot && (a == Meets::kWhole || b == Meets::kWhole);
}

/// Where an operand's elements for a row of pixels begin.
struct Operand {
  const uint8_t* at;
  ptrdiff_t pixel, row, step;
  int32_t channel;
  int64_t readable;  ///< channels that may be read
};
/// `number` has room for an operand of one element.
Operand operand(const TensorView& view, const Layout& layout, const Shape& y, uint8_t* number) {
  const Meets how = meets(*view.type, y, !layout.image);
  if (how == Meets::kNumber) {
    *number = static_cast<uint8_t>(*view.data<uint8_t>() ^ image_offset(view.dtype()));
    return {number, 0, 0, 0, 0, INT64_MAX};
  }
  const ImageI8 i = image_i8_of(view, layout);
  if (how == Meets::kWhole) return {i.at, i.pitch, i.row, i.step, 1, i.pitch};
  return {i.at, 0, 0, i.size.n == 1 ? 0 : i.step, 1, i.pitch};
}

template <const I8Level& level>
Status binary_run(const NodeView& node, const KernelContext& context, std::span<const TensorView> in,
                  std::span<const TensorView> out) {
  const ImageI8 y = image_i8_of(out[0], context.layouts[in.size()]);
  uint8_t numbers[2];
  const Operand a = operand(in[0], context.layouts[0], out[0].type->shape, &numbers[0]);
  const Operand b = operand(in[1], context.layouts[1], out[0].type->shape, &numbers[1]);
  BinaryRowsI8 rows = binary_rows_i8(node, *in[0].type, *in[1].type, *out[0].type);
  rows.a_step = a.pixel;
  rows.b_step = b.pixel;
  rows.a_channel = a.channel;
  rows.b_channel = b.channel;
  rows.y_step = y.pitch;
  rows.pixels = y.size.w;
  // Pixels are padded to whole registers, which are faster; what is computed there is of no value.
  rows.channels = std::min({static_cast<int64_t>(y.pitch), a.readable, b.readable});
  for_rows(context, y, [&](int64_t n, int64_t row) {
    BinaryRowsI8 own = rows;
    own.a = a.at + n * a.step + row * a.row;
    own.b = b.at + n * b.step + row * b.row;
    own.y = y.at + n * y.step + row * y.row;
    level.image->binary(own);
  });
  return {};
}

template <const I8Level& level>
constexpr CpuKernel make_binary() {
  return {.takes = binary_takes, .layouts = Layouts::kFollows, .images = 0b11, .run = binary_run<level>};
}

// -------------------------------------------------------------------------------------------------------- pooling

Result<Window> pool_window(const NodeView& node) {
  Shape y;
  return check_pool(node, y);
}

bool max_pool_takes(const NodeView& node) {
  if (node.output_count() != 1 || !is_image(node, 0)) return false;
  const auto window = pool_window(node);
  return window.ok() && window->out_size() > 0;
}

template <const I8Level& level>
Status max_pool_run(const NodeView& node, const KernelContext& context, std::span<const TensorView> in,
                    std::span<const TensorView> out) {
  PINNACE_ASSIGN(const Window w, pool_window(node));
  const ImageI8 x = image_i8_of(in[0], context.layouts[0]), y = image_i8_of(out[0], context.layouts[in.size()]);
  for_rows(context, y, [&](int64_t n, int64_t oy) {
    const Taps rows = taps_at(w, 1, oy);
    const uint8_t* from = x.at + n * x.step + (rows.start + rows.first * w.dilation[1]) * x.row;
    for (int64_t ox = 0; ox < y.size.w; ++ox) {
      const Taps columns = taps_at(w, 2, ox);
      level.image->maximum(from + (columns.start + columns.first * w.dilation[2]) * x.pitch, w.dilation[1] * x.row,
                           rows.last - rows.first, w.dilation[2] * x.pitch, columns.last - columns.first,
                           y.at + n * y.step + oy * y.row + ox * y.pitch, y.pitch);
    }
  });
  return {};
}

template <const I8Level& level>
constexpr CpuKernel make_max_pool() {
  return {.takes = max_pool_takes, .layouts = Layouts::kFollows, .images = 0b1, .run = max_pool_run<level>};
}

/// Sums of bytes stay within int32.
constexpr int64_t kMostSummands = int64_t{1} << 22;
constexpr int64_t kPoolChannels = 256;

bool average_pool_takes(const NodeView& node) {
  if (!is_image(node, 0) || !node.output_quantization(0)) return false;
  const auto window = pool_window(node);
  return window.ok() && window->out_size() > 0 && window->taps() <= kMostSummands;
}

template <const I8Level& level>
Status average_pool_run(const NodeView& node, const KernelContext& context, std::span<const TensorView> in,
                        std::span<const TensorView> out) {
  PINNACE_ASSIGN(const Window w, pool_window(node));
  const ImageI8 x = image_i8_of(in[0], context.layouts[0]), y = image_i8_of(out[0], context.layouts[in.size()]);
  const RealI8 from = real_i8(*in[0].type), to = real_i8(*out[0].type);
  const bool with_pads = node.attr_int("count_include_pad") != 0;
  const auto counted = [&](int d, const Taps& t) {
    if (!with_pads) return t.last - t.first;
    return std::min(w.kernel[d], (w.in[d] + w.after[d] - 1 - t.start) / w.dilation[d] + 1);
  };
  for_rows(context, y, [&](int64_t n, int64_t oy) {
    const Taps rows = taps_at(w, 1, oy);
    for (int64_t ox = 0; ox < y.size.w; ++ox) {
      const Taps columns = taps_at(w, 2, ox);
      const int64_t across = columns.last - columns.first, inside = across * (rows.last - rows.first);
      uint8_t* pixel = y.at + n * y.step + oy * y.row + ox * y.pitch;
      for (int64_t first = 0; first < y.size.c; first += kPoolChannels) {
        const int64_t count = std::min(kPoolChannels, y.size.c - first);
        int32_t sums[kPoolChannels] = {};
        for (int64_t ky = rows.first; ky < rows.last; ++ky) {
          const uint8_t* line = x.at + n * x.step + (rows.start + ky * w.dilation[1]) * x.row + first;
          level.image->sum(line + (columns.start + columns.first * w.dilation[2]) * x.pitch, w.dilation[2] * x.pitch,
                           across, count, sums);
        }
        level.image->means(sums, static_cast<int32_t>(inside * from.zero), from.scale,
                           static_cast<float>(counted(1, rows) * counted(2, columns)), to, 0, pixel + first, count);
      }
    }
  });
  return {};
}

template <const I8Level& level>
constexpr CpuKernel make_average_pool() {
  return {.takes = average_pool_takes, .layouts = Layouts::kFollows, .images = 0b1, .run = average_pool_run<level>};
}

bool global_pool_takes(const NodeView& node) {
  if (!is_image(node, 0) || !node.output_quantization(0)) return false;
  const ImageSizes s = image_sizes(node.input(0));
  return s.h * s.w <= kMostSummands;
}

template <const I8Level& level>
Status global_average_pool_run(const NodeView&, const KernelContext& context, std::span<const TensorView> in,
                               std::span<const TensorView> out) {
  const ImageI8 x = image_i8_of(in[0], context.layouts[0]), y = image_i8_of(out[0], context.layouts[in.size()]);
  const RealI8 from = real_i8(*in[0].type), to = real_i8(*out[0].type);
  const int64_t blocks = (x.size.c + kPoolChannels - 1) / kPoolChannels, area = x.size.h * x.size.w;
  context.parallel(x.size.n * blocks, [&](int64_t t) {
    const int64_t n = t / blocks, first = t % blocks * kPoolChannels;
    const int64_t count = std::min(kPoolChannels, x.size.c - first);
    int32_t sums[kPoolChannels] = {};
    for (int64_t row = 0; row < x.size.h; ++row) {
      level.image->sum(x.at + n * x.step + row * x.row + first, x.pitch, x.size.w, count, sums);
    }
    level.image->means(sums, static_cast<int32_t>(area * from.zero), from.scale, static_cast<float>(area), to, 0,
                       y.at + n * y.step + first, count);
  });
  return {};
}

template <const I8Level& level>
constexpr CpuKernel make_global_average_pool() {
  return {
      .takes = global_pool_takes, .layouts = Layouts::kFollows, .images = 0b1, .run = global_average_pool_run<level>};
}

// -------------------------------------------------------------------------------------------------- concatenation

/// Along channels: the parts of each pixel side by side.
bool concat_takes(const NodeView& node) {
  if (node.input_count() > 31) return false;
  for (int i = 0; i < node.input_count(); ++i) {
    if (!is_image(node, i)) return false;
  }
  const auto axis = node.axis(node.attr_int("axis"), node.input(0).rank());
  return axis.ok() && *axis == 1;
}

template <LookupI8& lookup>
Status concat_run(const NodeView&, const KernelContext& context, std::span<const TensorView> in,
                  std::span<const TensorView> out) {
  const ImageI8 y = image_i8_of(out[0], context.layouts[in.size()]);
  int64_t channel = 0;
  for (size_t i = 0; i < in.size(); ++i) {
    const ImageI8 x = image_i8_of(in[i], context.layouts[i]);
    const bool same = *in[i].type->quantization == *out[0].type->quantization;
    uint8_t table[256];
    if (!same) requantize_table_i8(*in[i].type, *out[0].type, table);
    for_rows(context, y, [&](int64_t n, int64_t row) {
      uint8_t* to = y.at + n * y.step + row * y.row + channel;
      const uint8_t* from = x.at + n * x.step + row * x.row;
      for (int64_t p = 0; p < y.size.w; ++p, to += y.pitch, from += x.pitch) {
        if (same) {
          std::memcpy(to, from, static_cast<size_t>(x.size.c));
        } else {
          lookup(table, from, to, x.size.c);
        }
      }
    });
    channel += x.size.c;
  }
  return {};
}

template <LookupI8& lookup>
constexpr CpuKernel make_concat() {
  return {.takes = concat_takes, .layouts = Layouts::kFollows, .images = ~0u, .run = concat_run<lookup>};
}

}  // namespace

PINNACE_I8_LEVELS(binary_image_i8, make_binary)
PINNACE_I8_LEVELS(max_pool_image_i8, make_max_pool)
PINNACE_I8_LEVELS(average_pool_image_i8, make_average_pool)
PINNACE_I8_LEVELS(global_average_pool_image_i8, make_global_average_pool)
PINNACE_LOOKUP_LEVELS(map_image_i8, make_map)
PINNACE_LOOKUP_LEVELS(concat_image_i8, make_concat)

}  // namespace pinnace
