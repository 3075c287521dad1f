// What a back end is: it says which nodes it takes and why not the others, and compiles runs of nodes to executables.
// backends.inc lists those built in. How to add one: docs/adding_a_backend.md.
#pragma once

#include <chrono>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "backends/node_timings.h"
#include "backends/service.h"
#include "base/cancel.h"
#include "base/threads/thread_pool.h"
#include "ops/op.h"
#include "ops/type_inference.h"

namespace pinnace {

/// A target as the user wrote it: "cpu:avx2" is {"cpu", "avx2"}.
struct TargetSpec {
  std::string backend;
  std::string variant;
  std::string precision = "fp32";
  bool automatic = false;        ///< chosen by "auto", not by name: only what pays is to go there
  bool storing = false;          ///< only the constants are wanted, for a file: no device is asked, nothing will run
  Service service = {};          ///< the application's wishes, checked
  bool shape_invariant = false;  ///< as in Options; the CPU's alone
};

/// Whether a node can run, and the rule that refuses it if not.
struct Verdict {
  bool supported = true;
  std::string rule;     ///< identifier, "V-6"; empty if supported
  std::string text;     ///< one phrase: "the input must be a constant"
  std::string value;    ///< the value that breaks the rule
  std::string rewrite;  ///< what the node becomes, if it is rewritten
  std::string kernel;   ///< what will run it, where that is known before compiling
};

class PackedConstants;

/// A state of the graph that a segment reads and makes anew, of one type, while nothing outside of it reads either
/// value during a run.
struct SegmentState {
  size_t index;          ///< of Graph::states
  size_t input, output;  ///< of Segment::inputs and outputs
};

/// Nodes to be compiled together, with everything known about their values. All types are concrete.
struct Segment {
  const Graph& graph;
  const TypeInference& type_inference;
  std::vector<int32_t> nodes;    ///< indices into graph.nodes, in order of execution
  std::vector<ValueId> inputs;   ///< made outside; dense row-major. Values with known data are constants, not inputs
  std::vector<ValueId> outputs;  ///< read outside; to be left dense row-major
  const OpTable& ops;
  PackedConstants& packed;
  /// Makes keys of `packed` unique: nested graphs have nodes of the same name.
  std::string key_prefix;
  std::vector<SegmentState> states = {};  ///< those that the executable may keep (Executable::keep_states)
};

/// What one session keeps of an executable's states where that runs, so that they do not pass through the host in each
/// run. One thread at a time. The executable outlives it.
///
/// A value is changed by write() and commit() alone: a run reads it and leaves the next one beside it, and a run that
/// fails, or whose session fails elsewhere, is as if it had not been.
class KeptStates {
 public:
  virtual ~KeptStates() = default;
  /// Whether the i-th of Segment::states is kept. Others pass through the views of a run, as any value does.
  virtual bool keeps(size_t i) const = 0;
  /// Sets the i-th, which is kept, from dense row-major bytes of its type. A run needs all of them set before it.
  /// kDeviceLost: the value is undefined, and to be set again.
  virtual Status write(size_t i, const std::byte* from) = 0;
  /// The value of the i-th. kDeviceLost: it cannot be had, now or ever again.
  virtual Status read(size_t i, std::byte* to) = 0;
  /// What the last run with RunContext::states made, and that succeeded, becomes the value of all that are kept.
  virtual void commit() = 0;
};

/// What Executable::kernel() says of a node that no kernel takes.
inline constexpr std::string_view kReferenceCode = "reference";

/// What one run brings along.
struct RunContext {
  std::byte* workspace = nullptr;  ///< Executable::workspace_bytes() bytes, aligned; contents do not survive the run
  ThreadPool* pool = nullptr;
  int threads = 1;
  bool workers_stay_awake = true;          ///< between the loops of a run; false: to save power
  std::chrono::nanoseconds loop_limit{0};  ///< a loop without a count that takes longer is cancelled; 0: none
  NodeTimings* timings = nullptr;          ///< null: not profiled
  KeptStates* states = nullptr;            ///< of the executable; views of what it keeps are not looked at
  /// Whether the run is to end, with stop_status(): to be asked between operators, on the thread that called run.
  bool cancelled() const { return stopped(); }
};

/// A compiled segment. Immutable: many sessions run it at once, each with its own workspace.
class Executable {
 public:
  virtual ~Executable() = default;
  virtual size_t workspace_bytes() const = 0;
  /// Views in the order of Segment::inputs and outputs, with exactly the segment's types. Allocates nothing unless a
  /// node runs by reference code. kCancelled between operators; kDeviceLost: the device is gone.
  virtual Status run(const RunContext& context, std::span<const TensorView> inputs,
                     std::span<const TensorView> outputs) const = 0;
  /// Room for one session's values of Segment::states, none of them set yet; null: it keeps none. survives: they must
  /// be readable even after a device was lost, for the session then goes on without it.
  virtual Result<std::unique_ptr<KeptStates>> keep_states(bool /*survives*/) const {
    return std::unique_ptr<KeptStates>();
  }
  /// What runs the i-th node of the segment: "conv_f32_generic", "reference".
  virtual std::string_view kernel(size_t i) const = 0;
  /// What a user should know of how the i-th node was made ready, one sentence; empty: nothing.
  virtual std::string notice(size_t) const { return {}; }
};

class Backend {
 public:
  virtual ~Backend() = default;
  virtual std::string_view name() const = 0;
  /// Empty if TargetSpec::variant has a meaning in this build, else why not; whether it can run here is another matter.
  virtual std::string unknown_variant(const TargetSpec& target) const {
    return target.variant.empty() ? std::string() : str_cat("'", target.variant, "': ", name(), " has no variants");
  }
  /// Empty if it can run here, else why not: "no Vulkan loader (libvulkan.so.1)".
  virtual std::string unavailable(const TargetSpec& target) const = 0;
  /// One line about the device, for `devices`.
  virtual std::string description() const = 0;
  /// Answers without a device. The node's types are concrete.
  virtual Verdict supports(const NodeView& node, const TargetSpec& target) const = 0;
  /// What the precision "auto" is on this target: the fastest of fp32, fp16 and bf16, as far as that is known.
  virtual std::string_view fastest_precision(const TargetSpec&) const { return "fp32"; }
  /// Whether the target "auto" takes it where it is available.
  virtual bool automatic() const { return true; }
  /// Whether "auto" measures it against the others where it does not take it unasked.
  virtual bool measured() const { return false; }
  /// Signs of a device worth measuring, found without opening a library: a line of text, another one for another
  /// device; empty where only the device itself can tell. kUnsupported: there is none, and "auto" looks no further.
  virtual Result<std::string> signs_of_device() const { return std::string(); }
  /// What such a measurement holds for, device and driver; kUnsupported: why it is not worth one.
  virtual Result<std::string> measured_device(const TargetSpec&) const { return unsupported("it is not measured"); }
  /// What it has no use of in TargetSpec::service, one sentence for placement(); empty: of all that is set, it has.
  virtual std::string unused(const TargetSpec& target) const { return unused_members(name(), target.service, {}); }
  /// Whether a device that was lost can be opened anew: the runtime then does so once and repeats the run on it.
  virtual bool reopens() const { return false; }
  /// Whether it may take `if` and `loop` as a whole, with their bodies: supports() is then asked for them too.
  virtual bool takes_control_flow() const { return false; }
  /// Looks at a whole run of nodes before it is compiled. Empty: it takes them all; else one verdict per node of the
  /// segment, and those refused go to the next target. elsewhere: they may run elsewhere, so that cost counts too.
  virtual std::vector<Verdict> review(const Segment&, const TargetSpec&, bool /*elsewhere*/) const { return {}; }
  /// kDeviceLost: the device is gone, to be opened anew if reopens(); with a rule(), it is well but not for this.
  virtual Result<std::unique_ptr<Executable>> compile(const Segment& segment, const TargetSpec& target) const = 0;
  /// Whether compile() leaves constants in Segment::packed that are to be kept in a file which is built for `target`.
  /// compile() then works for any variant of this build, whether or not it can run here.
  virtual bool stores_payloads(const TargetSpec&) const { return false; }
  /// True if compile() itself calls Constant::check() for what it and its executables read. Else all constants of the
  /// segment's nodes have been checked.
  virtual bool checks_constants() const { return false; }
};

/// The back ends built in, in the order of backends.inc; the CPU is the last and takes every node.
std::span<const Backend* const> all_backends();
const Backend& cpu_backend();

}  // namespace pinnace
