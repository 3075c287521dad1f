// Types that a client gives beside an operand, and the codes that statuses become.
#include "nnapi_host/objects.h"

namespace pinnace::nnapi_host {

int merge_type(const nnapi::Operand& operand, const ANeuralNetworksOperandType* type, std::vector<uint32_t>& dims,
               bool& rank_open) {
  dims = operand.dims;
  rank_open = operand.rank_open();
  if (!type) return ANEURALNETWORKS_NO_ERROR;
  if (type->type != static_cast<int32_t>(operand.type) || type->scale != operand.scale ||
      type->zeroPoint != operand.zero_point) {
    return ANEURALNETWORKS_BAD_DATA;
  }
  if ((type->dimensionCount > 0) != (type->dimensions != nullptr)) return ANEURALNETWORKS_BAD_DATA;
  if (type->dimensionCount == 0) return ANEURALNETWORKS_NO_ERROR;
  if (!operand.tensor()) return ANEURALNETWORKS_BAD_DATA;
  const std::span given(type->dimensions, type->dimensionCount);
  if (rank_open) {
    dims.assign(given.begin(), given.end());
    rank_open = false;
  } else {
    if (given.size() != dims.size()) return ANEURALNETWORKS_BAD_DATA;
    for (size_t i = 0; i < given.size(); ++i) {
      if (given[i] && dims[i] && given[i] != dims[i]) return ANEURALNETWORKS_BAD_DATA;
      if (given[i]) dims[i] = given[i];
    }
  }
  return bytes_of(operand, dims, rank_open) ? ANEURALNETWORKS_NO_ERROR : ANEURALNETWORKS_BAD_DATA;
}

std::optional<uint64_t> bytes_of(const nnapi::Operand& operand, std::span<const uint32_t> dims, bool rank_open) {
  if (rank_open) return 0;
  uint64_t known = nnapi::info(operand.type).bytes;
  bool open = false;
  for (uint32_t d : dims) {
    open |= d == 0;
    if (d) known *= d;
    if (known > UINT32_MAX) return std::nullopt;
  }
  return open ? 0 : known;
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
