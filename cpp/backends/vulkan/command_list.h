// What the Vulkan driver hands out: buffers, kernels, recorded lists of commands.
#pragma once

#include "backends/gpu/device.h"
#include "backends/vulkan/loader.h"

namespace pinnace::vulkan {

/// The logical device and its functions, shared by all that was made of it.
struct Handles {
  VkDevice device = VK_NULL_HANDLE;
  DeviceFunctions vk;
  std::atomic<bool> lost{false};
  const Use use;
  /// Success, or the failure of `call`; a loss is remembered.
  Status check(VkResult result, const char* call);
  Status alive() const;
};

class VulkanBuffer final : public gpu::DeviceBuffer {
 public:
  VulkanBuffer(Handles& handles, size_t bytes) : DeviceBuffer(bytes, nullptr), handles_(handles) {}
  ~VulkanBuffer() override;
  void set_host(std::byte* host) { host_ = host; }

  VkBuffer buffer_ = VK_NULL_HANDLE;
  VkDeviceMemory memory_ = VK_NULL_HANDLE;

 private:
  Handles& handles_;
};

class VulkanKernel final : public gpu::Kernel {
 public:
  VulkanKernel(Handles& handles, const gpu::KernelCode& code) : Kernel(code), handles_(handles) {}
  ~VulkanKernel() override;

  VkDescriptorSetLayout sets = VK_NULL_HANDLE;
  VkPipelineLayout layout = VK_NULL_HANDLE;
  VkPipeline pipeline = VK_NULL_HANDLE;

 private:
  Handles& handles_;
};

/// A command buffer in a pool of its own, with the descriptor sets of its dispatches.
class VulkanCommandList final : public gpu::CommandList {
 public:
  static Result<std::unique_ptr<gpu::CommandList>> create(Handles& handles, uint32_t family, uint32_t timestamps,
                                                          double tick_ns);
  ~VulkanCommandList() override;

  void dispatch(const gpu::Kernel& kernel, std::span<const gpu::Binding> bindings, std::span<const std::byte> push,
                std::array<uint32_t, 3> groups) override;
  void barrier() override;
  void copy(const gpu::DeviceBuffer& from, size_t from_offset, const gpu::DeviceBuffer& to, size_t to_offset,
            size_t bytes) override;
  void timestamp(uint32_t slot) override;
  Status finish() override;
  Status timestamps(std::vector<uint64_t>* ns) const override;

  Status submit(VkQueue queue);  ///< under the queue's mutex
  Status wait();

 private:
  VulkanCommandList(Handles& handles, double tick_ns) : handles_(handles), tick_ns_(tick_ns) {}
  Status start(uint32_t family, uint32_t timestamps);
  VkDescriptorSet descriptor_set(const VulkanKernel& kernel);
  void full_barrier(VkPipelineStageFlags from, VkPipelineStageFlags to, VkAccessFlags more_reads);

  Handles& handles_;
  double tick_ns_;
  VkCommandPool pool_ = VK_NULL_HANDLE;
  VkCommandBuffer commands_ = VK_NULL_HANDLE;
  VkFence fence_ = VK_NULL_HANDLE;
  VkQueryPool queries_ = VK_NULL_HANDLE;
  uint32_t slots_ = 0;
  std::vector<VkDescriptorPool> descriptor_pools_;
  uint32_t sets_left_ = 0, descriptors_left_ = 0;
  bool pending_ = false;
  Status problem_;  ///< the first one while recording
};

}  // namespace pinnace::vulkan
