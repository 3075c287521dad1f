// Runs one pass on a graph in text and checks what every pass promises: a valid graph, unchanged types of the outputs,
// and results within the pass's bound on seeded inputs.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "passes/pass.h"

namespace pinnace::testing {

struct Applied {
  Graph graph;
  int changes = 0;
  double error = 0;  ///< largest difference to the graph before, relative to the output's largest magnitude
  std::string ops;   ///< the nodes that remain without dead ones, in order: "conv relu"

  /// The node that makes the value of that name; fails the test if there is none.
  const Node& maker(std::string_view value) const;
};

/// Applies a pass of that name, then dead_code. `keep` as in PassContext.
Applied apply_pass(std::string_view pass, std::string_view text, std::vector<std::string> keep = {});

}  // namespace pinnace::testing
