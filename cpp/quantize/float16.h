// float32 networks as float16 ones: constants, values and the arithmetic of operators that have float16.
#pragma once

#include <span>
#include <string>
#include <vector>

#include <pinnace/quantize.h>

#include "graph/graph.h"
#include "ops/type_inference.h"

namespace pinnace {

/// Nodes of the outermost graph that have float32 operands, in order.
std::vector<Float16Site> find_float16_sites(const Graph& graph, const OpTable& ops);

/// The chosen nodes take and make float16 where their operators have it. Casts stand where a value is float16 and its
/// reader, an output or a state float32, or the other way round; what a node makes keeps its name. kInvalidArgument: a
/// node that is not there or has a reason to stay in float32.
/// values: false: all stays float32. Rounded to float16 are constants, and what the casts above would round; what a
/// node makes is not. A rounded value has the name of its cast.
Status convert_to_float16(Graph& graph, const OpTable& ops, std::span<const std::string> nodes, bool values = true);

}  // namespace pinnace
