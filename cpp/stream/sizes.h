// Sizes along time as numbers: T * up / down + plus, through the arithmetic that computes shapes.
#pragma once

#include "stream/rule.h"

namespace pinnace {

/// Of the node's only output, whose operands are sizes and constants, or the shape of a stream. Nothing: it is no such
/// arithmetic.
std::optional<std::vector<Length>> lengths_of(StreamReader& reader, const Node& node);

/// Writes into the types of values the sizes that are the same for few elements of `symbol` and for many: where a node
/// computes a shape, all of its result's sizes are dynamic, although time alone is.
void fix_sizes(Graph& graph, int32_t symbol, const OpTable& ops);

}  // namespace pinnace
