// An application's operators as OpDefs: their functions are reached through OpDef::context.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include <pinnace/custom_op.h>

#include "ops/type_inference.h"

namespace pinnace {

/// Owns the OpDefs of a list of custom operators, and the table that finds them before the built-in ones.
class CustomOps {
 public:
  /// kInvalidArgument: an empty or built-in name, a name twice, a missing function. The CustomOps are borrowed.
  static Result<std::shared_ptr<const CustomOps>> create(std::span<const CustomOp* const> ops);
  const OpTable& table() const { return table_; }

 private:
  std::vector<std::unique_ptr<OpDef>> defs_;
  OpTable table_;
};

}  // namespace pinnace
