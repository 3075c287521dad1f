// From a segment to an executable: precisions made legal, nodes lowered, storage shared, calls made, constants packed,
// places planned. Compilation does one after the other; its members are what the steps hand on.
#include <algorithm>

#include "backends/cpu/f32_isa.h"
#include "backends/cpu/plan/executable.h"
#include "backends/packed_constants.h"
#include "base/cancel.h"
#include "base/hash.h"
#include "base/log.h"
#include "base/offset_plan.h"
#include "ops/empty.h"

namespace pinnace::cpu {
namespace {

/// How many threads the scratch is made for: more than this never run in one call.
constexpr int kMaxThreads = 64;

const HalfF32Kernels& half_kernels([[maybe_unused]] Cpu set) {
#if defined(__x86_64__)
  if (set >= Cpu::avx512) return half_f32_kernels_avx512;
  if (set >= Cpu::avx2) return half_f32_kernels_avx2;
#endif
  return half_f32_kernels_generic;
}

/// Why packed weights of the file do not serve `target`; empty if it has none.
std::string payload_notice(const PackedConstants& packed, const std::string& target) {
  std::string others;
  for (const std::string& stored : packed.stored_targets()) {
    if (stored == target) {
      return str_cat("packed at load: the weights that the file has packed for ", target,
                     " are of another layout or for other sizes");
    }
    if (stored.starts_with("cpu:")) others += str_cat(others.empty() ? "" : ", ", stored);
  }
  if (others.empty()) return {};
  return str_cat("packed at load: the file has weights packed for ", others, ", this runs as ", target);
}

/// A kernel's name as payloads have it. What the baseline packs differs from one architecture to the next, so its
/// kernels are called "_sse2" or "_neon" there: "conv_nhwc_f32_sse2". Tiles read what avx512_vnni packs.
std::string packed_name(std::string_view kernel, CpuMode mode) {
  constexpr std::string_view kTiles = "amx_int8", kTheirPacking = "avx512_vnni";
  if (kernel.ends_with(kTiles)) return str_cat(kernel.substr(0, kernel.size() - kTiles.size()), kTheirPacking);
  const std::string_view generic = kernel_isa_name(Cpu::generic);
  if (!kernel.ends_with(generic)) return std::string(kernel);
  mode.instruction_set = Cpu::generic;
  return str_cat(kernel.substr(0, kernel.size() - generic.size()), mode.isa());
}

/// Unique for the node and what is packed for it, and in order of execution, in which the file then has them.
std::string packed_key(const Segment& segment, int32_t index, const Call& call, int64_t bytes, CpuMode mode) {
  std::string key = str_cat("layout ", kPackedLayout, "/", segment.key_prefix, numbered(index), " ", call.node->name,
                            "/", packed_name(call.line->name, mode), "/", bytes);
  for (const TensorType* type : call.types) {
    if (call.line->kernel->packs_sizes && type) key += "/" + to_string(*type);
  }
  return key;
}

/// A call's node as its kernel packs and plans for it: with what is known before a run, borrowed.
KernelNode known_node(const Lowered& lowered, int32_t k, const Call& call) {
  const Fusion fusion = lowered.nodes[k].fusion.map([&](ValueId id) {
    const ConstantPtr& contents = lowered.data[id];
    return FusedView{{&lowered.types[id], contents ? const_cast<std::byte*>(contents->data()) : nullptr},
                     lowered.layouts[id]};
  });
  return {NodeView(*call.node, *call.op, call.types, call.constants, call.declared), fusion, call.stored_as};
}

/// Finds or makes what the calls with the numbers `packing` asked for. Sources that nobody else reads are checked here.
Status make_packed(const Segment& segment, const Lowered& lowered, const std::string& target,
                   std::span<const int32_t> packing, std::span<const PackedConstants::Request> requests,
                   std::vector<Call>& calls, std::set<std::shared_ptr<const void>>& tables) {
  const auto valid = [&](size_t i, const std::byte* data) {
    const Call& call = calls[packing[i]];
    return !call.line->kernel->valid || call.line->kernel->valid(known_node(lowered, packing[i], call), data);
  };
  const auto pack = [&](size_t i, std::byte* to) -> Status {
    const Call& call = calls[packing[i]];
    const CpuKernel& kernel = *call.line->kernel;
    const KernelNode node = known_node(lowered, packing[i], call);
    PINNACE_TRY(check_stopped(node.label()));
    if (kernel.stores && segment.packed.stored_required()) {
      const std::string notice = payload_notice(segment.packed, target);
      return unsupported(node.label(), ": a payload is required, and the file has no packed weights for ", target,
                         notice.empty() ? "" : "; ", notice);
    }
    std::vector<const Constant*> sources;
    for (const LoweredNode::Read& read : lowered.nodes[packing[i]].reads()) {
      if (read.packed && lowered.data[read.id]) sources.push_back(lowered.data[read.id].get());
    }
    for (const Constant* source : sources) PINNACE_TRY(source->check());
    PINNACE_TRY(kernel.pack(node, to));
    for (const Constant* source : sources) source->drop_pages();  // whoever wants them again has them from the file
    return {};
  };
  const LogTime time;
  PINNACE_ASSIGN(const auto packed, segment.packed.get_all(requests, ThreadPool::shared(), valid, pack));
  if (!packed.empty()) {
    log_several(LogLevel::kInfo, [&] {
      size_t stored = 0, stored_bytes = 0, bytes = 0;
      for (size_t i = 0; i < packed.size(); ++i) {
        bytes += requests[i].bytes;
        stored += packed[i].stored;
        stored_bytes += packed[i].stored ? requests[i].bytes : 0;
      }
      const std::string notice = stored == packed.size() ? "" : payload_notice(segment.packed, target);
      PINNACE_LOG_INFO("weights for ", target, ": ", packed.size() - stored, " packed (", bytes - stored_bytes,
                       " bytes), ", stored, " taken from the file (", stored_bytes, " bytes), in ", time.text(),
                       notice.empty() ? "" : "; ", notice);
    });
  }
  for (size_t i = 0; i < packed.size(); ++i) {
    Call& call = calls[packing[i]];
    call.packed = packed[i].data;
    if (packed[i].owner) tables.insert(packed[i].owner);
    call.packed_here = !packed[i].stored && call.line->kernel->stores;
  }
  return {};
}

}  // namespace

/// One for each segment. Vectors "of values" are by ValueId, those "of calls" by index.
class Compilation {
 public:
  Compilation(const Segment& given, const Segment& segment, CpuMode mode, CpuExecutable& executable)
      : given_(given),
        segment_(segment),
        mode_(mode),
        target_(str_cat("cpu:", mode.isa())),
        to_(executable),
        types_(executable.lowered_.types),
        nodes_(executable.lowered_.nodes),
        places_(types_.size()),
        last_use_(types_.size(), -1),
        made_at_(types_.size(), -1),
        output_of_(types_.size(), -1),
        in_fused_run_(types_.size(), false),
        root_(types_.size()),
        lifetime_of_(types_.size(), -1),
        begin_of_(nodes_.size()),
        end_of_(nodes_.size()),
        fused_run_of_(nodes_.size(), -1),
        scratch_of_(nodes_.size(), -1) {}

  static Result<std::unique_ptr<Executable>> run(const Segment& given, CpuMode mode) {
    auto executable = std::make_unique<CpuExecutable>();
    PINNACE_ASSIGN(executable->legalized_, legalize_precision(given, mode));
    const std::optional<LegalizedSegment>& legalized = executable->legalized_;
    const Segment segment{legalized ? legalized->graph : given.graph,
                          legalized ? legalized->type_inference : given.type_inference,
                          legalized ? legalized->nodes : given.nodes,
                          given.inputs,
                          given.outputs,
                          given.ops,
                          given.packed,
                          given.key_prefix};
    executable->shape_invariant_ = mode.shape_invariant;
    executable->half_ = &half_kernels(mode.for_arm64 ? Cpu::generic : mode.instruction_set);
    executable->lowered_ = lower_cpu(segment, mode, legalized ? legalized->stored_as : std::vector<DType>());
    Compilation compilation(given, segment, mode, *executable);
    compilation.find_fused_calls();
    compilation.find_uses();
    compilation.share_storage();
    compilation.plan_results();
    PINNACE_TRY(compilation.make_calls());
    compilation.place_constants();
    compilation.place_all();
    compilation.copy_outputs();
    executable->lowered_.data.clear();
    if (executable->legalized_) executable->legalized_->type_inference = {};
    return std::unique_ptr<Executable>(std::move(executable));
  }

 private:
  int32_t call_count() const { return static_cast<int32_t>(nodes_.size()); }
  const ConstantPtr& data(ValueId id) const { return to_.lowered_.data[static_cast<size_t>(id)]; }

  /// Calls of a fused run run together: what one of them reads or writes is in use during all of them.
  void find_fused_calls() {
    to_.fused_runs_ = find_fused_runs(to_.lowered_);
    for (int32_t k = 0; k < call_count(); ++k) begin_of_[k] = end_of_[k] = k;
    for (size_t i = 0; i < to_.fused_runs_.size(); ++i) {
      const FusedRun& fused_run = to_.fused_runs_[i];
      std::string names = "row-tiled fusion of";
      for (int32_t k = fused_run.first; k <= fused_run.last; ++k) {
        begin_of_[k] = fused_run.first;
        end_of_[k] = fused_run.last;
        fused_run_of_[k] = static_cast<int32_t>(i);
        if (k < fused_run.last) in_fused_run_[nodes_[k].outputs[0]] = true;
        const CpuKernelLine* line = nodes_[k].line;
        names += str_cat(k > fused_run.first ? ", " : " ", line ? line->name : std::string_view("to channels last"));
      }
      to_.fused_run_names_.push_back(std::move(names));
    }
  }

  /// Who makes and reads values, and where inputs are.
  void find_uses() {
    for (size_t i = 0; i < segment_.inputs.size(); ++i) {
      places_[segment_.inputs[i]] = {Place::Kind::kInput, static_cast<int32_t>(i), 0, nullptr};
    }
    for (int32_t k = 0; k < call_count(); ++k) {
      const LoweredNode& node = nodes_[k];
      for (const LoweredNode::Read& read : node.reads()) last_use_[read.id] = end_of_[k];
      for (ValueId id : node.outputs) made_at_[id] = k;
    }
    for (size_t i = 0; i < to_.lowered_.outputs.size(); ++i) {
      const ValueId id = to_.lowered_.outputs[i];
      last_use_[id] = call_count();
      if (output_of_[id] < 0 && made_at_[id] >= 0) output_of_[id] = static_cast<int32_t>(i);
    }
  }

  /// Values that share bytes belong to one root. Output 0 takes over input i's bytes if nobody needs that input's old
  /// contents later. Only workspace values are taken over; an output of the segment keeps its own memory, except that a
  /// view's input may be moved into it.
  void share_storage() {
    for (size_t i = 0; i < root_.size(); ++i) root_[i] = static_cast<ValueId>(i);
    root_last_ = last_use_;
    for (int32_t k = 0; k < call_count(); ++k) {
      const LoweredNode& node = nodes_[k];
      if (!node.op || fused_run_of_[k] >= 0) continue;
      for (size_t i = 0; i < node.inputs.size() && i < 32; ++i) {
        if (!takes_over(k, i)) continue;
        const ValueId y = node.outputs[0];
        root_[y] = root_[node.inputs[i]];
        root_last_[root_[y]] = std::max(root_last_[root_[y]], last_use_[y]);
        break;
      }
    }
  }

  bool takes_over(int32_t k, size_t i) const {
    const LoweredNode& node = nodes_[k];
    const ValueId x = node.inputs[i], y = node.outputs[0];
    const bool view = node.op->has(Trait::kView) && i == 0;
    if (x == kNoValue || !(view || (i < 32 && (node.op->in_place >> i & 1)))) return false;
    if (made_at_[x] < 0 || output_of_[x] >= 0 || output_of_[root_[x]] >= 0 || output_of_[y] >= 0) return false;
    if (view) return types_[x].bytes() == types_[y].bytes();
    if (types_[x].dtype != types_[y].dtype || types_[x].shape != types_[y].shape ||
        to_.lowered_.layouts[x] != to_.lowered_.layouts[y]) {
      return false;
    }
    // Overwritten: no other reader of these bytes after this call, and no second mention in this call.
    if (root_last_[root_[x]] > k || std::count(node.inputs.begin(), node.inputs.end(), x) > 1) return false;
    return std::none_of(node.inputs.begin(), node.inputs.end(),
                        [&](ValueId other) { return other != kNoValue && other != x && root_[other] == root_[x]; });
  }

  /// Lifetimes of results in the workspace, one for each root.
  void plan_results() {
    for (int32_t k = 0; k < call_count(); ++k) {
      for (ValueId id : nodes_[k].outputs) {
        if (output_of_[id] >= 0) {
          places_[id] = {Place::Kind::kOutput, output_of_[id], 0, nullptr};
        } else if (root_[id] == id && !in_fused_run_[id]) {
          lifetime_of_[id] = static_cast<int32_t>(lifetimes_.size());
          lifetimes_.push_back({static_cast<size_t>(layout_bytes(types_[id], to_.lowered_.layouts[id])), begin_of_[k],
                                std::max(root_last_[id], k)});
        }
      }
    }
  }

  Status make_calls() {
    std::vector<int32_t> index_of(nodes_.size(), 0);  // in the graph
    for (size_t i = segment_.nodes.size(); i-- > 0;) index_of[to_.lowered_.node_of[i]] = segment_.nodes[i];
    for (int32_t k = 0; k < call_count(); ++k) {
      PINNACE_ASSIGN(Call call, make_call(k, index_of[k]));
      to_.calls_.push_back(std::move(call));
    }
    PINNACE_TRY(make_packed(segment_, to_.lowered_, target_, packing_, requests_, to_.calls_, to_.tables_));
    to_.notice_ = payload_notice(segment_.packed, target_);
    return {};
  }

  /// Call k, node `index` of the graph: everything but packed constants and places.
  Result<Call> make_call(int32_t k, int32_t index) {
    const LoweredNode& node = nodes_[k];
    Call call{};
    call.kind = node.kind;
    call.node = node.node;
    call.source = node.source;
    call.op = node.op;
    call.line = node.line;
    call.stored_as = node.stored_as;
    for (ValueId id : node.inputs) {
      call.types.push_back(id == kNoValue ? nullptr : &types_[id]);
      call.constants.push_back(id == kNoValue || !data(id) ? nullptr : data(id)->data());
      call.layouts.push_back(id == kNoValue ? Layout{} : to_.lowered_.layouts[id]);
    }
    const Graph& graph = segment_.graph;
    for (ValueId id : node.outputs) {
      call.declared.push_back(static_cast<size_t>(id) < graph.values.size() ? &graph.value(id).type : nullptr);
      call.layouts.push_back(to_.lowered_.layouts[id]);
    }
    most_views_ = std::max(most_views_, node.inputs.size() + node.outputs.size());
    call.scratch_threads = kMaxThreads;
    std::vector<const TensorType*> made;
    for (ValueId id : node.outputs) made.push_back(&types_[id]);
    call.nothing_to_do = node.node && nothing_to_compute(*node.op, call.types, made);
    bool packs = false;  // what pack() reads is read by nothing else
    if (call.line && !call.nothing_to_do) PINNACE_TRY(prepare_kernel(k, index, call, &packs));
    for (const auto& [id, packed] : node.reads()) {
      if (data(id) && !(packs && packed)) PINNACE_TRY(data(id)->check());
    }
    call.fused_run = fused_run_of_[k];
    if (call.fused_run >= 0 && begin_of_[k] == k) {
      const FusedRun& fused_run = to_.fused_runs_[call.fused_run];
      call.scratch_threads = static_cast<int>(fused_run.tasks(std::min(kMaxThreads, available_processors())));
      add_scratch(k, static_cast<size_t>(call.scratch_threads) * fused_run.task_bytes);
    }
    return call;
  }

  /// False of what was computed ahead, which may be other numbers for other sizes: a key has to say them.
  bool is_constant_of_model(ValueId id) const {
    return static_cast<size_t>(id) < given_.graph.values.size() && given_.graph.value(id).constant;
  }

  /// What a call's kernel wants packed, planned and as scratch.
  Status prepare_kernel(int32_t k, int32_t index, Call& call, bool* packs) {
    const KernelNode view = known_node(to_.lowered_, k, call);
    const CpuKernel& kernel = *call.line->kernel;
    if (const int64_t bytes = kernel.packed_bytes ? kernel.packed_bytes(view) : 0; bytes > 0) {
      std::string key = packed_key(segment_, index, call, bytes, mode_);
      bool of_sizes = kernel.packs_sizes;
      for (const auto& [id, packed] : nodes_[k].reads()) {
        if (packed && data(id) && !is_constant_of_model(id)) {
          key += str_cat("#", hash64({data(id)->data(), data(id)->bytes()}));
          of_sizes = true;
        }
      }
      requests_.push_back({kernel.stores ? target_ : "", std::move(key), static_cast<size_t>(bytes), of_sizes});
      packing_.push_back(k);
      *packs = kernel.stores;
    }
    if (kernel.plan) {
      PINNACE_ASSIGN(call.plan, Buffer::allocate(static_cast<size_t>(kernel.plan_bytes(view)), call.line->name));
      kernel.plan(view, call.layouts.data(), call.plan.data());
    }
    if (kernel.scratch_bytes) {
      call.scratch_threads = std::min(kMaxThreads, available_processors());
      if (const int64_t bytes = kernel.scratch_bytes(view, call.scratch_threads); bytes > 0) {
        add_scratch(k, static_cast<size_t>(bytes));
      }
    }
    return {};
  }

  /// Where constants are, and which of them are needed after the calls have been made.
  void place_constants() {
    for (int32_t k = 0; k < call_count(); ++k) {
      for (const auto& [id, packed] : nodes_[k].reads()) {
        const ConstantPtr& contents = data(id);
        const Place& place = places_[id];
        const bool placed = place.kind != Place::Kind::kNone && (place.kind != Place::Kind::kConstant || place.data);
        if (!contents || placed) continue;
        // Converted weights are needed only until they are packed.
        const bool until_packed =
            to_.legalized_ && static_cast<size_t>(id) >= given_.graph.values.size() && packed && to_.calls_[k].packed;
        places_[id] = {Place::Kind::kConstant, 0, 0, until_packed ? nullptr : contents->data()};
        if (!until_packed) to_.constants_.push_back(contents);
      }
    }
  }

  void add_scratch(int32_t k, size_t bytes) {
    scratch_of_[k] = static_cast<int32_t>(lifetimes_.size());
    lifetimes_.push_back({bytes, k, end_of_[k]});
  }

  /// Offsets in the workspace, and every call's operands.
  void place_all() {
    const size_t views = lifetimes_.size();
    lifetimes_.push_back({most_views_ * (sizeof(TensorView) + sizeof(void*)), 0, call_count()});
    const OffsetPlan plan = plan_offsets(lifetimes_);
    to_.workspace_bytes_ = plan.total;
    to_.views_offset_ = plan.offsets[views];
    for (const LoweredNode& node : nodes_) {
      for (ValueId id : node.outputs) {
        if (output_of_[id] < 0 && !in_fused_run_[id]) {
          places_[id] = {Place::Kind::kWorkspace, 0, plan.offsets[lifetime_of_[root_[id]]], nullptr};
        }
      }
    }
    for (int32_t k = 0; k < call_count(); ++k) {
      const LoweredNode& node = nodes_[k];
      Call& call = to_.calls_[k];
      if (scratch_of_[k] >= 0) call.scratch_offset = plan.offsets[scratch_of_[k]];
      for (ValueId id : node.inputs) {
        call.inputs.push_back(id == kNoValue ? Operand{} : Operand{&types_[id], places_[id]});
      }
      call.fusion = node.fusion.map(
          [&](ValueId id) { return FusedOperand{{&types_[id], places_[id]}, to_.lowered_.layouts[id]}; });
      for (ValueId id : node.outputs) call.outputs.push_back({&types_[id], places_[id]});
      call.nothing_to_do |= node.op && node.op->has(Trait::kView) && output_of_[node.outputs[0]] < 0 &&
                            node.inputs[0] != kNoValue && root_[node.outputs[0]] == root_[node.inputs[0]];
    }
  }

  void copy_outputs() {
    for (size_t i = 0; i < to_.lowered_.outputs.size(); ++i) {
      const ValueId id = to_.lowered_.outputs[i];
      if (output_of_[id] == static_cast<int32_t>(i)) continue;
      Place place = places_[id];
      if (place.kind == Place::Kind::kNone && data(id)) {
        place = {Place::Kind::kConstant, 0, 0, data(id)->data()};
        to_.constants_.push_back(data(id));
      }
      to_.copies_.push_back({{&types_[id], place}, static_cast<int32_t>(i)});
    }
  }

  const Segment& given_;    // as the plan has it
  const Segment& segment_;  // the same, or with nodes in other types
  const CpuMode mode_;
  const std::string target_;
  CpuExecutable& to_;
  const std::vector<TensorType>& types_;   // of values
  const std::vector<LoweredNode>& nodes_;  // of calls
  std::vector<Place> places_;
  std::vector<int32_t> last_use_, made_at_;  // calls
  std::vector<int32_t> output_of_;           // the segment's output that a value is made in, or -1
  std::vector<bool> in_fused_run_;           // values that exist a few rows at a time
  std::vector<ValueId> root_;
  std::vector<int32_t> root_last_, lifetime_of_;    // of roots
  std::vector<int32_t> begin_of_, end_of_;          // of calls: those of a fused run are one
  std::vector<int32_t> fused_run_of_, scratch_of_;  // of calls: fused run, lifetime of the scratch, or -1
  std::vector<Lifetime> lifetimes_;
  std::vector<PackedConstants::Request> requests_;
  std::vector<int32_t> packing_;  // the calls that want them
  size_t most_views_ = 0;
};

Result<std::unique_ptr<Executable>> compile_cpu(const Segment& segment, CpuMode mode) {
  return Compilation::run(segment, mode);
}

}  // namespace pinnace::cpu
