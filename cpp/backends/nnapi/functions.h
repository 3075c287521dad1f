// NNAPI's C interface as a table of pointers, looked up in whatever library there is; nothing is linked. The structs
// are those of the NDK's header by layout.
#pragma once

#include <cstddef>
#include <cstdint>

namespace pinnace::nnapi_client {

struct Memory;
struct MemoryDesc;
struct Model;
struct Compilation;
struct Execution;
struct Event;
struct Device;
struct Burst;

struct OperandType {
  int32_t type;
  uint32_t dimension_count;
  const uint32_t* dimensions;
  float scale;
  int32_t zero_point;
};
struct ChannelQuantization {
  uint32_t channel_dim;
  uint32_t scale_count;
  const float* scales;
};

/// Result codes.
enum ResultCode : int {
  kNoError = 0,
  kOutOfMemoryCode = 1,
  kOpFailed = 5,
  kMissedDeadlineTransient = 10,
  kMissedDeadlinePersistent = 11,
  kResourceExhaustedTransient = 12,
  kDeadObject = 14,
};
/// "OP_FAILED"
const char* result_name(int code);
/// True for codes after which the same call may succeed.
constexpr bool transient(int code) {
  return code == kMissedDeadlineTransient || code == kResourceExhaustedTransient;
}

/// Functions of levels that the library does not have are null.
struct Functions {
#define FUNCTION(level, result, name, arguments) result(*name) arguments = nullptr;
#include "backends/nnapi/functions.inc"
#undef FUNCTION
};

}  // namespace pinnace::nnapi_client
