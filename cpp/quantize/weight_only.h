// Weights as stored integers. Everything else stays in float, the form that mat_mul_weights_f32.cc reads without
// unpacking them in memory; or rows of what they multiply are rounded at run time, and products are of integers.
#pragma once

#include <pinnace/quantize.h>

#include "graph/graph.h"
#include "ops/type_inference.h"

namespace pinnace {

/// Products (gemm, mat_mul) by constant float32 matrices, gathers of rows of one, and recurrent cells (lstm, gru, rnn)
/// that have some.
std::vector<WeightSite> find_weight_sites(const Graph& graph);

/// Integers and dequantize_linear in place of the weights of the chosen nodes. kInvalidArgument: a node that is not
/// there or is no site, bits other than 4 and 8, a block that is no multiple of 8, weights that are not finite; with
/// `dynamic` a product that has no such form, and choices that do not go with it; a Gram matrix of rows that are not as
/// long as those that its node multiplies, or of a node that is not chosen.
Status store_weights(Graph& graph, const OpTable& ops, const WeightChoices& choices);

}  // namespace pinnace
