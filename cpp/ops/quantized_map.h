// Elementwise functions of real numbers on every type that has them: floats in double with one rounding at the end,
// quantised tensors by definition: dequantise, compute, quantise. One line of reference code per operator.
#pragma once

#include "ops/element.h"

namespace pinnace {

/// Element types of functions of real numbers: floats, and i8 or u8 where quantised (real_function_type refuses plain
/// ones).
inline constexpr DTypes kReals = kFloats | kI8 | kU8;

/// Shape rule of such functions of one input: same_type; plain integers are refused.
Result<TensorType> real_function_type(const NodeView& node);
/// Refuses input i if it is i8 or u8 and not quantised.
Status refuse_plain_int8(const NodeView& node, int i);

/// y = f(x) for quantised tensors of one element type: float32(q - zero) * scale, f in double, rounded to float32,
/// quantised. 8-bit types go through a table of 256 entries, so that f runs once for each value. y may be x.
void map_quantized(const Threads& threads, const TensorView& x, const TensorView& y,
                   double (*f)(const void* context, double), const void* context);

/// y = f(...f(f(x0, x1), x2)...) for one or more quantised tensors with broadcasting, in float32, quantised at the end.
void fold_quantized(const Threads& threads, std::span<const TensorView> in, const TensorView& y,
                    float (*f)(float, float));
/// The same for two.
inline void map_quantized(const Threads& threads, const TensorView& a, const TensorView& b, const TensorView& z,
                          float (*f)(float, float)) {
  const TensorView in[] = {a, b};
  fold_quantized(threads, in, z, f);
}
/// z = f(a, b), bool, of the dequantised values with broadcasting.
void compare_quantized(const Threads& threads, const TensorView& a, const TensorView& b, const TensorView& z,
                       bool (*f)(float, float));

/// y = f(x) for floats and quantised types; f takes and gives double.
template <class F>
Status map_function(const Threads& threads, const TensorView& x, const TensorView& y, F f) {
  if (!x.type->quantized()) return map_floats(threads, x, y, f);
  map_quantized(
      threads, x, y, [](const void* context, double v) -> double { return (*static_cast<const F*>(context))(v); }, &f);
  return {};
}

}  // namespace pinnace
