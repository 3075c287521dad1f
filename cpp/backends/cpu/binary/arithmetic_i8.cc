// add, sub and mul on 8-bit quantised types, over dense tensors with broadcasting and over NHWC-packed tensors
// (channels last, unsigned). Those over NHWC-packed tensors are chosen where an operand is one already.
#include "backends/cpu/i8_isa.h"
#include "backends/cpu/move/strided_copy.h"
#include "backends/cpu/nhwc_rows.h"
#include "backends/cpu/quantize/lookup_table_i8.h"

namespace pinnace::cpu {
namespace {

constexpr int64_t kEach = 32768;  // elements of a task

bool binary_takes(const KernelNode& node) {
  if (!node.has_input(1) || !node.output_quantization(0)) return false;
  const TensorType &a = node.input(0), &b = node.input(1);
  if (!fits_nhwc_i8(a) || !fits_nhwc_i8(b) || a.elements() == 0 || b.elements() == 0) return false;
  BroadcastLoops<2> loops;
  return loops.set({&a.shape, &b.shape});
}

/// Rows of the innermost loop, or parts of the only one.
template <const I8Isa& isa>
Status binary_run(const KernelNode& node, const KernelContext& context, std::span<const TensorView> in,
                  std::span<const TensorView> out) {
  BinaryRowsI8 all = binary_rows_i8(node, *in[0].type, *in[1].type, *out[0].type);
  all.flip = static_cast<uint8_t>(nhwc_offset(out[0].dtype()));
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
      isa.binary_rows(own);
      row += own.pixels;
    }
  });
  return {};
}

template <const I8Isa& isa>
constexpr CpuKernel make_binary() {
  return {.takes = binary_takes, .run = binary_run<isa>};
}

// --------------------------------------------------------------------------------------------------------------
// NHWC-packed

/// How an operand meets the output: element by element, one pixel for all of an image, or one number.
enum class Meets : uint8_t { kNot, kWhole, kPixel, kNumber };

/// Constants stay dense, and may be one number; others are NHWC-packed.
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

bool nhwc_binary_takes(const KernelNode& node) {
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
  const Meets how = meets(*view.type, y, !layout.nhwc);
  if (how == Meets::kNumber) {
    *number = static_cast<uint8_t>(*view.data<uint8_t>() ^ nhwc_offset(view.dtype()));
    return {number, 0, 0, 0, 0, INT64_MAX};
  }
  const NhwcI8 i = nhwc_i8_of(view, layout);
  if (how == Meets::kWhole) return {i.at, i.pitch, i.row, i.step, 1, i.pitch};
  return {i.at, 0, 0, i.size.n == 1 ? 0 : i.step, 1, i.pitch};
}

template <const I8Isa& isa>
Status nhwc_binary_run(const KernelNode& node, const KernelContext& context, std::span<const TensorView> in,
                       std::span<const TensorView> out) {
  const NhwcI8 y = nhwc_i8_of(out[0], context.layouts[in.size()]);
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
  for_rows_i8(context, y, [&](int64_t n, int64_t row) {
    BinaryRowsI8 own = rows;
    own.a = a.at + n * a.step + row * a.row;
    own.b = b.at + n * b.step + row * b.row;
    own.y = y.at + n * y.step + row * y.row;
    isa.binary_rows(own);
  });
  return {};
}

template <const I8Isa& isa>
constexpr CpuKernel make_nhwc_binary() {
  return {.takes = nhwc_binary_takes, .layouts = Layouts::kFollows, .nhwc_inputs = 0b11, .run = nhwc_binary_run<isa>};
}

}  // namespace

PINNACE_KERNELS_I8(binary_i8, make_binary)
PINNACE_KERNELS_I8(binary_nhwc_i8, make_nhwc_binary)

}  // namespace pinnace::cpu
