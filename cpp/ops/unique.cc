// unique: the different elements of x, or its different slices along an axis.
//   x        [...]  any type
//   axis     int; left out: x is taken as a vector of all its elements
//   sorted   int, default 1: ascending; 0: in order of first occurrence
//   equal_nan  int, default 1; 0: NaN differs from NaN, as does a slice with one from all others
//   y        the n different elements [n], or x with the axis of size n
//   indices  [n]  i64: first occurrence of each
//   inverse  [size of the axis, or elements of x]  i64: where each is in y
//   counts   [n]  i64: how often each occurs
// Slices are ordered element by element. NaN comes last, and equals NaN unless equal_nan is 0; -0 equals 0. n depends
// on data; bound: the size of the axis. Outputs may be left out from the end. Source: ONNX Unique, opset 11.

#include "base/sort.h"
#include "ops/lines.h"
#include "ops/move.h"

namespace pinnace {
namespace {
constexpr int64_t kFlat = INT64_MIN;  // "axis" is left out

/// -1, 0 or 1 as slice p of x is before, equal to or after slice q. Two NaN at one place are `both_nan`.
template <class T>
int compare_slices(const TensorView& view, const AxisView& v, int64_t p, int64_t q, int both_nan) {
  const T* x = view.data<T>();
  for (int64_t o = 0; o < v.outer; ++o) {
    for (int64_t i = 0; i < v.inner; ++i) {
      const auto a = widen(x[(o * v.size + p) * v.inner + i]), b = widen(x[(o * v.size + q) * v.inner + i]);
      const bool a_nan = a != a, b_nan = b != b;
      if (a_nan != b_nan) return a_nan ? 1 : -1;
      if (a_nan && both_nan) return both_nan;
      if (!a_nan && a != b) return a < b ? -1 : 1;
    }
  }
  return 0;
}
/// By a pointer, so that one sort serves all element types.
using Compare = int (*)(const TensorView& view, const AxisView& v, int64_t p, int64_t q, int both_nan);

struct Found {
  Scratch<int64_t> first, inverse, count;  ///< first and count: `different` entries in the order of y
  int64_t different = 0;
};

Result<AxisView> sliced(const NodeView& node, const TensorType& x) {
  if (node.attr_int("axis") == kFlat) return AxisView{1, x.elements(), 1};
  PINNACE_ASSIGN(const int axis, node.axis(node.attr_int("axis"), x.rank()));
  return view_axis(x.shape, axis);
}

Result<Found> find_unique(const NodeView& node, const TensorView& x) {
  PINNACE_ASSIGN(const AxisView v, sliced(node, *x.type));
  const auto scratch = [&] { return Scratch<int64_t>::allocate(v.size, node.label()); };
  PINNACE_ASSIGN(auto first, scratch());
  PINNACE_ASSIGN(auto inverse, scratch());
  PINNACE_ASSIGN(auto count, scratch());
  PINNACE_ASSIGN(auto order, scratch());
  PINNACE_ASSIGN(auto group_of, scratch());  // by slice: number of its group in sorted order
  PINNACE_ASSIGN(auto begins, Scratch<uint64_t>::allocate(v.size, node.label()));
  // Slices of one element need no more than where that is in the order, and most others differ in their first one.
  const int64_t slice = v.outer * v.inner;
  if (slice > 0) load_order(x, 0, v.inner, v.size, begins.data());
  const Compare compare_rest = visit(x.dtype(), [](auto zero) -> Compare { return compare_slices<decltype(zero)>; });
  const auto compare = [&](int64_t p, int64_t q, int both_nan) {
    if (slice > 0 && begins[p] != begins[q]) return begins[p] < begins[q] ? -1 : 1;
    return slice > 1 || (slice == 1 && both_nan) ? compare_rest(x, v, p, q, both_nan) : 0;
  };
  const int apart = node.attr_int("equal_nan") ? 0 : 1;
  int64_t groups = 0;
  const int64_t cost = std::max<int64_t>(slice, 1), between_looks = std::max<int64_t>(65536 / cost, 1);
  for (int64_t i = 0; i < v.size; ++i) order[i] = i;
  sort_all(
      order.data(), order.data() + v.size,
      [&](int64_t p, int64_t q) {
        const int c = compare(p, q, 0);
        return c ? c < 0 : p < q;
      },
      cost);
  for (int64_t i = 0; i < v.size; ++i) {
    if (i % between_looks == 0) PINNACE_TRY(check_stopped(node.label()));
    const bool fresh = i == 0 || compare(order[i - 1], order[i], apart) != 0;
    if (fresh) {
      first[groups] = order[i];  // the lowest of its equals: they are in order
      count[groups++] = 0;
    }
    group_of[order[i]] = groups - 1;
    ++count[groups - 1];
  }
  if (node.attr_int("sorted")) {
    for (int64_t i = 0; i < v.size; ++i) inverse[i] = group_of[i];
    return Found{std::move(first), std::move(inverse), std::move(count), groups};
  }
  // Renumber groups as slices mention them; order[group] becomes its new number.
  PINNACE_ASSIGN(auto new_first, scratch());
  PINNACE_ASSIGN(auto new_count, scratch());
  int64_t next = 0;
  for (int64_t i = 0; i < v.size; ++i) {
    const int64_t group = group_of[i];
    if (first[group] == i) {
      order[group] = next;
      new_first[next] = i;
      new_count[next++] = count[group];
    }
    inverse[i] = order[group];
  }
  return Found{std::move(new_first), std::move(inverse), std::move(new_count), groups};
}

Status unique_types(const NodeView& node, std::span<TensorType> outputs) {
  const TensorType& x = node.input(0);
  int axis = 0;
  TensorType y{x.dtype, x.shape, nullptr};
  PINNACE_ASSIGN(y.quantization, moved_quantization(node, 0));
  if (node.attr_int("axis") == kFlat) {
    y.shape = {dim_product(x.shape)};
  } else {
    PINNACE_ASSIGN(axis, node.axis(node.attr_int("axis"), x.rank()));
  }
  const Dim all = y.shape[static_cast<size_t>(axis)];
  Dim different = dim_at_most(all);
  if (node.input_data(0) && x.concrete()) {
    // Only read: TensorView has one type of pointer for both directions.
    PINNACE_ASSIGN(const Found found,
                   find_unique(node, {&x, static_cast<std::byte*>(const_cast<void*>(node.input_data(0)))}));
    different = found.different;
  }
  y.shape[static_cast<size_t>(axis)] = different;
  outputs[0] = std::move(y);
  for (size_t i = 1; i < outputs.size(); ++i) outputs[i] = {DType::kI64, {i == 2 ? all : different}, nullptr};
  return {};
}

Status unique_reference(const NodeView& node, std::span<const TensorView> in, std::span<const TensorView> out) {
  const TensorView x = in[0], y = out[0];
  PINNACE_ASSIGN(const AxisView v, sliced(node, *x.type));
  PINNACE_ASSIGN(Found found, find_unique(node, x));
  const size_t bytes = element_bytes(x.dtype());
  for (int64_t o = 0; o < (y.elements() ? v.outer : 0); ++o) {
    for (int64_t i = 0; i < found.different; ++i) {
      copy_run(y.bytes + static_cast<size_t>((o * found.different + i) * v.inner) * bytes,
               x.bytes + static_cast<size_t>((o * v.size + found.first[i]) * v.inner) * bytes, v.inner, bytes);
    }
  }
  Scratch<int64_t>* const parts[] = {nullptr, &found.first, &found.inverse, &found.count};
  for (size_t i = 1; i < out.size(); ++i) {
    copy_run(out[i].bytes, reinterpret_cast<const std::byte*>(parts[i]->data()), out[i].elements(), sizeof(int64_t));
  }
  return {};
}
}  // namespace

PINNACE_OP(unique){
    .name = "unique",
    .inputs = {{"x", kAny}},
    .attrs = {int_attr("axis", kFlat), int_attr("sorted", 1), int_attr("equal_nan", 1)},
    .max_outputs = 4,
    .types = unique_types,
    .reference = unique_reference,
    .traits = Trait::kRunsToCount,
    .work = Work::kSorted,
};
}  // namespace pinnace
