// How a compiled segment runs.
#include "backends/cpu/plan/executable.h"

#include <algorithm>
#include <array>
#include <cstring>

namespace pinnace::cpu {
namespace {

/// Rounds a float32 value, dense or NHWC-packed, to a 16-bit type.
void round_floats(const KernelContext& context, const HalfF32Kernels& half, DType to, const TensorView& view,
                  const Layout& layout) {
  constexpr int64_t kEach = 16384;
  const int64_t count = layout_bytes(*view.type, layout) / 4;
  const HalfKind kind = to == DType::kF16 ? HalfKind::kF16 : HalfKind::kBf16;
  context.in_parts(count, kEach,
                   [&](int64_t first, int64_t some) { half.round(kind, view.data<float>() + first, some); });
}

std::string_view name_of(const Call& call) {
  switch (call.kind) {
    case LoweredNode::Kind::kToNhwc:
      return "to channels last";
    case LoweredNode::Kind::kToDense:
      return "to dense";
    case LoweredNode::Kind::kOperator:
      break;
  }
  return call.line ? call.line->name : kReferenceCode;
}

TensorView view(const Operand& o, std::byte* workspace, std::span<const TensorView> inputs,
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

Fusion fusion_of(const Call& call, std::byte* workspace, std::span<const TensorView> inputs,
                 std::span<const TensorView> outputs) {
  return call.fusion.map(
      [&](const FusedOperand& o) { return FusedView{view(o.operand, workspace, inputs, outputs), o.layout}; });
}

/// Where a run was stopped.
Status stopped_at(const Call& call) {
  const Node* node = call.node ? call.node : call.source;
  return stop_status(node ? str_cat(node->op, " '", node->name, "'") : std::string(name_of(call)));
}

}  // namespace

std::string_view CpuExecutable::kernel(size_t i) const {
  if (legalized_) i = static_cast<size_t>(legalized_->node_of[i]);
  const Call& call = calls_[static_cast<size_t>(lowered_.node_of[i])];
  if (call.nothing_to_do && call.op->has(Trait::kView)) return "view";
  return call.fused_run >= 0 ? std::string_view(fused_run_names_[static_cast<size_t>(call.fused_run)]) : name_of(call);
}

std::string CpuExecutable::notice(size_t i) const {
  if (legalized_) i = static_cast<size_t>(legalized_->node_of[i]);
  const Call& call = calls_[static_cast<size_t>(lowered_.node_of[i])];
  if (!call.nothing_to_do && name_of(call) == kReferenceCode) {
    return call.op->context ? "runs the application's own code"
                            : "runs by reference code: no kernel takes its types and sizes";
  }
  return call.packed_here ? notice_ : std::string();
}

Status CpuExecutable::run(const RunContext& context, std::span<const TensorView> inputs,
                          std::span<const TensorView> outputs) const {
  const ThreadPool::Attention attention(*context.pool, context.threads, context.workers_stay_awake);
  const LoopsMayStop loops;  // nothing is used after a call before cancelled() is asked
  // Room for the views of one call is in the workspace: a run allocates nothing.
  auto* views = reinterpret_cast<TensorView*>(context.workspace + views_offset_);
  for (const Call& call : calls_) {
    if (call.nothing_to_do) continue;
    if (call.fused_run >= 0) {
      const FusedRun& fused_run = fused_runs_[static_cast<size_t>(call.fused_run)];
      if (&call == &calls_[static_cast<size_t>(fused_run.first)]) run_fused_calls(fused_run, context, inputs, outputs);
      if (context.cancelled()) return stopped_at(call);
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
    const Fusion fusion = fusion_of(call, context.workspace, inputs, outputs);
    const KernelContext kernel{.scratch = context.workspace + call.scratch_offset,
                               .packed = call.packed,
                               .plan = call.plan.data(),
                               .pool = context.pool,
                               .threads = std::min(context.threads, call.scratch_threads),
                               .layouts = call.layouts.data(),
                               .fusion = &fusion,
                               .shape_invariant = shape_invariant_};
    if (call.kind == LoweredNode::Kind::kToNhwc) {
      to_nhwc(kernel, in[0], out[0], call.layouts[1]);
    } else if (call.kind == LoweredNode::Kind::kToDense) {
      to_dense(kernel, in[0], call.layouts[0], out[0]);
    } else {
      // Reference code may look at contents through the NodeView too, so it gets those of every input.
      auto* contents = reinterpret_cast<const void**>(views + n);
      for (size_t i = 0; i < in.size(); ++i) contents[i] = in[i].bytes;
      NodeView node(*call.node, *call.op, call.types, std::span<const void* const>(contents, in.size()), call.declared);
      node.set_threads({context.pool, context.threads});
      const Status status = call.line
                                ? call.line->kernel->run(KernelNode(node, fusion, call.stored_as), kernel, in, out)
                                : call.op->reference(node, in, out);
      if (context.cancelled()) return stopped_at(call);  // what it complains of may be what it has not computed
      PINNACE_TRY(status);
    }
    if (call.stored_as != DType::kF32) {
      for (size_t i = 0; i < out.size(); ++i) {
        if (out[i].dtype() == DType::kF32) {
          round_floats(kernel, *half_, call.stored_as, out[i], call.layouts[in.size() + i]);
        }
      }
    }
    if (context.timings && call.source) {
      context.timings->add(*call.source, "cpu", name_of(call), start, std::chrono::steady_clock::now());
    }
  }
  for (const Copy& c : copies_) {
    const TensorView from = view(c.from, context.workspace, inputs, outputs);
    const TensorView& to = outputs[static_cast<size_t>(c.output)];
    if (from.bytes && from.bytes != to.bytes && to.type->bytes()) {
      std::memcpy(to.bytes, from.bytes, static_cast<size_t>(to.type->bytes()));
    }
  }
  return {};
}

void CpuExecutable::run_fused_calls(const FusedRun& fused_run, const RunContext& context,
                                    std::span<const TensorView> inputs, std::span<const TensorView> outputs) const {
  const auto start = context.timings ? std::chrono::steady_clock::now() : std::chrono::steady_clock::time_point{};
  const Call* calls = &calls_[static_cast<size_t>(fused_run.first)];
  const size_t last = fused_run.between.size();
  const Call& final = calls[last];
  if (const Layout& layout = final.layouts.back(); !layout.border.none()) {
    clear_border(view(final.outputs[0], context.workspace, inputs, outputs), layout);
  }
  const int64_t tasks = fused_run.tasks(std::min(context.threads, calls[0].scratch_threads));
  context.pool->run(tasks, static_cast<int>(tasks), [&](int64_t task) {
    std::byte* memory = context.workspace + calls[0].scratch_offset + static_cast<size_t>(task) * fused_run.task_bytes;
    run_fused_run(fused_run, task, tasks, memory, [&](size_t i, std::byte* const* bases, int64_t first, int64_t end) {
      const Call& call = calls[i];
      std::array<TensorView, kFusedInputs> in;
      const size_t count = call.inputs.size();
      for (size_t j = 0; j < count; ++j) in[j] = view(call.inputs[j], context.workspace, inputs, outputs);
      TensorView out = view(call.outputs[0], context.workspace, inputs, outputs);
      if (i > 0) in[0] = {call.inputs[0].type, bases[i - 1]};
      if (i < last) out = {call.outputs[0].type, bases[i]};
      if (call.kind == LoweredNode::Kind::kToNhwc) return to_nhwc_rows(in[0], out, call.layouts[1], first, end);
      const Fusion fusion = fusion_of(call, context.workspace, inputs, outputs);
      const KernelContext kernel{
          .packed = call.packed, .plan = call.plan.data(), .layouts = call.layouts.data(), .fusion = &fusion};
      call.line->kernel->rows(kernel, std::span(in).first(count), std::span(&out, 1), first, end);
    });
  });
  if (context.timings) {
    const auto& name = fused_run_names_[static_cast<size_t>(final.fused_run)];
    context.timings->add(*final.source, "cpu", name, start, std::chrono::steady_clock::now());
  }
}

}  // namespace pinnace::cpu
