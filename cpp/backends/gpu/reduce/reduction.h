// What reductions of all types share: which rows of a tensor are reduced, as kernels number them.
#pragma once

#include "backends/gpu/lowering.h"
#include "backends/gpu/reduce/params.h"

namespace pinnace::gpu {

struct Reduction {
  int64_t rows = 1, size = 1;  ///< rows, and the elements of one
  ReduceParams params{};       ///< Int8ReduceParams begin with the same
};
/// By the axes of a reduce_* node: at most three runs of dimensions of each kind in six.
Status describe_reduction(NodeLowering& n, Reduction& to);

}  // namespace pinnace::gpu
