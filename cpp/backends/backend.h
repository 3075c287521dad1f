// What a back end is: it says which nodes it takes and why not the others, and compiles runs of nodes to executables.
// backends.inc lists those built in. How to add one: docs/adding_a_backend.md.
#pragma once

#include <atomic>
#include <chrono>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

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

/// Constants in a back end's own layout, made once and shared by every executable of a Prepared. Thread-safe.
class PackedConstants {
 public:
  /// The buffer stored under `key`, made by `make` the first time.
  template <class F>
  Result<std::shared_ptr<const Buffer>> get(const std::string& key, F&& make) {
    std::lock_guard lock(mutex_);
    if (auto found = buffers_.find(key); found != buffers_.end()) return found->second;
    PINNACE_ASSIGN(Buffer made, make());
    auto shared = std::make_shared<const Buffer>(std::move(made));
    buffers_.emplace(key, shared);
    bytes_ += shared->size();
    return shared;
  }
  size_t bytes() const {
    std::lock_guard lock(mutex_);
    return bytes_;
  }

 private:
  mutable std::mutex mutex_;
  std::unordered_map<std::string, std::shared_ptr<const Buffer>> buffers_;
  size_t bytes_ = 0;
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
  /// Empty if it can run here, else why not: "no Vulkan loader (libvulkan.so.1)".
  virtual std::string unavailable(const TargetSpec& target) const = 0;
  /// One line about the device, for `devices`.
  virtual std::string description() const = 0;
  /// Answers without a device. The node's types are concrete.
  virtual Verdict supports(const NodeView& node, const TargetSpec& target) const = 0;
  virtual Result<std::unique_ptr<Executable>> compile(const Segment& segment, const TargetSpec& target) const = 0;
};

/// The back ends built in, in the order of backends.inc; the CPU is the last and takes every node.
std::span<const Backend* const> all_backends();
const Backend& cpu_backend();

}  // namespace pinnace
