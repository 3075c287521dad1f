// Session: a program made ready for a target, with memory of its own; runs it. Prepared: what sessions share.
#pragma once

#include <chrono>
#include <cstddef>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include <pinnace/cancel.h>
#include <pinnace/custom_op.h>
#include <pinnace/program.h>
#include <pinnace/service.h>
#include <pinnace/tensor.h>

#pragma GCC visibility push(default)
namespace pinnace {

class Backend;        // backends/backend.h
class PackedStore;    // runtime/packed_store.h
struct TargetChoice;  // compile/targets.h

/// How a program is to be run. Every member has a default, so that `{.threads = 2}` compiles without a warning.
struct Options {
  /// "auto", one target ("cpu", "cpu:avx2"), or several in order of preference, separated by commas. Nodes that the
  /// named back ends do not take go to the CPU if `fallback`, each with a reason in placement(). "auto" times models of
  /// more than 20 million multiply-adds on the CPU and on the GPU, where there is one, and takes the faster: its
  /// sessions begin on the CPU, may change to the GPU once, between two runs, and the last bits of results with that.
  /// "auto:fixed" takes its time before the first run and changes nothing: see docs/gpu.md.
  std::string target = "auto";
  /// Threads that one run may use, this one included. 0: as many as the process may use processors.
  int threads = 0;
  /// "fp32", "fp16" or "bf16": the smallest floats that float32 products read; all else, sums too, stays float32.
  /// "auto": whichever is the fastest on each target: "bf16" with AMX and on AMD's processors that multiply bfloat16,
  /// "fp16" on ARM64 that computes with halves, else "fp32", on GPUs too. Session::precision() says which.
  std::string precision = "fp32";
  /// False: kUnsupported, with every such node, rather than run a node elsewhere than asked; and kDeviceLost rather
  /// than go on without a device that was lost and, opened anew, lost again.
  bool fallback = true;
  /// Names of inner values that are to be readable after a run as additional outputs, in this order, after the
  /// program's.
  std::vector<std::string> keep = {};
  /// How many sets of input shapes keep their plan and memory; the least recently used one goes first.
  int plan_cache = 8;
  /// An application's own operators and back ends; kept alive by the caller as long as any session.
  std::vector<const CustomOp*> ops = {};
  std::vector<const Backend*> backends = {};
  /// kUnsupported rather than pack weights that the file does not hold packed for the target, in this build's layout.
  bool require_payload = false;
  /// Where weights that are packed for the CPU are kept for later sessions and processes; null: nowhere. The host
  /// library has one: user_pack_cache() of pinnace/pack_cache.h.
  const PackedStore* packed_store = nullptr;
  /// Wishes about power, priority, time, folders, devices and processors.
  Service service = {};
  /// True: an element of a result is computed by the same steps whatever other elements are computed in the same run.
  /// Chunks of a stream then give the bits of the full sequence, and parts of a batch those of the batch, with the
  /// exceptions of docs/streaming.md. It is slower: a node takes a kernel whose sums are in an order that no other size
  /// decides, or reference code. The target "auto" means the CPU and the precision "auto" means "fp32". kUnsupported:
  /// another target than the CPU; kInvalidArgument: "fp16" or "bf16".
  bool shape_invariant = false;
};

/// Where one node runs, and why not elsewhere.
struct Placement {
  std::string node;
  std::string op;
  std::string source;            ///< "net.py:41", may be empty
  std::string backend;           ///< "cpu"; "runtime": control flow, bodies not placed yet; "none": computed ahead
  std::string kernel;            ///< what runs it there: "conv_f32_generic", "reference", …
  std::vector<std::string> why;  ///< one sentence per preferred target that was passed over
  int64_t bytes_copied = 0;      ///< across boundaries of segments, into this node
  std::string notice;            ///< what else there is to know of how it was made ready; may be empty
  std::string module;            ///< path of the source's submodule, "layers.3.conv1"; may be empty
  std::string path;              ///< control flow around it, "loop1.body", as NodeInfo has it; may be empty
};

/// Sizes of the plan for the shapes of the last run that succeeded (before the first one: of what is shared alone).
struct PlanInfo {
  int64_t peak_bytes = 0;      ///< exactly what the session allocates for these shapes
  int64_t constant_bytes = 0;  ///< weights packed or copied beside the program, shared by all sessions
  int segments = 0;
  int nodes_run = 0;
  int nodes_computed_ahead = 0;
};

/// One timed node of a profiled run.
struct ProfileEvent {
  std::string node, op, backend, kernel;
  int64_t start_ns = 0, duration_ns = 0;  ///< since the run's start
  std::string module;                     ///< path of the source's submodule, "layers.3.conv1"; may be empty
};

/// A program with the choices of Options made: partition, executables, packed weights. Immutable; many sessions and
/// threads share one. create() returns the same object for the same program and options while one is alive.
class Prepared {
 public:
  static Result<std::shared_ptr<const Prepared>> create(const Program& program, const Options& options = {});
  ~Prepared();
  const Program& program() const;
  const Options& options() const;
  /// What a target's back end packs for a file, whether or not the target can run here: not to be run.
  static Result<std::shared_ptr<const Prepared>> to_store(const Program& program, const Options& options,
                                                          const TargetChoice& target);
  /// One row per node, for the declared shapes (symbols at their smallest size), and behind control flow one for each
  /// node of its bodies. Bodies at sizes that only a run decides are not placed yet, which their kernel says.
  std::vector<Placement> placement() const;

  struct Data;
  const Data& data() const { return *data_; }
  /// The same after `lost`, a kDeviceLost: on the device opened anew if it can be and this is its first loss, else
  /// without its back end if fallback allows; `lost` itself if neither can be. Until sessions of the old one have
  /// moved, the weights are there twice.
  Result<std::shared_ptr<const Prepared>> recovered(const Status& lost) const;

 private:
  Prepared();
  static Result<std::shared_ptr<const Prepared>> create(const Program& program, const Options& options,
                                                        const std::vector<TargetChoice>& targets);
  std::unique_ptr<Data> data_;
};

/// A run that was submitted. wait(), done() and cancel() may be called by any number of threads at once. Moving,
/// assigning and destroying are the owner's: as with any object, no other call may be under way then.
///
/// Destroying it, and assigning another to it, waits for the run. On the run's own thread (what `finished` or an
/// operator of the application drops) and in a forked child, which has no such thread, it does not wait.
class Run {
 public:
  Run(Run&&) noexcept;
  Run& operator=(Run&&) noexcept;
  ~Run();
  /// Waits and gives the run's status; kCancelled if cancel() came in time. Every caller gets the same.
  /// kInvalidArgument: this Run was moved from, the caller is the run's own thread, or the process was forked since.
  Status wait();
  /// The same for at most `time`; true if the run is done.
  bool wait_for(std::chrono::nanoseconds time) const;
  bool done() const;
  /// Asks the run to stop, as a token of its RunOptions does.
  void cancel();

  struct Data;

 private:
  friend class Session;
  explicit Run(std::shared_ptr<Data> data);
  std::shared_ptr<Data> data_;
};

/// A Prepared with its own memory and state. One thread at a time: a second caller of what runs, reads or writes state
/// gets kInvalidArgument, not a race. What describes the session (inputs() to symbols(), placement(), plan(), output(),
/// output_type()) may be called from any thread at any time. Moving and destroying are the owner's; runs that were
/// submitted and are under way keep what they use.
///
/// In a forked child the CPU goes on as in the parent. Devices do not: what runs there is kDeviceLost to a run, which
/// goes on as after any such loss.
class Session {
 public:
  static Result<Session> create(const Program& program, const Options& options = {});
  static Result<Session> create(std::shared_ptr<const Prepared> prepared);
  Session(Session&&) noexcept;
  Session& operator=(Session&&) noexcept;
  ~Session();

  std::span<const TensorSpec> inputs() const;
  /// The program's outputs, then those kept by Options::keep.
  std::span<const TensorSpec> outputs() const;
  std::span<const Symbol> symbols() const;

  /// What is called after a run that succeeded, on the thread that ran, while the session still refuses everyone else:
  /// there output() is that run's for sure. It may read the session, and must not throw.
  using Finished = std::function<void(const Session&)>;

  /// Runs the program once and waits for it.
  ///
  /// inputs   one per inputs(), in order; dtype and shape satisfy inputs()[i] and the symbols; dense row-major, at a
  ///          multiple of the elements' bytes; borrowed until return.
  /// outputs  one per outputs(), or empty: written in full, may not overlap inputs or each other, at such a multiple
  ///          too. A Tensor with null memory (or an empty list) leaves the bytes with the session, see output(). Memory
  ///          given must hold the upper bound of the type.
  ///
  /// kInvalidArgument: a type or a declared range is violated, the sentence names input, dimension, value and rule;
  /// outputs and state untouched. A GPU that is lost is opened anew, once, and the run is made again on it; after that
  /// it is planned around where Options::fallback allows, as any other lost device is at once. placement() says so.
  /// Else kDeviceLost: make a new Session. After a failure inside an operator outputs are unspecified and state is
  /// unchanged. Input sizes whose plan is cached take no memory where kernels run the nodes; reference code, control
  /// flow and sizes that depend on the inputs' elements do. kCancelled: `options` ended it, the sentence says which and
  /// in which node.
  Status run(std::span<const Tensor> inputs, std::span<const Tensor> outputs = {}, const Finished& finished = {},
             const RunOptions& options = {});
  /// The same, on a thread of its own; inputs, outputs and the token of `options` are borrowed until the Run is done.
  /// kOutOfMemory: the system gives no more threads.
  Result<Run> submit(std::span<const Tensor> inputs, std::span<const Tensor> outputs = {}, Finished finished = {},
                     const RunOptions& options = {});

  /// Type of output i in the last run: concrete, also where the declared one is not. The declared one while a run is
  /// under way, after one that failed, and before the first.
  TensorType output_type(int i) const;
  /// Output i of the last run where the session owns its bytes: valid until the next run or the end of the session.
  /// Without memory while a run is under way, after one that failed, and before the first.
  Tensor output(int i) const;

  /// Runs and records what each node took. Events are in order of start.
  Result<std::vector<ProfileEvent>> profile(std::span<const Tensor> inputs, std::span<const Tensor> outputs = {},
                                            const Finished& finished = {}, const RunOptions& options = {});

  /// "fp32", "fp16" or "bf16": of what runs on the CPU, and what Options::precision "auto" became there.
  std::string precision() const;

  /// Both are of the last run that succeeded, also while the next one is under way, which publishes its own at its end.
  std::vector<Placement> placement() const;
  PlanInfo plan() const;

  /// From now on a loop without a count of iterations that goes on for longer than this ends its run with kCancelled.
  /// Each loop, nested ones too, has its own time, looked at before another iteration begins. 0, as at first: loops
  /// take what time they need.
  Status limit_loops(std::chrono::nanoseconds limit);

  /// State between runs, by the index of Program::states(): the value after the last run that succeeded. The bytes are
  /// the session's, and valid until its next run. kDeviceLost: the state lay in the memory of a device that was lost
  /// (only without Options::fallback); nothing runs before it is set or reset.
  Result<Tensor> state(int i) const;
  /// The same, copied to dense host memory of exactly the state's type while the session refuses everyone else: whole,
  /// whatever other threads run next.
  Status copy_state(int i, const Tensor& to) const;
  /// Dense bytes of the state's type are copied in.
  Status set_state(int i, const Tensor& value);
  /// As at first. Like all calls that change the session, refused while it runs on another thread.
  Status reset_state();

  /// All states in bytes of pinnace's own form, which hold their hash and that of the program: a session of the same
  /// program, in another process or on another machine too, goes on from there. kDeviceLost as state().
  Result<std::vector<std::byte>> save_state() const;
  /// Goes on where save_state() was called. kCorruptFile: damaged bytes, or none of save_state(). kInvalidArgument: of
  /// another program, for which its weights count and its metadata and payloads do not. kUnsupported: of a newer
  /// version of the form. Nothing was changed then.
  Status restore_state(std::span<const std::byte> saved);
  /// Ends a stream, that is, a program of Model::streamed: runs on as many elements of nothing as bring out what
  /// outputs still lag behind, and puts the states back as at first, so that the next chunk begins another stream.
  ///
  /// inputs   as for run(); those that are streams are not read, and may be without memory, or left out at the end.
  /// Returns  of each of outputs() how many elements along time are left: output(i) begins with them, what follows them
  ///          in it is not the network's. 0 of those that Options::keep added. Where StreamedInput::tail is 0 nothing
  ///          runs: there is no output(i), and `finished` is not called.
  /// kInvalidArgument: the program takes the whole at once; and what run() gives. States are then as before.
  Result<std::vector<int64_t>> finish(std::span<const Tensor> inputs = {}, const Finished& finished = {},
                                      const RunOptions& options = {});
  /// A second session with the same states, of the same Prepared: weights and plans' constants are shared, and what
  /// either runs from now on leaves the other alone.
  Result<Session> fork() const;

  struct Data;

 private:
  friend class ProfiledRun;
  explicit Session(std::shared_ptr<Data> data);
  std::shared_ptr<Data> data_;  ///< shared only with runs that are under way
};

/// One target that this build knows on this machine.
struct Device {
  std::string target;  ///< "cpu"
  bool available = false;
  std::string description;  ///< processor and instruction set, or the reason why it is not available
};
std::vector<Device> devices();

}  // namespace pinnace
#pragma GCC visibility pop
