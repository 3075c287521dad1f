// Moving elements of any type: copies by element size, so that operators that only move data need no code per type; and
// the arithmetic on dimensions that shape rules of such operators share.
#pragma once

#include <algorithm>
#include <cstring>
#include <limits>

#include "ops/element.h"

namespace pinnace {

// ------------------------------------------------------------------------------------------------------- elements

/// Bytes of one element. Types of fewer than 8 bits do not occur: kBytewise excludes them.
inline size_t element_bytes(DType dtype) {
  return static_cast<size_t>(dtype_bits(dtype)) / 8;
}

/// Copies one element of 1, 2, 4 or 8 bytes.
inline void copy_element(std::byte* to, const std::byte* from, size_t bytes) {
  switch (bytes) {
    case 1:
      *to = *from;
      break;
    case 2:
      std::memcpy(to, from, 2);
      break;
    case 4:
      std::memcpy(to, from, 4);
      break;
    default:
      std::memcpy(to, from, 8);
      break;
  }
}
/// to[0, count) = from[0, count); nothing for count 0, where pointers may be null.
inline void copy_run(std::byte* to, const std::byte* from, int64_t count, size_t bytes) {
  if (count > 0 && to != from) std::memcpy(to, from, static_cast<size_t>(count) * bytes);
}

/// About how long copy_run takes.
inline double copy_nanoseconds(int64_t count, size_t bytes) {
  return kMapNanoseconds + 0.2 * static_cast<double>(count) * static_cast<double>(bytes);
}

/// For every index of `shape`: to[sum(index * to_strides)] = from[sum(index * from_strides)]. Strides are in elements,
/// may be 0 or negative; from and to point at index 0. No two indices have one place in `to`.
void copy_strided(const Threads& threads, const Shape& shape, const std::byte* from,
                  std::span<const int64_t> from_strides, std::byte* to, std::span<const int64_t> to_strides,
                  size_t bytes);

/// y[permuted index] = x[index]: dimension i of y is dimension perm[i] of the dense x of sizes `x_shape`; y is dense.
void copy_transposed(const Threads& threads, const Shape& x_shape, std::span<const int> perm, const std::byte* x,
                     std::byte* y, size_t bytes);

/// y[i0, i1, ...] = x[places of i0, places of i1, ...]: `places` holds, one dimension of y after another, for each
/// place of y the place of x it comes from; where one of them is -1 the element is `fill`. x and y are dense and of one
/// rank.
void copy_by_places(const Threads& threads, const TensorView& x, const TensorView& y, std::span<const int64_t> places,
                    const std::byte* fill);

/// Element i of an i32 or i64 tensor.
inline int64_t load_index(const TensorView& t, int64_t i) {
  return t.dtype() == DType::kI64 ? t.data<int64_t>()[i] : t.data<int32_t>()[i];
}
/// All elements of an i32 or i64 tensor that is small (axes, pads, sizes).
std::vector<int64_t> load_indices(const TensorView& t);

/// `index` in [-size, size) made non-negative, or the error that names it.
inline Result<int64_t> wrap_index(const NodeView& node, int64_t index, int64_t size) {
  if (index < -size || index >= size) return node.error("index ", index, " is outside a dimension of size ", size);
  return index < 0 ? index + size : index;
}

/// A dense shape seen from one axis: [outer, size, inner].
struct AxisView {
  int64_t outer = 1, size = 1, inner = 1;
};
AxisView view_axis(const Shape& shape, int axis);

/// A double as A: integers cut fractions off and end at their limits; NaN is 0.
template <class A>
A from_real(double x) {
  if constexpr (std::is_integral_v<A>) {
    if (!(x == x)) return 0;
    if (x <= static_cast<double>(std::numeric_limits<A>::min())) return std::numeric_limits<A>::min();
    if (x >= static_cast<double>(std::numeric_limits<A>::max())) return std::numeric_limits<A>::max();
  }
  return static_cast<A>(x);
}

// ----------------------------------------------------------------------------------------------------- dimensions

/// Products and sums of sizes that stay at INT64_MAX instead of overflowing: infer_node_types refuses such shapes.
inline int64_t saturating_mul(int64_t a, int64_t b) {
  int64_t product;
  return __builtin_mul_overflow(a, b, &product) ? INT64_MAX : product;
}
inline int64_t saturating_add(int64_t a, int64_t b) {
  int64_t sum;
  return __builtin_add_overflow(a, b, &sum) ? INT64_MAX : sum;
}

/// Largest size that d can have, or Dim::kUnknown. (Ranges of symbols are not known here.)
inline int64_t dim_bound(const Dim& d) {
  return d.known() ? d.size : d.max;
}
/// a * b and a + b; exact where sizes or neutral elements allow, else unknown with the bound that the parts give.
Dim dim_mul(const Dim& a, const Dim& b);
Dim dim_add(const Dim& a, const Dim& b);
/// The product of all.
Dim dim_product(std::span<const Dim> dims);
/// An unknown size of at most that of d.
inline Dim dim_at_most(const Dim& d) {
  return d.known() && d.size == 0 ? Dim(0) : Dim::unknown(dim_bound(d));
}
/// One dimension that both describe: a size wins over a symbol, a symbol over nothing. Nothing if two sizes differ.
std::optional<Dim> dim_merge(const Dim& a, const Dim& b);

/// Elements of integer input i where every one is known, be it as data or from shapes.
std::optional<std::vector<int64_t>> known_ints(const NodeView& node, int i);
/// The error, if input i is neither [] nor [1]. For rules that no contents of it matter to.
Status check_one_number(const NodeView& node, int i);
/// The one element of integer input i, as far as it is known; the same error.
Result<KnownInt> known_scalar(const NodeView& node, int i);
/// The most dimensions that the length of a vector may give a tensor.
inline constexpr int64_t kMostDimensions = 64;
/// What a vector with an element for each axis of x is held to before anything of its length is allocated: not less
/// than the rank, for which each operator has its own sentence.
inline int64_t most_axes(const TensorType& x) {
  return std::max<int64_t>(x.rank(), kMostDimensions);
}
/// Length of input i, which must be a vector. What decides a rank must be known and at most kMostDimensions, for a
/// shape of that length is allocated: anything else is an error.
Result<Dim> vector_length(const NodeView& node, int i, bool decides_rank);

/// Quantisation of an output that holds input i's elements in another order: the input's own. Per axis or block is
/// kInvalidArgument: an element's parameters would move with it.
Result<std::shared_ptr<const Quantization>> moved_quantization(const NodeView& node, int i);
/// As above for values that are computed from input i: what the graph declares, else that of input i.
Result<std::shared_ptr<const Quantization>> computed_quantization(const NodeView& node, int i);
/// Same parameters, or both none.
bool same_quantization(const TensorType& a, const TensorType& b);

}  // namespace pinnace
