// Sizes along time as numbers: T * up / down + plus, through the arithmetic that computes shapes.
#pragma once

#include "stream/rule.h"

namespace pinnace {

/// Of the node's only output, whose operands are sizes and constants, or the shape of a stream. Nothing: it is no such
/// arithmetic.
std::optional<std::vector<Length>> lengths_of(StreamReader& reader, const Node& node);

}  // namespace pinnace
