// What the dense and the image kernels of elementwise operators share: which map or arithmetic a node is.
#pragma once

#include "backends/cpu/f32_levels.h"

namespace pinnace {

/// The map that a unary node is: relu, clip, sigmoid, …
MapF32 map_of_op(const NodeView& node);
/// A clip whose bounds are constants and not NaN, which would make every result NaN.
bool clip_bounds_known(const NodeView& node);
/// add or sum, sub, mul, div, min, max, prelu
BinaryKind binary_kind(const std::string& op);

}  // namespace pinnace
