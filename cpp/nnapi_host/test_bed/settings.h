// What the environment asks of the test bed. docs/nnapi.md has the table of variables.
#pragma once

#include <bitset>
#include <cstdint>
#include <string>
#include <vector>

#include "nnapi/operations.h"
#include "nnapi_host/calls.h"

namespace pinnace::nnapi_host {

/// "Execution_compute@3=OP_FAILED": what happens at which calls of which function.
struct Fault {
  enum class Place : uint8_t { kFunction, kAny, kComputation };
  Place place = Place::kFunction;
  Function function = Function::Model_create;  ///< of kFunction
  uint64_t first = 1, last = UINT64_MAX;       ///< calls, counted from 1
  int code = 0;                                ///< 0: none
  bool dead = false;                           ///< the object of the call stays dead
  uint64_t delay_us = 0;
};

/// An empty path: off.
struct Settings {
  int feature_level = nnapi::kNewestFeatureLevel;
  std::bitset<nnapi::kOperationCount> unsupported;
  bool gpu = true;  ///< the device of Vulkan is there, if Vulkan is
  std::string trace, dump, strict;
  std::vector<Fault> faults;

  bool any() const {
    return feature_level != nnapi::kNewestFeatureLevel || unsupported.any() || !gpu || !trace.empty() ||
           !dump.empty() || !strict.empty() || !faults.empty();
  }
};

/// From the environment. `errors` receives a sentence for each variable whose value makes no sense.
Settings read_settings(std::vector<std::string>& errors);

/// "BAD_DATA"; the number where there is no such code.
std::string result_name(int code);

}  // namespace pinnace::nnapi_host
