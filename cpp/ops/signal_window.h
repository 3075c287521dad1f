// What blackman_window, hamming_window and hann_window share: their shape rule, and the loop over their elements.
//   size  []  i32 | i64: elements of y
//   y     [size]  numbers, of element type output_datatype
//   output_datatype  string, default "f32": name of a type of numbers; integers cut fractions off
//   periodic         int, default 1: one period of a window that repeats, the angle of element n is 2 pi n / size;
//                    0: a symmetric window, 2 pi n / (size - 1)
// Computed in double, rounded once.
#pragma once

#include <numbers>

#include "ops/move.h"

namespace pinnace {

inline constexpr AttrDef kOutputDatatypeAttr = string_attr("output_datatype", "f32");
inline constexpr AttrDef kPeriodicAttr = int_attr("periodic", 1);

/// The element type that output_datatype names; others than numbers are kInvalidArgument.
Result<DType> output_datatype(const NodeView& node);

/// Shape rule; a negative size is kInvalidArgument.
Result<TensorType> signal_window_type(const NodeView& node);

/// y[n] = f(angle of n). A symmetric window of size 1 is 1.
template <class F>
Status fill_signal_window(const NodeView& node, const TensorView& y, F f) {
  const int64_t size = y.elements(), period = node.attr_int("periodic") != 0 ? size : size - 1;
  return visit(y.dtype(), [&](auto zero) {
    using T = decltype(zero);
    for (int64_t n = 0; n < size; ++n) {
      const double angle = 2 * std::numbers::pi * static_cast<double>(n) / static_cast<double>(period);
      y.data<T>()[n] = convert<T>(period == 0 ? 1.0 : f(angle));
    }
    return Status();
  });
}

}  // namespace pinnace
