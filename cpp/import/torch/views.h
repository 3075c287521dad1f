// What views and writes into them read alike: the arguments that say what a view shows.
#pragma once

#include <vector>

#include "import/torch/mapping.h"

namespace pinnace::torch_import {

inline const Scalar kStart = Scalar::of_int(0), kEnd = Scalar::of_int(INT64_MAX);

struct SliceOf {
  int64_t axis;
  Scalar start, end;
  int64_t step;
};

/// dims of permute: where each axis of the result comes from.
std::vector<int64_t> permutation(Call& c, int rank);
/// source and destination of movedim, in the same form.
std::vector<int64_t> movedim_order(Call& c, int rank);
SliceOf slice_of(Call& c, int rank);
/// Sizes of the parts along an axis: from a size, a number of chunks, or a list.
std::vector<int64_t> split_sizes(Call& c, ValueId x, int64_t axis);

}  // namespace pinnace::torch_import
