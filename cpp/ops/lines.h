// Lines: evenly spaced elements of a tensor, read as real numbers in double and written back with one rounding.
// Reference code that works along an axis or a plane goes through them and so needs no template per element type.
#pragma once

#include "ops/element.h"

namespace pinnace {

/// to[i] = the real value of element first + i * step, for i in [0, count). Quantised per tensor: float32(q - zero) *
/// scale.
void load_line(const TensorView& t, int64_t first, int64_t step, int64_t count, double* to);

/// Element first + i * step = from[i], rounded once. Quantised per tensor: rounded to float32, then quantize().
/// Integers: `from` holds whole numbers in range.
void store_line(const TensorView& t, int64_t first, int64_t step, int64_t count, const double* from);

/// to[i] = a number for element first + i * step, and among such numbers the same order: that of the elements, stored
/// integers where they are quantised. Equal elements have equal numbers, so -0 has that of 0; NaN comes last.
void load_order(const TensorView& t, int64_t first, int64_t step, int64_t count, uint64_t* to);

/// Eliminations ask loop_stops() once for so many rows of a matrix, beside once for every column.
inline constexpr int64_t kRowsBetweenLooks = 64;

/// to[i] = stored integer - zero, modulo 2^32; for i8 and u8.
void load_centered(const TensorView& t, int64_t first, int64_t step, int64_t count, int32_t zero, uint32_t* to);

/// The slices of a shape along one axis: element i of slice (o, k), of [outer, size, inner], is at (o * size + i) *
/// inner
/// + k. The shape is concrete.
struct Slices {
  int64_t outer = 1, size = 1, inner = 1;
  /// Of dimensions [axis, axis + count).
  Slices(const Shape& shape, int axis, int count = 1) {
    for (int d = 0; d < static_cast<int>(shape.size()); ++d) {
      (d < axis ? outer : d < axis + count ? size : inner) *= shape[static_cast<size_t>(d)].size;
    }
  }
};

/// For shape rules of operators on floats and quantised i8 | u8: an 8-bit input must be quantised per tensor, and then
/// output 0 must have a declared quantisation per tensor too. Finite, positive scales; zero points inside the type.
Status check_quantized(const NodeView& node, int input);
/// The same for one type that `what` names.
Status check_per_tensor(const NodeView& node, const Quantization& q, DType dtype, std::string_view what);
/// The same for one of many scales and its zero point.
Status check_scale(const NodeView& node, float scale, int32_t zero, DType dtype, std::string_view what);

/// True if both sizes are known and differ.
constexpr bool differ(Dim a, Dim b) {
  return a.known() && b.known() && a.size != b.size;
}

/// True if a tensor of shape `from` broadcasts to `to` without changing `to`, as far as sizes are known.
bool broadcasts_to(const Shape& from, const Shape& to);

/// True if a tensor of shape `from` has an element for each of `to` from dimension `axis` on, and no dimension before
/// it: what broadcasts to `to` then repeats whole rows. All sizes are known.
bool is_row_of(const Shape& from, const Shape& to, int axis);

/// Mean and variance (of the population) of `count` numbers, in two passes; NaN for none.
struct Moments {
  double mean, variance;
};
Moments moments(const double* x, int64_t count);

/// For shape rules: input i is a vector with one element per channel.
Status check_per_channel(const NodeView& node, int input, Dim channels);

}  // namespace pinnace
