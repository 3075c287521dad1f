// Plan: who runs what, in which order, and where the values between lie. Made for one graph and one set of concrete
// input types.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include <pinnace/session.h>

#include "backends/backend.h"
#include "backends/packed_constants.h"
#include "compile/targets.h"

namespace pinnace {

/// One step of a plan, in order of execution.
struct Step {
  enum class Kind : uint8_t {
    kSegment,  ///< an executable
    kControl,  ///< one `if` or `loop`, run by runtime/
    kDynamic,  ///< one node whose types are known only when its inputs are there; compiled then
  } kind = Kind::kSegment;
  std::vector<int32_t> nodes;              ///< indices into Graph::nodes
  const TargetChoice* target = nullptr;    ///< null for kControl
  std::vector<ValueId> inputs, outputs;    ///< kSegment: of the executable
  std::vector<SegmentState> states;        ///< kSegment: that the executable may keep
  std::unique_ptr<Executable> executable;  ///< kSegment
  size_t workspace_offset = 0;             ///< in the arena
};

/// Where a value that crosses steps lies.
struct Slot {
  enum class Kind : uint8_t {
    kNone,      ///< inner to a segment, or unused
    kInput,     ///< of the graph or a state
    kConstant,  ///< contents are known
    kArena,     ///< at `offset`
    kOwned,     ///< in memory of its own that grows: a graph output, or a size without bound
  } kind = Kind::kNone;
  size_t offset = 0;
  int64_t bytes = 0;  ///< upper bound; Dim::kUnknown where there is none
};

struct Plan {
  TypeInference type_inference;
  std::vector<Step> steps;
  std::vector<Slot> slots;  ///< per value
  size_t arena_bytes = 0;
  size_t owned_bytes = 0;            ///< of bounded kOwned values, aligned; with arena_bytes what a session allocates
  std::vector<Placement> placement;  ///< one row per node, in order of Graph::nodes
};

struct PlanRequest {
  const Graph& graph;
  std::span<const TensorType> input_types;  ///< concrete unless produced by data; in order of Graph::inputs
  std::span<const TargetChoice> targets;    ///< in order of preference; the CPU is added at the end if it is missing
  bool fallback = true;
  std::span<const ValueId> outputs;  ///< values that leave the graph: its outputs, kept values and states' outputs
  const OpTable& ops;
  PackedConstants& packed;
  std::string key_prefix;
};

/// kUnsupported: an operator that is not in this build, or, without fallback, the list of nodes that would run
/// elsewhere. kDeviceLost: see name_lost.
Result<Plan> make_plan(const PlanRequest& request);

/// A kDeviceLost with the name of the back end it came from as its rule, before the rule that it had: with one of its
/// own the device is well and only does not do this ("vulkan V-9"). Any other status as it is.
Status name_lost(Status status, const Backend& backend);

/// Sizes that symbols are tried at where none is given, one after the other: small ones may break a rule that real ones
/// keep (an image smaller than a window).
inline constexpr int64_t kTriedSizes[] = {1, 2, 8, 32, 64, 128, 224, 512};
/// The graph's inputs with each symbol at a size that satisfies its rule and is at least `wanted` if its range allows.
std::vector<TensorType> sized_inputs(const Graph& graph, int64_t wanted);

/// Upper bound of a type's bytes from sizes and Dim::max; Dim::kUnknown where there is none, or only one beyond memory
/// (fits_memory).
int64_t bound_bytes(const TensorType& type);

}  // namespace pinnace
