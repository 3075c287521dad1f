// A compiled CPU segment: a list of calls in order, as lower_cpu() made them. Inner values live in the workspace at
// offsets planned from their lifetimes; views and in-place operators share the bytes of their input.
#include "backends/cpu/executable.h"

#include <algorithm>
#include <cstring>

#include "backends/cpu/f32_levels.h"
#include "backends/cpu/kernel.h"
#include "backends/cpu/retype.h"
#include "backends/cpu/strips.h"
#include "base/offset_plan.h"

namespace pinnace {
namespace {

/// Where the bytes of a value are during a run.
struct Place {
  enum class Kind : uint8_t { kNone, kInput, kOutput, kConstant, kWorkspace } kind = Kind::kNone;
  int32_t index = 0;                ///< of the segment's inputs or outputs
  size_t offset = 0;                ///< in the workspace
  const std::byte* data = nullptr;  ///< of a constant
};

struct Operand {
  const TensorType* type = nullptr;  ///< null: left out
  Place place;
};

/// One step, ready to run.
struct Call {
  LoweredNode::Kind kind;
  const Node* node;    ///< null for a change of layout
  const Node* source;  ///< what it is timed as; null at the end of a segment
  const OpDef* op;
  const CpuKernelLine* line;    ///< null: reference code
  std::vector<Layout> layouts;  ///< of inputs, then outputs
  std::vector<Operand> inputs, outputs;
  std::vector<const TensorType*> types;     ///< of inputs, for NodeView
  std::vector<const TensorType*> declared;  ///< of outputs
  std::vector<const void*> constants;       ///< known contents of inputs
  const std::byte* packed = nullptr;
  Buffer plan;               ///< CpuKernel::plan
  bool packed_here = false;  ///< and could have been in the file
  size_t scratch_offset = 0;
  int scratch_threads = 1;
  bool nothing_to_do = false;  ///< a view whose bytes are in place already
  int32_t strip = -1;          ///< index of the strip that it belongs to
  DType rounds = DType::kF32;  ///< f16, bf16: float32 results are rounded to that
};

/// Rounds a float32 value, dense or an image, to a 16-bit type.
void round_floats(const KernelContext& context, const HalfF32Kernels& half, DType to, const TensorView& view,
                  const Layout& layout) {
  constexpr int64_t kEach = 16384;
  const int64_t count = layout_bytes(*view.type, layout) / 4;
  const HalfKind kind = to == DType::kF16 ? HalfKind::kF16 : HalfKind::kBf16;
  context.parallel((count + kEach - 1) / kEach, [&](int64_t t) {
    half.round(kind, view.data<float>() + t * kEach, std::min(kEach, count - t * kEach));
  });
}

const HalfF32Kernels& half_kernels([[maybe_unused]] Cpu level) {
#if defined(__x86_64__)
  if (level >= Cpu::avx512) return half_f32_kernels_avx512;
  if (level >= Cpu::avx2) return half_f32_kernels_avx2;
#endif
  return half_f32_kernels_generic;
}

class CpuExecutable final : public Executable {
 public:
  size_t workspace_bytes() const override { return workspace_bytes_; }
  std::string_view kernel(size_t i) const override {
    if (retyped_) i = static_cast<size_t>(retyped_->node_of[i]);
    const Call& call = calls_[static_cast<size_t>(lowered_.node_of[i])];
    if (call.nothing_to_do) return "view";
    return call.strip >= 0 ? std::string_view(strip_names_[static_cast<size_t>(call.strip)]) : name_of(call);
  }
  std::string notice(size_t i) const override {
    if (retyped_) i = static_cast<size_t>(retyped_->node_of[i]);
    return calls_[static_cast<size_t>(lowered_.node_of[i])].packed_here ? notice_ : std::string();
  }

  Status run(const RunContext& context, std::span<const TensorView> inputs,
             std::span<const TensorView> outputs) const override {
    const ThreadPool::Attention attention(*context.pool, context.threads);
    // Room for the views of one call is in the workspace: a run allocates nothing.
    auto* views = reinterpret_cast<TensorView*>(context.workspace + views_offset_);
    for (const Call& call : calls_) {
      if (context.cancelled()) return Status(Code::kCancelled, "the run was cancelled");
      if (call.nothing_to_do) continue;
      if (call.strip >= 0) {
        const Strip& strip = strips_[static_cast<size_t>(call.strip)];
        if (&call == &calls_[static_cast<size_t>(strip.first)]) run_strip_calls(strip, context, inputs, outputs);
        continue;
      }
      const auto start = context.timings ? std::chrono::steady_clock::now() : std::chrono::steady_clock::time_point{};
      size_t n = 0;
      for (const Operand& o : call.inputs) new (&views[n++]) TensorView(view(o, context.workspace, inputs, outputs));
      for (const Operand& o : call.outputs) new (&views[n++]) TensorView(view(o, context.workspace, inputs, outputs));
      const std::span<const TensorView> in(views, call.inputs.size()),
          out(views + call.inputs.size(), call.outputs.size());
      if (const Layout& layout = call.layouts.back(); !layout.border.none()) {
        clear_border(out.back(), layout);
      }
      const KernelContext kernel{
          context.workspace + call.scratch_offset,         call.packed,        call.plan.data(), context.pool,
          std::min(context.threads, call.scratch_threads), call.layouts.data()};
      if (call.kind == LoweredNode::Kind::kToImage) {
        to_image(kernel, in[0], out[0], call.layouts[1]);
      } else if (call.kind == LoweredNode::Kind::kToDense) {
        to_dense(kernel, in[0], call.layouts[0], out[0]);
      } else {
        // Reference code may look at contents through the NodeView too, so it gets those of every input.
        auto* contents = reinterpret_cast<const void**>(views + n);
        for (size_t i = 0; i < in.size(); ++i) contents[i] = in[i].bytes;
        NodeView node(*call.node, *call.op, call.types, std::span<const void* const>(contents, in.size()),
                      call.declared);
        node.set_threads({context.pool, context.threads});
        PINNACE_TRY(call.line ? call.line->kernel->run(node, kernel, in, out) : call.op->reference(node, in, out));
      }
      if (call.rounds != DType::kF32) {
        for (size_t i = 0; i < out.size(); ++i) {
          if (out[i].dtype() == DType::kF32) {
            round_floats(kernel, *half_, call.rounds, out[i], call.layouts[in.size() + i]);
          }
        }
      }
      if (context.timings && call.source) {
        context.timings->push_back({call.source, "cpu", name_of(call), start, std::chrono::steady_clock::now()});
      }
    }
    // Outputs whose bytes ended up elsewhere: inputs or constants passed through, the same value twice.
    for (const Copy& c : copies_) {
      const TensorView from = view(c.from, context.workspace, inputs, outputs);
      const TensorView& to = outputs[static_cast<size_t>(c.output)];
      if (from.bytes && from.bytes != to.bytes && to.type->bytes()) {
        std::memcpy(to.bytes, from.bytes, static_cast<size_t>(to.type->bytes()));
      }
    }
    return {};
  }

 private:
  friend Result<std::unique_ptr<Executable>> pinnace::compile_cpu(const Segment&, CpuMode);
  struct Copy {
    Operand from;
    int32_t output;
  };

  /// The calls of a strip, on as many threads as there are tasks.
  void run_strip_calls(const Strip& strip, const RunContext& context, std::span<const TensorView> inputs,
                       std::span<const TensorView> outputs) const {
    const auto start = context.timings ? std::chrono::steady_clock::now() : std::chrono::steady_clock::time_point{};
    const Call* calls = &calls_[static_cast<size_t>(strip.first)];
    const size_t last = strip.images.size();
    const Call& final = calls[last];
    if (const Layout& layout = final.layouts.back(); !layout.border.none()) {
      clear_border(view(final.outputs[0], context.workspace, inputs, outputs), layout);
    }
    const int64_t tasks = strip.tasks(std::min(context.threads, calls[0].scratch_threads));
    context.pool->run(tasks, static_cast<int>(tasks), [&](int64_t task) {
      std::byte* memory = context.workspace + calls[0].scratch_offset + static_cast<size_t>(task) * strip.task_bytes;
      run_strip(strip, task, tasks, memory, [&](size_t i, std::byte* const* bases, int64_t first, int64_t end) {
        const Call& call = calls[i];
        std::array<TensorView, kStripInputs> in;
        const size_t count = call.inputs.size();
        for (size_t j = 0; j < count; ++j) in[j] = view(call.inputs[j], context.workspace, inputs, outputs);
        TensorView out = view(call.outputs[0], context.workspace, inputs, outputs);
        if (i > 0) in[0] = {call.inputs[0].type, bases[i - 1]};
        if (i < last) out = {call.outputs[0].type, bases[i]};
        if (call.kind == LoweredNode::Kind::kToImage) return to_image_rows(in[0], out, call.layouts[1], first, end);
        const KernelContext kernel{nullptr, call.packed, call.plan.data(), nullptr, 1, call.layouts.data()};
        call.line->kernel->rows(kernel, std::span(in).first(count), std::span(&out, 1), first, end);
      });
    });
    if (context.timings) {
      const auto& name = strip_names_[static_cast<size_t>(final.strip)];
      context.timings->push_back({final.source, "cpu", name, start, std::chrono::steady_clock::now()});
    }
  }

  static std::string_view name_of(const Call& call) {
    switch (call.kind) {
      case LoweredNode::Kind::kToImage:
        return "to channels last";
      case LoweredNode::Kind::kToDense:
        return "to dense";
      case LoweredNode::Kind::kOperator:
        break;
    }
    return call.line ? call.line->name : "reference";
  }

  static TensorView view(const Operand& o, std::byte* workspace, std::span<const TensorView> inputs,
                         std::span<const TensorView> outputs) {
    switch (o.place.kind) {
      case Place::Kind::kNone:
        return {};
      case Place::Kind::kInput:
        return {o.type, inputs[static_cast<size_t>(o.place.index)].bytes};
      case Place::Kind::kOutput:
        return {o.type, outputs[static_cast<size_t>(o.place.index)].bytes};
      case Place::Kind::kConstant:
        return {o.type, const_cast<std::byte*>(o.place.data)};  // kernels only read inputs
      case Place::Kind::kWorkspace:
        return {o.type, workspace + o.place.offset};
    }
    return {};
  }

  std::optional<Retyped> retyped_;  // whose nodes lowered_ has
  Lowered lowered_;                 // Operands point to its types
  const HalfF32Kernels* half_ = nullptr;
  std::vector<Call> calls_;
  std::vector<Strip> strips_;
  std::vector<std::string> strip_names_;
  std::vector<Copy> copies_;
  std::vector<ConstantPtr> constants_;  // keeps computed contents alive
  std::string notice_;
  size_t workspace_bytes_ = 0;
  size_t views_offset_ = 0;
};

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

/// Unique for the node and what is packed for it, and in order of execution, in which the file then has them.
std::string packed_key(const Segment& segment, int32_t index, const Call& call, int64_t bytes) {
  std::string number = str_cat(index);
  number.insert(0, 6 - std::min<size_t>(number.size(), 6), '0');
  std::string key = str_cat("layout ", kPackedLayout, "/", segment.key_prefix, number, " ", call.node->name, "/",
                            call.line->name, "/", bytes);
  for (const TensorType* type : call.types) {
    if (call.line->kernel->packs_sizes && type) key += "/" + to_string(*type);
  }
  return key;
}

/// Finds or makes what the calls with the numbers `packing` asked for. Sources that nobody else reads are checked here.
Status make_packed(const Segment& segment, const Lowered& lowered, const std::string& target,
                   std::span<const int32_t> packing, std::span<const PackedConstants::Request> requests,
                   std::vector<Call>& calls) {
  const auto view_of = [&](const Call& call) {
    return NodeView(*call.node, *call.op, call.types, call.constants, call.declared);
  };
  const auto valid = [&](size_t i, const std::byte* data) {
    const Call& call = calls[packing[i]];
    return !call.line->kernel->valid || call.line->kernel->valid(view_of(call), data);
  };
  const auto pack = [&](size_t i, std::byte* to) -> Status {
    const Call& call = calls[packing[i]];
    const CpuKernel& kernel = *call.line->kernel;
    const NodeView node = view_of(call);
    if (kernel.stores && segment.packed.stored_required()) {
      const std::string notice = payload_notice(segment.packed, target);
      return unsupported(node.label(), ": a payload is required, and the file has no packed weights for ", target,
                         notice.empty() ? "" : "; ", notice);
    }
    std::vector<const Constant*> sources;
    for (size_t k = 0; k < lowered.nodes[packing[i]].inputs.size() && k < 32; ++k) {
      const ValueId id = lowered.nodes[packing[i]].inputs[k];
      if (id != kNoValue && (kernel.packs >> k & 1) && lowered.data[id]) sources.push_back(lowered.data[id].get());
    }
    for (const Constant* source : sources) PINNACE_TRY(source->check());
    PINNACE_TRY(kernel.pack(node, to));
    for (const Constant* source : sources) source->drop_pages();  // whoever wants them again has them from the file
    return {};
  };
  PINNACE_ASSIGN(const auto packed, segment.packed.get_all(requests, ThreadPool::shared(), valid, pack));
  for (size_t i = 0; i < packed.size(); ++i) {
    Call& call = calls[packing[i]];
    call.packed = packed[i].data;
    call.packed_here = !packed[i].stored && call.line->kernel->stores;
  }
  return {};
}

/// How many threads the scratch is made for: more than this never run in one call.
constexpr int kMaxThreads = 64;

}  // namespace

Result<std::unique_ptr<Executable>> compile_cpu(const Segment& given, CpuMode mode) {
  auto executable = std::make_unique<CpuExecutable>();
  PINNACE_ASSIGN(executable->retyped_, retype(given, mode));
  const std::optional<Retyped>& retyped = executable->retyped_;
  const Segment segment{retyped ? retyped->graph : given.graph,
                        retyped ? retyped->inference : given.inference,
                        retyped ? retyped->nodes : given.nodes,
                        given.inputs,
                        given.outputs,
                        given.ops,
                        given.packed,
                        given.key_prefix};
  executable->half_ = &half_kernels(mode.level);
  executable->lowered_ = lower_cpu(segment, mode);
  const Graph& graph = segment.graph;
  const Lowered& lowered = executable->lowered_;
  const std::vector<TensorType>& types = lowered.types;
  const size_t values = types.size();
  const std::string target = str_cat("cpu:", cpu_isa_name(mode.level));

  // Storage: values that share bytes (views, in-place) belong to one root.
  std::vector<ValueId> root(values);
  for (size_t i = 0; i < values; ++i) root[i] = static_cast<ValueId>(i);
  std::vector<Place> places(values);
  std::vector<int32_t> last_use(values, -1), made_at(values, -1);
  const auto call_count = static_cast<int32_t>(lowered.nodes.size());
  // Calls of a strip run together: what one of them reads or writes is in use during all of them.
  executable->strips_ = find_strips(lowered);
  std::vector<int32_t> begin_of(lowered.nodes.size()), end_of(lowered.nodes.size()), strip_of(lowered.nodes.size(), -1);
  for (int32_t k = 0; k < call_count; ++k) begin_of[k] = end_of[k] = k;
  std::vector<bool> in_strip(values, false);
  for (size_t i = 0; i < executable->strips_.size(); ++i) {
    const Strip& strip = executable->strips_[i];
    std::string names = "strips of";
    for (int32_t k = strip.first; k <= strip.last; ++k) {
      begin_of[k] = strip.first;
      end_of[k] = strip.last;
      strip_of[k] = static_cast<int32_t>(i);
      if (k < strip.last) in_strip[lowered.nodes[k].outputs[0]] = true;
      const CpuKernelLine* line = lowered.nodes[k].line;
      names += str_cat(k > strip.first ? ", " : " ", line ? line->name : std::string_view("to channels last"));
    }
    executable->strip_names_.push_back(std::move(names));
  }
  for (size_t i = 0; i < segment.inputs.size(); ++i) {
    places[segment.inputs[i]] = {Place::Kind::kInput, static_cast<int32_t>(i), 0, nullptr};
  }
  for (int32_t k = 0; k < call_count; ++k) {
    const LoweredNode& node = lowered.nodes[k];
    for (size_t i = 0; i < node.inputs.size(); ++i) {
      const ValueId id = node.inputs[i];
      if (id == kNoValue) continue;
      last_use[id] = end_of[k];
      const ConstantPtr& data = lowered.data[id];
      const Place& place = places[id];
      if (!data || (place.kind != Place::Kind::kNone && (place.kind != Place::Kind::kConstant || place.data))) continue;
      // Converted weights are needed only until they are packed.
      const bool until_packed = retyped && static_cast<size_t>(id) >= given.graph.values.size() && node.line &&
                                node.line->kernel->pack && i < 32 && (node.line->kernel->packs >> i & 1);
      places[id] = {Place::Kind::kConstant, 0, 0, until_packed ? nullptr : data->data()};
      if (!until_packed) executable->constants_.push_back(data);
    }
    for (ValueId id : node.outputs) made_at[id] = k;
  }
  std::vector<int32_t> output_of(values, -1);
  for (size_t i = 0; i < lowered.outputs.size(); ++i) {
    const ValueId id = lowered.outputs[i];
    last_use[id] = call_count;
    if (output_of[id] < 0 && made_at[id] >= 0) output_of[id] = static_cast<int32_t>(i);
  }

  // Sharing: output 0 takes over input i's bytes if nobody needs that input's old contents later. Only workspace values
  // are taken over; an output of the segment keeps its own memory, except that a view's input may be moved into it
  // (below).
  std::vector<int32_t> root_last = last_use;
  for (int32_t k = 0; k < call_count; ++k) {
    const LoweredNode& node = lowered.nodes[k];
    if (!node.op || strip_of[k] >= 0) continue;
    const ValueId y = node.outputs[0];
    for (size_t i = 0; i < node.inputs.size() && i < 32; ++i) {
      const ValueId x = node.inputs[i];
      const bool view = node.op->view && i == 0;
      if (x == kNoValue || !(view || (node.op->in_place >> i & 1))) continue;
      if (made_at[x] < 0 || output_of[x] >= 0 || output_of[root[x]] >= 0 || output_of[y] >= 0) continue;
      const bool same = types[x].dtype == types[y].dtype && types[x].shape == types[y].shape &&
                        lowered.layouts[x] == lowered.layouts[y];
      if (view ? types[x].bytes() != types[y].bytes() : !same) continue;
      if (!view) {
        // Overwritten: no other reader of these bytes after this call, and no second mention in this call.
        if (root_last[root[x]] > k || std::count(node.inputs.begin(), node.inputs.end(), x) > 1) continue;
        bool mentioned = false;
        for (ValueId other : node.inputs) mentioned |= other != kNoValue && other != x && root[other] == root[x];
        if (mentioned) continue;
      }
      root[y] = root[x];
      root_last[root[x]] = std::max(root_last[root[x]], last_use[y]);
      break;
    }
  }

  // Lifetimes: one per root in the workspace, one per call's scratch, one for the views.
  std::vector<Lifetime> lifetimes;
  std::vector<int32_t> lifetime_of(values, -1);
  for (int32_t k = 0; k < call_count; ++k) {
    for (ValueId id : lowered.nodes[k].outputs) {
      if (output_of[id] >= 0) {
        places[id] = {Place::Kind::kOutput, output_of[id], 0, nullptr};
      } else if (root[id] == id && !in_strip[id]) {
        lifetime_of[id] = static_cast<int32_t>(lifetimes.size());
        lifetimes.push_back({static_cast<size_t>(layout_bytes(types[id], lowered.layouts[id])), begin_of[k],
                             std::max(root_last[id], k)});
      }
    }
  }
  size_t most_views = 0;
  std::vector<PackedConstants::Request> requests;
  std::vector<int32_t> packing;                                       // the calls that want them
  std::vector<int32_t> index_of(static_cast<size_t>(call_count), 0);  // in the graph
  for (size_t i = segment.nodes.size(); i-- > 0;) index_of[lowered.node_of[i]] = segment.nodes[i];
  std::vector<int32_t> scratch_of(static_cast<size_t>(call_count), -1);
  for (int32_t k = 0; k < call_count; ++k) {
    const LoweredNode& node = lowered.nodes[k];
    Call call{};
    call.kind = node.kind;
    call.node = node.node;
    call.source = node.source;
    call.op = node.op;
    call.line = node.line;
    if (node.node) call.rounds = stored_as(*node.node);
    for (ValueId id : node.inputs) {
      call.types.push_back(id == kNoValue ? nullptr : &types[id]);
      call.constants.push_back(id == kNoValue || !lowered.data[id] ? nullptr : lowered.data[id]->data());
      call.layouts.push_back(id == kNoValue ? Layout{} : lowered.layouts[id]);
    }
    for (ValueId id : node.outputs) {
      call.declared.push_back(static_cast<size_t>(id) < graph.values.size() ? &graph.value(id).type : nullptr);
      call.layouts.push_back(lowered.layouts[id]);
    }
    most_views = std::max(most_views, node.inputs.size() + node.outputs.size());
    call.scratch_threads = kMaxThreads;
    uint32_t packs = 0;  // what only pack() reads
    if (call.line) {
      const NodeView view(*node.node, *call.op, call.types, call.constants, call.declared);
      const CpuKernel& kernel = *call.line->kernel;
      if (const int64_t bytes = kernel.packed_bytes ? kernel.packed_bytes(view) : 0; bytes > 0) {
        requests.push_back(
            {kernel.stores ? target : "", packed_key(segment, index_of[k], call, bytes), static_cast<size_t>(bytes)});
        packing.push_back(k);
        if (kernel.stores) packs = kernel.packs;
      }
      if (kernel.plan) {
        PINNACE_ASSIGN(call.plan, Buffer::allocate(static_cast<size_t>(kernel.plan_bytes(view)), call.line->name));
        kernel.plan(view, call.layouts.data(), call.plan.data());
      }
      if (kernel.scratch_bytes) {
        call.scratch_threads = std::min(kMaxThreads, available_processors());
        const int64_t bytes = kernel.scratch_bytes(view, call.scratch_threads);
        if (bytes > 0) {
          scratch_of[k] = static_cast<int32_t>(lifetimes.size());
          lifetimes.push_back({static_cast<size_t>(bytes), k, k});
        }
      }
    }
    for (size_t i = 0; i < node.inputs.size(); ++i) {
      const ValueId id = node.inputs[i];
      const bool only_packed = i < 32 && (packs >> i & 1);
      if (id != kNoValue && lowered.data[id] && !only_packed) PINNACE_TRY(lowered.data[id]->check());
    }
    call.strip = strip_of[k];
    if (call.strip >= 0 && begin_of[k] == k) {
      const Strip& strip = executable->strips_[call.strip];
      call.scratch_threads = static_cast<int>(strip.tasks(std::min(kMaxThreads, available_processors())));
      scratch_of[k] = static_cast<int32_t>(lifetimes.size());
      lifetimes.push_back({static_cast<size_t>(call.scratch_threads) * strip.task_bytes, k, end_of[k]});
    }
    executable->calls_.push_back(std::move(call));
  }
  PINNACE_TRY(make_packed(segment, lowered, target, packing, requests, executable->calls_));
  executable->notice_ = payload_notice(segment.packed, target);

  const size_t views_lifetime = lifetimes.size();
  lifetimes.push_back({most_views * (sizeof(TensorView) + sizeof(void*)), 0, call_count});
  const OffsetPlan plan = plan_offsets(lifetimes);
  executable->workspace_bytes_ = plan.total;
  executable->views_offset_ = plan.offsets[views_lifetime];

  for (int32_t k = 0; k < call_count; ++k) {
    for (ValueId id : lowered.nodes[k].outputs) {
      if (output_of[id] < 0 && !in_strip[id]) {
        places[id] = {Place::Kind::kWorkspace, 0, plan.offsets[lifetime_of[root[id]]], nullptr};
      }
    }
  }
  for (int32_t k = 0; k < call_count; ++k) {
    const LoweredNode& node = lowered.nodes[k];
    Call& call = executable->calls_[k];
    if (scratch_of[k] >= 0) call.scratch_offset = plan.offsets[scratch_of[k]];
    for (ValueId id : node.inputs) {
      call.inputs.push_back(id == kNoValue ? Operand{} : Operand{&types[id], places[id]});
    }
    for (ValueId id : node.outputs) call.outputs.push_back({&types[id], places[id]});
    call.nothing_to_do = node.op && node.op->view && output_of[node.outputs[0]] < 0 && node.inputs[0] != kNoValue &&
                         root[node.outputs[0]] == root[node.inputs[0]];
  }
  for (size_t i = 0; i < lowered.outputs.size(); ++i) {
    const ValueId id = lowered.outputs[i];
    if (output_of[id] == static_cast<int32_t>(i)) continue;
    Place place = places[id];
    if (place.kind == Place::Kind::kNone && lowered.data[id]) {
      place = {Place::Kind::kConstant, 0, 0, lowered.data[id]->data()};
      executable->constants_.push_back(lowered.data[id]);
    }
    executable->copies_.push_back({{&types[id], place}, static_cast<int32_t>(i)});
  }
  executable->lowered_.data.clear();
  if (executable->retyped_) executable->retyped_->inference = {};
  return std::unique_ptr<Executable>(std::move(executable));
}

}  // namespace pinnace
