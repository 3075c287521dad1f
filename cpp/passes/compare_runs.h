// Runs a graph by reference code before and after a rewrite, on the same seeded inputs, and says how far the results
// differ.
#pragma once

#include <vector>

#include "ops/infer.h"

namespace pinnace {

class CompareRuns {
 public:
  CompareRuns(const OpTable& ops, uint64_t seed) : ops_(ops), seed_(seed) {}

  /// Runs `graph` and keeps its results. Symbols take small sizes that their rules allow. A graph that refuses the
  /// seeded inputs (indices out of range) is kVerification: the check cannot be made.
  Status start(const Graph& graph);
  /// Runs `graph` on the same inputs. The largest difference of an output or a state, relative to its largest
  /// magnitude; infinity where types or the places of non-finite values differ.
  Result<double> error_of(const Graph& graph);

 private:
  Result<std::vector<ReferenceOutput>> run(const Graph& graph);
  const OpTable& ops_;
  uint64_t seed_;
  std::vector<ReferenceOutput> before_;
};

}  // namespace pinnace
