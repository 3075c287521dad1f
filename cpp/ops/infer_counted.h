// infer_counted: an inference that says how far it got, for whoever searches sizes.
#pragma once

#include "ops/infer.h"

namespace pinnace {

/// infer(); `inferred` becomes the number of nodes before the first whose rule fails, of all nodes where none does.
Result<Inference> infer_counted(const Graph& graph, std::span<const TensorType> input_types,
                                std::span<const ConstantPtr> input_data, const OpTable& ops, size_t& inferred);

}  // namespace pinnace
