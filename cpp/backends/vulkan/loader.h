// Vulkan's loader, found at run time; instances, and the physical devices in the order in which targets number them.
#pragma once

#define VK_NO_PROTOTYPES
#include <atomic>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include <vulkan/vulkan.h>

#include "base/status.h"

namespace pinnace::vulkan {

struct GlobalFunctions {
  PFN_vkGetInstanceProcAddr GetInstanceProcAddr = nullptr;
#define GLOBAL(name) PFN_vk##name name = nullptr;
#define INSTANCE(name)
#define DEVICE(name)
#include "backends/vulkan/functions.inc"
#undef GLOBAL
#undef INSTANCE
#undef DEVICE
};
struct InstanceFunctions {
#define GLOBAL(name)
#define INSTANCE(name) PFN_vk##name name = nullptr;
#define DEVICE(name)
#include "backends/vulkan/functions.inc"
#undef GLOBAL
#undef INSTANCE
#undef DEVICE
};
struct DeviceFunctions {
#define GLOBAL(name)
#define INSTANCE(name)
#define DEVICE(name) PFN_vk##name name = nullptr;
#include "backends/vulkan/functions.inc"
#undef GLOBAL
#undef INSTANCE
#undef DEVICE
};

/// "VkResult -3 of vkCreateDevice", by what the caller can conclude: memory, or a device that is gone.
Status failure(VkResult result, const char* call);

/// Counts the uses of Vulkan in this process while one lives. Drivers have threads and locks of their own, which do not
/// survive a fork: a child whose parent was using Vulkan at the fork keeps its hands off it.
class Use {
 public:
  Use();
  ~Use();
  Use(const Use&) = delete;
  Use& operator=(const Use&) = delete;
  /// Whether the object that holds this came here by a fork: its handles are not to be touched, not even to be freed.
  bool inherited() const;

 private:
  const pid_t process_;
};
/// Empty, or why this process cannot use Vulkan.
std::string forbidden();

/// The loader's functions; opened once, never closed, since drivers do not survive that. kUnsupported: there is none.
Result<const GlobalFunctions*> open_loader();

/// An instance of Vulkan 1.1 and its devices: discrete, integrated, virtual, CPUs, others.
class Instance {
 public:
  /// With validation: an instance of the caller's with the Khronos layer and synchronisation validation, whose warnings
  /// and errors are counted. Without, and where there is hardware: the process's one instance, which lives as long as
  /// the process. With the last instance the loader closes the drivers, and NVIDIA's (580.159) could not be opened any
  /// more after some 10 to 60 times. Processors that stand in for a GPU are not kept open, so that processes may fork
  /// once they have closed what they opened.
  /// keep_software: whether those are as well, for tests. Callable from any thread.
  static Result<std::shared_ptr<Instance>> open(bool validation, bool keep_software = false);
  ~Instance();
  Instance(const Instance&) = delete;
  Instance& operator=(const Instance&) = delete;

  const InstanceFunctions& vk() const { return vk_; }
  const std::vector<VkPhysicalDevice>& devices() const { return devices_; }
  uint64_t messages() const { return messages_.load(); }
  /// The texts of the first few of them.
  std::string message_texts() const {
    std::lock_guard lock(texts_mutex_);
    return texts_;
  }
  bool inherited() const { return use_.inherited(); }

 private:
  Instance() = default;
  static Result<std::shared_ptr<Instance>> create(bool validation);
  bool has_hardware() const;
  static VkBool32 VKAPI_PTR count(VkDebugUtilsMessageSeverityFlagBitsEXT, VkDebugUtilsMessageTypeFlagsEXT,
                                  const VkDebugUtilsMessengerCallbackDataEXT*, void*);
  Status find_devices();
  const Use use_;  // ends last
  VkInstance handle_ = VK_NULL_HANDLE;
  VkDebugUtilsMessengerEXT messenger_ = VK_NULL_HANDLE;
  InstanceFunctions vk_;
  std::vector<VkPhysicalDevice> devices_;
  std::atomic<uint64_t> messages_{0};
  mutable std::mutex texts_mutex_;
  std::string texts_;
};

}  // namespace pinnace::vulkan
