// The device interface on Metal. Compiled with automatic reference counting where there is an Apple SDK; on Linux it is
// type-checked and run against a pretend device, by a compiler without reference counting, pools and blocks, so it has no
// completion handlers and waits by waitUntilCompleted.
#import <Foundation/Foundation.h>
#import <Metal/Metal.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <mutex>
#include <vector>

#include "backends/metal/device.h"

#if defined(__has_feature)
#if __has_feature(objc_arc)
#define PINNACE_POOL @autoreleasepool
#endif
#endif
#ifndef PINNACE_POOL
#define PINNACE_POOL
#endif

namespace pinnace::metal {
namespace {

using gpu::Binding;
using gpu::BufferUse;
using gpu::CommandList;
using gpu::Device;
using gpu::DeviceBuffer;
using gpu::DeviceCaps;
using gpu::DeviceOptions;
using gpu::Kernel;
using gpu::KernelCode;

constexpr NSUInteger kPushBuffer = 30;

std::string text_of(NSError* error, const char* otherwise) {
  const char* text = error ? [[error localizedDescription] UTF8String] : nullptr;
  return text ? text : otherwise;
}

class MetalBuffer final : public DeviceBuffer {
 public:
  MetalBuffer(id<MTLBuffer> buffer, size_t bytes, bool visible)
      : DeviceBuffer(bytes, visible ? static_cast<std::byte*>([buffer contents]) : nullptr), buffer_(buffer) {}
  id<MTLBuffer> get() const { return buffer_; }

 private:
  id<MTLBuffer> buffer_;
};

class MetalKernel final : public Kernel {
 public:
  MetalKernel(const KernelCode& code, id<MTLComputePipelineState> state) : Kernel(code), state_(state) {}
  id<MTLComputePipelineState> get() const { return state_; }

 private:
  id<MTLComputePipelineState> state_;
};

struct Command {
  enum Kind : uint8_t { kDispatch, kCopy, kBarrier, kTimestamp };
  Kind kind = kBarrier;
  const MetalKernel* kernel = nullptr;
  std::vector<Binding> bindings;  // of a copy: from and to
  std::vector<std::byte> push;
  std::array<uint32_t, 3> groups{};
  uint32_t slot = 0;
};

class MetalDevice;

class MetalCommandList final : public CommandList {
 public:
  MetalCommandList(MetalDevice& device, uint32_t timestamps) : device_(device), times_(timestamps) {}
  void dispatch(const Kernel& kernel, std::span<const Binding> bindings, std::span<const std::byte> push,
                std::array<uint32_t, 3> groups) override {
    if (bindings.size() != kernel.code().bindings || push.size() != kernel.code().push_bytes) {
      refuse("kernel '", kernel.code().name, "': ", bindings.size(), " bindings and ", push.size(),
             " bytes of push constants, has ", kernel.code().bindings, " and ", kernel.code().push_bytes);
    }
    add({Command::kDispatch,
         static_cast<const MetalKernel*>(&kernel),
         {bindings.begin(), bindings.end()},
         {push.begin(), push.end()},
         groups});
  }
  void barrier() override { add({}); }
  void copy(const DeviceBuffer& from, size_t from_offset, const DeviceBuffer& to, size_t to_offset,
            size_t bytes) override {
    Command command;
    command.kind = Command::kCopy;
    command.bindings = {{&from, from_offset, bytes}, {&to, to_offset, bytes}};
    add(std::move(command));
  }
  void timestamp(uint32_t slot) override {
    if (slot >= times_.size()) refuse("time stamp ", slot, " of ", times_.size());
    Command command;
    command.kind = Command::kTimestamp;
    command.slot = slot;
    add(std::move(command));
  }
  Status finish() override;
  Status timestamps(std::vector<uint64_t>* ns) const override {
    *ns = times_;
    return {};
  }

  /// Encodes all commands and commits them; between two time stamps there is one command buffer, whose times they take.
  Status submit(id<MTLCommandQueue> queue);
  Status wait();
  bool finished() const { return finished_; }
  bool under_way() const { return !submitted_.empty(); }

 private:
  void add(Command command) {
    if (finished_) refuse("recorded after finish()");
    commands_.push_back(std::move(command));
  }
  template <class... Parts>
  void refuse(const Parts&... parts) {
    if (failure_.ok()) failure_ = invalid("metal: command ", commands_.size(), ": ", parts...);
  }
  void encode(id<MTLCommandBuffer> buffer, size_t begin, size_t end);

  struct Submitted {
    id<MTLCommandBuffer> buffer;
    int64_t slot;  // the time stamp at its end, -1: none
  };
  MetalDevice& device_;
  std::vector<Command> commands_;
  std::vector<uint64_t> times_;
  std::vector<Submitted> submitted_;
  Status failure_;
  bool finished_ = false;
};

class MetalDevice final : public Device {
 public:
  MetalDevice(id<MTLDevice> device, id<MTLCommandQueue> queue, DeviceCaps caps, const DeviceOptions& options)
      : device_(device), queue_(queue), caps_(std::move(caps)), options_(options) {}

  const DeviceCaps& caps() const override { return caps_; }

  Result<std::unique_ptr<DeviceBuffer>> buffer(size_t bytes, BufferUse use) override {
    PINNACE_TRY(alive());
    if (bytes == 0 || bytes > caps_.max_buffer_bytes) {
      return invalid("metal: a buffer of ", bytes, " bytes, has 1 to ", caps_.max_buffer_bytes);
    }
    if (++buffers_ == options_.fail_buffer) return out_of_memory("metal: buffer of ", bytes, " bytes, failed on demand");
    const bool visible = use != BufferUse::kDevice || caps_.unified_memory;
    id<MTLBuffer> made =
        [device_ newBufferWithLength:bytes
                             options:(visible ? MTLResourceStorageModeShared : MTLResourceStorageModePrivate)];
    if (!made) return out_of_memory("metal: buffer of ", bytes, " bytes");
    return std::unique_ptr<DeviceBuffer>(new MetalBuffer(made, bytes, visible));
  }

  Result<std::unique_ptr<Kernel>> kernel(const KernelCode& code, std::span<const int32_t> spec) override;

  Result<std::unique_ptr<CommandList>> command_list(uint32_t timestamps) override {
    PINNACE_TRY(alive());
    return std::unique_ptr<CommandList>(new MetalCommandList(*this, timestamps));
  }

  Status submit(CommandList& list) override {
    auto& mine = static_cast<MetalCommandList&>(list);
    PINNACE_TRY(alive());
    if (!mine.finished()) return invalid("metal: a list is submitted before finish()");
    if (mine.under_way()) return invalid("metal: a list is submitted again before its run is done");
    // Encoding is under the lock, so that lists are enqueued one after the other.
    std::lock_guard lock(mutex_);
    if (++submits_ == options_.fail_submit) {
      lost_ = true;
      return alive();
    }
    return mine.submit(queue_);
  }

  Status wait(CommandList& list) override {
    Status status = static_cast<MetalCommandList&>(list).wait();
    if (status.code() == Code::kDeviceLost) lost_ = true;
    PINNACE_TRY(alive());
    return status;
  }

  // The system keeps what its compiler made for an application.
  std::vector<std::byte> cache_blob() const override { return {}; }

  Status alive() const { return lost_ ? Status(Code::kDeviceLost, "metal: the device is lost") : Status(); }

 private:
  id<MTLDevice> device_;
  id<MTLCommandQueue> queue_;
  DeviceCaps caps_;
  const DeviceOptions options_;
  std::atomic<uint32_t> buffers_ = 0;
  std::atomic<bool> lost_ = false;
  std::mutex mutex_;
  uint32_t submits_ = 0;
};

Result<std::unique_ptr<Kernel>> MetalDevice::kernel(const KernelCode& code, std::span<const int32_t> spec) {
  PINNACE_TRY(alive());
  const uint64_t invocations = uint64_t{code.local[0]} * code.local[1] * code.local[2];
  if (invocations > caps_.max_invocations) {
    return unsupported("kernel '", code.name, "': ", invocations, " invocations in a workgroup, the device has ",
                       caps_.max_invocations);
  }
  if (code.shared_bytes > caps_.shared_bytes) {
    return unsupported("kernel '", code.name, "': ", code.shared_bytes, " bytes of shared memory, the device has ",
                       caps_.shared_bytes);
  }
  if (code.f16_storage && !caps_.f16_storage) {
    return unsupported("kernel '", code.name, "': 16-bit storage, which the device lacks");
  }
  if (code.simdgroup_matrices && !caps_.simdgroup_matrices) {
    return unsupported("kernel '", code.name, "': simdgroup matrices, which the device lacks");
  }
  if (spec.size() != code.spec_constants) {
    return invalid("kernel '", code.name, "': ", spec.size(), " specialisation constants, has ", code.spec_constants);
  }
  PINNACE_POOL {
    const std::string source(code.msl), name(code.name);
    NSError* error = nil;
    id<MTLLibrary> library = [device_ newLibraryWithSource:[NSString stringWithUTF8String:source.c_str()]
                                                   options:nil
                                                     error:&error];
    if (!library) return unsupported("kernel '", name, "': ", text_of(error, "the system's compiler refuses it"));
    MTLFunctionConstantValues* values = [[MTLFunctionConstantValues alloc] init];
    for (size_t i = 0; i < spec.size(); ++i) {
      const int32_t value = spec[i];
      [values setConstantValue:&value type:MTLDataTypeInt atIndex:i];
    }
    id<MTLFunction> function = [library newFunctionWithName:[NSString stringWithUTF8String:name.c_str()]
                                             constantValues:values
                                                      error:&error];
    if (!function) return unsupported("kernel '", name, "': ", text_of(error, "the library has no such function"));
    id<MTLComputePipelineState> state = [device_ newComputePipelineStateWithFunction:function error:&error];
    if (!state) return unsupported("kernel '", name, "': ", text_of(error, "no pipeline can be made of it"));
    if ([state maxTotalThreadsPerThreadgroup] < invocations) {
      return unsupported("kernel '", name, "': ", invocations, " invocations in a workgroup, its pipeline has ",
                         static_cast<uint64_t>([state maxTotalThreadsPerThreadgroup]));
    }
    if (code.simdgroup_matrices && [state threadExecutionWidth] != 32) {
      return unsupported("kernel '", name, "': simdgroups of ", static_cast<uint64_t>([state threadExecutionWidth]),
                         " lanes, is made for 32");
    }
    return std::unique_ptr<Kernel>(new MetalKernel(code, state));
  }
}

Status MetalCommandList::finish() {
  const DeviceCaps& caps = device_.caps();
  for (size_t i = 0; i < commands_.size() && failure_.ok(); ++i) {
    const Command& command = commands_[i];
    const auto wrong = [&](const auto&... parts) {
      if (failure_.ok()) failure_ = invalid("metal: command ", i, ": ", parts...);
    };
    const size_t multiple = command.kind == Command::kCopy ? 4 : std::max(16u, caps.offset_alignment);
    for (const Binding& b : command.bindings) {
      if (!b.buffer || b.bytes == 0 || b.bytes % 4 || b.offset % multiple || b.offset > b.buffer->bytes() ||
          b.bytes > b.buffer->bytes() - b.offset) {
        wrong(b.bytes, " bytes at ", b.offset, " of a buffer of ", b.buffer ? b.buffer->bytes() : 0,
              "; offsets are multiples of ", multiple, ", bytes of 4");
      } else if (command.kind == Command::kDispatch && b.bytes > caps.max_binding_bytes) {
        wrong("a binding of ", b.bytes, " bytes, at most ", caps.max_binding_bytes);
      }
    }
    for (int d = 0; command.kind == Command::kDispatch && d < 3; ++d) {
      if (command.groups[d] == 0 || command.groups[d] > caps.max_groups[d]) {
        wrong(command.groups[d], " groups on axis ", d, ", has 1 to ", caps.max_groups[d]);
      }
    }
  }
  finished_ = failure_.ok();
  return failure_;
}

void MetalCommandList::encode(id<MTLCommandBuffer> buffer, size_t begin, size_t end) {
  id<MTLComputeCommandEncoder> compute = nil;
  id<MTLBlitCommandEncoder> blit = nil;
  // Buffers are tracked by Metal, so one encoder's commands see what those of the encoder before wrote; inside a
  // concurrent one only a barrier gives an order.
  const auto close = [&] {
    if (compute) [compute endEncoding];
    if (blit) [blit endEncoding];
    compute = nil;
    blit = nil;
  };
  for (size_t i = begin; i < end; ++i) {
    const Command& command = commands_[i];
    if (command.kind == Command::kBarrier) {
      if (compute) [compute memoryBarrierWithScope:MTLBarrierScopeBuffers];
    } else if (command.kind == Command::kCopy) {
      if (!blit) {
        close();
        blit = [buffer blitCommandEncoder];
      }
      const Binding &from = command.bindings[0], &to = command.bindings[1];
      [blit copyFromBuffer:static_cast<const MetalBuffer*>(from.buffer)->get()
               sourceOffset:from.offset
                   toBuffer:static_cast<const MetalBuffer*>(to.buffer)->get()
          destinationOffset:to.offset
                       size:from.bytes];
    } else {
      if (!compute) {
        close();
        compute = [buffer computeCommandEncoderWithDispatchType:MTLDispatchTypeConcurrent];
      }
      const KernelCode& code = command.kernel->code();
      [compute setComputePipelineState:command.kernel->get()];
      for (size_t b = 0; b < command.bindings.size(); ++b) {
        [compute setBuffer:static_cast<const MetalBuffer*>(command.bindings[b].buffer)->get()
                    offset:command.bindings[b].offset
                   atIndex:b];
      }
      if (!command.push.empty()) {
        [compute setBytes:command.push.data() length:command.push.size() atIndex:kPushBuffer];
      }
      [compute dispatchThreadgroups:MTLSizeMake(command.groups[0], command.groups[1], command.groups[2])
              threadsPerThreadgroup:MTLSizeMake(code.local[0], code.local[1], code.local[2])];
    }
  }
  close();
}

Status MetalCommandList::submit(id<MTLCommandQueue> queue) {
  PINNACE_POOL {
    for (size_t begin = 0, end = 0; begin < commands_.size() || begin == 0; begin = end + 1) {
      end = begin;
      while (end < commands_.size() && commands_[end].kind != Command::kTimestamp) ++end;
      id<MTLCommandBuffer> buffer = [queue commandBuffer];
      if (!buffer) return Status(Code::kDeviceLost, "metal: no command buffer");
      encode(buffer, begin, end);
      [buffer commit];
      submitted_.push_back({buffer, end < commands_.size() ? int64_t{commands_[end].slot} : -1});
    }
  }
  return {};
}

Status MetalCommandList::wait() {
  Status status;
  PINNACE_POOL {
    for (const Submitted& s : submitted_) {
      [s.buffer waitUntilCompleted];
      if (s.slot >= 0) {
        times_[static_cast<size_t>(s.slot)] = static_cast<uint64_t>([s.buffer GPUEndTime] * 1e9);
      }
      NSError* error = [s.buffer error];
      if (!status.ok() || (!error && [s.buffer status] != MTLCommandBufferStatusError)) continue;
      const std::string text = "metal: " + text_of(error, "a command buffer failed");
      const NSInteger code = error ? [error code] : 0;
      // A list that Metal refuses is a mistake above this interface; all else leaves a device that cannot be relied on.
      if (code == MTLCommandBufferErrorOutOfMemory) {
        status = Status(Code::kOutOfMemory, text);
      } else if (code == MTLCommandBufferErrorInvalidResource) {
        status = Status(Code::kInvalidArgument, text);
      } else {
        status = Status(Code::kDeviceLost, text);
      }
    }
  }
  submitted_.clear();
  return status;
}

}  // namespace

std::string unavailable(uint32_t index) {
  if (index > 0) return "has one device, number 0";
  PINNACE_POOL {
    return MTLCreateSystemDefaultDevice() ? std::string() : "there is no Metal device";
  }
}

Result<std::unique_ptr<Device>> open_device(uint32_t index, const DeviceOptions& options) {
  if (std::string reason = unavailable(index); !reason.empty()) return unsupported(reason);
  PINNACE_POOL {
    id<MTLDevice> device = MTLCreateSystemDefaultDevice();
    id<MTLCommandQueue> queue = [device newCommandQueue];
    if (!queue) return Status(Code::kDeviceLost, "metal: no command queue");
    const char* system = [[[NSProcessInfo processInfo] operatingSystemVersionString] UTF8String];
    DeviceCaps caps;
    caps.name = [[device name] UTF8String];
    caps.driver = str_cat("Metal, ", system);
    caps.identity = str_cat("metal ", caps.name, " ", system);
    caps.unified_memory = [device hasUnifiedMemory] && !options.force_staging;
    caps.f16_storage = !options.no_f16;
    caps.simdgroup_matrices = [device supportsFamily:MTLGPUFamilyApple7] && !options.no_matrices;
    // Apple's own GPUs have 32 lanes; others are asked by the kernels alone.
    caps.subgroup_size = [device supportsFamily:MTLGPUFamilyApple4] && !options.unknown_subgroup ? 32 : 0;
    caps.shared_bytes =
        static_cast<uint32_t>(std::min<NSUInteger>([device maxThreadgroupMemoryLength], options.shared_bytes));
    caps.max_invocations =
        static_cast<uint32_t>(std::min<NSUInteger>([device maxThreadsPerThreadgroup].width, options.max_invocations));
    caps.max_groups.fill(std::min((1u << 22) - 1, options.max_groups));  // positions in the grid are 32-bit numbers
    caps.max_binding_bytes = std::min(caps.max_binding_bytes, options.max_binding_bytes);
    caps.max_turns = options.max_turns;
    caps.max_buffer_bytes = gpu::buffer_limit(std::min<uint64_t>([device maxBufferLength], options.max_buffer_bytes));
    caps.offset_alignment = std::max(16u, options.offset_alignment);
    caps.timestamp_ns = 1;
    return std::unique_ptr<Device>(new MetalDevice(device, queue, std::move(caps), options));
  }
}

}  // namespace pinnace::metal
