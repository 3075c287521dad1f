// Nodes that compute nothing because their outputs have no element. Reference code and kernels walk dimensions, and
// beside a dimension of 0 there may be one of 2^53: such nodes are not run.
#pragma once

#include "ops/op.h"

namespace pinnace {

/// True if a node has nothing to write and nothing to refuse: no output has an element, nor has any input whose
/// contents may be wrong, one that takes integers only: indices, sizes. Null types: left out. False for an operator of
/// the application, which may want to see every call.
bool nothing_to_compute(const OpDef& op, std::span<const TensorType* const> inputs,
                        std::span<const TensorType* const> outputs);

/// OpDef::reference, unless there is nothing to compute: how reference code is run.
Status compute(const NodeView& node, std::span<const TensorView> inputs, std::span<const TensorView> outputs);

}  // namespace pinnace
