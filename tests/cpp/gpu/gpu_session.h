// A small network with one node of most families, run by sessions on the GPU back ends and held against the reference.
#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <optional>

#include <pinnace/session.h>

#include "cpp/gpu/gpu_device.h"
#if defined(PINNACE_HAS_SOFTMETAL)
#include "backends/softmetal/device.h"
#endif

namespace pinnace {
const Backend& vulkan_backend();
const Backend& softmetal_backend();
}  // namespace pinnace

namespace pinnace::testing {

/// The drivers of this build. Whether one has a device is asked by the test, not when tests are listed: looking for a
/// device loads its code, which emulated processors may not have.
inline std::vector<const gpu::Driver*> gpu_drivers() {
  std::vector<const gpu::Driver*> all = {&vulkan::kDriver};
#if defined(PINNACE_HAS_SOFTMETAL)
  all.push_back(&softmetal::kDriver);
#endif
  return all;
}
/// The back end over it.
inline const Backend& backend_of([[maybe_unused]] const gpu::Driver& driver) {
#if defined(PINNACE_HAS_SOFTMETAL)
  if (&driver == &softmetal::kDriver) return softmetal_backend();
#endif
  return vulkan_backend();
}
/// Empty, or why the driver has no device here.
inline std::string no_device([[maybe_unused]] const gpu::Driver& driver) {
#if defined(PINNACE_HAS_SOFTMETAL)
  if (&driver == &softmetal::kDriver) return softmetal::unavailable(0);
#endif
  return no_gpu();
}
inline std::string driver_name(const ::testing::TestParamInfo<const gpu::Driver*>& info) {
  return info.param->name;
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
