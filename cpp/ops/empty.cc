// Which nodes compute nothing.
#include "ops/empty.h"

#include <algorithm>

#include "base/cancel.h"

namespace pinnace {
namespace {

/// Input i of the operator holds indices, sizes or places: integers and nothing else.
bool holds_indices(const OpDef& op, size_t i) {
  if (op.inputs.size() == 0) return false;
  const InputDef& def = op.inputs.begin()[std::min(i, op.inputs.size() - 1)];
  return (def.types & kIndices) && !(def.types & kFloats);
}
bool has_elements(const TensorType* type) {
  return type && type->elements() != 0;
}

}  // namespace

bool nothing_to_compute(const OpDef& op, std::span<const TensorType* const> inputs,
                        std::span<const TensorType* const> outputs) {
  if (op.context || std::any_of(outputs.begin(), outputs.end(), has_elements)) return false;
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (has_elements(inputs[i]) && holds_indices(op, i)) return false;
  }
  return true;
}

Status compute(const NodeView& node, std::span<const TensorView> inputs, std::span<const TensorView> outputs) {
  const OpDef& op = node.op();
  bool nothing = !op.context;
  for (const TensorView& out : outputs) nothing &= !has_elements(out.type);
  for (size_t i = 0; nothing && i < inputs.size(); ++i)
    nothing = !has_elements(inputs[i].type) || !holds_indices(op, i);
  if (nothing) return {};
  const LoopsMayStop loops;
  Status status = op.reference(node, inputs, outputs);
  return stopped() ? stop_status(node.label()) : status;  // what it complains of may be what it has not computed
}

}  // namespace pinnace
