// Elements by tables of their places: what gathers, scatters and paddings share.
#pragma once

#include "backends/gpu/strided.h"

namespace pinnace::gpu {

/// Refuses what has more dimensions than the kernels of indices take, and data without elements.
Status check_ranks(NodeLowering& n);

/// A new tensor: places of as many index tuples of `tuple` numbers each as `space` has; `space`: the dimensions over
/// which tuples are numbered, `base` their strides; what is indexed has these sizes and steps. An index outside is
/// reported by the run.
TensorId place_step(NodeLowering& n, TensorId index, const Six& space, const Six& base, int64_t tuple, const Six& sizes,
                    const Six& steps);

/// A table of places as int32; `what` tells apart tables of one node.
TensorId table(NodeLowering& n, const std::string& what, std::vector<int32_t> places);

/// y[o, j, i] = x[o, index[j], i]: o below the elements of y / indices / inner, x with `size` places along the axis.
/// What the indices say was checked.
void gather_step(NodeLowering& n, DType type, TensorId x, TensorId index, TensorId y, int64_t count, int64_t indices,
                 int64_t size, int64_t inner);

}  // namespace pinnace::gpu
