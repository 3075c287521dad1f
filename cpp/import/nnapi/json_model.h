// One NNAPI model with the values it was run on, as JSON: the form of conformance vectors ("nnapi-vectors-1"), which
// the host library's dumps have too.
#pragma once

#include <string>

#include "graph/graph.h"
#include "nnapi/model.h"

namespace pinnace::nnapi {

struct JsonModel {
  Model model;  ///< finished
  /// Per input of the model its value; null: omitted. Bytes as NNAPI has them.
  std::vector<ConstantPtr> values;
  int feature_level = 1;  ///< the feature level that its operations and operand types need
};

/// Parses the case of that name (empty: the only one) and checks it as a client's calls would be: operand types,
/// constants, operations against their signatures, order. kFile; kCorruptFile: where in the text, and what is wrong;
/// kInvalidArgument: no such case, or an operation breaks a rule.
Result<JsonModel> parse_json_model(const std::string& path, const std::string& name);

}  // namespace pinnace::nnapi
