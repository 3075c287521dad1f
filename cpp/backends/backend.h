// What a back end is: it says which nodes it takes and why not the others, and compiles runs of nodes to executables.
// backends.inc lists those built in. How to add one: docs/adding_a_backend.md.
#pragma once

#include <atomic>
#include <cassert>
#include <chrono>
#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/memory.h"
#include "base/thread_pool.h"
#include "ops/infer.h"
#include "ops/op.h"

namespace pinnace {

/// A target as the user wrote it: "cpu:avx2" is {"cpu", "avx2"}.
struct TargetSpec {
  std::string backend;
  std::string variant;
  std::string precision = "fp32";
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

/// Constants in a back end's own layout, made once and shared by every executable of a Prepared, which keeps them
/// alive. Those with a target can be stored in the file and are then taken from there. Thread-safe.
class PackedConstants {
 public:
  struct Entry {
    std::string target;  ///< "cpu:avx2"; empty: never stored
    std::string key;     ///< unique for the target; Segment::key_prefix and the node's name belong in it
    std::span<const std::byte> bytes;
  };

  /// The `bytes` bytes under target and key, aligned to 64: as the file has them, if they are that many and
  /// `valid(data)` finds them to be what this back end writes, else as `make()`, a Result<Buffer>, gives them.
  template <class Valid, class Make>
  Result<const std::byte*> get(const std::string& target, const std::string& key, size_t bytes, Valid&& valid,
                               Make&& make) {
    std::lock_guard lock(mutex_);
    const auto name = std::make_pair(target, key);
    if (auto found = entries_.find(name);
        found != entries_.end() && found->second.size() == bytes && valid(found->second.data())) {
      return found->second.data();
    }
    PINNACE_ASSIGN(Buffer made, make());
    assert(made.size() >= bytes);
    buffers_.push_back(std::move(made));
    made_bytes_ += buffers_.back().size();
    entries_.insert_or_assign(name, std::span<const std::byte>(buffers_.back().data(), bytes));
    return buffers_.back().data();
  }
  struct Request {
    std::string key;
    size_t bytes;
  };
  /// The addresses, in order, of constants without a target. What is not there yet gets room in one buffer and is made
  /// by fill(i, address), a Status; several at a time, on `pool`.
  template <class Fill>
  Result<std::vector<const std::byte*>> get_all(std::span<const Request> requests, ThreadPool& pool, Fill&& fill) {
    std::lock_guard lock(mutex_);
    std::vector<const std::byte*> found(requests.size());
    std::vector<size_t> missing, offsets;
    size_t total = 0;
    for (size_t i = 0; i < requests.size(); ++i) {
      const auto at = entries_.find({"", requests[i].key});
      if (at != entries_.end() && at->second.size() == requests[i].bytes) {
        found[i] = at->second.data();
        continue;
      }
      missing.push_back(i);
      offsets.push_back(total);
      total += aligned_size(requests[i].bytes);
    }
    if (missing.empty()) return found;
    PINNACE_ASSIGN(Buffer made, Buffer::allocate(total, "packed weights"));
    std::vector<Status> done(missing.size());
    pool.run(static_cast<int64_t>(missing.size()), available_processors(), [&](int64_t m) {
      const auto i = static_cast<size_t>(m);
      done[i] = fill(missing[i], made.data() + offsets[i]);
    });
    for (const Status& status : done) PINNACE_TRY(status);
    for (size_t m = 0; m < missing.size(); ++m) {
      const Request& request = requests[missing[m]];
      found[missing[m]] = made.data() + offsets[m];
      entries_.insert_or_assign({"", request.key}, std::span<const std::byte>(found[missing[m]], request.bytes));
    }
    made_bytes_ += made.size();
    buffers_.push_back(std::move(made));
    return found;
  }
  /// A payload of the file; its bytes outlive this.
  void add_stored(const Entry& entry) {
    std::lock_guard lock(mutex_);
    entries_.insert_or_assign(std::make_pair(entry.target, entry.key), entry.bytes);
  }
  /// What a file can store, made or read, in order of target and key.
  std::vector<Entry> storable() const {
    std::lock_guard lock(mutex_);
    std::vector<Entry> all;
    for (const auto& [name, bytes] : entries_) {
      if (!name.first.empty()) all.push_back({name.first, name.second, bytes});
    }
    return all;
  }
  /// Memory taken beside the file's.
  size_t made_bytes() const {
    std::lock_guard lock(mutex_);
    return made_bytes_;
  }

 private:
  mutable std::mutex mutex_;
  std::map<std::pair<std::string, std::string>, std::span<const std::byte>> entries_;  // by target and key
  std::vector<Buffer> buffers_;
  size_t made_bytes_ = 0;
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
  const std::atomic<bool>* cancel = nullptr;   ///< looked at between operators; may be null
  std::vector<NodeTiming>* timings = nullptr;  ///< null: not profiled
  bool cancelled() const { return cancel && cancel->load(std::memory_order_relaxed); }
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
  /// What runs the i-th node of the segment: "conv_f32_generic", "reference".
  virtual std::string_view kernel(size_t i) const = 0;
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
  /// kDeviceLost: the device is gone or fails its self-check; the runtime then plans again without this back end.
  virtual Result<std::unique_ptr<Executable>> compile(const Segment& segment, const TargetSpec& target) const = 0;
  /// Whether compile() leaves constants in Segment::packed that are worth keeping in a file.
  virtual bool stores_payloads() const { return false; }
};

/// The back ends built in, in the order of backends.inc; the CPU is the last and takes every node.
std::span<const Backend* const> all_backends();
const Backend& cpu_backend();

}  // namespace pinnace
