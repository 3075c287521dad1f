// Between floats and 8-bit integers, and elementwise operators on dense 8-bit quantised values.
#include <cmath>
#include <cstring>

#include "backends/cpu/i8_levels.h"
#include "backends/cpu/i8_table.h"
#include "backends/cpu/strided_copy.h"
#include "ops/linear_quantization.h"
#include "ops/move.h"

namespace pinnace {
namespace {

constexpr int64_t kEach = 32768;  // elements of a task

/// f(first, count) over all elements.
template <class F>
void in_parts(const KernelContext& context, int64_t elements, F f) {
  context.parallel((elements + kEach - 1) / kEach,
                   [&](int64_t t) { f(t * kEach, std::min(kEach, elements - t * kEach)); });
}

bool is_byte(DType dtype) {
  return dtype == DType::kI8 || dtype == DType::kU8;
}

// --------------------------------------------------------------------------------- quantize_linear, dequantize_linear

/// One float32 scale for the whole tensor.
bool one_scale(const NodeView& node) {
  const TensorType& scale = node.input(1);
  return scale.dtype == DType::kF32 && scale.rank() <= 1 && scale.elements() == 1 && node.attr_int("block_size") == 0;
}

/// Element type of the result of quantize_linear.
DType stored_type(const NodeView& node) {
  const auto named = dtype_from_name(node.attr_string("output_dtype"));
  return named ? *named : node.has_input(2) ? node.input(2).dtype : DType::kU8;
}

bool quantize_takes(const NodeView& node) {
  const std::string_view precision = node.attr_string("precision");
  return one_scale(node) && is_byte(stored_type(node)) && (precision.empty() || precision == "f32");
}

RealI8 real_of(std::span<const TensorView> in, DType dtype) {
  const int32_t zero = in.size() > 2 && in[2].present() ? load_int(in[2], 0) : 0;
  return {*in[1].data<float>(), zero + image_offset(dtype)};
}

template <const I8Level& level>
Status quantize_run(const NodeView&, const KernelContext& context, std::span<const TensorView> in,
                    std::span<const TensorView> out) {
  const RealI8 real = real_of(in, out[0].dtype());
  const auto flip = static_cast<uint8_t>(image_offset(out[0].dtype()));
  in_parts(context, out[0].elements(), [&](int64_t first, int64_t count) {
    level.image->quantize(in[0].data<float>() + first, real, flip, out[0].data<uint8_t>() + first, count);
  });
  return {};
}

template <const I8Level& level>
constexpr CpuKernel make_quantize() {
  return {.takes = quantize_takes, .run = quantize_run<level>};
}

/// The same where a reader of the result wants an image.
bool quantize_image_takes(const NodeView& node) {
  return quantize_takes(node) && has_image_sizes(node.input(0)) && node.input(0).elements() > 0;
}

template <const I8Level& level>
Status quantize_image_run(const NodeView&, const KernelContext& context, std::span<const TensorView> in,
                          std::span<const TensorView> out) {
  const RealI8 real = real_of(in, out[0].dtype());
  const ImageI8 y = image_i8_of(out[0], context.layouts[in.size()]);
  const ImageSizes& s = y.size;
  const int64_t rows = s.n * s.h, tasks = std::min(rows, (rows * s.w * s.c + kEach - 1) / kEach);
  context.parallel(tasks, [&](int64_t t) {
    for (int64_t u = rows * t / tasks; u < rows * (t + 1) / tasks; ++u) {
      const int64_t n = u / s.h, row = u % s.h;
      const float* from = in[0].data<float>() + (n * s.c * s.h + row) * s.w;
      uint8_t* to = y.at + n * y.step + row * y.row;
      for (int64_t c = 0; c < s.c; c += 4) {
        const auto planes = static_cast<int32_t>(std::min<int64_t>(4, s.c - c));
        level.image->quantize_quads(from + c * s.h * s.w, s.h * s.w, planes, real, to + c, y.pitch, s.w);
      }
    }
  });
  return {};
}

template <const I8Level& level>
constexpr CpuKernel make_quantize_image() {
  return {.takes = quantize_image_takes, .layouts = Layouts::kLeads, .run = quantize_image_run<level>};
}

// ------------------------------------------------------------------------------------------- dynamic_quantize_linear

/// Least and largest of `count` numbers and 0; NaN does not count.
struct Span {
  float low = 0, high = 0;
};
Span span_of(const float* x, int64_t count) {
  using Four = float __attribute__((vector_size(16)));
  Four low[2] = {}, high[2] = {};
  int64_t i = 0;
  for (; i + 8 <= count; i += 8) {
    for (int64_t j = 0; j < 2; ++j) {
      Four v;
      std::memcpy(&v, x + i + 4 * j, sizeof v);
      low[j] = v < low[j] ? v : low[j];
      high[j] = v > high[j] ? v : high[j];
    }
  }
  Span span;
  const auto count_in = [&span](float v) {
    if (v < span.low) span.low = v;
    if (v > span.high) span.high = v;
  };
  for (int l = 0; l < 8; ++l) count_in(low[l / 4][l % 4]), count_in(high[l / 4][l % 4]);
  for (; i < count; ++i) count_in(x[i]);
  return span;
}

int64_t parts_of(const TensorType& type) {
  return (type.elements() + kEach - 1) / kEach;
}

template <const I8Level& level>
Status dynamic_run(const NodeView&, const KernelContext& context, std::span<const TensorView> in,
                   std::span<const TensorView> out) {
  const auto* x = in[0].data<float>();
  auto* spans = reinterpret_cast<Span*>(context.scratch);
  in_parts(context, in[0].elements(),
           [&](int64_t first, int64_t count) { spans[first / kEach] = span_of(x + first, count); });
  Span all;
  for (int64_t i = 0; i < parts_of(*in[0].type); ++i) {
    all = {std::min(all.low, spans[i].low), std::max(all.high, spans[i].high)};
  }
  float scale = (all.high - all.low) / 255.0f;
  if (scale == 0) scale = 1;
  const float middle = 0.0f - all.low / scale;  // NaN only where x holds infinities of both signs
  const int32_t zero = middle == middle ? static_cast<int32_t>(std::nearbyint(limit(middle, 0.0, 255.0))) : 0;
  in_parts(context, in[0].elements(), [&](int64_t first, int64_t count) {
    level.image->quantize(x + first, {scale, zero}, 0, out[0].data<uint8_t>() + first, count);
  });
  *out[1].data<float>() = scale;
  *out[2].data<uint8_t>() = static_cast<uint8_t>(zero);
  return {};
}

template <const I8Level& level>
constexpr CpuKernel make_dynamic() {
  return {.scratch_bytes = [](const NodeView& node, int) -> int64_t {
            return parts_of(node.input(0)) * static_cast<int64_t>(sizeof(Span));
          },
          .run = dynamic_run<level>};
}

// ---------------------------------------------------------------------------------------------------------------------

bool dequantize_takes(const NodeView& node) {
  const std::string_view wanted = node.attr_string("output_dtype");
  return one_scale(node) && (wanted.empty() || wanted == "f32");
}

template <const I8Level& level>
Status dequantize_run(const NodeView&, const KernelContext& context, std::span<const TensorView> in,
                      std::span<const TensorView> out) {
  const RealI8 real = real_of(in, in[0].dtype());
  const auto flip = static_cast<uint8_t>(image_offset(in[0].dtype()));
  in_parts(context, out[0].elements(), [&](int64_t first, int64_t count) {
    level.image->dequantize(in[0].data<uint8_t>() + first, real, flip, out[0].data<float>() + first, count);
  });
  return {};
}

template <const I8Level& level>
constexpr CpuKernel make_dequantize() {
  return {.takes = dequantize_takes, .run = dequantize_run<level>};
}

// -------------------------------------------------------------------------------------------------------- elementwise

template <LookupI8& lookup>
Status map_run(const NodeView&, const KernelContext& context, std::span<const TensorView> in,
               std::span<const TensorView> out) {
  const auto* table = reinterpret_cast<const uint8_t*>(context.packed);
  in_parts(context, out[0].elements(), [&](int64_t first, int64_t count) {
    lookup(table, in[0].data<uint8_t>() + first, out[0].data<uint8_t>() + first, count);
  });
  return {};
}

template <LookupI8& lookup>
constexpr CpuKernel make_map() {
  return {.takes = table_i8_takes,
          .packed_bytes = [](const NodeView&) -> int64_t { return 256; },
          .pack = pack_table_i8<false>,
          .packs = 0b110,
          .run = map_run<lookup>};
}

bool binary_takes(const NodeView& node) {
  if (!node.has_input(1) || !node.output_quantization(0)) return false;
  const TensorType &a = node.input(0), &b = node.input(1);
  if (!is_image_i8(a) || !is_image_i8(b) || a.elements() == 0 || b.elements() == 0) return false;
  BroadcastLoops<2> loops;
  return loops.set({&a.shape, &b.shape});
}

/// Rows of the innermost loop, or parts of the only one.
template <const I8Level& level>
Status binary_run(const NodeView& node, const KernelContext& context, std::span<const TensorView> in,
                  std::span<const TensorView> out) {
  BinaryRowsI8 all = binary_rows_i8(node, *in[0].type, *in[1].type, *out[0].type);
  all.flip = static_cast<uint8_t>(image_offset(out[0].dtype()));
  BroadcastLoops<2> loops;
  loops.set({&in[0].type->shape, &in[1].type->shape});
  for (; loops.rank < 2; ++loops.rank) {
    loops.size[loops.rank] = 1;
    loops.step[0][loops.rank] = loops.step[1][loops.rank] = 0;
  }
  all.a_channel = loops.step[0][0] != 0;
  all.b_channel = loops.step[1][0] != 0;
  all.a_step = loops.step[0][1];
  all.b_step = loops.step[1][1];
  all.y_step = loops.size[0];
  // A number may share its bytes with the result.
  const uint8_t a = *in[0].data<uint8_t>(), b = *in[1].data<uint8_t>();
  const uint8_t* from_a = in[0].elements() == 1 ? &a : in[0].data<uint8_t>();
  const uint8_t* from_b = in[1].elements() == 1 ? &b : in[1].data<uint8_t>();
  const int64_t run = loops.size[0], pixels = loops.size[1], rows = out[0].elements() / run;
  const int64_t pieces = (run + kEach - 1) / kEach, together = std::max<int64_t>(1, kEach / run);
  context.parallel((rows + together - 1) / together * pieces, [&](int64_t t) {
    const int64_t first = t % pieces * kEach, last = std::min(rows, (t / pieces + 1) * together);
    for (int64_t row = t / pieces * together; row < last;) {
      const int64_t pixel = row % pixels;
      int64_t rest = row / pixels, at_a = pixel * all.a_step, at_b = pixel * all.b_step;
      for (int d = 2; d < loops.rank; ++d) {
        at_a += rest % loops.size[d] * loops.step[0][d];
        at_b += rest % loops.size[d] * loops.step[1][d];
        rest /= loops.size[d];
      }
      BinaryRowsI8 own = all;
      own.a = from_a + at_a + (all.a_channel ? first : 0);
      own.b = from_b + at_b + (all.b_channel ? first : 0);
      own.y = out[0].data<uint8_t>() + row * run + first;
      own.channels = std::min(kEach, run - first);
      own.pixels = std::min(pixels - pixel, last - row);
      level.image->binary(own);
      row += own.pixels;
    }
  });
  return {};
}

template <const I8Level& level>
constexpr CpuKernel make_binary() {
  return {.takes = binary_takes, .run = binary_run<level>};
}

// ------------------------------------------------------------------------------------------------------- concat

bool concat_takes(const NodeView& node) {
  if (!node.output_quantization(0)) return false;
  for (int i = 0; i < node.input_count(); ++i) {
    if (!is_image_i8(node.input(i))) return false;
  }
  return node.input(0).rank() <= Dims::kMost;
}

template <LookupI8& lookup>
Status concat_run(const NodeView& node, const KernelContext& context, std::span<const TensorView> in,
                  std::span<const TensorView> out) {
  PINNACE_ASSIGN(const int axis, node.axis(node.attr_int("axis"), out[0].rank()));
  const AxisView v = view_axis(out[0].type->shape, axis);
  const auto flip = static_cast<uint8_t>(image_offset(out[0].dtype()));
  std::byte* to = out[0].bytes;
  for (const TensorView& x : in) {
    const int64_t run = x.dim(axis) * v.inner;
    CopyLoops loops;
    loops.add(run, 1, 1);
    loops.add(v.outer, run, v.size * v.inner);
    if (x.elements() > 0 && same_quantization(*x.type, *out[0].type)) {
      strided_copy(context, loops, x.bytes, to, 1);
    } else if (x.elements() > 0) {
      uint8_t unsigned_table[256], table[256];
      requantize_table_i8(*x.type, *out[0].type, unsigned_table);
      for (int i = 0; i < 256; ++i) table[i] = unsigned_table[i ^ flip] ^ flip;
      const int64_t step = loops.rank > 0 ? loops.to_step[0] : 1;  // not 1 where runs have one element
      for_each_line(context, loops, kEach, [&](int64_t first, int64_t place, int64_t count) {
        const uint8_t* from = x.data<uint8_t>() + first;
        auto* y = reinterpret_cast<uint8_t*>(to) + place;
        if (step == 1) return lookup(table, from, y, count);
        for (int64_t i = 0; i < count; ++i) y[i * step] = table[from[i]];
      });
    }
    to += run;
  }
  return {};
}

template <LookupI8& lookup>
constexpr CpuKernel make_concat() {
  return {.takes = concat_takes, .run = concat_run<lookup>};
}

}  // namespace

PINNACE_I8_LEVELS(quantize_i8, make_quantize)
PINNACE_I8_LEVELS(quantize_image_i8, make_quantize_image)
PINNACE_I8_LEVELS(dequantize_i8, make_dequantize)
PINNACE_I8_LEVELS(dynamic_quantize_i8, make_dynamic)
PINNACE_I8_LEVELS(binary_i8, make_binary)
PINNACE_LOOKUP_LEVELS(map_i8, make_map)
PINNACE_LOOKUP_LEVELS(concat_i8, make_concat)

}  // namespace pinnace
