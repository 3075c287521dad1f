// Conversion of element types, shared by cast and cast_like.
#pragma once

#include "ops/element.h"

namespace pinnace {

/// What decides between conversions to floats of 8 bits.
struct CastRule {
  bool saturate = true;
  RoundMode mode = RoundMode::kUp;
};
/// From the attributes saturate and round_mode.
Result<CastRule> cast_rule(const NodeView& node);

/// y[i] = x[i] in the element type of y: convert() of element.h, small_from_double() for floats of 8 bits and fewer.
/// Integers of 4 and 2 bits come from the low bits of the conversion to i8. Quantised tensors are read and written as
/// their stored integers. y may be x where the types have one size.
Status cast_elements(const Threads& threads, const TensorView& x, const TensorView& y, const CastRule& rule);

/// The type `to` with the shape of input 0; the declared quantisation where `to` is an integer type.
Result<TensorType> cast_type_to(const NodeView& node, DType to);

}  // namespace pinnace
