// What a pass is: a rewrite of a graph that keeps its meaning. One per file; passes.inc gives the order.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "graph/graph.h"
#include "ops/type_inference.h"

namespace pinnace {

struct PassContext {
  OpTable ops;
  std::vector<std::string> keep;  ///< names of values that must survive with their meaning
  /// Bytes of new constants that passes may still make of old ones. run_passes sets it from the graph's constants, so
  /// that nodes that double a constant cannot do so without end.
  mutable int64_t constant_budget = INT64_MAX;
  /// Nodes that became a part of another one, as (name, the other's name), in the order in which that happened: the
  /// other may have become a part of a third one later.
  mutable std::vector<std::pair<std::string, std::string>> merged = {};
  bool keeps(const Graph& graph, ValueId id) const;
};

struct PassDef {
  std::string_view name;     ///< the file's name
  std::string_view summary;  ///< one line for users
  /// Largest relative change of an output that the pass may cause, relative to the output's largest magnitude, where
  /// the graph computes in f32 or f64 (bound_of has other types); 0: bits stay.
  double bound = 0;
  /// Rewrites the graph in place and returns how many rewrites it made. Types of new values are set. Nested graphs are
  /// the driver's business: it calls run on each.
  Result<int> (*run)(Graph& graph, const PassContext& context);
};

/// In the order of passes.inc.
std::span<const PassDef* const> all_passes();

/// The pass's bound on a graph that computes in types of which the coarsest is f16 or bf16: at least 5e-3 or 4e-2, what
/// outputs of those types are verified by. The constants of the pass are then rounded to 2^-11 or 2^-8. 0 stays 0.
double bound_of(const PassDef& pass, const Graph& graph);

struct PassResult {
  const PassDef* pass;
  int changes;
  double milliseconds;
  double largest_error;
};

struct PassOptions {
  std::vector<std::string> disabled;  ///< names; "all"
  bool check = false;                 ///< run the graph before and after each pass that changed something and compare
  uint64_t seed = 1;                  ///< of the inputs for `check` that `examples` leaves out
  std::vector<std::optional<Tensor>> examples = {};  ///< inputs for `check`, as many as the graph has, or none
};

/// Runs every pass that is not disabled, over the list until a round changes nothing, at most four times, and verifies
/// the graph after each. kVerification names the pass that broke the graph or changed its result.
Result<std::vector<PassResult>> run_passes(Graph& graph, const PassContext& context, const PassOptions& options);

}  // namespace pinnace
