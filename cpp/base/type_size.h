// The bound on types that come from outside: from there on sizes are multiplied without checks.
#pragma once

#include <pinnace/tensor.h>

namespace pinnace {

/// True if the type's known sizes multiply to at most a sixteenth of INT64_MAX bits, which leaves room for sums of a
/// few tensors. Sizes of 0 count as 1, so that no order of multiplication overflows.
bool fits_memory(const TensorType& type);

}  // namespace pinnace
