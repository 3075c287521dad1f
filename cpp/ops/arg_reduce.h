// What arg_max and arg_min share: their attributes, shape rule and search.
#pragma once

#include "ops/op.h"

namespace pinnace {

inline constexpr std::initializer_list<AttrDef> kArgReduceAttrs = {int_attr("axis", 0), int_attr("keepdims", 1),
                                                                   int_attr("select_last_index", 0)};
Result<TensorType> arg_reduce_type(const NodeView& node);
/// Index of the first (select_last_index: last) extreme element along `axis`; a NaN is more extreme than any number.
Status arg_reduce(const NodeView& node, const TensorView& x, const TensorView& y, bool largest);

}  // namespace pinnace
