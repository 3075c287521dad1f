// GraphRunner: runs one graph, the program's own or a body of control flow, keeping a plan and memory per set of input
// types.
#pragma once

#include <deque>
#include <list>
#include <map>
#include <memory>
#include <optional>

#include "base/threads/work_mutex.h"
#include "compile/plan.h"

namespace pinnace {

/// Plans of one Prepared, shared by its sessions: by graph and input types, the least recently used goes first.
/// Thread-safe. Fails also as WorkMutex::lock() does: in a forked child whose parent was making a plan at the fork,
/// too.
class PlanCache {
 public:
  explicit PlanCache(size_t capacity_per_graph) : capacity_(capacity_per_graph) {}
  Result<std::shared_ptr<const Plan>> get(const PlanRequest& request);
  /// The plan that get() would give without making one; null where it would make one, or fail.
  std::shared_ptr<const Plan> find(const PlanRequest& request);
  /// Whether get() has no more plans to give in this process.
  bool left_behind() const { return mutex_.left_behind(); }

 private:
  struct Entry {
    std::vector<TensorType> types;
    std::shared_ptr<const Plan> plan;
  };
  static std::list<Entry>::iterator entry_of(std::list<Entry>& of_graph, const PlanRequest& request);

  WorkMutex mutex_;
  size_t capacity_;
  std::map<std::string, std::list<Entry>> entries_;  // by PlanRequest::key_prefix
};

/// What every runner of one Prepared has in common; outlives them.
struct RunnerSetup {
  std::span<const TargetChoice> targets;
  bool fallback = true;
  const OpTable* ops = nullptr;
  PackedConstants* packed = nullptr;
  PlanCache* plans = nullptr;
  size_t instances = 8;  ///< sets of input types whose memory is kept
};

/// Bytes that grow and are never given back before the end.
class Storage {
 public:
  Result<std::byte*> reserve(size_t bytes) {
    if (!buffer_.data() || buffer_.size() < bytes) {
      PINNACE_ASSIGN(buffer_, Buffer::allocate(bytes, "a value whose size depends on data"));
    }
    return buffer_.data();
  }

 private:
  Buffer buffer_;
};

struct ControlState;  // control_flow.cc

/// What runs a node whose sizes come with the run, and what a user should know of that.
struct ChosenKernel {
  int32_t node = -1;  ///< its number in the graph
  std::string kernel, notice;
};
using ChosenKernels = std::vector<ChosenKernel>;

/// Where an instance keeps a state of its graph; states is null where the state passes through the session's memory.
struct KeptState {
  KeptStates* states = nullptr;
  size_t position = 0;               ///< of the state in it
  const Backend* backend = nullptr;  ///< whose it is
};

/// Memory and bindings for one set of input types.
struct Instance {
  std::vector<TensorType> key;
  bool pinned = false;  ///< planned ahead with the session: not given up for other types
  std::shared_ptr<const Plan> plan;
  Buffer memory;                     ///< arena, then one or two sets of owned values
  std::vector<size_t> owned_offset;  ///< per value, in a set; only for bounded kOwned values
  std::vector<TensorView> views;     ///< per value, as of the current run
  std::vector<TensorType> actual;    ///< per value: types found during the run (dynamic values)
  std::vector<Storage> grown[2];     ///< per value: unbounded owned values, pass-through outputs
  struct StepState {
    std::vector<TensorView> inputs, outputs;  ///< of a segment
    std::shared_ptr<ControlState> control;
    Graph alone;  ///< a dynamic node by itself, to be compiled when its types are known
    std::vector<TensorType> compiled_for;
    std::unique_ptr<Executable> executable;
    Storage workspace;
    std::unique_ptr<KeptStates> kept;
  };
  std::vector<StepState> steps;
  bool chose = false;  ///< whether a run has compiled a dynamic node since the next member was made
  /// Of the dynamic nodes; never changed, so that others may keep it.
  std::shared_ptr<const ChosenKernels> chosen;
  std::vector<KeptState> kept_states;  ///< per state of the graph
  std::vector<TensorView> results;     ///< per output of the runner
};

class GraphRunner {
 public:
  /// `outputs` are the values to be left to the caller, in order. `sets` is 2 for bodies of loops: outputs of one run
  /// are the inputs of the next. All borrowed for the runner's life.
  GraphRunner(const Graph& graph, std::vector<ValueId> outputs, std::vector<ValueId> state_outputs,
              const RunnerSetup& setup, std::string key_prefix, int sets);
  ~GraphRunner();

  /// The instance for these input types (concrete), made if needed. Finding one allocates nothing. Valid until the next
  /// call. `kept` is not given up for another one; null: there is none.
  Result<Instance*> prepare(std::span<const TensorView> inputs, const Instance* kept = nullptr);

  /// Runs. `states` are the current values of Graph::states. given[i].bytes, where not null, receives output i (room
  /// for its upper bound); `given` may be empty. `set` (0 or 1) picks the memory of owned outputs. Afterwards
  /// instance.results has all outputs and instance.views every value that crosses steps.
  Status run(Instance& instance, std::span<const TensorView> inputs, std::span<const TensorView> states,
             std::span<const TensorView> given, const RunContext& context, int set);

  /// Brings instance.chosen up to date, after a run.
  static void note_chosen(Instance& instance);

  const Graph& graph() const { return graph_; }
  const RunnerSetup& setup() const { return setup_; }
  const std::string& key_prefix() const { return key_prefix_; }
  /// Bytes of tensor memory that an instance allocates, bodies that are planned ahead included.
  static size_t instance_bytes(const Instance& instance);

 private:
  Result<std::unique_ptr<Instance>> make(std::span<const TensorView> inputs);
  Status run_dynamic(Instance& instance, size_t step, const RunContext& context, int set);
  Result<std::byte*> place(Instance& instance, ValueId id, int64_t bytes, int set);

  const Graph& graph_;
  std::vector<ValueId> outputs_;  ///< as asked for
  std::vector<ValueId> leaving_;  ///< outputs and states' outputs
  RunnerSetup setup_;
  std::string key_prefix_;
  int sets_;
  std::list<std::unique_ptr<Instance>> instances_;  ///< most recent first
};

/// What keys of a graph inside node `index` of another begin with: by number, since any text may be a node's name.
std::string prefix_inside(std::string_view prefix, int32_t index, std::string_view part);

/// Runners of the bodies of one control-flow node, which is `outer`'s with that number.
std::shared_ptr<ControlState> make_control(const Node& node, const OpDef& op, const GraphRunner& outer, int32_t index);
/// The types that the inputs of the node's bodies have in a run; none where they depend on data.
std::optional<std::vector<TensorType>> body_input_types(const Node& node, const TypeInference& outer);
/// Plans the bodies ahead where the types of their inputs are concrete; failure is left to the run, which has the real
/// types.
void prepare_control(ControlState& state, const Node& node, const TypeInference& outer);
size_t control_bytes(const ControlState& state);
/// Runs the node; inputs as Node::inputs. `outputs` receives views into memory of the bodies or of `state`.
Status run_control(ControlState& state, const NodeView& node, std::span<const TensorView> inputs,
                   std::vector<TensorView>& outputs, const RunContext& context);

}  // namespace pinnace
