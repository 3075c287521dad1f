// Backwards through the operations of a finished model, which stand in an order in which values are made before they
// are read.
#include "nnapi/map/unused.h"

#include <algorithm>
#include <utility>

namespace pinnace::nnapi {
namespace {

bool makes_any(const Operation& operation, const std::vector<bool>& wanted) {
  return std::any_of(operation.outputs.begin(), operation.outputs.end(), [&](uint32_t i) { return wanted[i]; });
}

/// For each operand whether `outputs` are made of it.
std::vector<bool> made_of(const Model& model, std::span<const uint32_t> outputs) {
  std::vector<bool> wanted(model.operands.size(), false);
  for (uint32_t i : outputs) wanted[i] = true;
  for (auto operation = model.operations.rbegin(); operation != model.operations.rend(); ++operation) {
    if (!makes_any(*operation, wanted)) continue;
    for (uint32_t i : operation->inputs) wanted[i] = true;
  }
  return wanted;
}

}  // namespace

std::vector<bool> carried_that_matter(const Model& condition, const Model& body, std::vector<bool> used) {
  const std::vector<bool> of_condition = made_of(condition, condition.outputs);
  std::vector<uint32_t> open;
  const auto mark = [&](size_t i) {
    used[i] = true;
    open.push_back(body.outputs[i]);
  };
  for (size_t i = 0; i < used.size(); ++i) {
    if (used[i] || of_condition[condition.inputs[i]]) mark(i);
  }
  while (!open.empty()) {
    const std::vector<bool> wanted = made_of(body, std::exchange(open, {}));
    for (size_t i = 0; i < used.size(); ++i) {
      if (!used[i] && wanted[body.inputs[i]]) mark(i);
    }
  }
  return used;
}

Model part_of(const Model& model, std::vector<uint32_t> inputs, std::vector<uint32_t> outputs) {
  Model part = model;
  const std::vector<bool> wanted = made_of(model, outputs);
  std::erase_if(part.operations, [&](const Operation& operation) { return !makes_any(operation, wanted); });
  part.inputs = std::move(inputs);
  part.outputs = std::move(outputs);
  return part;
}

}  // namespace pinnace::nnapi
