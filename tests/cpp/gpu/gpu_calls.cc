// A dlsym that gives functions around Vulkan's.
#include "cpp/gpu/gpu_calls.h"

#include <atomic>
#include <cstring>
#include <type_traits>

#include "backends/vulkan/loader.h"
#include "cpp/fault_harness.h"

namespace pinnace::testing {
namespace {

std::atomic<bool> around{false};
PFN_vkGetInstanceProcAddr loader = nullptr;

VkResult wanted_failure() {
  switch (device_call_fails()) {
    case Fault::kDevice:
      return VK_ERROR_DEVICE_LOST;
    case Fault::kDeviceMemory:
      return VK_ERROR_OUT_OF_DEVICE_MEMORY;
    default:
      return VK_SUCCESS;
  }
}

/// One for each function, which N numbers.
template <class F, int N>
struct Around;
template <class R, class... A, int N>
struct Around<R(VKAPI_PTR*)(A...), N> {
  static inline R(VKAPI_PTR* real)(A...) = nullptr;
  static R VKAPI_PTR fails_never(A... a) { return real(a...); }
  static R VKAPI_PTR fails_before(A... a) {
    const VkResult failure = wanted_failure();
    return failure == VK_SUCCESS ? real(a...) : failure;
  }
  /// What a failure leaves undone nobody may touch: waiting is done all the same.
  static R VKAPI_PTR fails_after(A... a) {
    const R result = real(a...);
    const VkResult failure = wanted_failure();
    return failure == VK_SUCCESS ? result : failure;
  }
  static PFN_vkVoidFunction of(PFN_vkVoidFunction found, bool waits) {
    real = reinterpret_cast<R(VKAPI_PTR*)(A...)>(found);
    if constexpr (std::is_same_v<R, VkResult>) {
      return reinterpret_cast<PFN_vkVoidFunction>(waits ? &fails_after : &fails_before);
    } else {
      return reinterpret_cast<PFN_vkVoidFunction>(&fails_never);
    }
  }
};

PFN_vkGetDeviceProcAddr device_functions = nullptr;
PFN_vkVoidFunction VKAPI_PTR of_device(VkDevice device, const char* name) {
  const PFN_vkVoidFunction found = device_functions(device, name);
  if (!found || !around) return found;
#define GLOBAL(function)
#define INSTANCE(function)
#define DEVICE(function)                      \
  if (std::strcmp(name, "vk" #function) == 0) \
    return Around<PFN_vk##function, __LINE__>::of(found, std::strcmp(#function, "WaitForFences") == 0);
#include "backends/vulkan/functions.inc"
#undef GLOBAL
#undef INSTANCE
#undef DEVICE
  return found;
}

PFN_vkVoidFunction VKAPI_PTR of_instance(VkInstance instance, const char* name) {
  const PFN_vkVoidFunction found = loader(instance, name);
  if (!found || !around || !instance) return found;
  if (std::strcmp(name, "vkGetDeviceProcAddr") == 0) {
    device_functions = reinterpret_cast<PFN_vkGetDeviceProcAddr>(found);
    return reinterpret_cast<PFN_vkVoidFunction>(&of_device);
  }
  if (std::strcmp(name, "vkCreateDevice") == 0) return Around<PFN_vkCreateDevice, 0>::of(found, false);
  return found;
}

}  // namespace

FailingVulkan::FailingVulkan() {
  around = true;
}
FailingVulkan::~FailingVulkan() {
  around = false;
}

}  // namespace pinnace::testing

// The names that the linker makes of dlsym with --wrap.
// NOLINTBEGIN(bugprone-reserved-identifier)
extern "C" void* __real_dlsym(void* library, const char* name);
extern "C" void* __wrap_dlsym(void* library, const char* name) {
  using namespace pinnace::testing;
  void* const found = __real_dlsym(library, name);
  if (!found || std::strcmp(name, "vkGetInstanceProcAddr") != 0) return found;
  loader = reinterpret_cast<PFN_vkGetInstanceProcAddr>(found);
  return reinterpret_cast<void*>(&of_instance);
}
// NOLINTEND(bugprone-reserved-identifier)
