// Runs a graph by reference code before and after a rewrite, on the same inputs, given or seeded, and says how far the
// results differ.
#pragma once

#include <optional>
#include <vector>

#include "ops/type_inference.h"

namespace pinnace {

class CompareRuns {
 public:
  /// examples  none, or one for each input of the graph, which it fits, nothing where that is to be seeded. Borrowed.
  CompareRuns(const OpTable& ops, uint64_t seed, std::span<const std::optional<Tensor>> examples = {})
      : ops_(ops), seed_(seed), examples_(examples) {}

  /// Runs `graph` and keeps its results. Symbols take the examples' sizes, else small ones that their rules allow. A
  /// graph that refuses the inputs (seeded indices out of range) is kVerification: the check cannot be made.
  Status start(const Graph& graph);
  /// Runs `graph` on the same inputs. The largest difference of an output or a state, relative to its largest
  /// magnitude; infinity where types or the places of non-finite values differ.
  Result<double> error_of(const Graph& graph);

 private:
  const Tensor* given(size_t input) const;
  std::vector<int64_t> symbol_sizes(const Graph& graph) const;
  Result<std::vector<ReferenceOutput>> run(const Graph& graph);
  const OpTable& ops_;
  uint64_t seed_;
  std::span<const std::optional<Tensor>> examples_;
  std::vector<ReferenceOutput> before_;
};

}  // namespace pinnace
