// MemoryDesc: the roles that a memory is to have, which must agree in type.
#include <algorithm>

#include "nnapi_host/objects.h"

using namespace pinnace::nnapi_host;
using pinnace::nnapi::Operand;

namespace {

/// `a` with what `b` knows of its dimensions; nothing where they differ.
std::optional<std::vector<uint32_t>> merge_dims(const std::vector<uint32_t>& a, const std::vector<uint32_t>& b) {
  if (a.empty()) return b;
  if (b.empty()) return a;
  if (a.size() != b.size()) return std::nullopt;
  std::vector<uint32_t> merged = a;
  for (size_t i = 0; i < a.size(); ++i) {
    if (a[i] && b[i] && a[i] != b[i]) return std::nullopt;
    if (!merged[i]) merged[i] = b[i];
  }
  return merged;
}

int add_role(ANeuralNetworksMemoryDesc* desc, const ANeuralNetworksCompilation* compilation, bool input, uint32_t index,
             float frequency) {
  if (!desc || !compilation) return ANEURALNETWORKS_UNEXPECTED_NULL;
  if (desc->finished) return ANEURALNETWORKS_BAD_STATE;
  if (!compilation->engine) return ANEURALNETWORKS_BAD_DATA;
  const pinnace::nnapi::Model& model = compilation->engine->model();
  const std::vector<uint32_t>& operands = input ? model.inputs : model.outputs;
  if (index >= operands.size() || !(frequency > 0) || frequency > 1) return ANEURALNETWORKS_BAD_DATA;
  const Role role{compilation->engine, input, index};
  if (std::find(desc->roles.begin(), desc->roles.end(), role) != desc->roles.end()) return ANEURALNETWORKS_BAD_DATA;
  Operand operand = model.operands[operands[index]];
  if (desc->operand) {
    const Operand& first = *desc->operand;
    if (operand.type != first.type || operand.scale != first.scale || operand.zero_point != first.zero_point ||
        operand.channel_scales != first.channel_scales || operand.channel_dim != first.channel_dim) {
      return ANEURALNETWORKS_BAD_DATA;
    }
  }
  if (!operand.tensor() && !desc->dims.empty()) return ANEURALNETWORKS_BAD_DATA;
  const auto dims = merge_dims(desc->operand ? desc->operand->dims : desc->dims, operand.dims);
  if (!dims) return ANEURALNETWORKS_BAD_DATA;
  operand.dims = *dims;
  operand.data = {};
  operand.owner = nullptr;
  desc->operand = std::move(operand);
  desc->roles.push_back(role);
  return ANEURALNETWORKS_NO_ERROR;
}

}  // namespace

int plain::MemoryDesc_create(ANeuralNetworksMemoryDesc** desc) {
  if (!desc) return ANEURALNETWORKS_UNEXPECTED_NULL;
  *desc = new ANeuralNetworksMemoryDesc;
  return ANEURALNETWORKS_NO_ERROR;
}

void plain::MemoryDesc_free(ANeuralNetworksMemoryDesc* desc) {
  delete desc;
}

int plain::MemoryDesc_addInputRole(ANeuralNetworksMemoryDesc* desc, const ANeuralNetworksCompilation* compilation,
                                   uint32_t index, float frequency) {
  return add_role(desc, compilation, true, index, frequency);
}

int plain::MemoryDesc_addOutputRole(ANeuralNetworksMemoryDesc* desc, const ANeuralNetworksCompilation* compilation,
                                    uint32_t index, float frequency) {
  return add_role(desc, compilation, false, index, frequency);
}

int plain::MemoryDesc_setDimensions(ANeuralNetworksMemoryDesc* desc, uint32_t rank, const uint32_t* dimensions) {
  if (!desc || (!dimensions && rank > 0)) return ANEURALNETWORKS_UNEXPECTED_NULL;
  if (desc->finished) return ANEURALNETWORKS_BAD_STATE;
  const std::vector<uint32_t> given(dimensions, dimensions + rank);
  if (desc->operand && !desc->operand->tensor() && rank > 0) return ANEURALNETWORKS_BAD_DATA;
  const auto dims = merge_dims(desc->operand ? desc->operand->dims : desc->dims, given);
  if (!dims) return ANEURALNETWORKS_BAD_DATA;
  (desc->operand ? desc->operand->dims : desc->dims) = *dims;
  return ANEURALNETWORKS_NO_ERROR;
}

int plain::MemoryDesc_finish(ANeuralNetworksMemoryDesc* desc) {
  if (!desc) return ANEURALNETWORKS_UNEXPECTED_NULL;
  if (desc->finished) return ANEURALNETWORKS_BAD_STATE;
  if (desc->roles.empty()) return ANEURALNETWORKS_BAD_DATA;
  desc->finished = true;
  return ANEURALNETWORKS_NO_ERROR;
}
