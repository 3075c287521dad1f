// The equation of an einsum node, letter by letter.
#pragma once

#include <vector>

#include "ops/op.h"

namespace pinnace {

/// Labels are letters' codes, and negative for the dimensions of "...": -1 is the last one.
struct EinsumEquation {
  std::vector<std::vector<int>> terms;  ///< per input: the label of each of its dimensions
  std::vector<int> out;                 ///< of the result's dimensions
  std::vector<int> labels;              ///< out, then those that are summed
  Shape sizes;                          ///< of `labels`, after a size of 1 was repeated

  Dim size_of(int label) const;
};

/// kInvalidArgument: the equation breaks its grammar, or does not fit the inputs' types.
Result<EinsumEquation> parse_einsum(const NodeView& node);

}  // namespace pinnace
