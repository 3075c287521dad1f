// Chains of operators that are products of rows which are rounded when they are there (pn.DynamicInt8): what finds the
// least and the largest of each row, quantize_linear, mat_mul_integer by constants, and what makes floats of the sums.
// Lowering puts one mat_mul in their place where a kernel computes all of it (mat_mul_rounded_rows.cc).
#pragma once

#include <vector>

#include "backends/cpu/fusion.h"
#include "backends/cpu/plan/lower.h"

namespace pinnace::cpu {

/// Nodes are numbers of Segment::nodes.
struct RoundedRowsProduct {
  size_t last;               ///< the node that makes the result
  std::vector<size_t> done;  ///< nodes that it stands for, apart from `last` and what products share
  Node product;              ///< mat_mul of the floats, without its second operand, with the result of `last`
  FusionOf<ValueId> fusion;
};

/// All products of the same rows.
struct RoundedRowsGroup {
  std::vector<size_t> rounding;  ///< the nodes that round rows, which nobody else needs
  std::vector<RoundedRowsProduct> products;
};

std::vector<RoundedRowsGroup> find_rounded_rows(const Segment& segment);

}  // namespace pinnace::cpu
