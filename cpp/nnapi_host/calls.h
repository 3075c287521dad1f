// The functions of the C interface as the library implements them. What it exports calls these at once, or, where an
// environment variable asks for it, through the test bed.
#pragma once

#include <iterator>
#include <type_traits>

#include "nnapi_host/neural_networks.h"

namespace pinnace::nnapi_host {

namespace plain {
#define FUNCTION(name, level, result, parameters, ...) result name parameters;
#define RUNTIME_FUNCTION FUNCTION
#include "nnapi_host/functions.inc"
#undef RUNTIME_FUNCTION
#undef FUNCTION
}  // namespace plain

enum class Function : uint8_t {
#define FUNCTION(name, level, result, parameters, ...) name,
#define RUNTIME_FUNCTION FUNCTION
#include "nnapi_host/functions.inc"
#undef RUNTIME_FUNCTION
#undef FUNCTION
};

struct FunctionInfo {
  const char* name;        ///< without its prefix
  int feature_level;       ///< that introduced it, 1 to 8
  bool gives_code = true;  ///< returns a result code
};
inline constexpr FunctionInfo kFunctions[] = {
#define FUNCTION(name, level, result, parameters, ...) {#name, level, std::is_same_v<result, int>},
#define RUNTIME_FUNCTION FUNCTION
#include "nnapi_host/functions.inc"
#undef RUNTIME_FUNCTION
#undef FUNCTION
};
inline constexpr int kFunctionCount = std::size(kFunctions);

constexpr const FunctionInfo& info(Function f) {
  return kFunctions[static_cast<int>(f)];
}

}  // namespace pinnace::nnapi_host
