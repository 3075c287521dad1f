// What a back end is: it says which nodes it takes and why not the others, and compiles runs of nodes to executables.
// backends.inc lists those built in. How to add one: docs/adding_a_backend.md.
#pragma once

#include <algorithm>
#include <atomic>
#include <cassert>
#include <chrono>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/cancel.h"
#include "base/mapped_file.h"
#include "base/memory.h"
#include "base/stored_bytes.h"
#include "base/thread_pool.h"
#include "base/work_mutex.h"
#include "ops/infer.h"
#include "ops/op.h"

namespace pinnace {

/// A target as the user wrote it: "cpu:avx2" is {"cpu", "avx2"}.
struct TargetSpec {
  std::string backend;
  std::string variant;
  std::string precision = "fp32";
  bool automatic = false;  ///< chosen by "auto", not by name: only what pays is to go there
  bool storing = false;    ///< only the constants are wanted, for a file: no device is asked, nothing will run
};

/// Whether a node can run, and the rule that refuses it if not.
struct Verdict {
  bool supported = true;
  std::string rule;     ///< identifier, "V-031"; empty if supported
  std::string text;     ///< one phrase: "mode cubic, has linear and nearest"
  std::string value;    ///< the value that breaks the rule
  std::string rewrite;  ///< what the node becomes, if it is rewritten
  std::string kernel;   ///< what will run it, where that is known before compiling
};

/// A node's place in its graph as keys have it: of six digits or more, so that they sort. Names may be any text, and
/// would make keys that others could be.
inline std::string numbered(int32_t index) {
  std::string number = str_cat(index);
  if (number.size() < 6) number.insert(0, 6 - number.size(), '0');
  return number;
}

/// Constants in a back end's own layout, made once and shared by every executable of a Prepared, which keeps them
/// alive. Those with a target can be stored in the file and are then taken from there, where they lie. Thread-safe:
/// who asks while another thread packs waits for it, except for made_bytes(). What gives a Result fails as
/// WorkMutex::lock() does.
class PackedConstants {
 public:
  struct Entry {
    std::string target;  ///< "cpu:avx2"; empty: never stored
    /// Unique for the back end, whatever the variant: says all that the bytes depend on. Segment::key_prefix and
    /// numbered() of the node belong in it.
    std::string key;
    std::span<const std::byte> bytes;
    std::shared_ptr<const StoredBytes> stored = nullptr;  ///< of a file; null: made here
  };

  /// The `bytes` bytes under target and key, aligned to 64: as the file has them, if they are that many and
  /// `valid(data)` finds them to be what this back end writes, else as `make()`, a Result<Buffer>, gives them.
  /// kCorruptFile if the file's are damaged.
  template <class Valid, class Make>
  Result<const std::byte*> get(const std::string& target, const std::string& key, size_t bytes, Valid&& valid,
                               Make&& make) {
    const WorkLock lock(mutex_, kWork);
    PINNACE_TRY(lock.status());
    if (const Held* held = find(target, key, bytes)) {
      if (held->stored) PINNACE_TRY(held->stored->check());
      if (valid(held->bytes.data())) return held->bytes.data();
    }
    PINNACE_ASSIGN(Buffer made, make());
    assert(made.size() >= bytes);
    buffers_.push_back(std::move(made));
    add_made_bytes(buffers_.back().size());
    entries_.insert_or_assign({target, key}, Held{{buffers_.back().data(), bytes}, nullptr});
    return buffers_.back().data();
  }

  struct Request {
    std::string target, key;
    size_t bytes = 0;
  };
  struct Packed {
    const std::byte* data = nullptr;
    bool stored = false;  ///< the file's
  };
  /// The same for many at once, in order. valid(i, address) is a bool; what is not there yet gets room in one buffer
  /// and is made by fill(i, address), a Status. Both run several at a time, on `pool`.
  template <class Valid, class Fill>
  Result<std::vector<Packed>> get_all(std::span<const Request> requests, ThreadPool& pool, Valid&& valid, Fill&& fill) {
    const WorkLock lock(mutex_, kWork);
    PINNACE_TRY(lock.status());
    std::vector<Packed> all(requests.size());
    std::vector<Status> done(requests.size());
    const auto for_each = [&](const std::vector<size_t>& indices, auto&& f) -> Status {
      pool.run(static_cast<int64_t>(indices.size()), available_processors(),
               [&](int64_t k) { f(static_cast<size_t>(k), indices[static_cast<size_t>(k)]); });
      for (const Status& status : done) PINNACE_TRY(status);
      return {};
    };
    std::vector<size_t> stored, missing, offsets;
    std::vector<const StoredBytes*> sources(requests.size());
    for (size_t i = 0; i < requests.size(); ++i) {
      const Held* held = find(requests[i].target, requests[i].key, requests[i].bytes);
      if (!held) continue;
      sources[i] = held->stored.get();
      all[i] = {held->bytes.data(), sources[i] != nullptr};
      if (sources[i]) stored.push_back(i);
    }
    if (!stored.empty()) {  // payloads of one target follow each other
      const std::byte *first = all[stored[0]].data, *last = first;
      for (size_t i : stored) {
        first = std::min(first, all[i].data);
        last = std::max(last, all[i].data + requests[i].bytes);
      }
      prefer_large_pages({first, last});
    }
    PINNACE_TRY(for_each(stored, [&](size_t, size_t i) {
      done[i] = sources[i]->check();
      if (done[i].ok() && !valid(i, all[i].data)) all[i].data = nullptr;
    }));
    size_t total = 0;
    for (size_t i = 0; i < requests.size(); ++i) {
      if (all[i].data) continue;
      missing.push_back(i);
      offsets.push_back(total);
      total += aligned_size(requests[i].bytes);
    }
    if (missing.empty()) return all;
    PINNACE_ASSIGN(Buffer made, Buffer::allocate(total, "packed weights"));
    PINNACE_TRY(for_each(missing, [&](size_t m, size_t i) {
      all[i] = {made.data() + offsets[m], false};
      done[i] = fill(i, made.data() + offsets[m]);
    }));
    buffers_.push_back(std::move(made));  // before anything refers to it
    add_made_bytes(buffers_.back().size());
    for (size_t i : missing) {
      entries_.insert_or_assign({requests[i].target, requests[i].key}, Held{{all[i].data, requests[i].bytes}, nullptr});
    }
    return all;
  }

  /// Whatever else executables are to share, one object under each key, made once and kept as long as this.
  template <class T>
  Result<std::shared_ptr<T>> shared(const std::string& key) {
    const WorkLock lock(mutex_, kWork);
    PINNACE_TRY(lock.status());
    std::shared_ptr<void>& held = shared_[key];
    if (!held) held = std::make_shared<T>();
    return std::static_pointer_cast<T>(held);
  }

  /// A payload of the file; its bytes outlive this. Before any other thread knows of this.
  void add_stored(const Entry& entry) {
    entries_.insert_or_assign(std::make_pair(entry.target, entry.key), Held{entry.bytes, entry.stored});
    if (stored_targets_.empty() || stored_targets_.back() != entry.target) stored_targets_.push_back(entry.target);
  }
  /// What the file has for exactly this target and key, in `bytes` bytes, for who maps it elsewhere; null: nothing.
  /// Whether it is damaged, StoredBytes::check() says.
  Result<std::shared_ptr<const StoredBytes>> stored(const std::string& target, const std::string& key,
                                                    size_t bytes) const {
    const WorkLock lock(mutex_, kWork);
    PINNACE_TRY(lock.status());
    const auto found = entries_.find({target, key});
    const bool there = found != entries_.end() && found->second.bytes.size() == bytes;
    return there ? found->second.stored : std::shared_ptr<const StoredBytes>();
  }
  /// The targets that the file has payloads for, in order.
  const std::vector<std::string>& stored_targets() const { return stored_targets_; }
  /// The user wants kUnsupported rather than anything packed that could have been stored.
  void require_stored() { stored_required_ = true; }
  bool stored_required() const { return stored_required_; }
  /// What a file can store, made or read, in order of target and key.
  Result<std::vector<Entry>> storable() const {
    const WorkLock lock(mutex_, kWork);
    PINNACE_TRY(lock.status());
    std::vector<Entry> all;
    for (const auto& [name, held] : entries_) {
      if (!name.first.empty()) all.push_back({name.first, name.second, held.bytes, held.stored});
    }
    return all;
  }
  /// Memory taken beside the file's. Waits for nobody.
  size_t made_bytes() const { return made_bytes_.load(std::memory_order_relaxed); }
  /// Counts memory for constants that a back end has taken itself, and keeps as long as this.
  void add_made_bytes(size_t bytes) { made_bytes_.fetch_add(bytes, std::memory_order_relaxed); }
  /// Whether nothing can be had from this in a forked child: a thread of its parent was at work on it.
  bool left_behind() const { return mutex_.left_behind(); }

 private:
  struct Held {
    std::span<const std::byte> bytes;
    std::shared_ptr<const StoredBytes> stored;
  };
  /// What is there under this key; of a file also what another variant of the back end packed: avx512_bf16 runs most of
  /// the kernels of avx512_vnni. Under mutex_.
  const Held* find(const std::string& target, const std::string& key, size_t bytes) const {
    const auto of = [&](const std::string& name) -> const Held* {
      const auto found = entries_.find({name, key});
      return found != entries_.end() && found->second.bytes.size() == bytes ? &found->second : nullptr;
    };
    const Held* held = of(target);
    if (held || target.empty()) return held;
    const std::string_view backend = std::string_view(target).substr(0, target.find(':') + 1);
    for (const std::string& other : stored_targets_) {
      if (!other.starts_with(backend)) continue;
      if (held = of(other); held) return held;
    }
    return nullptr;
  }
  static constexpr std::string_view kWork = "the packing of weights";
  mutable WorkMutex mutex_;
  std::map<std::pair<std::string, std::string>, Held> entries_;  // by target and key
  // Set before the first plan.
  std::vector<std::string> stored_targets_;
  bool stored_required_ = false;
  std::vector<Buffer> buffers_;
  std::map<std::string, std::shared_ptr<void>> shared_;
  std::atomic<size_t> made_bytes_{0};
};

/// A state of the graph that a segment reads and makes anew, of one type, while nothing outside of it reads either
/// value during a run.
struct SegmentState {
  size_t index;          ///< of Graph::states
  size_t input, output;  ///< of Segment::inputs and outputs
};

/// Nodes to be compiled together, with everything known about their values. All types are concrete.
struct Segment {
  const Graph& graph;
  const Inference& inference;
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

/// Timing of one node; `node` is an index into Graph::nodes of the graph that runs.
struct NodeTiming {
  const Node* node;
  std::string_view backend, kernel;  ///< point to text that lives as long as the executable
  std::chrono::steady_clock::time_point start, end;
};

/// What one run brings along.
struct RunContext {
  std::byte* workspace = nullptr;  ///< Executable::workspace_bytes() bytes, aligned; contents do not survive the run
  ThreadPool* pool = nullptr;
  int threads = 1;
  std::chrono::nanoseconds loop_limit{0};      ///< a loop without a count that takes longer is cancelled; 0: none
  std::vector<NodeTiming>* timings = nullptr;  ///< null: not profiled
  KeptStates* states = nullptr;                ///< of the executable; views of what it keeps are not looked at
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
  /// Whether the target "auto" takes it where it is available.
  virtual bool automatic() const { return true; }
  /// Whether "auto" measures it against the others where it does not take it unasked.
  virtual bool measured() const { return false; }
  /// What such a measurement holds for, device and driver; kUnsupported: why it is not worth one.
  virtual Result<std::string> measured_device(const TargetSpec&) const { return unsupported("it is not measured"); }
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
