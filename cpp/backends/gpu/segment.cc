// Lowering of whole segments; what a device lacks, or was found to do wrong, becomes verdicts on nodes.
#include "backends/gpu/segment.h"

#include <algorithm>

#include "backends/gpu/dispatch_splitting.h"
#include "backends/gpu/layout/params.h"
#include "backends/gpu/self_check.h"
#include "backends/packed_constants.h"
#include "base/hash.h"

namespace pinnace::gpu {
namespace {

std::vector<LoweredValue> values_of(const Segment& segment) {
  const Uses uses(segment.graph);
  std::vector<LoweredValue> all(segment.graph.values.size());
  for (size_t i = 0; i < all.size(); ++i) {
    const auto id = static_cast<ValueId>(i);
    LoweredValue& v = all[i];
    v.type = &segment.type_inference.types[i];
    const bool leaves = std::find(segment.outputs.begin(), segment.outputs.end(), id) != segment.outputs.end();
    v.one_reader = uses.only_one_reader(id) && !leaves;
    const ConstantPtr& data = segment.type_inference.data[i];
    if (!data) continue;
    v.constant = true;
    v.data = data->data();
    if (!segment.graph.value(id).constant) {
      v.contents = str_cat(" ", *v.type, " ", hash64({data->data(), data->bytes()}));
    }
  }
  return all;
}

/// The first node of the segment that reads the value, or makes it; 0 if none does.
size_t node_of(const Segment& segment, ValueId id, bool made) {
  for (size_t i = 0; i < segment.nodes.size(); ++i) {
    const Node& node = *segment.graph.nodes[static_cast<size_t>(segment.nodes[i])];
    const auto& list = made ? node.outputs : node.inputs;
    if (std::find(list.begin(), list.end(), id) != list.end()) return i;
  }
  return 0;
}

void enter_inputs(const Segment& segment, const DeviceCaps& caps, Lowering& lowering) {
  for (size_t i = 0; i < segment.inputs.size(); ++i) {
    LoweredValue& v = lowering.value(segment.inputs[i]);
    const int64_t elements = v.type->elements();
    const TensorId host = lowering.add_tensor(DeviceTensor::Place::kInput, i, static_cast<size_t>(elements) * 4);
    v.dense = host;
    // Kernels that read an input several times do so in the device's own memory; in fp32 on unified memory it is there.
    if (!is_device_float(v.type->dtype) || (!lowering.f16() && caps.unified_memory) || elements == 0) continue;
    v.dense = lowering.add_tensor(DeviceTensor::Place::kActivation, 0,
                                  static_cast<size_t>(elements) * lowering.element_bytes(*v.type));
    const int64_t vectors = (elements + 3) / 4;
    lowering.begin_node(node_of(segment, segment.inputs[i], false), {}, false);
    v.dense_step = lowering.add_step({{KernelId::enter, lowering.f16(), {}},
                                      PushBytes(LayoutParams{.count = vectors}).copy(),
                                      {host, v.dense},
                                      line_groups(vectors, 64),
                                      0,
                                      static_cast<double>(elements)});
  }
}

/// Leaves out steps whose results nobody reads: an input that was turned into NC4HW4 while it was entered.
void keep_what_is_read(LoweredSegment& made, std::vector<Step> steps) {
  for (Step& step : steps) {
    if (!step.dead) made.steps.push_back(std::move(step));
  }
  std::vector<bool> read(made.tensors.size(), false);
  for (size_t s = made.steps.size(); s-- > 0;) {
    const Step& step = made.steps[s];
    const KernelCode& code = kernel_code(step.kernel.id, step.kernel.f16);
    bool wanted = false;
    for (size_t b = 0; b < step.bindings.size(); ++b) {
      const auto t = static_cast<size_t>(step.bindings[b]);
      if (code.written >> b & 1) {
        wanted |= read[t] || made.tensors[t].place == DeviceTensor::Place::kOutput ||
                  made.tensors[t].place == DeviceTensor::Place::kErrorRecord;
      }
    }
    if (!wanted) {
      made.steps.erase(made.steps.begin() + static_cast<ptrdiff_t>(s));
      continue;
    }
    for (size_t b = 0; b < step.bindings.size(); ++b) {
      if (!(code.written >> b & 1)) read[static_cast<size_t>(step.bindings[b])] = true;
    }
  }
}

/// Why the device cannot run a kernel at all; empty if it can.
std::string too_small_for(const KernelCode& code, const DeviceCaps& caps) {
  const uint64_t invocations = uint64_t{code.local[0]} * code.local[1] * code.local[2];
  if (invocations <= caps.max_invocations && code.shared_bytes <= caps.shared_bytes) return {};
  return str_cat("kernel ", code.name, " has ", invocations, " invocations and ", code.shared_bytes,
                 " bytes of shared memory, the device ", caps.max_invocations, " and ", caps.shared_bytes);
}

/// Between the layouts and the host: no node has these to itself, so without one of them the device is of no use.
bool serves_all(KernelId id) {
  return id == KernelId::enter || id == KernelId::enter_nc4hw4 || id == KernelId::leave ||
         id == KernelId::leave_nc4hw4 || id == KernelId::nc4hw4_to_dense || id == KernelId::dense_to_nc4hw4;
}

}  // namespace

Result<LoweredSegment> lower_segment(const Segment& segment, const DeviceCaps& caps, bool f16,
                                     const std::set<KernelId>& distrusted) {
  Lowering lowering(false, f16, values_of(segment));
  lowering.distrust(distrusted);
  lowering.give_simdgroup_matrices(caps.simdgroup_matrices);
  lowering.bind_at_most(caps.max_binding_bytes);
  enter_inputs(segment, caps, lowering);
  LoweredSegment made;
  made.operands.resize(segment.nodes.size());
  for (size_t i = 0; i < segment.nodes.size(); ++i) {
    const Node& node = *segment.graph.nodes[static_cast<size_t>(segment.nodes[i])];
    auto& [types, outputs, data] = made.operands[i];
    std::string key = str_cat(numbered(segment.nodes[i]), " ", node.name);
    bool of_sizes = false;
    for (ValueId id : node.inputs) {
      types.push_back(id == kNoValue ? nullptr : &segment.type_inference.types[static_cast<size_t>(id)]);
      data.push_back(id == kNoValue ? nullptr : lowering.value(id).data);
      if (id == kNoValue) continue;
      key += lowering.value(id).contents;
      of_sizes |= !lowering.value(id).contents.empty();
    }
    for (ValueId id : node.outputs) outputs.push_back(&segment.type_inference.types[static_cast<size_t>(id)]);
    const NodeView view(node, *segment.ops.find(node.op), types, data, outputs);
    lowering.begin_node(i, std::move(key), of_sizes);
    Verdict verdict;
    const Status status = lower_node(lowering, view, outputs, verdict);
    if (!status.ok()) return status.with_prefix(str_cat("lowering of ", view.label(), ": "));
    made.nodes.push_back(&node);
    made.kernels.push_back(verdict.kernel.empty() ? "no kernel" : verdict.kernel);
  }
  for (size_t i = 0; i < segment.outputs.size(); ++i) {
    lowering.begin_node(node_of(segment, segment.outputs[i], true), {}, false);
    lowering.leave(segment.outputs[i], i);
  }
  for (WeightRequest& request : lowering.weights()) {
    request.key = str_cat(f16 ? "f16 " : "f32 ", segment.key_prefix, request.key);
  }
  made.error_labels = std::move(lowering.error_labels());
  made.known = std::move(lowering.known());
  made.tensors = std::move(lowering.tensors());
  made.weights = std::move(lowering.weights());
  keep_what_is_read(made, std::move(lowering.steps()));
  split_dispatches(made, caps);
  return made;
}

Result<FittedSegment> fit_segment(const Segment& segment, const std::shared_ptr<Context>& context, bool f16) {
  const DeviceCaps& caps = context->caps();
  const size_t nodes = segment.nodes.size();
  FittedSegment fitted;
  fitted.f16 = f16 && caps.f16_storage;
  fitted.notices.resize(nodes);
  fitted.verdicts.resize(nodes);
  if (f16 && !fitted.f16) fitted.notices.assign(nodes, "the device has no storage of 16-bit floats: fp32 instead");
  std::set<KernelId> distrusted;
  std::map<KernelId, Verdict> unusable;
  for (;;) {  // ends: each turn but the last leaves 16 bits, once, or distrusts one kernel more
    PINNACE_ASSIGN(fitted.lowered, lower_segment(segment, caps, fitted.f16, distrusted));
    unusable.clear();
    std::set<std::pair<KernelId, bool>> wanted;
    for (const Step& step : fitted.lowered.steps) {
      const KernelCode& code = kernel_code(step.kernel.id, step.kernel.f16);
      if (std::string lack = too_small_for(code, caps); !lack.empty()) {
        unusable[step.kernel.id] = refusal(Rule::kDeviceLimit, std::move(lack));
      } else {
        wanted.insert({step.kernel.id, step.kernel.f16 && code.f16_storage});
      }
    }
    PINNACE_ASSIGN(const auto failed, failed_self_checks(context, wanted));
    for (const auto& [id, what] : failed) {
      unusable[id] = refusal(Rule::kSelfCheck, str_cat(kernel_code(id, fitted.f16).name, ": ", what));
    }
    if (unusable.empty()) break;
    // What stands beside another kernel for the sake of a capability alone is given up first, then 16 bits, then the
    // rest.
    const auto go_around = [&](bool beside_others) {
      const auto meant = [&](KernelId id) {
        return unusable.contains(id) && (!beside_others || kernel_code(id, fitted.f16).simdgroup_matrices);
      };
      bool news = false;
      for (const auto& [id, why] : unusable) news |= meant(id) && distrusted.insert(id).second;
      for (const Step& step : fitted.lowered.steps) {
        if (!news || !meant(step.kernel.id)) continue;
        const Verdict& why = unusable[step.kernel.id];
        std::string& notice = fitted.notices[step.node];
        const std::string reason = str_cat("another kernel instead: ", why.text, ", ", why.value);
        if (notice.find(reason) != std::string::npos) continue;
        notice += notice.empty() ? reason : "; " + reason;
      }
      return news;
    };
    if (go_around(true)) continue;
    if (fitted.f16 && !failed.empty()) {
      fitted.f16 = false;
      distrusted.clear();  // what was wrong in 16 bits may be right in 32
      const auto& [id, what] = *failed.begin();
      fitted.notices.assign(nodes, str_cat("fp32 instead of fp16: ", kernel_code(id, true).name,
                                           " fails the self-check of this device, ", what));
      continue;
    }
    if (!go_around(false)) break;
  }
  for (const Step& step : fitted.lowered.steps) {
    Verdict verdict;
    if (const auto found = unusable.find(step.kernel.id); found != unusable.end()) {
      verdict = found->second;
      if (serves_all(step.kernel.id)) fitted.verdicts.assign(nodes, verdict);
    } else {
      verdict = within_limits(fitted.lowered, step, caps);
    }
    if (verdict.supported) continue;
    fitted.verdicts[step.node] = std::move(verdict);
    fitted.complete = false;
  }
  return fitted;
}

}  // namespace pinnace::gpu
