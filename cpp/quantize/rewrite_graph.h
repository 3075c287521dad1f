// Rewrites of a graph that quantisation consists of, in their order, and the one by which it is checked.
#pragma once

#include <pinnace/quantize.h>

#include "graph/graph.h"
#include "ops/type_inference.h"

namespace pinnace {

/// Activations become nodes behind the node that carries them: integer products apply relu and clip alone, and the
/// value between needs a range. Those two only with `clamps`.
Status split_activations(Graph& graph, const OpTable& ops, bool clamps = false);

/// QuantizeReadyOptions::equalize: over each pair of products by constant weights of which the second alone reads the
/// first, with nothing but a relu between. Channels of zeros stay.
Status equalize_channels(Graph& graph, const OpTable& ops);

/// quantize_linear and dequantize_linear at the values of the choices, and integer weights for their nodes. A value
/// that a chosen node makes is rounded for all its readers, any other for chosen nodes alone. The rounded value takes
/// the name over, unless it is an input's. kInvalidArgument: a node or value that is not there, a node that no integer
/// form is made of, a value without a scale.
Status insert_quantization(Graph& graph, const OpTable& ops, const QuantizeChoices& choices);

/// Model::cut.
Status cut_graph(Graph& graph, std::span<const std::string> values);

}  // namespace pinnace
