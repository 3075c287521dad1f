// Types that a client gives beside an operand, and the codes that statuses become.
#include <algorithm>

#include "nnapi_host/objects.h"

namespace pinnace::nnapi_host {

int merge_type(const nnapi::Operand& operand, const ANeuralNetworksOperandType* type, bool may_be_dynamic,
               std::vector<uint32_t>& dims, bool& dynamic_rank) {
  dims = operand.dims;
  if (type) {
    // The type must make sense by itself; of it only the dimensions count.
    if (!nnapi::validate_operand(type->type, type->dimensionCount, type->dimensions, type->scale, type->zeroPoint).ok())
      return ANEURALNETWORKS_BAD_DATA;
    const std::span given(type->dimensions, type->dimensionCount);
    if (dims.empty()) {
      if (operand.tensor()) dims.assign(given.begin(), given.end());
    } else {
      const auto agree = [](uint32_t known, uint32_t stated) { return known == 0 || known == stated; };
      if (!std::equal(dims.begin(), dims.end(), given.begin(), given.end(), agree)) return ANEURALNETWORKS_BAD_DATA;
      dims.assign(given.begin(), given.end());
    }
  }
  dynamic_rank = operand.tensor() && dims.empty();
  const bool dynamic = dynamic_rank || std::find(dims.begin(), dims.end(), 0u) != dims.end();
  if (dynamic && !may_be_dynamic) return ANEURALNETWORKS_BAD_DATA;
  return bytes_of(operand, dims, dynamic_rank) ? ANEURALNETWORKS_NO_ERROR : ANEURALNETWORKS_BAD_DATA;
}

std::optional<uint64_t> bytes_of(const nnapi::Operand& operand, std::span<const uint32_t> dims, bool dynamic_rank) {
  if (dynamic_rank) return 0;
  uint64_t known = nnapi::info(operand.type).bytes;
  bool dynamic = false;
  for (uint32_t d : dims) {
    dynamic |= d == 0;
    if (d) known *= d;
    if (known > UINT32_MAX) return std::nullopt;
  }
  return dynamic ? 0 : known;
}

int code_of(const Status& status) {
  switch (status.code()) {
    case Code::kOk:
      return ANEURALNETWORKS_NO_ERROR;
    case Code::kOutOfMemory:
      return ANEURALNETWORKS_OUT_OF_MEMORY;
    case Code::kDeviceLost:
      return ANEURALNETWORKS_DEAD_OBJECT;
    case Code::kCancelled:
      return ANEURALNETWORKS_MISSED_DEADLINE_PERSISTENT;
    default:
      return ANEURALNETWORKS_OP_FAILED;
  }
}

}  // namespace pinnace::nnapi_host
