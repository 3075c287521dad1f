// Calls of Vulkan's functions that can be made to fail, one by one.
#pragma once

namespace pinnace::testing {

/// While one lives, devices that are opened call functions of the test program's in place of the driver's, which pass
/// each call on unless device_call_fails() says that it is to fail.
struct FailingVulkan {
  FailingVulkan();
  ~FailingVulkan();
  FailingVulkan(const FailingVulkan&) = delete;
  FailingVulkan& operator=(const FailingVulkan&) = delete;
};

}  // namespace pinnace::testing
