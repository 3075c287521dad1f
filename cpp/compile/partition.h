// Which back end runs each node, and why not another; and the order that needs the fewest changes of back end.
#pragma once

#include <map>
#include <utility>

#include "compile/plan.h"

namespace pinnace {

/// Per node: index into PlanRequest::targets, or one of these.
inline constexpr int32_t kComputedAhead = -1;
inline constexpr int32_t kRuntime = -2;  ///< control flow

struct Partition {
  std::vector<int32_t> target;       ///< per node
  std::vector<bool> dynamic;         ///< per node: sizes_come_with_the_run()
  std::vector<Placement> placement;  ///< per node; bytes_copied is filled in by the planner
  std::vector<int32_t> order;        ///< nodes that run, in an order that respects edges and keeps targets together
};

/// Nodes that a back end gave back when it saw the run that they were part of: by node and target, with its reason.
using GivenBack = std::map<std::pair<int32_t, int32_t>, Verdict>;

/// Whether sizes of the node's inputs or outputs are known only while the model runs, or would be found anew there. The
/// types must be those of a plan: where a symbol stands for a size that a caller gives, the size is in its place.
bool sizes_come_with_the_run(const Node& node, const TypeInference& type_inference);

Result<Partition> partition(const PlanRequest& request, const TypeInference& type_inference,
                            const GivenBack& given_back = {});

}  // namespace pinnace
