// The table of NNAPI's operations: names, levels, signatures (operations.inc, signatures.inc), and the check of one
// operation against it.
#pragma once

#include <span>
#include <string_view>

#include "nnapi/model.h"

namespace pinnace::nnapi {

/// Feature levels are counted 1 to 8 here; NNAPI's codes are 27 to 31, then 1000006 to 1000008.
inline constexpr int kNewestFeatureLevel = 8;
constexpr int64_t feature_level_code(int level) {
  return level <= 5 ? 26 + level : 1000000 + level;
}

/// The names of NNAPI's result codes, without their prefix: result_names()[5] is "OP_FAILED".
std::span<const char* const> result_names();

enum class Op : int32_t {
#define OPERATION(name, code, level, least_rank, greatest_rank) name = code,
#include "nnapi/operations.inc"
#undef OPERATION
};
inline constexpr int kOperationCount = 106;

struct OperationInfo {
  const char* name;
  int32_t code;
  int feature_level;  ///< that introduced it
  int least_rank, greatest_rank;
};
/// In the order of their codes.
std::span<const OperationInfo> all_operations();
/// Null if there is no such operation.
const OperationInfo* operation_info(int32_t code);

/// The feature level that operands of these types need: the lowest of all signatures that fit; 0 if none does.
int signature_feature_level(int32_t code, std::span<const OperandCode> inputs, std::span<const OperandCode> outputs);

/// Checks an operation of a model under construction as far as that needs neither values nor unknown dimensions:
/// indices, signature, ranks, channel dimensions, rules on scales, signatures of referenced models. Returns the feature
/// level that the operation needs. kInvalidArgument says which rule is broken; kUnsupported: it needs more than
/// `level`.
Result<int> validate_operation(const Model& model, const Operation& operation, int level = kNewestFeatureLevel);

}  // namespace pinnace::nnapi
