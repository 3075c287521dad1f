// Operators that move elements of any type: transpose, slice, expand, concat, split, pad, where. Elements are copied
// by their size; types of fewer than 8 bits stay with the reference.
#include <algorithm>
#include <cstring>

#include "backends/cpu/move/strided_copy.h"
#include "backends/cpu/pace.h"
#include "ops/move.h"

namespace pinnace::cpu {
namespace {

constexpr int kMostDims = Dims::kMost;

bool has_elements(const KernelNode& node) {
  return movable(node.input(0)) && node.input(0).elements() > 0;
}

/// Loops over y that read x at the given strides, first dimension outermost.
CopyLoops loops_of(const Dims& y, const int64_t* x_strides) {
  CopyLoops loops;
  for (int d = y.rank; d-- > 0;) loops.add(y.size[d], x_strides[d], y.stride[d]);
  return loops;
}

Status transpose_run(const KernelNode& node, const KernelContext& context, std::span<const TensorView> in,
                     std::span<const TensorView> out) {
  const Dims x(*in[0].type), y(*out[0].type);
  const std::span<const int64_t> perm = node.attr_ints("perm");
  int64_t strides[kMostDims];
  for (int d = 0; d < y.rank; ++d) {
    strides[d] = x.stride[perm.empty() ? y.rank - 1 - d : perm[static_cast<size_t>(d)]];
  }
  strided_copy(context, loops_of(y, strides), in[0].bytes, out[0].bytes, element_bytes(in[0].dtype()));
  return {};
}

Status expand_run(const KernelNode&, const KernelContext& context, std::span<const TensorView> in,
                  std::span<const TensorView> out) {
  if (out[0].elements() == 0) return {};
  const Dims x(*in[0].type), y(*out[0].type);
  int64_t strides[kMostDims] = {};
  for (int d = 0; d < x.rank; ++d) strides[y.rank - x.rank + d] = x.size[d] == 1 ? 0 : x.stride[d];
  strided_copy(context, loops_of(y, strides), in[0].bytes, out[0].bytes, element_bytes(in[0].dtype()));
  return {};
}

bool expand_takes(const KernelNode& node) {
  return has_elements(node) && node.input(1).elements() <= kMostDims;
}

// The shape rule has checked the lists and that no step is 0.
Status slice_run(const KernelNode&, const KernelContext& context, std::span<const TensorView> in,
                 std::span<const TensorView> out) {
  if (out[0].elements() == 0) return {};
  const Dims x(*in[0].type), y(*out[0].type);
  int64_t strides[kMostDims], first = 0;
  for (int d = 0; d < x.rank; ++d) strides[d] = x.stride[d];
  for (int64_t i = 0; i < in[1].elements(); ++i) {
    int64_t axis = in.size() > 3 && in[3].present() ? load_index(in[3], i) : i;
    if (axis < 0) axis += x.rank;
    const int64_t step = in.size() > 4 && in[4].present() ? load_index(in[4], i) : 1, size = x.size[axis];
    int64_t start = load_index(in[1], i);
    if (start < 0) start += size;
    start = step > 0 ? std::clamp<int64_t>(start, 0, size) : std::clamp<int64_t>(start, -1, size - 1);
    first += start * x.stride[axis];
    strides[axis] = y.size[axis] > 1 ? step * x.stride[axis] : 0;  // a step may be as large as an integer
  }
  const size_t bytes = element_bytes(in[0].dtype());
  strided_copy(context, loops_of(y, strides), in[0].bytes + static_cast<size_t>(first) * bytes, out[0].bytes, bytes);
  return {};
}

/// `outer` blocks of `run` elements.
void copy_blocks(const KernelContext& context, int64_t outer, int64_t run, const std::byte* from, int64_t from_step,
                 std::byte* to, int64_t to_step, size_t bytes) {
  if (outer * run == 0) return;
  CopyLoops loops;
  loops.add(run, 1, 1);
  loops.add(outer, from_step, to_step);
  strided_copy(context, loops, from, to, bytes);
}

bool concat_takes(const KernelNode& node) {
  if (!movable(node.input(0)) || node.output_quantization(0)) return false;
  for (int i = 0; i < node.input_count(); ++i) {
    if (!same_quantization(node.input(i), node.input(0))) return false;
  }
  return true;
}

Status concat_run(const KernelNode& node, const KernelContext& context, std::span<const TensorView> in,
                  std::span<const TensorView> out) {
  PINNACE_ASSIGN(const int axis, node.axis(node.attr_int("axis"), out[0].rank()));
  const AxisView v = view_axis(out[0].type->shape, axis);
  const size_t bytes = element_bytes(out[0].dtype());
  std::byte* to = out[0].bytes;
  for (const TensorView& x : in) {
    const int64_t run = x.dim(axis) * v.inner;
    copy_blocks(context, v.outer, run, x.bytes, run, to, v.size * v.inner, bytes);
    to += static_cast<size_t>(run) * bytes;
  }
  return {};
}

bool split_takes(const KernelNode& node) {
  return movable(node.input(0));
}

Status split_run(const KernelNode& node, const KernelContext& context, std::span<const TensorView> in,
                 std::span<const TensorView> out) {
  PINNACE_ASSIGN(const int axis, node.axis(node.attr_int("axis"), in[0].rank()));
  const AxisView v = view_axis(in[0].type->shape, axis);
  const size_t bytes = element_bytes(in[0].dtype());
  const std::byte* from = in[0].bytes;
  for (const TensorView& y : out) {
    const int64_t run = y.dim(axis) * v.inner;
    copy_blocks(context, v.outer, run, from, v.size * v.inner, y.bytes, run, bytes);
    from += static_cast<size_t>(run) * bytes;
  }
  return {};
}

// ------------------------------------------------------------------------------------------------------------- pad

/// Where an element of a padded axis comes from; -1: it is filled.
int64_t source_of(int64_t at, int64_t size, std::string_view mode) {
  if (at >= 0 && at < size) return at;
  if (mode == "constant") return -1;
  if (mode == "edge") return at < 0 ? 0 : size - 1;
  const int64_t period = mode == "wrap" ? size : size > 1 ? 2 * (size - 1) : 1;
  const int64_t in_period = ((at % period) + period) % period;
  return in_period < size ? in_period : period - in_period;
}

bool pad_takes(const KernelNode& node) {
  return has_elements(node) && !node.input(0).quantized() && !node.output_quantization(0);
}

template <class T>
void fill(std::byte* to, int64_t count, int64_t value) {
  T one;
  std::memcpy(&one, &value, sizeof one);
  std::fill_n(reinterpret_cast<T*>(to), count, one);
}
void fill(std::byte* to, int64_t count, int64_t value, size_t bytes) {
  switch (bytes) {
    case 1:
      return fill<uint8_t>(to, count, value);
    case 2:
      return fill<uint16_t>(to, count, value);
    case 4:
      return fill<uint32_t>(to, count, value);
    default:
      return fill<uint64_t>(to, count, value);
  }
}

Status pad_run(const KernelNode& node, const KernelContext& context, std::span<const TensorView> in,
               std::span<const TensorView> out) {
  if (out[0].elements() == 0) return {};
  const Dims x(*in[0].type), y(*out[0].type);
  const std::string_view mode = node.attr_string("mode");
  const size_t bytes = element_bytes(in[0].dtype());
  int64_t value = 0;
  if (in.size() > 2 && in[2].present()) std::memcpy(&value, in[2].bytes, bytes);
  int64_t before[kMostDims] = {};
  const bool named = in.size() > 3 && in[3].present();
  const int64_t count = in[1].elements() / 2;
  for (int64_t i = 0; i < count; ++i) {
    const int64_t axis = named ? load_index(in[3], i) : i;
    before[axis < 0 ? axis + x.rank : axis] = load_index(in[1], i);
  }
  const int last = y.rank - 1;
  const int64_t width = y.rank ? y.size[last] : 1, rows = out[0].elements() / width;
  const int64_t left = x.rank ? before[last] : 0;
  const int64_t first = std::clamp<int64_t>(left, 0, width);
  const int64_t end = std::clamp<int64_t>(left + (x.rank ? x.size[last] : 1), first, width);
  const int64_t each = std::max<int64_t>(1, 16384 / width);
  context.parallel((rows + each - 1) / each, [&](int64_t t) {
    Pace pace(1);
    for (int64_t r = t * each; r < std::min(rows, (t + 1) * each); ++r) {
      int64_t rest = r, base = 0;
      bool inside = true;
      for (int d = last - 1; d >= 0; --d) {
        const int64_t at = source_of(rest % y.size[d] - before[d], x.size[d], mode);
        inside &= at >= 0;
        base += at * x.stride[d];
        rest /= y.size[d];
      }
      std::byte* to = out[0].bytes + static_cast<size_t>(r * width) * bytes;
      if (!inside) {
        fill(to, width, value, bytes);
        continue;
      }
      const std::byte* from = in[0].bytes + static_cast<size_t>(base) * bytes;
      copy_run(to + static_cast<size_t>(first) * bytes, from + (first - left) * static_cast<ptrdiff_t>(bytes),
               end - first, bytes);
      if (mode == "constant") {
        fill(to, first, value, bytes);
        fill(to + static_cast<size_t>(end) * bytes, width - end, value, bytes);
        continue;
      }
      for (int64_t i = 0; i < width && !pace.stops(); i = i + 1 == first ? std::max(end, i + 1) : i + 1) {
        if (i >= first && i < end) continue;
        const int64_t at = source_of(i - left, x.size[last], mode);
        copy_element(to + static_cast<size_t>(i) * bytes, from + static_cast<size_t>(at) * bytes, bytes);
      }
    }
  });
  return {};
}

// ----------------------------------------------------------------------------------------------------------- where

using Choice = BroadcastLoops<3>;

bool where_takes(const KernelNode& node) {
  Choice c;
  if (node.input(1).quantized() || node.output_quantization(0)) return false;
  return c.set({&node.input(0).shape, &node.input(1).shape, &node.input(2).shape});
}

// No element depends on another one's result: operands are the result's bytes or apart from them.
#define PINNACE_APART _Pragma("GCC ivdep")

/// All bits of the chosen operand, without a branch: loops that the compiler makes vectors of.
template <class T>
T chosen(uint8_t condition, T x, T y) {
  const auto mask = static_cast<T>(condition ? -1 : 0);
  return static_cast<T>((x & mask) | (y & static_cast<T>(~mask)));
}

/// z may be x or y.
template <class T>
void choose(const uint8_t* condition, int64_t condition_step, const T* x, int64_t x_step, const T* y, int64_t y_step,
            T* z, int64_t count) {
  if (condition_step == 0) {
    const T* from = *condition ? x : y;
    const int64_t step = *condition ? x_step : y_step;
    for (int64_t i = 0; i < count; ++i) z[i] = from[i * step];
  } else if (x_step && y_step) {
    PINNACE_APART for (int64_t i = 0; i < count; ++i) z[i] = chosen(condition[i], x[i], y[i]);
  } else if (x_step) {
    const T no = *y;
    PINNACE_APART for (int64_t i = 0; i < count; ++i) z[i] = chosen(condition[i], x[i], no);
  } else if (y_step) {
    const T yes = *x;
    PINNACE_APART for (int64_t i = 0; i < count; ++i) z[i] = chosen(condition[i], yes, y[i]);
  } else {
    const T yes = *x, no = *y;
    PINNACE_APART for (int64_t i = 0; i < count; ++i) z[i] = chosen(condition[i], yes, no);
  }
}

#undef PINNACE_APART

template <class T>
void where_of(const Choice& c, const KernelContext& context, std::span<const TensorView> in, const TensorView& z) {
  constexpr int64_t kChunk = 16384;
  const int64_t run = c.rank ? c.size[0] : 1, runs = z.elements() / run, pieces = (run + kChunk - 1) / kChunk;
  const int64_t together = std::max<int64_t>(1, kChunk / run), groups = (runs + together - 1) / together;
  context.parallel(groups * pieces, [&](int64_t t) {
    const int64_t first = t % pieces * kChunk, count = std::min(kChunk, run - first);
    for (int64_t r = t / pieces * together; r < std::min(runs, (t / pieces + 1) * together); ++r) {
      int64_t rest = r, at[3], step[3];
      for (int k = 0; k < 3; ++k) {
        step[k] = c.rank ? c.step[k][0] : 0;
        at[k] = first * step[k];
      }
      for (int d = 1; d < c.rank; ++d) {
        for (int k = 0; k < 3; ++k) at[k] += rest % c.size[d] * c.step[k][d];
        rest /= c.size[d];
      }
      choose<T>(in[0].data<uint8_t>() + at[0], step[0], in[1].data<T>() + at[1], step[1], in[2].data<T>() + at[2],
                step[2], z.data<T>() + r * run + first, count);
    }
  });
}

Status where_run(const KernelNode&, const KernelContext& context, std::span<const TensorView> in,
                 std::span<const TensorView> out) {
  if (out[0].elements() == 0) return {};
  Choice c;
  c.set({&in[0].type->shape, &in[1].type->shape, &in[2].type->shape});
  switch (element_bytes(out[0].dtype())) {
    case 1:
      where_of<uint8_t>(c, context, in, out[0]);
      break;
    case 2:
      where_of<uint16_t>(c, context, in, out[0]);
      break;
    case 4:
      where_of<uint32_t>(c, context, in, out[0]);
      break;
    default:
      where_of<uint64_t>(c, context, in, out[0]);
      break;
  }
  return {};
}

}  // namespace

#define PINNACE_MOVE(op, when)             \
  extern const CpuKernel op##_any_generic; \
  const CpuKernel op##_any_generic = {.takes = when, .run = op##_run};
PINNACE_MOVE(transpose, has_elements)
PINNACE_MOVE(expand, expand_takes)
PINNACE_MOVE(slice, has_elements)
PINNACE_MOVE(concat, concat_takes)
PINNACE_MOVE(split, split_takes)
PINNACE_MOVE(pad, pad_takes)
PINNACE_MOVE(where, where_takes)
#undef PINNACE_MOVE

}  // namespace pinnace::cpu
