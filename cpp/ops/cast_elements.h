// Conversion of element types, shared by cast and cast_like.
#pragma once

#include "ops/element.h"

namespace pinnace {

/// y[i] = x[i] in the element type of y: convert() of element.h. i4 and u4 come from the low four bits of the
/// conversion to i8. Quantised tensors are read and written as their stored integers.
Status cast_elements(const TensorView& x, const TensorView& y);

/// The type `to` with the shape of input 0; the declared quantisation where `to` is an integer type.
Result<TensorType> cast_type_to(const NodeView& node, DType to);

}  // namespace pinnace
