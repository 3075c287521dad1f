// The operators of this build, for documentation and tests: their schemas.
#pragma once

#include <span>
#include <string>
#include <vector>

#include <pinnace/tensor.h>

#pragma GCC visibility push(default)
namespace pinnace {

struct OperatorInput {
  std::string name;
  std::vector<DType> types;
  char type_letter;  ///< inputs with the same letter have the same element type; 0: no constraint
  bool optional;
  bool variadic;
};
struct OperatorAttribute {
  std::string name;
  std::string kind;  ///< int float string ints floats strings graph
  bool required;
  std::string default_value;  ///< as text; empty for lists, graphs and required ones
};
struct OperatorInfo {
  std::string name;
  int32_t version;
  std::vector<OperatorInput> inputs;
  std::vector<OperatorAttribute> attributes;
  int32_t min_outputs;
  int32_t max_outputs;  ///< -1: any number
  bool control_flow;    ///< has no reference code of its own: its bodies are run
};

/// Every operator built in, in alphabetical order.
std::vector<OperatorInfo> operators();

}  // namespace pinnace
#pragma GCC visibility pop
