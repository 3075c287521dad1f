// Nested graphs in shape rules: types of a body's outputs under given inputs, and what several ways to a value have in
// common.
#pragma once

#include <string_view>

#include "ops/infer.h"

namespace pinnace {

/// Infers `body` with these types in place of its declared ones; data[i], if not null, are the contents of input i.
/// `what` names it in errors: "then_branch". The number and element types of inputs must be the body's.
Result<Inference> infer_body(const NodeView& node, std::string_view what, const Graph& body,
                             std::span<const TensorType> inputs, std::span<const void* const> data);

/// The type of a value that is `a` or `b`: sizes that differ become unknown. kInvalidArgument: element type, rank or
/// quantisation differ; `what` names the value.
Result<TensorType> either_type(const NodeView& node, std::string_view what, const TensorType& a, const TensorType& b);

}  // namespace pinnace
