// infer_types_counted: type inference that says how far it got, for whoever searches sizes.
#pragma once

#include "ops/type_inference.h"

namespace pinnace {

/// infer_types(); `inferred` becomes the number of nodes before the first whose rule fails, of all nodes where none
/// does.
Result<TypeInference> infer_types_counted(const Graph& graph, std::span<const TensorType> input_types,
                                          std::span<const ConstantPtr> input_data, const OpTable& ops,
                                          size_t& inferred);

}  // namespace pinnace
