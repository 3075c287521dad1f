// Operators that move elements of any type from or to places that indices name: gather, gather_elements, gather_nd,
// scatter_elements, scatter_nd. Indices are checked before anything is read or written by them.
#include <algorithm>
#include <atomic>
#include <cstring>

#include "backends/cpu/move/strided_copy.h"
#include "backends/cpu/pace.h"
#include "ops/scatter.h"

namespace pinnace::cpu {
namespace {

constexpr int64_t kEach = 16384;  // elements of a task

/// The number whose sign tells that an index is outside [-size, size).
inline int64_t outside(int64_t index, int64_t size) {
  const auto i = static_cast<uint64_t>(index), n = static_cast<uint64_t>(size);
  return static_cast<int64_t>((i + n) | (n - 1 - i));
}
template <class I>
bool all_inside(const I* indices, int64_t count, int64_t size) {
  int64_t sign = 0;
  for (int64_t i = 0; i < count; ++i) sign |= outside(indices[i], size);
  return sign >= 0;
}
inline int64_t wrapped(int64_t index, int64_t size) {
  return index < 0 ? index + size : index;
}

/// f(element, index): a T of that many bytes and the element type of the indices.
template <class F>
void with_types(size_t bytes, DType indices, F f) {
  const auto with = [&](auto element) { indices == DType::kI64 ? f(element, int64_t{}) : f(element, int32_t{}); };
  switch (bytes) {
    case 1:
      return with(uint8_t{});
    case 2:
      return with(uint16_t{});
    case 4:
      return with(uint32_t{});
    default:
      return with(uint64_t{});
  }
}

/// The error of the first index that is outside.
Status refuse_outside(const KernelNode& node, const TensorView& indices, int64_t size) {
  for (int64_t i = 0; i < indices.elements(); ++i) {
    PINNACE_TRY(wrap_index(node, load_index(indices, i), size).status());
  }
  return {};
}
Status check_indices(const KernelNode& node, const KernelContext& context, const TensorView& indices, int64_t size) {
  const int64_t count = indices.elements();
  std::atomic<bool> inside = true;
  context.in_parts(count, kEach, [&](int64_t first, int64_t some) {
    const bool good = indices.dtype() == DType::kI64 ? all_inside(indices.data<int64_t>() + first, some, size)
                                                     : all_inside(indices.data<int32_t>() + first, some, size);
    if (!good) inside = false;
  });
  if (loop_stops()) return stop_status(node.label());  // some were not looked at
  return inside ? Status() : refuse_outside(node, indices, size);
}

/// y[i] = x[i * each + indices[i] * step]
template <class T, class I>
void gather_line(const T* x, int64_t each, const I* indices, int64_t step, int64_t size, T* y, int64_t count) {
  if (each == 0 && step == 1) {
    for (int64_t i = 0; i < count; ++i) y[i] = x[wrapped(indices[i], size)];
  } else {
    for (int64_t i = 0; i < count; ++i) y[i] = x[i * each + wrapped(indices[i], size) * step];
  }
}

// ---------------------------------------------------------------------------------------------------------- gather

bool has_elements(const KernelNode& node) {
  return movable(node.input(0)) && node.input(0).elements() > 0;
}

Status gather_run(const KernelNode& node, const KernelContext& context, std::span<const TensorView> in,
                  std::span<const TensorView> out) {
  const TensorView &x = in[0], &indices = in[1], &y = out[0];
  PINNACE_ASSIGN(const int axis, node.axis(node.attr_int("axis"), x.rank()));
  const AxisView v = view_axis(x.type->shape, axis);
  const size_t bytes = element_bytes(x.dtype());
  const int64_t count = indices.elements();
  PINNACE_TRY(check_indices(node, context, indices, v.size));
  if (count == 0) return {};
  CopyLoops loops;
  if (count == 1) {
    loops.add(v.inner, 1, 1);
    loops.add(v.outer, v.size * v.inner, v.inner);
    const auto first = static_cast<size_t>(wrapped(load_index(indices, 0), v.size) * v.inner);
    strided_copy(context, loops, x.bytes + first * bytes, y.bytes, bytes);
    return {};
  }
  loops.add(count, 0, v.inner);
  loops.add(v.outer, v.size * v.inner, count * v.inner);
  with_types(bytes, indices.dtype(), [&](auto element, auto index) {
    using T = decltype(element);
    const auto* at = indices.data<decltype(index)>();
    for_each_line(context, loops, std::max<int64_t>(1, kEach / v.inner), [&](int64_t from, int64_t to, int64_t some) {
      const auto* own = at + to / v.inner % count;
      if (v.inner == 1) return gather_line(x.data<T>() + from, 0, own, 1, v.size, y.data<T>() + to, some);
      for (int64_t i = 0; i < some; ++i) {
        std::memcpy(y.data<T>() + to + i * v.inner, x.data<T>() + from + wrapped(own[i], v.size) * v.inner,
                    static_cast<size_t>(v.inner) * sizeof(T));
      }
    });
  });
  return {};
}

bool gather_elements_takes(const KernelNode& node) {
  return movable(node.input(0));
}

Status gather_elements_run(const KernelNode& node, const KernelContext& context, std::span<const TensorView> in,
                           std::span<const TensorView> out) {
  if (out[0].elements() == 0) return {};
  const Dims x(*in[0].type), y(*out[0].type);
  PINNACE_ASSIGN(const int axis, node.axis(node.attr_int("axis"), x.rank));
  CopyLoops loops;
  for (int d = y.rank; d-- > 0;) loops.add(y.size[d], d == axis ? 0 : x.stride[d], y.stride[d]);
  const int64_t each = loops.rank > 0 ? loops.from_step[0] : 0, step = x.stride[axis], size = x.size[axis];
  std::atomic<bool> inside = true;
  with_types(element_bytes(in[0].dtype()), in[1].dtype(), [&](auto element, auto index) {
    using T = decltype(element);
    // y and the indices are dense: runs of the innermost loop lie side by side in both.
    for_each_line(context, loops, kEach, [&](int64_t from, int64_t to, int64_t count) {
      const auto* own = in[1].data<decltype(index)>() + to;
      if (!all_inside(own, count, size)) {
        inside = false;
        return;
      }
      gather_line(in[0].data<T>() + from, each, own, step, size, out[0].data<T>() + to, count);
    });
  });
  return inside ? Status() : refuse_outside(node, in[1], size);
}

// ---------------------------------------------------------------------------------------------------------- tuples

/// Tuples of k indices, one for each of k dimensions.
struct Tuples {
  int64_t k;
  const int64_t *size, *stride;

  /// Where a tuple's element is; -1: an index is outside.
  template <class I>
  int64_t place(I tuple) const {
    int64_t sign = 0;
    uint64_t at = 0;
    for (int64_t j = 0; j < k; ++j) {
      sign |= outside(tuple[j], size[j]);  // NOLINT(clang-analyzer-core.CallAndMessage): k is at most the rank
      at += static_cast<uint64_t>(wrapped(tuple[j], size[j])) * static_cast<uint64_t>(stride[j]);
    }
    return sign < 0 ? -1 : static_cast<int64_t>(at);
  }
  /// The error of the first index that is outside.
  Status refuse_outside(const KernelNode& node, const TensorView& indices) const {
    for (int64_t i = 0; i < indices.elements(); ++i) {
      PINNACE_TRY(wrap_index(node, load_index(indices, i), size[i % k]).status());
    }
    return {};
  }
};

/// The product of sizes [first, last).
int64_t product(const Dims& dims, int64_t first, int64_t last) {
  int64_t n = 1;
  for (int64_t d = first; d < last; ++d) n *= dims.size[d];
  return n;
}

bool gather_nd_takes(const KernelNode& node) {
  return has_elements(node) && node.input(1).elements() > 0;
}

Status gather_nd_run(const KernelNode& node, const KernelContext& context, std::span<const TensorView> in,
                     std::span<const TensorView> out) {
  const Dims x(*in[0].type);
  const int64_t batch = node.attr_int("batch_dims"), k = in[1].dim(-1);
  const Tuples tuples{k, x.size + batch, x.stride + batch};
  const int64_t batches = product(x, 0, batch), batch_step = product(x, batch, x.rank);
  const int64_t run = product(x, batch + k, x.rank), count = in[1].elements() / k / batches;
  const int64_t each = std::max<int64_t>(1, kEach / std::max<int64_t>(4, run));
  std::atomic<bool> inside = true;
  with_types(element_bytes(in[0].dtype()), in[1].dtype(), [&](auto element, auto index) {
    using T = decltype(element);
    const auto* indices = in[1].data<decltype(index)>();
    context.parallel((batches * count + each - 1) / each, [&](int64_t t) {
      for (int64_t i = t * each; i < std::min(batches * count, (t + 1) * each); ++i) {
        const int64_t at = tuples.place(indices + i * k);
        if (at < 0) {
          inside = false;
          return;
        }
        const T* from = in[0].data<T>() + (batches > 1 ? i / count * batch_step : 0) + at;
        T* to = out[0].data<T>() + i * run;
        if (run == 1) {
          *to = *from;
        } else {
          std::memcpy(to, from, static_cast<size_t>(run) * sizeof(T));
        }
      }
    });
  });
  return inside ? Status() : tuples.refuse_outside(node, in[1]);
}

// --------------------------------------------------------------------------------------------------------- scatter

bool scatter_takes(const KernelNode& node) {
  const TensorType& x = node.input(0);
  if (node.attr_string("reduction") == "none") return movable(x);
  return x.rank() <= Dims::kMost && (x.dtype == DType::kF32 || x.dtype == DType::kI64) && !x.quantized();
}

template <class T, Join JOIN>
inline T joined(T a, T b) {
  using Sum = std::conditional_t<std::is_same_v<T, int64_t>, uint64_t, T>;  // integers wrap
  if constexpr (JOIN == Join::kAdd) return static_cast<T>(static_cast<Sum>(a) + static_cast<Sum>(b));
  if constexpr (JOIN == Join::kMul) return static_cast<T>(static_cast<Sum>(a) * static_cast<Sum>(b));
  if constexpr (JOIN == Join::kMax) return a != a || a >= b ? a : b;
  if constexpr (JOIN == Join::kMin) return a != a || a <= b ? a : b;
  return b;
}

/// Indices of either type, as a pointer to int64_t reads them: loops that join values wait for memory, and one for both
/// types halves their code.
struct EitherIndices {
  const std::byte* bytes;
  bool wide;
  int64_t operator[](int64_t i) const {
    if (wide) return reinterpret_cast<const int64_t*>(bytes)[i];
    return reinterpret_cast<const int32_t*>(bytes)[i];
  }
  EitherIndices operator+(int64_t i) const { return {bytes + i * (wide ? 8 : 4), wide}; }
};
EitherIndices either_indices(const TensorView& indices) {
  return {indices.bytes, indices.dtype() == DType::kI64};
}

/// f(element, join) of a join that computes.
template <class F>
void with_reduction(const TensorView& x, Join join, F f) {
  const auto with = [&](auto element) {
    switch (join) {
      case Join::kAdd:
        return f(element, std::integral_constant<Join, Join::kAdd>{});
      case Join::kMul:
        return f(element, std::integral_constant<Join, Join::kMul>{});
      case Join::kMax:
        return f(element, std::integral_constant<Join, Join::kMax>{});
      default:
        return f(element, std::integral_constant<Join, Join::kMin>{});
    }
  };
  x.dtype() == DType::kF32 ? with(float{}) : with(int64_t{});
}

/// f(element, indices, join) with T the type that `join` needs: by size alone for none.
template <class F>
void with_join(const TensorView& x, const TensorView& indices, Join join, F f) {
  using None = std::integral_constant<Join, Join::kNone>;
  if (join == Join::kNone) {
    return with_types(element_bytes(x.dtype()), indices.dtype(), [&](auto element, auto index) {
      f(element, static_cast<const decltype(index)*>(indices.data<decltype(index)>()), None{});
    });
  }
  const EitherIndices either = either_indices(indices);
  with_reduction(x, join, [&](auto element, auto how) { f(element, either, how); });
}

/// The data, on which updates are written then.
void copy_all(const KernelContext& context, const TensorView& x, const TensorView& y) {
  if (x.bytes == y.bytes || x.elements() == 0) return;
  CopyLoops loops;
  loops.add(x.elements(), 1, 1);
  strided_copy(context, loops, x.bytes, y.bytes, element_bytes(x.dtype()));
}

/// Update i of `count`, `step` apart, goes to y[i * each + index * along].
template <Join JOIN, class T, class I>
void scatter_line(I indices, const T* updates, int64_t step, int64_t count, T* y, int64_t each, int64_t along,
                  int64_t size) {
  for (int64_t i = 0; i < count; ++i) {
    T& to = y[i * each + wrapped(indices[i * step], size) * along];
    to = joined<T, JOIN>(to, updates[i * step]);
  }
}

// Updates of one element differ in their place along the axis only: tasks share the other dimensions, and each goes
// along the axis in order.
Status scatter_elements_run(const KernelNode& node, const KernelContext& context, std::span<const TensorView> in,
                            std::span<const TensorView> out) {
  const Dims x(*in[0].type), updates(*in[1].type);
  PINNACE_ASSIGN(const int axis, node.axis(node.attr_int("axis"), x.rank));
  PINNACE_ASSIGN(const Join join, scatter_join(node));
  PINNACE_TRY(check_indices(node, context, in[1], x.size[axis]));
  copy_all(context, in[0], out[0]);
  if (in[1].elements() == 0) return {};
  CopyLoops loops;
  for (int d = x.rank; d-- > 0;) {
    if (d != axis) loops.add(updates.size[d], x.stride[d], updates.stride[d]);
  }
  const int64_t each = loops.rank > 0 ? loops.from_step[0] : 0, step = loops.rank > 0 ? loops.to_step[0] : 0;
  const int64_t length = updates.size[axis], next = updates.stride[axis], along = x.stride[axis], size = x.size[axis];
  with_join(in[0], in[1], join, [&](auto element, auto all, auto how) {
    using T = decltype(element);
    constexpr Join kJoin = decltype(how)::value;
    for_each_line(context, loops, std::max<int64_t>(1, kEach / length), [&](int64_t to, int64_t from, int64_t count) {
      const auto indices = all + from;
      const T* values = in[2].data<T>() + from;
      T* y = out[0].data<T>() + to;
      if (next == 1) {
        for (int64_t i = 0; i < count; ++i) {
          for (int64_t first = 0; first < length && !loop_stops(); first += kEach) {
            const int64_t at = i * step + first;
            scatter_line<kJoin>(indices + at, values + at, 1, std::min(kEach, length - first), y + i * each, 0, along,
                                size);
          }
        }
      } else {
        const int64_t some = std::max<int64_t>(1, kEach / count);
        for (int64_t first = 0; first < length && !loop_stops(); first += some) {
          for (int64_t i = first; i < std::min(length, first + some); ++i) {
            scatter_line<kJoin>(indices + i * next, values + i * next, step, count, y, each, along, size);
          }
        }
      }
    });
  });
  return {};
}

// Tuples may name a place twice: tasks share the elements of slices, and each goes through all tuples in order.
Status scatter_nd_run(const KernelNode& node, const KernelContext& context, std::span<const TensorView> in,
                      std::span<const TensorView> out) {
  const Dims x(*in[0].type);
  const int64_t k = in[1].dim(-1), run = product(x, k, x.rank);
  int64_t count = 1;
  for (int d = 0; d + 1 < in[1].rank(); ++d) count *= in[1].dim(d);
  PINNACE_ASSIGN(const Join join, scatter_join(node));
  const Tuples tuples{k, x.size, x.stride};
  const EitherIndices indices = either_indices(in[1]);
  Pace looks(k);
  for (int64_t i = 0; i < count && k > 0; ++i) {
    if (looks.stops()) return stop_status(node.label());
    if (tuples.place(indices + i * k) < 0) return tuples.refuse_outside(node, in[1]);
  }
  copy_all(context, in[0], out[0]);
  const int64_t width = std::max(kEach / 64, kEach / std::max<int64_t>(1, count));
  // f(y, update, n): n elements of the result and of an update.
  const auto each_update = [&](size_t bytes, auto f) {
    context.parallel((run + width - 1) / width, [&](int64_t t) {
      const int64_t first = t * width, some = std::min(width, run - first);
      Pace pace(some);
      for (int64_t i = 0; i < count && !pace.stops(); ++i) {
        const int64_t to = tuples.place(indices + i * k) + first, from = i * run + first;
        f(out[0].bytes + static_cast<size_t>(to) * bytes, in[2].bytes + static_cast<size_t>(from) * bytes, some);
      }
    });
  };
  if (join == Join::kNone) {
    const size_t bytes = element_bytes(in[0].dtype());
    each_update(bytes, [&](std::byte* y, const std::byte* update, int64_t n) {
      const size_t all = static_cast<size_t>(n) * bytes;
      if (all == 4) {  // single elements, without a call for each
        std::memcpy(y, update, 4);
      } else if (all == 8) {
        std::memcpy(y, update, 8);
      } else {
        std::memcpy(y, update, all);
      }
    });
    return {};
  }
  with_reduction(in[0], join, [&](auto element, auto how) {
    using T = decltype(element);
    each_update(sizeof(T), [](std::byte* y, const std::byte* update, int64_t n) {
      T* to = reinterpret_cast<T*>(y);
      const T* from = reinterpret_cast<const T*>(update);
      for (int64_t j = 0; j < n; ++j) to[j] = joined<T, decltype(how)::value>(to[j], from[j]);
    });
  });
  return {};
}

}  // namespace

#define PINNACE_INDEX(op, when)            \
  extern const CpuKernel op##_any_generic; \
  const CpuKernel op##_any_generic = {.takes = when, .run = op##_run};
PINNACE_INDEX(gather, has_elements)
PINNACE_INDEX(gather_elements, gather_elements_takes)
PINNACE_INDEX(gather_nd, gather_nd_takes)
PINNACE_INDEX(scatter_elements, scatter_takes)
PINNACE_INDEX(scatter_nd, scatter_takes)
#undef PINNACE_INDEX

}  // namespace pinnace::cpu
