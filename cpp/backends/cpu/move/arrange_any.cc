// Operators that arrange elements of any type anew without looking at them: depth_to_space, space_to_depth, tile,
// reverse_sequence, trilu; and one_hot, whose result has one of two elements everywhere. By element size.
#include <algorithm>
#include <cstring>

#include "backends/cpu/move/strided_copy.h"
#include "ops/move.h"

namespace pinnace::cpu {
namespace {

constexpr int64_t kEach = 16384;  // elements of a task

bool has_elements(const KernelNode& node) {
  return movable(node.input(0)) && node.input(0).elements() > 0;
}

// -------------------------------------------------------------------------------- depth_to_space and space_to_depth

/// The planes of blocks x blocks that an image of shape `deep` [N, C * b * b, H, W] has in each of its channels, as
/// loops over the image `wide` [N, C, H * b, W * b]: from deep to wide, or back.
void copy_blocks(const KernelNode& node, const KernelContext& context, const TensorView& deep, const TensorView& wide,
                 bool widens) {
  const int64_t b = node.attr_int("blocksize"), h = deep.dim(2), w = deep.dim(3), c = wide.dim(1), plane = h * w;
  const bool dcr = node.attr_string("mode") == "DCR";
  // Channels of `deep`: [b, b, C] or [C, b, b].
  const int64_t across = dcr ? c * plane : plane, down = across * b, channel = dcr ? plane : b * b * plane;
  struct Loop {
    int64_t size, deep, wide;
  };
  const Loop column{w, 1, b}, in_column{b, across, 1}, row{h, w, b * b * w}, in_row{b, down, b * w},
      channels{c, channel, plane * b * b}, images{deep.dim(0), deep.dim(1) * plane, deep.dim(1) * plane};
  CopyLoops loops;
  const auto add = [&](const Loop& l) { loops.add(l.size, widens ? l.deep : l.wide, widens ? l.wide : l.deep); };
  // The innermost loop writes neighbours.
  if (widens) {
    for (const Loop& l : {in_column, column, in_row, row, channels, images}) add(l);
  } else {
    for (const Loop& l : {column, row, in_column, in_row, channels, images}) add(l);
  }
  strided_copy(context, loops, widens ? deep.bytes : wide.bytes, widens ? wide.bytes : deep.bytes,
               element_bytes(deep.dtype()));
}

Status depth_to_space_run(const KernelNode& node, const KernelContext& context, std::span<const TensorView> in,
                          std::span<const TensorView> out) {
  copy_blocks(node, context, in[0], out[0], true);
  return {};
}
Status space_to_depth_run(const KernelNode& node, const KernelContext& context, std::span<const TensorView> in,
                          std::span<const TensorView> out) {
  copy_blocks(node, context, out[0], in[0], false);
  return {};
}

// ------------------------------------------------------------------------------------------------------------ tile

/// Two loops for each dimension.
bool tile_takes(const KernelNode& node) {
  return has_elements(node) && node.input(0).rank() * 2 <= CopyLoops::kMost;
}

Status tile_run(const KernelNode&, const KernelContext& context, std::span<const TensorView> in,
                std::span<const TensorView> out) {
  if (out[0].elements() == 0) return {};
  const Dims x(*in[0].type), y(*out[0].type);
  CopyLoops loops;
  for (int d = x.rank; d-- > 0;) {
    loops.add(x.size[d], x.stride[d], y.stride[d]);
    loops.add(y.size[d] / x.size[d], 0, x.size[d] * y.stride[d]);
  }
  strided_copy(context, loops, in[0].bytes, out[0].bytes, element_bytes(in[0].dtype()));
  return {};
}

// ------------------------------------------------------------------------------------------------ reverse_sequence

Status reverse_sequence_run(const KernelNode& node, const KernelContext& context, std::span<const TensorView> in,
                            std::span<const TensorView> out) {
  const Dims x(*in[0].type);
  PINNACE_ASSIGN(const int batch, node.axis(node.attr_int("batch_axis"), x.rank));
  PINNACE_ASSIGN(const int time, node.axis(node.attr_int("time_axis"), x.rank));
  for (int64_t b = 0; b < x.size[batch]; ++b) {
    const int64_t length = load_index(in[1], b);
    if (length < 0 || length > x.size[time]) {
      return node.error("length ", length, " of batch entry ", b, " is outside [0,", x.size[time], "]");
    }
  }
  const size_t bytes = element_bytes(in[0].dtype());
  // Steps [first, first + count) of batch entry b, from `from` on in x.
  const auto copy = [&](int64_t b, int64_t first, int64_t count, int64_t from, int64_t step) {
    if (count == 0) return;
    CopyLoops loops;
    for (int d = x.rank; d-- > 0;) {
      if (d == time) {
        loops.add(count, step * x.stride[d], x.stride[d]);
      } else if (d != batch) {
        loops.add(x.size[d], x.stride[d], x.stride[d]);
      }
    }
    const int64_t start = b * x.stride[batch];
    strided_copy(context, loops, in[0].bytes + static_cast<size_t>(start + from * x.stride[time]) * bytes,
                 out[0].bytes + static_cast<size_t>(start + first * x.stride[time]) * bytes, bytes);
  };
  for (int64_t b = 0; b < x.size[batch]; ++b) {
    const int64_t length = load_index(in[1], b);
    copy(b, 0, length, length - 1, -1);
    copy(b, length, x.size[time] - length, length, 1);
  }
  return {};
}

// ----------------------------------------------------------------------------------------------- trilu and one_hot

/// f(element) with an unsigned integer of that many bytes.
template <class F>
void with_element(size_t bytes, F f) {
  switch (bytes) {
    case 1:
      return f(uint8_t{});
    case 2:
      return f(uint16_t{});
    case 4:
      return f(uint32_t{});
    default:
      return f(uint64_t{});
  }
}

Status trilu_run(const KernelNode& node, const KernelContext& context, std::span<const TensorView> in,
                 std::span<const TensorView> out) {
  const TensorView &x = in[0], &y = out[0];
  const bool upper = node.attr_int("upper") != 0;
  const int64_t rows = x.dim(-2), columns = x.dim(-1), all = x.elements() / columns;
  // Of row r, columns from r + k on belong to the upper triangle; those up to r + k to the lower.
  const int64_t k = std::clamp(in.size() > 1 && in[1].present() ? load_index(in[1], 0) : 0, -rows - 1, columns + 1);
  const int64_t nothing = x.type->quantized() ? x.type->quantization->zero_points[0] : 0;
  const int64_t each = std::max<int64_t>(1, kEach / columns);
  with_element(element_bytes(x.dtype()), [&](auto element) {
    using T = decltype(element);
    const T zero = static_cast<T>(nothing);
    context.parallel((all + each - 1) / each, [&](int64_t t) {
      for (int64_t u = t * each; u < std::min(all, (t + 1) * each); ++u) {
        const int64_t bound = std::clamp<int64_t>(u % rows + k + (upper ? 0 : 1), 0, columns);
        const int64_t first = upper ? bound : 0, last = upper ? columns : bound;
        const T* from = x.data<T>() + u * columns;
        T* to = y.data<T>() + u * columns;
        if (to != from && last > first)
          std::memcpy(to + first, from + first, sizeof(T) * static_cast<size_t>(last - first));
        std::fill(to, to + first, zero);
        std::fill(to + last, to + columns, zero);
      }
    });
  });
  return {};
}

bool one_hot_takes(const KernelNode& node) {
  const DType indices = node.input(0).dtype;
  return (indices == DType::kI32 || indices == DType::kI64) && node.input(0).elements() > 0 && movable(node.input(2));
}

Status one_hot_run(const KernelNode& node, const KernelContext& context, std::span<const TensorView> in,
                   std::span<const TensorView> out) {
  const TensorView &indices = in[0], &values = in[2], &y = out[0];
  PINNACE_ASSIGN(const int axis, node.axis(node.attr_int("axis"), y.rank()));
  const AxisView v = view_axis(y.type->shape, axis);
  const int64_t count = indices.elements(), elements = y.elements();
  with_element(element_bytes(y.dtype()), [&](auto element) {
    using T = decltype(element);
    const T off = values.data<T>()[0], on = values.data<T>()[1];
    context.in_parts(elements, kEach,
                     [&](int64_t first, int64_t some) { std::fill_n(y.data<T>() + first, some, off); });
    context.in_parts(count, kEach, [&](int64_t first, int64_t some) {
      for (int64_t i = first; i < first + some; ++i) {
        int64_t hot = load_index(indices, i);
        if (hot < 0 && hot >= -v.size) hot += v.size;
        if (hot >= 0 && hot < v.size) y.data<T>()[(i / v.inner * v.size + hot) * v.inner + i % v.inner] = on;
      }
    });
  });
  return {};
}

}  // namespace

#define PINNACE_ARRANGE(op, when)          \
  extern const CpuKernel op##_any_generic; \
  const CpuKernel op##_any_generic = {.takes = when, .run = op##_run};
PINNACE_ARRANGE(depth_to_space, has_elements)
PINNACE_ARRANGE(space_to_depth, has_elements)
PINNACE_ARRANGE(tile, tile_takes)
PINNACE_ARRANGE(reverse_sequence, has_elements)
PINNACE_ARRANGE(trilu, has_elements)
PINNACE_ARRANGE(one_hot, one_hot_takes)
#undef PINNACE_ARRANGE

}  // namespace pinnace::cpu
