// Devices, memory, pipelines and queues of Vulkan 1.1. One extension is used where there is it: float controls.
#include "backends/vulkan/device.h"

#include <algorithm>
#include <cstring>
#include <memory>
#include <mutex>

#include "backends/vulkan/command_list.h"
#include "backends/vulkan/float_controls.h"
#include "base/process.h"
#include "base/threads/exit_calls.h"

namespace pinnace::vulkan {

namespace {

std::string hex(std::span<const uint8_t> bytes) {
  std::string text;
  for (uint8_t b : bytes) {
    text += "0123456789abcdef"[b >> 4];
    text += "0123456789abcdef"[b & 15];
  }
  return text;
}

/// What a device is called, and whether it is one.
gpu::DeviceCaps named(const VkPhysicalDeviceProperties& p) {
  gpu::DeviceCaps caps;
  caps.name = p.deviceName;
  caps.driver = str_cat("Vulkan ", VK_API_VERSION_MAJOR(p.apiVersion), ".", VK_API_VERSION_MINOR(p.apiVersion), ".",
                        VK_API_VERSION_PATCH(p.apiVersion), ", driver ", p.driverVersion);
  caps.identity =
      str_cat(p.deviceName, "/", p.vendorID, "/", p.deviceID, "/", p.driverVersion, "/", hex(p.pipelineCacheUUID));
  caps.software = p.deviceType == VK_PHYSICAL_DEVICE_TYPE_CPU;
  // Mesa's software Vulkan: LP_MAX_TGSI_LOOP_ITERATIONS of its gallivm, which nothing that is asked of a device tells.
  if (caps.name.starts_with("llvmpipe")) caps.max_turns = 65535;
  return caps;
}

struct Seen {
  std::string problem;
  std::vector<gpu::DeviceCaps> devices;
};
/// Devices come and go rarely, and asking costs up to a tenth of a second: once per process.
const Seen& seen() {
  static constinit PerProcess<const Seen*> known;
  const auto all = known.lock();
  if (*all) return **all;
  *all = [] {
    auto found = std::make_unique<Seen>();
    const auto instance = Instance::open(false);
    renew_exit_calls();
    if (!instance) found->problem = instance.status().message();
    for (size_t i = 0; instance && i < (*instance)->devices().size(); ++i) {
      VkPhysicalDeviceProperties properties;
      (*instance)->vk().GetPhysicalDeviceProperties((*instance)->devices()[i], &properties);
      found->devices.push_back(named(properties));
    }
    return found.release();  // never destroyed
  }();
  return **all;
}

}  // namespace

std::string unavailable(uint32_t index) {
  if (std::string reason = forbidden(); !reason.empty()) return reason;
  const Seen& all = seen();
  if (!all.problem.empty()) return all.problem;
  if (all.devices.empty()) return "no Vulkan device";
  if (index >= all.devices.size()) return str_cat("there is no device ", index, ", Vulkan has ", all.devices.size());
  return {};
}

gpu::DeviceCaps look(uint32_t index) {
  return seen().devices[index];
}

Status Handles::check(VkResult result, const char* call) {
  if (result == VK_SUCCESS) return {};
  Status status = failure(result, call);
  if (status.code() == Code::kDeviceLost) lost = true;
  return status;
}

Status Handles::alive() const {
  return lost ? Status(Code::kDeviceLost, "the Vulkan device was lost") : Status();
}

VulkanBuffer::~VulkanBuffer() {
  if (handles_.use.inherited()) return;
  if (buffer_) handles_.vk.DestroyBuffer(handles_.device, buffer_, nullptr);
  if (memory_) handles_.vk.FreeMemory(handles_.device, memory_, nullptr);
}

VulkanKernel::~VulkanKernel() {
  if (handles_.use.inherited()) return;
  const auto& vk = handles_.vk;
  if (pipeline) vk.DestroyPipeline(handles_.device, pipeline, nullptr);
  if (layout) vk.DestroyPipelineLayout(handles_.device, layout, nullptr);
  if (sets) vk.DestroyDescriptorSetLayout(handles_.device, sets, nullptr);
}

namespace {

class VulkanDevice final : public gpu::Device {
 public:
  static Result<std::unique_ptr<gpu::Device>> open(uint32_t index, const gpu::DeviceOptions& options) {
    if (std::string reason = forbidden(); !reason.empty()) return unsupported(reason);
    auto made = std::unique_ptr<VulkanDevice>(new VulkanDevice);
    made->options_ = options;
    made->options_.cache.clear();
    PINNACE_ASSIGN(made->instance_, Instance::open(options.validation));
    if (index >= made->instance_->devices().size()) {
      return unsupported("there is no device ", index, ", Vulkan has ", made->instance_->devices().size());
    }
    made->physical_ = made->instance_->devices()[index];
    PINNACE_TRY(made->read_caps());
    PINNACE_TRY(made->create_device());
    PINNACE_TRY(made->create_cache(options.cache));
    return std::unique_ptr<gpu::Device>(std::move(made));
  }

  ~VulkanDevice() override {
    if (!handles_.device || handles_.use.inherited()) return;
    if (handles_.vk.DeviceWaitIdle) handles_.vk.DeviceWaitIdle(handles_.device);
    if (cache_) handles_.vk.DestroyPipelineCache(handles_.device, cache_, nullptr);
    if (handles_.vk.DestroyDevice) handles_.vk.DestroyDevice(handles_.device, nullptr);
  }

  const gpu::DeviceCaps& caps() const override { return caps_; }
  uint64_t validation_messages() const override { return instance_->messages(); }
  std::string validation_texts() const override { return instance_->message_texts(); }

  Result<std::unique_ptr<gpu::DeviceBuffer>> buffer(size_t bytes, gpu::BufferUse use) override {
    PINNACE_TRY(handles_.alive());
    if (options_.fail_buffer && ++buffers_ == options_.fail_buffer) {
      return out_of_memory("a buffer of ", bytes, " bytes: failed on demand");
    }
    if (bytes == 0 || bytes > caps_.max_buffer_bytes) {
      return out_of_memory("a buffer of ", bytes, " bytes, the device takes 1 to ", caps_.max_buffer_bytes);
    }
    auto made = std::unique_ptr<VulkanBuffer>(new VulkanBuffer(handles_, bytes));
    VkBufferCreateInfo info{VK_STRUCTURE_TYPE_BUFFER_CREATE_INFO};
    info.size = bytes;
    info.usage =
        VK_BUFFER_USAGE_STORAGE_BUFFER_BIT | VK_BUFFER_USAGE_TRANSFER_SRC_BIT | VK_BUFFER_USAGE_TRANSFER_DST_BIT;
    PINNACE_TRY(
        handles_.check(handles_.vk.CreateBuffer(handles_.device, &info, nullptr, &made->buffer_), "vkCreateBuffer"));
    VkMemoryRequirements needs;
    handles_.vk.GetBufferMemoryRequirements(handles_.device, made->buffer_, &needs);
    const bool host = use != gpu::BufferUse::kDevice || caps_.unified_memory;
    const int32_t type = memory_type(needs.memoryTypeBits, use);
    if (type < 0) return out_of_memory("no memory type for a buffer of ", bytes, " bytes");
    VkMemoryAllocateInfo allocate{VK_STRUCTURE_TYPE_MEMORY_ALLOCATE_INFO};
    allocate.allocationSize = needs.size;
    allocate.memoryTypeIndex = static_cast<uint32_t>(type);
    PINNACE_TRY(handles_.check(handles_.vk.AllocateMemory(handles_.device, &allocate, nullptr, &made->memory_),
                               "vkAllocateMemory"));
    PINNACE_TRY(handles_.check(handles_.vk.BindBufferMemory(handles_.device, made->buffer_, made->memory_, 0),
                               "vkBindBufferMemory"));
    if (host) {
      void* address = nullptr;
      PINNACE_TRY(handles_.check(handles_.vk.MapMemory(handles_.device, made->memory_, 0, VK_WHOLE_SIZE, 0, &address),
                                 "vkMapMemory"));
      made->set_host(static_cast<std::byte*>(address));
    }
    return std::unique_ptr<gpu::DeviceBuffer>(std::move(made));
  }

  Result<std::unique_ptr<gpu::Kernel>> kernel(const gpu::KernelCode& code, std::span<const int32_t> spec) override {
    PINNACE_TRY(handles_.alive());
    if (code.spirv.empty()) return unsupported("kernel ", code.name, " is in Metal's language alone");
    const auto& vk = handles_.vk;
    auto made = std::unique_ptr<VulkanKernel>(new VulkanKernel(handles_, code));
    std::vector<VkDescriptorSetLayoutBinding> bindings;
    for (uint32_t i = 0; i < code.bindings; ++i) {
      bindings.push_back({i, VK_DESCRIPTOR_TYPE_STORAGE_BUFFER, 1, VK_SHADER_STAGE_COMPUTE_BIT, nullptr});
    }
    VkDescriptorSetLayoutCreateInfo sets{VK_STRUCTURE_TYPE_DESCRIPTOR_SET_LAYOUT_CREATE_INFO};
    sets.bindingCount = code.bindings;
    sets.pBindings = bindings.data();
    PINNACE_TRY(handles_.check(vk.CreateDescriptorSetLayout(handles_.device, &sets, nullptr, &made->sets),
                               "vkCreateDescriptorSetLayout"));
    const VkPushConstantRange push{VK_SHADER_STAGE_COMPUTE_BIT, 0, code.push_bytes};
    VkPipelineLayoutCreateInfo layout{VK_STRUCTURE_TYPE_PIPELINE_LAYOUT_CREATE_INFO};
    layout.setLayoutCount = 1;
    layout.pSetLayouts = &made->sets;
    layout.pushConstantRangeCount = code.push_bytes ? 1 : 0;
    layout.pPushConstantRanges = &push;
    PINNACE_TRY(handles_.check(vk.CreatePipelineLayout(handles_.device, &layout, nullptr, &made->layout),
                               "vkCreatePipelineLayout"));
    std::vector<VkSpecializationMapEntry> entries;
    for (uint32_t i = 0; i < code.spec_constants; ++i) entries.push_back({i, i * 4, 4});
    const std::vector<uint32_t> preserving =
        float_controls_ ? preserving_special_values(code.spirv) : std::vector<uint32_t>();
    const std::span<const uint32_t> spirv = float_controls_ ? preserving : code.spirv;
    // From the module's creation to its end nothing is allocated.
    VkShaderModuleCreateInfo module_info{VK_STRUCTURE_TYPE_SHADER_MODULE_CREATE_INFO};
    module_info.codeSize = spirv.size_bytes();
    module_info.pCode = spirv.data();
    VkShaderModule module = VK_NULL_HANDLE;
    PINNACE_TRY(
        handles_.check(vk.CreateShaderModule(handles_.device, &module_info, nullptr, &module), "vkCreateShaderModule"));
    const VkSpecializationInfo special{code.spec_constants, entries.data(), spec.size_bytes(), spec.data()};
    VkComputePipelineCreateInfo info{VK_STRUCTURE_TYPE_COMPUTE_PIPELINE_CREATE_INFO};
    info.stage = {VK_STRUCTURE_TYPE_PIPELINE_SHADER_STAGE_CREATE_INFO,
                  nullptr,
                  0,
                  VK_SHADER_STAGE_COMPUTE_BIT,
                  module,
                  "main",
                  code.spec_constants ? &special : nullptr};
    info.layout = made->layout;
    const VkResult result = vk.CreateComputePipelines(handles_.device, cache_, 1, &info, nullptr, &made->pipeline);
    vk.DestroyShaderModule(handles_.device, module, nullptr);
    PINNACE_TRY(handles_.check(result, "vkCreateComputePipelines").with_prefix(str_cat("kernel ", code.name, ": ")));
    return std::unique_ptr<gpu::Kernel>(std::move(made));
  }

  Result<std::unique_ptr<gpu::CommandList>> command_list(uint32_t timestamps) override {
    PINNACE_TRY(handles_.alive());
    return VulkanCommandList::create(handles_, family_, caps_.timestamp_ns > 0 ? timestamps : 0, caps_.timestamp_ns);
  }

  Status submit(gpu::CommandList& list) override {
    PINNACE_TRY(handles_.alive());
    auto& own = static_cast<VulkanCommandList&>(list);
    std::lock_guard lock(queue_mutex_);
    if (options_.fail_submit && ++submits_ == options_.fail_submit) {
      handles_.lost = true;
      return Status(Code::kDeviceLost, "vkQueueSubmit: failed on demand");
    }
    return own.submit(queue_);
  }

  Status wait(gpu::CommandList& list) override { return static_cast<VulkanCommandList&>(list).wait(); }

  std::vector<std::byte> cache_blob() const override {
    size_t bytes = 0;
    if (handles_.vk.GetPipelineCacheData(handles_.device, cache_, &bytes, nullptr) != VK_SUCCESS) return {};
    std::vector<std::byte> blob(bytes);
    if (handles_.vk.GetPipelineCacheData(handles_.device, cache_, &bytes, blob.data()) != VK_SUCCESS) return {};
    blob.resize(bytes);
    return blob;
  }

 private:
  VulkanDevice() = default;

  Status read_caps() {
    const auto& vk = instance_->vk();
    VkPhysicalDeviceSubgroupProperties subgroup{VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SUBGROUP_PROPERTIES};
    VkPhysicalDeviceMaintenance3Properties memory{VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_MAINTENANCE_3_PROPERTIES,
                                                  &subgroup};
    VkPhysicalDeviceProperties2 all{VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_PROPERTIES_2, &memory};
    vk.GetPhysicalDeviceProperties2(physical_, &all);
    const VkPhysicalDeviceProperties& p = all.properties;
    VkPhysicalDevice16BitStorageFeatures storage16{VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_16BIT_STORAGE_FEATURES};
    VkPhysicalDeviceFeatures2 features{VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_FEATURES_2, &storage16};
    vk.GetPhysicalDeviceFeatures2(physical_, &features);
    vk.GetPhysicalDeviceMemoryProperties(physical_, &memory_);

    uint32_t families = 0;
    vk.GetPhysicalDeviceQueueFamilyProperties(physical_, &families, nullptr);
    std::vector<VkQueueFamilyProperties> queues(families);
    vk.GetPhysicalDeviceQueueFamilyProperties(physical_, &families, queues.data());
    const auto found = std::find_if(queues.begin(), queues.end(), [](const VkQueueFamilyProperties& q) {
      return (q.queueFlags & VK_QUEUE_COMPUTE_BIT) && q.queueCount > 0;
    });
    if (found == queues.end()) return unsupported(p.deviceName, " has no queue for compute");
    family_ = static_cast<uint32_t>(found - queues.begin());

    caps_ = named(p);
    std::memcpy(uuid_, p.pipelineCacheUUID, VK_UUID_SIZE);
    vendor_ = p.vendorID;
    device_ = p.deviceID;
    const bool shared = caps_.software || p.deviceType == VK_PHYSICAL_DEVICE_TYPE_INTEGRATED_GPU;
    caps_.unified_memory = shared && !options_.force_staging && find_type(~0u, kUnified) >= 0;
    caps_.f16_storage = storage16.storageBuffer16BitAccess && !options_.no_f16;
    caps_.subgroup_size = options_.unknown_subgroup ? 0 : subgroup.subgroupSize;
    caps_.shared_bytes = std::min(p.limits.maxComputeSharedMemorySize, options_.shared_bytes);
    caps_.max_invocations = std::min(p.limits.maxComputeWorkGroupInvocations, options_.max_invocations);
    for (size_t i = 0; i < 3; ++i) {
      caps_.max_groups[i] = std::min(p.limits.maxComputeWorkGroupCount[i], options_.max_groups);
    }
    caps_.max_binding_bytes = std::min<uint64_t>(p.limits.maxStorageBufferRange, options_.max_binding_bytes);
    caps_.max_turns = std::min(caps_.max_turns, options_.max_turns);
    caps_.max_buffer_bytes =
        gpu::buffer_limit(std::min<uint64_t>(memory.maxMemoryAllocationSize, options_.max_buffer_bytes));
    caps_.offset_alignment =
        std::max(static_cast<uint32_t>(p.limits.minStorageBufferOffsetAlignment), options_.offset_alignment);
    caps_.timestamp_ns = found->timestampValidBits ? p.limits.timestampPeriod : 0;
    float_controls_ = has_float_controls();
    return {};
  }

  /// Whether kernels can state that NaN, infinities and the signs of zeros are to be kept.
  bool has_float_controls() const {
    const auto& vk = instance_->vk();
    uint32_t count = 0;
    if (vk.EnumerateDeviceExtensionProperties(physical_, nullptr, &count, nullptr) != VK_SUCCESS) return false;
    std::vector<VkExtensionProperties> extensions(count);
    if (vk.EnumerateDeviceExtensionProperties(physical_, nullptr, &count, extensions.data()) != VK_SUCCESS)
      return false;
    if (std::none_of(extensions.begin(), extensions.end(), [](const VkExtensionProperties& e) {
          return std::strcmp(e.extensionName, kFloatControls) == 0;
        })) {
      return false;
    }
    VkPhysicalDeviceFloatControlsProperties floats{VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_FLOAT_CONTROLS_PROPERTIES};
    VkPhysicalDeviceProperties2 all{VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_PROPERTIES_2, &floats};
    vk.GetPhysicalDeviceProperties2(physical_, &all);
    return floats.shaderSignedZeroInfNanPreserveFloat32;
  }

  Status create_device() {
    const auto& vk = instance_->vk();
    const float priority = 1;
    VkDeviceQueueCreateInfo queue{VK_STRUCTURE_TYPE_DEVICE_QUEUE_CREATE_INFO};
    queue.queueFamilyIndex = family_;
    queue.queueCount = 1;
    queue.pQueuePriorities = &priority;
    VkPhysicalDevice16BitStorageFeatures storage16{VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_16BIT_STORAGE_FEATURES};
    storage16.storageBuffer16BitAccess = caps_.f16_storage;
    VkDeviceCreateInfo info{VK_STRUCTURE_TYPE_DEVICE_CREATE_INFO, &storage16};
    info.queueCreateInfoCount = 1;
    info.pQueueCreateInfos = &queue;
    info.enabledExtensionCount = float_controls_ ? 1 : 0;
    info.ppEnabledExtensionNames = &kFloatControls;
    PINNACE_TRY(handles_.check(vk.CreateDevice(physical_, &info, nullptr, &handles_.device), "vkCreateDevice"));
#define GLOBAL(name)
#define INSTANCE(name)
#define DEVICE(name)                                                                                    \
  handles_.vk.name = reinterpret_cast<PFN_vk##name>(vk.GetDeviceProcAddr(handles_.device, "vk" #name)); \
  if (!handles_.vk.name) return unsupported("the Vulkan driver lacks vk" #name);
#include "backends/vulkan/functions.inc"
#undef GLOBAL
#undef INSTANCE
#undef DEVICE
    handles_.vk.GetDeviceQueue(handles_.device, family_, 0, &queue_);
    return {};
  }

  /// The header of the API's own cache data: 32 bytes, then what only the driver understands.
  bool fits(std::span<const std::byte> blob) const {
    uint32_t header[4];
    if (blob.size() < 32) return false;
    std::memcpy(header, blob.data(), sizeof header);
    return header[0] >= 32 && header[0] <= blob.size() && header[1] == VK_PIPELINE_CACHE_HEADER_VERSION_ONE &&
           header[2] == vendor_ && header[3] == device_ && std::memcmp(blob.data() + 16, uuid_, VK_UUID_SIZE) == 0;
  }

  Status create_cache(std::span<const std::byte> blob) {
    VkPipelineCacheCreateInfo info{VK_STRUCTURE_TYPE_PIPELINE_CACHE_CREATE_INFO};
    if (fits(blob)) {
      info.initialDataSize = blob.size();
      info.pInitialData = blob.data();
    }
    return handles_.check(handles_.vk.CreatePipelineCache(handles_.device, &info, nullptr, &cache_),
                          "vkCreatePipelineCache");
  }

  static constexpr const char* kFloatControls = VK_KHR_SHADER_FLOAT_CONTROLS_EXTENSION_NAME;
  static constexpr VkMemoryPropertyFlags kHost =
      VK_MEMORY_PROPERTY_HOST_VISIBLE_BIT | VK_MEMORY_PROPERTY_HOST_COHERENT_BIT;
  static constexpr VkMemoryPropertyFlags kUnified = kHost | VK_MEMORY_PROPERTY_DEVICE_LOCAL_BIT;

  int32_t find_type(uint32_t allowed, VkMemoryPropertyFlags flags) const {
    for (uint32_t i = 0; i < memory_.memoryTypeCount; ++i) {
      if ((allowed >> i & 1) && (memory_.memoryTypes[i].propertyFlags & flags) == flags) {
        return static_cast<int32_t>(i);
      }
    }
    return -1;
  }
  int32_t memory_type(uint32_t allowed, gpu::BufferUse use) const {
    const auto first = [&](std::initializer_list<VkMemoryPropertyFlags> wanted) {
      int32_t type = -1;
      for (VkMemoryPropertyFlags flags : wanted) {
        if (type < 0) type = find_type(allowed, flags);
      }
      return type;
    };
    if (use == gpu::BufferUse::kUpload) return first({kHost});
    if (use == gpu::BufferUse::kDownload) return first({kHost | VK_MEMORY_PROPERTY_HOST_CACHED_BIT, kHost});
    if (caps_.unified_memory) return first({kUnified | VK_MEMORY_PROPERTY_HOST_CACHED_BIT, kUnified, kHost});
    return first({VK_MEMORY_PROPERTY_DEVICE_LOCAL_BIT, 0});
  }

  std::shared_ptr<Instance> instance_;
  gpu::DeviceOptions options_;
  gpu::DeviceCaps caps_;
  VkPhysicalDevice physical_ = VK_NULL_HANDLE;
  VkPhysicalDeviceMemoryProperties memory_{};
  bool float_controls_ = false;
  uint32_t family_ = 0, vendor_ = 0, device_ = 0;
  uint8_t uuid_[VK_UUID_SIZE] = {};
  Handles handles_;
  VkQueue queue_ = VK_NULL_HANDLE;
  VkPipelineCache cache_ = VK_NULL_HANDLE;
  std::mutex queue_mutex_;
  uint32_t submits_ = 0;  // under queue_mutex_
  std::atomic<uint32_t> buffers_{0};
};

}  // namespace

Result<std::unique_ptr<gpu::Device>> open_device(uint32_t index, const gpu::DeviceOptions& options) {
  return VulkanDevice::open(index, options);
}

}  // namespace pinnace::vulkan
