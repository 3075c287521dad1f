// Weights that are stored as integers, for operators whose kernels pack floats on every back end.
#pragma once

#include <map>
#include <set>

#include "base/threads/work_mutex.h"
#include "graph/graph.h"
#include "ops/type_inference.h"

namespace pinnace {

/// Whether the graph may have such: a recurrent cell and a dequantize_linear.
bool has_stored_weights(const Graph& graph);

/// The floats of one graph's stored weights, by node, for all its plans. Thread-safe.
class StoredWeights {
 public:
  /// dequantize_linear of constants becomes known, as a constant, where nothing but recurrent cells reads it, as their
  /// matrices. Floats are at most kGrowth times the integers that they are made of, each counted once; nodes beyond
  /// that run like any other. What the node's reference code fails with; kCancelled; as WorkMutex::lock().
  Status know(const Graph& graph, const OpTable& ops, TypeInference& found);

 private:
  static constexpr int64_t kGrowth = 16;  ///< what integers of 2 bits need
  /// Null: there is no room.
  Result<ConstantPtr> make(const Graph& graph, const OpTable& ops, const Node& node, const TypeInference& found);

  WorkMutex mutex_;
  std::map<size_t, ConstantPtr> floats_;  ///< by the number of the node; null where there was no room
  std::set<ValueId> read_;
  int64_t room_ = 0;
};

}  // namespace pinnace
