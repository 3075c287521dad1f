// Tables of 256 bytes that stand for functions of one quantised operand, and the kernel that looks elements up.
#pragma once

#include "backends/gpu/lowering.h"

namespace pinnace::gpu {

/// Runs of dense elements, or of vectors of NC4HW4 buffers, through a table or as they are. Places in elements.
struct Runs {
  int64_t count = 0, run = 1, from_image = 0, to_image = 0, to = 0;
  bool rows = false, table = true;
};

void runs(NodeLowering& n, const Runs& r, TensorId x, TensorId table, TensorId y);

/// The bytes of `from` that its 256 bytes become with another scale and zero point, as NC4HW4 buffers hold them.
TensorId rescaling_table(NodeLowering& n, std::string_view what, const TensorType& from, const TensorType& to);

/// y = x with output 0's scale and zero point: dense, of `count` elements; `from` says what those of x are.
void rescale_rows(NodeLowering& n, TensorId x, const TensorType& from, int64_t count, TensorId y);

/// The bytes of `from` that its 256 bytes become as `to`, as NC4HW4 buffers hold them.
void rescale_bytes(const TensorType& from, const TensorType& to, std::span<uint8_t> bytes);

/// Output 0 as a function of input `main` alone.
void function_of(NodeLowering& n, int main);

}  // namespace pinnace::gpu
