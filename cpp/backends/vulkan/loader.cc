// Finding the loader, making instances, ordering devices.
#include "backends/vulkan/loader.h"

#include <dlfcn.h>

#include <algorithm>
#include <cstring>

#include "base/process.h"

#include "base/exception_boundary.h"

namespace pinnace::vulkan {
namespace {

constexpr const char* kLibrary = "libvulkan.so.1";
constexpr const char* kLayer = "VK_LAYER_KHRONOS_validation";

int order(VkPhysicalDeviceType type) {
  switch (type) {
    case VK_PHYSICAL_DEVICE_TYPE_DISCRETE_GPU:
      return 0;
    case VK_PHYSICAL_DEVICE_TYPE_INTEGRATED_GPU:
      return 1;
    case VK_PHYSICAL_DEVICE_TYPE_VIRTUAL_GPU:
      return 2;
    case VK_PHYSICAL_DEVICE_TYPE_CPU:
      return 3;
    default:
      return 4;
  }
}

Status find_loader(GlobalFunctions& f) {
  void* library = dlopen(kLibrary, RTLD_NOW | RTLD_LOCAL);
  if (!library) return unsupported("no Vulkan loader (", kLibrary, ")");
  f.GetInstanceProcAddr = reinterpret_cast<PFN_vkGetInstanceProcAddr>(dlsym(library, "vkGetInstanceProcAddr"));
  if (!f.GetInstanceProcAddr) return unsupported(kLibrary, " has no vkGetInstanceProcAddr");
#define GLOBAL(name)                                                                          \
  f.name = reinterpret_cast<PFN_vk##name>(f.GetInstanceProcAddr(VK_NULL_HANDLE, "vk" #name)); \
  if (!f.name) return unsupported(kLibrary, " lacks vk" #name " of Vulkan 1.1");
#define INSTANCE(name)
#define DEVICE(name)
#include "backends/vulkan/functions.inc"
#undef GLOBAL
#undef INSTANCE
#undef DEVICE
  uint32_t version = 0;
  if (f.EnumerateInstanceVersion(&version) != VK_SUCCESS || version < VK_API_VERSION_1_1) {
    return unsupported("the Vulkan loader is older than 1.1");
  }
  return {};
}

}  // namespace

Status failure(VkResult result, const char* call) {
  switch (result) {
    case VK_ERROR_OUT_OF_HOST_MEMORY:
    case VK_ERROR_OUT_OF_DEVICE_MEMORY:
    case VK_ERROR_TOO_MANY_OBJECTS:
      return out_of_memory(call, ": no memory (VkResult ", static_cast<int>(result), ")");
    case VK_ERROR_DEVICE_LOST:
      return fail_with(Code::kDeviceLost, call, ": the device is lost");
    default:
      return fail_with(Code::kDeviceLost, call, ": VkResult ", static_cast<int>(result));
  }
}

namespace {
// In a forked child both are as they were in the parent: uses that never end.
std::atomic<pid_t> user{0};  // the process that `uses` counts for
std::atomic<int> uses{0};
}  // namespace

Use::Use() : process_(::getpid()) {
  user.store(process_);
  uses.fetch_add(1);
}
Use::~Use() {
  if (!inherited()) uses.fetch_sub(1);
}
bool Use::inherited() const {
  return process_ != ::getpid();
}

std::string forbidden() {
  if (uses.load() == 0 || user.load() == ::getpid()) return {};
  return "this process was forked from one that had Vulkan open, whose drivers do not survive a fork: start processes "
         "anew (multiprocessing's \"spawn\")";
}

Result<const GlobalFunctions*> open_loader() {
  static constinit PerProcess<const GlobalFunctions*> opened;  // never closed
  const auto functions = opened.lock();
  if (!*functions) {
    auto found = std::make_unique<GlobalFunctions>();
    PINNACE_TRY(find_loader(*found));
    *functions = found.release();
  }
  return *functions;
}

VkBool32 Instance::count(VkDebugUtilsMessageSeverityFlagBitsEXT, VkDebugUtilsMessageTypeFlagsEXT,
                         const VkDebugUtilsMessengerCallbackDataEXT* data, void* instance) {
  auto* self = static_cast<Instance*>(instance);
  std::lock_guard lock(self->texts_mutex_);
  self->messages_.fetch_add(1);
  const auto keep = [&] {
    if (self->texts_.size() < 4096 && data->pMessage) self->texts_ += str_cat(data->pMessage, "\n");
    return VkBool32{VK_FALSE};
  };
  return exception_boundary(keep, VK_FALSE);  // the layer's frames are above this
}

Result<std::shared_ptr<Instance>> Instance::open(bool validation, bool keep_software) {
  if (std::string reason = forbidden(); !reason.empty()) return unsupported(reason);
  static constinit PerProcess<std::shared_ptr<Instance>> processes;
  const auto kept = processes.lock();
  if (*kept && !validation) return *kept;
  PINNACE_ASSIGN(std::shared_ptr<Instance> made, create(validation));
  if (!*kept && (keep_software || made->has_hardware())) {
    auto plain = validation ? create(false) : made;
    PINNACE_ASSIGN(*kept, std::move(plain));
  }
  return made;
}

Result<std::shared_ptr<Instance>> Instance::create(bool validation) {
  auto made = std::shared_ptr<Instance>(new Instance);
  PINNACE_ASSIGN(const GlobalFunctions* const global, open_loader());
  VkApplicationInfo application{VK_STRUCTURE_TYPE_APPLICATION_INFO};
  application.pEngineName = "pinnace";
  application.apiVersion = VK_API_VERSION_1_1;
  VkInstanceCreateInfo info{VK_STRUCTURE_TYPE_INSTANCE_CREATE_INFO};
  info.pApplicationInfo = &application;
  VkDebugUtilsMessengerCreateInfoEXT messenger{VK_STRUCTURE_TYPE_DEBUG_UTILS_MESSENGER_CREATE_INFO_EXT};
  messenger.messageSeverity =
      VK_DEBUG_UTILS_MESSAGE_SEVERITY_WARNING_BIT_EXT | VK_DEBUG_UTILS_MESSAGE_SEVERITY_ERROR_BIT_EXT;
  messenger.messageType =
      VK_DEBUG_UTILS_MESSAGE_TYPE_VALIDATION_BIT_EXT | VK_DEBUG_UTILS_MESSAGE_TYPE_PERFORMANCE_BIT_EXT;
  messenger.pfnUserCallback = &Instance::count;
  messenger.pUserData = made.get();
  const VkValidationFeatureEnableEXT enable[] = {VK_VALIDATION_FEATURE_ENABLE_SYNCHRONIZATION_VALIDATION_EXT};
  VkValidationFeaturesEXT features{VK_STRUCTURE_TYPE_VALIDATION_FEATURES_EXT, &messenger, 1, enable, 0, nullptr};
  const char* extensions[] = {VK_EXT_DEBUG_UTILS_EXTENSION_NAME, VK_EXT_VALIDATION_FEATURES_EXTENSION_NAME};
  if (validation) {
    uint32_t layers = 0;
    global->EnumerateInstanceLayerProperties(&layers, nullptr);
    std::vector<VkLayerProperties> all(layers);
    global->EnumerateInstanceLayerProperties(&layers, all.data());
    const bool there = std::any_of(all.begin(), all.end(),
                                   [](const VkLayerProperties& l) { return std::strcmp(l.layerName, kLayer) == 0; });
    if (!there) return unsupported("no validation layer (", kLayer, ")");
    info.pNext = &features;
    info.enabledLayerCount = 1;
    info.ppEnabledLayerNames = &kLayer;
    info.enabledExtensionCount = 2;
    info.ppEnabledExtensionNames = extensions;
  }
  if (const VkResult r = global->CreateInstance(&info, nullptr, &made->handle_); r != VK_SUCCESS) {
    if (r == VK_ERROR_INCOMPATIBLE_DRIVER) return unsupported("no Vulkan driver");
    return failure(r, "vkCreateInstance");
  }
#define GLOBAL(name)
#define INSTANCE(name)                                                                                     \
  made->vk_.name = reinterpret_cast<PFN_vk##name>(global->GetInstanceProcAddr(made->handle_, "vk" #name)); \
  if (!made->vk_.name) return unsupported("the Vulkan loader lacks vk" #name);
#define DEVICE(name)
#include "backends/vulkan/functions.inc"
#undef GLOBAL
#undef INSTANCE
#undef DEVICE
  if (validation) {
    const auto create = reinterpret_cast<PFN_vkCreateDebugUtilsMessengerEXT>(
        global->GetInstanceProcAddr(made->handle_, "vkCreateDebugUtilsMessengerEXT"));
    if (!create || create(made->handle_, &messenger, nullptr, &made->messenger_) != VK_SUCCESS) {
      return unsupported("the validation layer has no messenger");
    }
  }
  PINNACE_TRY(made->find_devices());
  return made;
}

Status Instance::find_devices() {
  uint32_t count = 0;
  if (const VkResult r = vk_.EnumeratePhysicalDevices(handle_, &count, nullptr); r != VK_SUCCESS) {
    return unsupported("no Vulkan device: ", failure(r, "vkEnumeratePhysicalDevices").message());
  }
  devices_.resize(count);
  vk_.EnumeratePhysicalDevices(handle_, &count, devices_.data());
  devices_.resize(count);
  const auto type = [&](VkPhysicalDevice device) {
    VkPhysicalDeviceProperties properties;
    vk_.GetPhysicalDeviceProperties(device, &properties);
    return order(properties.deviceType);
  };
  // Those of Vulkan 1.0 are no devices of ours.
  std::erase_if(devices_, [&](VkPhysicalDevice device) {
    VkPhysicalDeviceProperties properties;
    vk_.GetPhysicalDeviceProperties(device, &properties);
    return properties.apiVersion < VK_API_VERSION_1_1;
  });
  std::stable_sort(devices_.begin(), devices_.end(),
                   [&](VkPhysicalDevice a, VkPhysicalDevice b) { return type(a) < type(b); });
  return {};
}

bool Instance::has_hardware() const {
  return std::any_of(devices_.begin(), devices_.end(), [this](VkPhysicalDevice device) {
    VkPhysicalDeviceProperties properties;
    vk_.GetPhysicalDeviceProperties(device, &properties);
    return properties.deviceType != VK_PHYSICAL_DEVICE_TYPE_CPU;
  });
}

Instance::~Instance() {
  if (!handle_ || inherited()) return;
  const auto global = open_loader();
  if (messenger_ && global.ok()) {
    const auto destroy = reinterpret_cast<PFN_vkDestroyDebugUtilsMessengerEXT>(
        (*global)->GetInstanceProcAddr(handle_, "vkDestroyDebugUtilsMessengerEXT"));
    if (destroy) destroy(handle_, messenger_, nullptr);
  }
  if (vk_.DestroyInstance) vk_.DestroyInstance(handle_, nullptr);
}

}  // namespace pinnace::vulkan
