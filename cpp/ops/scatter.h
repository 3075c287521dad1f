// What scatter_elements and scatter_nd share: how an update is joined with what is there, and their common checks.
#pragma once

#include "ops/move.h"

namespace pinnace {

enum class Join : uint8_t { kNone, kAdd, kMul, kMax, kMin };
/// The attribute "reduction".
Result<Join> scatter_join(const NodeView& node);
/// The type of inputs 0 (data) and of the output; checks reduction, and the quantisation of input 2 (updates).
Result<TensorType> scatter_type(const NodeView& node);
/// y[at + i] = join(y[at + i], updates[from + i]) for i in [0, count). Floats are computed in double and rounded each
/// time; integers wrap; max and min give NaN if either is.
void scatter_run(const TensorView& y, int64_t at, const TensorView& updates, int64_t from, int64_t count, Join join);

}  // namespace pinnace
