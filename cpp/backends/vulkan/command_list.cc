// Recording and submitting.
#include "backends/vulkan/command_list.h"

#include <algorithm>

#include "base/exception_boundary.h"

namespace pinnace::vulkan {
namespace {

constexpr uint32_t kSetsPerPool = 64, kDescriptorsPerPool = 512;
constexpr VkPipelineStageFlags kWork = VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT | VK_PIPELINE_STAGE_TRANSFER_BIT;

}  // namespace

Result<std::unique_ptr<gpu::CommandList>> VulkanCommandList::create(Handles& handles, uint32_t family,
                                                                    uint32_t timestamps, double tick_ns) {
  auto made = std::unique_ptr<VulkanCommandList>(new VulkanCommandList(handles, tick_ns));
  PINNACE_TRY(made->start(family, timestamps));
  return std::unique_ptr<gpu::CommandList>(std::move(made));
}

Status VulkanCommandList::start(uint32_t family, uint32_t timestamps) {
  const auto& vk = handles_.vk;
  VkCommandPoolCreateInfo pool{VK_STRUCTURE_TYPE_COMMAND_POOL_CREATE_INFO};
  pool.queueFamilyIndex = family;
  PINNACE_TRY(handles_.check(vk.CreateCommandPool(handles_.device, &pool, nullptr, &pool_), "vkCreateCommandPool"));
  VkCommandBufferAllocateInfo info{VK_STRUCTURE_TYPE_COMMAND_BUFFER_ALLOCATE_INFO};
  info.commandPool = pool_;
  info.level = VK_COMMAND_BUFFER_LEVEL_PRIMARY;
  info.commandBufferCount = 1;
  PINNACE_TRY(
      handles_.check(vk.AllocateCommandBuffers(handles_.device, &info, &commands_), "vkAllocateCommandBuffers"));
  VkFenceCreateInfo fence{VK_STRUCTURE_TYPE_FENCE_CREATE_INFO};
  PINNACE_TRY(handles_.check(vk.CreateFence(handles_.device, &fence, nullptr, &fence_), "vkCreateFence"));
  slots_ = timestamps;
  if (slots_) {
    VkQueryPoolCreateInfo queries{VK_STRUCTURE_TYPE_QUERY_POOL_CREATE_INFO};
    queries.queryType = VK_QUERY_TYPE_TIMESTAMP;
    queries.queryCount = slots_;
    PINNACE_TRY(handles_.check(vk.CreateQueryPool(handles_.device, &queries, nullptr, &queries_), "vkCreateQueryPool"));
  }
  VkCommandBufferBeginInfo begin{VK_STRUCTURE_TYPE_COMMAND_BUFFER_BEGIN_INFO};
  PINNACE_TRY(handles_.check(vk.BeginCommandBuffer(commands_, &begin), "vkBeginCommandBuffer"));
  if (slots_) vk.CmdResetQueryPool(commands_, queries_, 0, slots_);
  full_barrier(kWork, kWork, 0);
  return {};
}

VulkanCommandList::~VulkanCommandList() {
  if (handles_.use.inherited()) return;
  const auto& vk = handles_.vk;
  if (pending_) static_cast<void>(exception_boundary([this] { return wait(); }));
  for (VkDescriptorPool pool : descriptor_pools_) vk.DestroyDescriptorPool(handles_.device, pool, nullptr);
  if (queries_) vk.DestroyQueryPool(handles_.device, queries_, nullptr);
  if (fence_) vk.DestroyFence(handles_.device, fence_, nullptr);
  if (pool_) vk.DestroyCommandPool(handles_.device, pool_, nullptr);
}

VkDescriptorSet VulkanCommandList::descriptor_set(const VulkanKernel& kernel) {
  const auto& vk = handles_.vk;
  const uint32_t count = kernel.code().bindings;
  if (sets_left_ == 0 || descriptors_left_ < count) {
    const VkDescriptorPoolSize size{VK_DESCRIPTOR_TYPE_STORAGE_BUFFER, kDescriptorsPerPool};
    VkDescriptorPoolCreateInfo info{VK_STRUCTURE_TYPE_DESCRIPTOR_POOL_CREATE_INFO};
    info.maxSets = kSetsPerPool;
    info.poolSizeCount = 1;
    info.pPoolSizes = &size;
    descriptor_pools_.reserve(descriptor_pools_.size() + 1);  // what was created has a place
    VkDescriptorPool pool = VK_NULL_HANDLE;
    problem_ =
        handles_.check(vk.CreateDescriptorPool(handles_.device, &info, nullptr, &pool), "vkCreateDescriptorPool");
    if (!problem_.ok()) return VK_NULL_HANDLE;
    descriptor_pools_.push_back(pool);
    sets_left_ = kSetsPerPool;
    descriptors_left_ = kDescriptorsPerPool;
  }
  VkDescriptorSetAllocateInfo info{VK_STRUCTURE_TYPE_DESCRIPTOR_SET_ALLOCATE_INFO};
  info.descriptorPool = descriptor_pools_.back();
  info.descriptorSetCount = 1;
  info.pSetLayouts = &kernel.sets;
  VkDescriptorSet set = VK_NULL_HANDLE;
  problem_ = handles_.check(vk.AllocateDescriptorSets(handles_.device, &info, &set), "vkAllocateDescriptorSets");
  --sets_left_;
  descriptors_left_ -= count;
  return set;
}

void VulkanCommandList::dispatch(const gpu::Kernel& kernel, std::span<const gpu::Binding> bindings,
                                 std::span<const std::byte> push, std::array<uint32_t, 3> groups) {
  if (!problem_.ok()) return;
  const auto& vk = handles_.vk;
  const auto& own = static_cast<const VulkanKernel&>(kernel);
  assert(bindings.size() == own.code().bindings && push.size() == own.code().push_bytes);
  const VkDescriptorSet set = descriptor_set(own);
  if (!problem_.ok()) return;
  VkDescriptorBufferInfo buffers[16];
  VkWriteDescriptorSet writes[16];
  for (uint32_t i = 0; i < bindings.size(); ++i) {
    const auto& buffer = static_cast<const VulkanBuffer&>(*bindings[i].buffer);
    buffers[i] = {buffer.buffer_, bindings[i].offset, bindings[i].bytes};
    writes[i] = {VK_STRUCTURE_TYPE_WRITE_DESCRIPTOR_SET};
    writes[i].dstSet = set;
    writes[i].dstBinding = i;
    writes[i].descriptorCount = 1;
    writes[i].descriptorType = VK_DESCRIPTOR_TYPE_STORAGE_BUFFER;
    writes[i].pBufferInfo = &buffers[i];
  }
  vk.UpdateDescriptorSets(handles_.device, static_cast<uint32_t>(bindings.size()), writes, 0, nullptr);
  vk.CmdBindPipeline(commands_, VK_PIPELINE_BIND_POINT_COMPUTE, own.pipeline);
  vk.CmdBindDescriptorSets(commands_, VK_PIPELINE_BIND_POINT_COMPUTE, own.layout, 0, 1, &set, 0, nullptr);
  if (!push.empty()) {
    vk.CmdPushConstants(commands_, own.layout, VK_SHADER_STAGE_COMPUTE_BIT, 0, static_cast<uint32_t>(push.size()),
                        push.data());
  }
  vk.CmdDispatch(commands_, groups[0], groups[1], groups[2]);
}

void VulkanCommandList::full_barrier(VkPipelineStageFlags from, VkPipelineStageFlags to, VkAccessFlags more_reads) {
  VkMemoryBarrier all{VK_STRUCTURE_TYPE_MEMORY_BARRIER};
  all.srcAccessMask = VK_ACCESS_SHADER_WRITE_BIT | VK_ACCESS_TRANSFER_WRITE_BIT;
  all.dstAccessMask = VK_ACCESS_SHADER_READ_BIT | VK_ACCESS_SHADER_WRITE_BIT | VK_ACCESS_TRANSFER_READ_BIT |
                      VK_ACCESS_TRANSFER_WRITE_BIT | more_reads;
  handles_.vk.CmdPipelineBarrier(commands_, from, to, 0, 1, &all, 0, nullptr, 0, nullptr);
}

void VulkanCommandList::barrier() {
  full_barrier(kWork, kWork, 0);
}

void VulkanCommandList::copy(const gpu::DeviceBuffer& from, size_t from_offset, const gpu::DeviceBuffer& to,
                             size_t to_offset, size_t bytes) {
  const VkBufferCopy range{from_offset, to_offset, bytes};
  handles_.vk.CmdCopyBuffer(commands_, static_cast<const VulkanBuffer&>(from).buffer_,
                            static_cast<const VulkanBuffer&>(to).buffer_, 1, &range);
}

void VulkanCommandList::timestamp(uint32_t slot) {
  if (slot >= slots_) return;
  handles_.vk.CmdWriteTimestamp(commands_, VK_PIPELINE_STAGE_BOTTOM_OF_PIPE_BIT, queries_, slot);
}

Status VulkanCommandList::finish() {
  PINNACE_TRY(problem_);
  full_barrier(kWork, kWork | VK_PIPELINE_STAGE_HOST_BIT, VK_ACCESS_HOST_READ_BIT);
  return handles_.check(handles_.vk.EndCommandBuffer(commands_), "vkEndCommandBuffer");
}

Status VulkanCommandList::timestamps(std::vector<uint64_t>* ns) const {
  ns->clear();
  if (!slots_) return {};
  ns->resize(slots_);
  PINNACE_TRY(handles_.check(
      handles_.vk.GetQueryPoolResults(handles_.device, queries_, 0, slots_, slots_ * sizeof(uint64_t), ns->data(),
                                      sizeof(uint64_t), VK_QUERY_RESULT_64_BIT | VK_QUERY_RESULT_WAIT_BIT),
      "vkGetQueryPoolResults"));
  for (uint64_t& t : *ns) t = static_cast<uint64_t>(static_cast<double>(t) * tick_ns_);
  return {};
}

Status VulkanCommandList::submit(VkQueue queue) {
  const auto& vk = handles_.vk;
  PINNACE_TRY(handles_.check(vk.ResetFences(handles_.device, 1, &fence_), "vkResetFences"));
  VkSubmitInfo info{VK_STRUCTURE_TYPE_SUBMIT_INFO};
  info.commandBufferCount = 1;
  info.pCommandBuffers = &commands_;
  PINNACE_TRY(handles_.check(vk.QueueSubmit(queue, 1, &info, fence_), "vkQueueSubmit"));
  pending_ = true;
  return {};
}

Status VulkanCommandList::wait() {
  if (!pending_) return {};
  pending_ = false;
  return handles_.check(handles_.vk.WaitForFences(handles_.device, 1, &fence_, VK_TRUE, UINT64_MAX), "vkWaitForFences");
}

}  // namespace pinnace::vulkan
