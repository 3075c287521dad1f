// concat on 8-bit quantised types, whose operands may have quantisations of their own: of dense tensors along any
// dimension, and of NHWC-packed tensors (unsigned) along channels where the operands are NHWC-packed already.
#include <cstring>

#include "backends/cpu/move/strided_copy.h"
#include "backends/cpu/nhwc_rows.h"
#include "backends/cpu/quantize/lookup_table_i8.h"
#include "ops/linear_quantization.h"
#include "ops/move.h"

namespace pinnace::cpu {
namespace {

constexpr int64_t kEach = 32768;  // elements of a task

bool concat_takes(const KernelNode& node) {
  if (!node.output_quantization(0)) return false;
  for (int i = 0; i < node.input_count(); ++i) {
    if (!fits_nhwc_i8(node.input(i))) return false;
  }
  return node.input(0).rank() <= Dims::kMost;
}

template <LookupI8& lookup>
Status concat_run(const KernelNode& node, const KernelContext& context, std::span<const TensorView> in,
                  std::span<const TensorView> out) {
  PINNACE_ASSIGN(const int axis, node.axis(node.attr_int("axis"), out[0].rank()));
  const AxisView v = view_axis(out[0].type->shape, axis);
  const auto flip = static_cast<uint8_t>(nhwc_offset(out[0].dtype()));
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

// --------------------------------------------------------------------------------------------------------------
// NHWC-packed

/// Along channels: the parts of each pixel side by side.
bool nhwc_concat_takes(const KernelNode& node) {
  if (node.input_count() > 31) return false;
  for (int i = 0; i < node.input_count(); ++i) {
    if (!is_nhwc_input_i8(node, i)) return false;
  }
  const auto axis = node.axis(node.attr_int("axis"), node.input(0).rank());
  return axis.ok() && *axis == 1;
}

template <LookupI8& lookup>
Status nhwc_concat_run(const KernelNode&, const KernelContext& context, std::span<const TensorView> in,
                       std::span<const TensorView> out) {
  const NhwcI8 y = nhwc_i8_of(out[0], context.layouts[in.size()]);
  int64_t channel = 0;
  for (size_t i = 0; i < in.size(); ++i) {
    const NhwcI8 x = nhwc_i8_of(in[i], context.layouts[i]);
    const bool same = *in[i].type->quantization == *out[0].type->quantization;
    uint8_t table[256];
    if (!same) requantize_table_i8(*in[i].type, *out[0].type, table);
    for_rows_i8(context, y, [&](int64_t n, int64_t row) {
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
constexpr CpuKernel make_nhwc_concat() {
  return {.takes = nhwc_concat_takes, .layouts = Layouts::kFollows, .nhwc_inputs = ~0u, .run = nhwc_concat_run<lookup>};
}

}  // namespace

PINNACE_KERNELS_LOOKUP(concat_i8, make_concat)
PINNACE_KERNELS_LOOKUP(concat_nhwc_i8, make_nhwc_concat)

}  // namespace pinnace::cpu
