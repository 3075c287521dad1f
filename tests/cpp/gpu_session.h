// A small network with one node of most families, run by sessions on the GPU back ends and held against the reference.
#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <optional>

#include <pinnace/session.h>

#include "cpp/gpu_device.h"
#if defined(PINNACE_HAS_SOFTMETAL)
#include "backends/softmetal/device.h"
#endif

namespace pinnace::testing {

/// The drivers that have a device here.
inline std::vector<const gpu::Driver*> gpu_drivers() {
  std::vector<const gpu::Driver*> all;
  if (no_gpu().empty()) all.push_back(&vulkan::kDriver);
#if defined(PINNACE_HAS_SOFTMETAL)
  if (softmetal::unavailable(0).empty()) all.push_back(&softmetal::kDriver);
#endif
  return all;
}
/// For parametrised tests: one null, which is a skip, where there are none.
inline std::vector<const gpu::Driver*> gpu_drivers_or_null() {
  auto all = gpu_drivers();
  if (all.empty()) all.push_back(nullptr);
  return all;
}
inline std::string driver_name(const ::testing::TestParamInfo<const gpu::Driver*>& info) {
  return info.param ? info.param->name : "none";
}

/// Convolutions of all kinds, a residual sum, pools, a product, softmax; and its reference answer.
struct SmallNetwork {
  std::optional<Program> program;
  std::vector<float> x, want;
  TensorType type;

  SmallNetwork();
  Result<Session> session(const char* target, const char* precision, bool fallback = true) const {
    return Session::create(*program, {.target = target, .threads = 1, .precision = precision, .fallback = fallback});
  }
  /// Empty, or what is wrong with an answer of the session.
  std::string check(Session& session, double bound) const;
};

}  // namespace pinnace::testing
