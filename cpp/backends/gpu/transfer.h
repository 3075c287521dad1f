// Between the host's tensors and what the device reads and writes: 32-bit floats and integers.
#pragma once

#include "ops/op.h"

namespace pinnace::gpu {

/// Floats become f32; integers and bool i32. `to` has 4 bytes per element. Returns an integer that does not fit, if
/// there is one.
std::optional<int64_t> to_device(const TensorView& from, std::byte* to);
/// The inverse; floats are rounded once.
void from_device(const std::byte* from, const TensorView& to);

}  // namespace pinnace::gpu
