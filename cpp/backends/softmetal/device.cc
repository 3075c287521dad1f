// Buffers in this process's memory, kernels by name from the library, and a thread that runs submitted lists in turn.
#include "backends/softmetal/device.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstring>
#include <deque>
#include <mutex>
#include <new>

#include "backends/softmetal/hazards.h"
#include "base/exception_boundary.h"
#include "base/memory.h"
#include "base/threads/thread.h"

namespace pinnace::softmetal {
namespace {

using gpu::Binding;
using gpu::BufferUse;

class SoftBuffer final : public gpu::DeviceBuffer {
 public:
  SoftBuffer(Buffer memory, bool hidden)
      : DeviceBuffer(memory.size(), hidden ? nullptr : memory.data()), memory_(std::move(memory)) {}
  std::byte* data() const { return const_cast<std::byte*>(memory_.data()); }

 private:
  Buffer memory_;
};

std::byte* address(const gpu::DeviceBuffer* buffer) {
  return static_cast<const SoftBuffer*>(buffer)->data();
}

class SoftKernel final : public gpu::Kernel {
 public:
  SoftKernel(const gpu::KernelCode& code, uint32_t index, std::vector<SoftmetalConstant> constants)
      : Kernel(code), index_(index), constants_(std::move(constants)) {}
  uint32_t index() const { return index_; }
  const std::vector<SoftmetalConstant>& constants() const { return constants_; }

 private:
  uint32_t index_;
  std::vector<SoftmetalConstant> constants_;
};

struct Command {
  enum Kind : uint8_t { kDispatch, kCopy, kBarrier, kTimestamp };
  Kind kind = kBarrier;
  const SoftKernel* kernel = nullptr;
  std::vector<Binding> bindings;  // of a copy: from and to
  std::vector<std::byte> push;
  std::array<uint32_t, 3> groups{};
  uint32_t slot = 0;
};

class SoftDevice;

class SoftCommandList final : public gpu::CommandList {
 public:
  SoftCommandList(SoftDevice& device, uint32_t timestamps) : device_(device), times_(timestamps) {}

  void dispatch(const gpu::Kernel& kernel, std::span<const Binding> bindings, std::span<const std::byte> push,
                std::array<uint32_t, 3> groups) override;
  void barrier() override { add({}); }
  void copy(const gpu::DeviceBuffer& from, size_t from_offset, const gpu::DeviceBuffer& to, size_t to_offset,
            size_t bytes) override;
  void timestamp(uint32_t slot) override;
  Status finish() override;
  Status timestamps(std::vector<uint64_t>* ns) const override;

  /// On the device's thread.
  Status run();
  bool finished() const { return finished_; }

  // Under the device's mutex.
  uint64_t submitted = 0, done = 0;
  Status result;

 private:
  void add(Command command) {
    if (finished_) refuse("recorded after finish()");
    commands_.push_back(std::move(command));
  }
  template <class... Parts>
  void refuse(const Parts&... parts) {
    if (failure_.ok()) failure_ = invalid("command ", commands_.size(), ": ", parts...);
  }
  void check(const Binding& binding, size_t multiple, std::string_view what);
  Status run(const Command& command);

  SoftDevice& device_;
  std::vector<Command> commands_;
  std::vector<uint64_t> times_;
  Status failure_;
  bool finished_ = false;
};

class SoftDevice final : public gpu::Device {
 public:
  SoftDevice(gpu::DeviceCaps caps, const gpu::DeviceOptions& options, const Execution& execution,
             const SoftmetalLibrary* library)
      : execution(execution), library(library), caps_(std::move(caps)), options_(options) {}
  /// Once, before all else.
  Status start() {
    PINNACE_ASSIGN(thread_, Thread::start([this] { work(); }));
    return {};
  }
  ~SoftDevice() override {
    if (!thread_.joinable()) return;
    {
      std::lock_guard lock(mutex_);
      closing_ = true;
    }
    changed_.notify_all();
    thread_.join();
  }

  const gpu::DeviceCaps& caps() const override { return caps_; }

  Result<std::unique_ptr<gpu::DeviceBuffer>> buffer(size_t bytes, BufferUse use) override {
    PINNACE_TRY(alive());
    if (bytes == 0 || bytes > caps_.max_buffer_bytes) {
      return invalid("softmetal: a buffer of ", bytes, " bytes, has 1 to ", caps_.max_buffer_bytes);
    }
    if (++buffers_ == options_.fail_buffer)
      return out_of_memory("softmetal: buffer ", bytes, " bytes, failed on demand");
    PINNACE_ASSIGN(Buffer memory, Buffer::allocate(bytes, "a buffer of softmetal"));
    memset(memory.data(), 0xff, bytes);
    return std::unique_ptr<gpu::DeviceBuffer>(
        new SoftBuffer(std::move(memory), use == BufferUse::kDevice && !caps_.unified_memory));
  }

  Result<std::unique_ptr<gpu::Kernel>> kernel(const gpu::KernelCode& code, std::span<const int32_t> spec) override {
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
    uint32_t begin = 0, end = library->kernel_count;
    while (begin < end) {
      const uint32_t middle = (begin + end) / 2;
      if (library->name(middle) < code.name)
        begin = middle + 1;
      else
        end = middle;
    }
    if (begin == library->kernel_count || library->name(begin) != code.name) {
      return unsupported("kernel '", code.name, "' is not in softmetal's library, which has ", library->kernel_count);
    }
    std::vector<SoftmetalConstant> constants;
    for (size_t i = 0; i < spec.size(); ++i) {
      constants.push_back({static_cast<uint32_t>(i), static_cast<uint32_t>(spec[i])});
    }
    return std::unique_ptr<gpu::Kernel>(new SoftKernel(code, begin, std::move(constants)));
  }

  Result<std::unique_ptr<gpu::CommandList>> command_list(uint32_t timestamps) override {
    PINNACE_TRY(alive());
    return std::unique_ptr<gpu::CommandList>(new SoftCommandList(*this, timestamps));
  }

  Status submit(gpu::CommandList& list) override {
    auto& mine = static_cast<SoftCommandList&>(list);
    PINNACE_TRY(alive());
    if (!mine.finished()) return invalid("softmetal: a list is submitted before finish()");
    std::lock_guard lock(mutex_);
    if (mine.submitted != mine.done) return invalid("softmetal: a list is submitted again before its run is done");
    if (++submits_ == options_.fail_submit) {
      lost_ = true;
      return alive();
    }
    queue_.push_back(&mine);
    ++mine.submitted;
    changed_.notify_all();
    return {};
  }

  Status wait(gpu::CommandList& list) override {
    auto& mine = static_cast<SoftCommandList&>(list);
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return mine.submitted == mine.done; });
    PINNACE_TRY(alive());
    return mine.result;
  }

  std::vector<std::byte> cache_blob() const override { return {}; }  // kernels are compiled with the library
  uint64_t validation_messages() const override { return messages_; }

  Status alive() const {
    return lost_ ? Status(Code::kDeviceLost, "softmetal: the device is lost, on demand") : Status();
  }
  void count_message() { ++messages_; }

  const Execution execution;
  const SoftmetalLibrary* const library;

 private:
  void work() {
    std::unique_lock lock(mutex_);
    for (;;) {
      changed_.wait(lock, [&] { return closing_ || !queue_.empty(); });
      if (queue_.empty()) return;
      SoftCommandList* list = queue_.front();
      queue_.pop_front();
      lock.unlock();
      Status result = exception_boundary([&] { return list->run(); });
      lock.lock();
      list->result = std::move(result);
      ++list->done;
      changed_.notify_all();
    }
  }

  gpu::DeviceCaps caps_;
  const gpu::DeviceOptions options_;
  std::atomic<uint32_t> buffers_ = 0;
  std::atomic<uint64_t> messages_ = 0;
  std::atomic<bool> lost_ = false;
  std::mutex mutex_;
  std::condition_variable changed_;
  uint32_t submits_ = 0;
  std::deque<SoftCommandList*> queue_;
  bool closing_ = false;
  Thread thread_;
};

void SoftCommandList::check(const Binding& binding, size_t multiple, std::string_view what) {
  if (!binding.buffer) return refuse(what, " has no buffer");
  if (binding.bytes == 0 || binding.offset % multiple || binding.bytes % 4 ||
      binding.offset > binding.buffer->bytes() || binding.bytes > binding.buffer->bytes() - binding.offset) {
    refuse(what, ": ", binding.bytes, " bytes at ", binding.offset, " of a buffer of ", binding.buffer->bytes(),
           "; offsets are multiples of ", multiple, ", bytes of 4");
  }
}

void SoftCommandList::dispatch(const gpu::Kernel& kernel, std::span<const Binding> bindings,
                               std::span<const std::byte> push, std::array<uint32_t, 3> groups) {
  const gpu::DeviceCaps& caps = device_.caps();
  const gpu::KernelCode& code = kernel.code();
  if (bindings.size() != code.bindings || push.size() != code.push_bytes) {
    refuse("kernel '", code.name, "': ", bindings.size(), " bindings and ", push.size(),
           " bytes of push constants, has ", code.bindings, " and ", code.push_bytes);
  }
  for (const Binding& b : bindings) {
    check(b, std::max(16u, caps.offset_alignment), code.name);
    if (b.bytes > caps.max_binding_bytes) {
      refuse("kernel '", code.name, "': a binding of ", b.bytes, " bytes, at most ", caps.max_binding_bytes);
    }
  }
  for (int d = 0; d < 3; ++d) {
    if (groups[d] == 0 || groups[d] > caps.max_groups[d]) {
      refuse("kernel '", code.name, "': ", groups[d], " groups on axis ", d, ", has 1 to ", caps.max_groups[d]);
    }
  }
  add({Command::kDispatch,
       static_cast<const SoftKernel*>(&kernel),
       {bindings.begin(), bindings.end()},
       {push.begin(), push.end()},
       groups});
}

void SoftCommandList::copy(const gpu::DeviceBuffer& from, size_t from_offset, const gpu::DeviceBuffer& to,
                           size_t to_offset, size_t bytes) {
  Command command;
  command.kind = Command::kCopy;
  command.bindings = {{&from, from_offset, bytes}, {&to, to_offset, bytes}};
  for (const Binding& b : command.bindings) check(b, 4, "copy");
  if (&from == &to && from_offset < to_offset + bytes && to_offset < from_offset + bytes) refuse("a copy onto itself");
  add(std::move(command));
}

void SoftCommandList::timestamp(uint32_t slot) {
  if (slot >= times_.size()) refuse("time stamp ", slot, " of ", times_.size());
  Command command;
  command.kind = Command::kTimestamp;
  command.slot = slot;
  add(std::move(command));
}

Status SoftCommandList::finish() {
  std::vector<Touches> touches;
  for (const Command& command : commands_) {
    if (command.kind == Command::kTimestamp) continue;
    Touches touched;
    for (size_t i = 0; i < command.bindings.size(); ++i) {
      const Binding& b = command.bindings[i];
      const bool writes = command.kind == Command::kCopy ? i == 1 : (command.kernel->code().written >> i & 1) != 0;
      touched.push_back({b.buffer, b.offset, b.offset + b.bytes, writes});
    }
    touches.push_back(std::move(touched));
  }
  if (std::string hazard = find_hazard(touches); failure_.ok() && !hazard.empty()) {
    device_.count_message();
    failure_ = invalid("softmetal: ", hazard);
  }
  finished_ = failure_.ok();
  return failure_;
}

Status SoftCommandList::timestamps(std::vector<uint64_t>* ns) const {
  *ns = times_;
  return {};
}

Status SoftCommandList::run(const Command& command) {
  if (command.kind == Command::kCopy) {
    const Binding &from = command.bindings[0], &to = command.bindings[1];
    memcpy(address(to.buffer) + to.offset, address(from.buffer) + from.offset, from.bytes);
    return {};
  }
  if (command.kind == Command::kTimestamp) {
    const auto now = std::chrono::steady_clock::now().time_since_epoch();
    times_[command.slot] = static_cast<uint64_t>(std::chrono::duration_cast<std::chrono::nanoseconds>(now).count());
    return {};
  }
  const gpu::KernelCode& code = command.kernel->code();
  char message[512] = "";
  SoftmetalLaunch launch{};
  for (size_t i = 0; i < command.bindings.size(); ++i) {
    const Binding& b = command.bindings[i];
    launch.buffers[i] = {address(b.buffer) + b.offset, b.bytes};
  }
  launch.buffers[30] = {const_cast<std::byte*>(command.push.data()), command.push.size()};
  launch.constants = command.kernel->constants().data();
  launch.constant_count = command.kernel->constants().size();
  std::copy(command.groups.begin(), command.groups.end(), launch.groups);
  std::copy(code.local.begin(), code.local.end(), launch.group_size);
  launch.order = device_.execution.order;
  launch.seed = device_.execution.seed;
  launch.simd_width = device_.execution.simd_width;
  launch.races = device_.execution.races;
  launch.message = message;
  launch.message_bytes = sizeof message;
  switch (device_.library->run(command.kernel->index(), &launch)) {
    case kSoftmetalOk:
      return {};
    case kSoftmetalNoMemory:
      return out_of_memory("softmetal: ", message);
    case kSoftmetalFault:
    case kSoftmetalRefused:
      break;
  }
  device_.count_message();
  return invalid("softmetal: ", message);
}

Status SoftCommandList::run() {
  uint64_t random = device_.execution.seed;
  for (size_t begin = 0; begin < commands_.size();) {
    // Commands that nothing orders, in the order that is asked for. A time stamp waits for what stands before it.
    std::vector<const Command*> group;
    size_t end = begin;
    while (end < commands_.size() && commands_[end].kind != Command::kBarrier &&
           commands_[end].kind != Command::kTimestamp) {
      group.push_back(&commands_[end++]);
    }
    if (device_.execution.order == kSoftmetalReverse) std::reverse(group.begin(), group.end());
    for (size_t i = group.size(); device_.execution.order == kSoftmetalShuffled && i > 1; --i) {
      random = random * 6364136223846793005u + 1442695040888963407u;
      std::swap(group[i - 1], group[(random >> 33) % i]);
    }
    for (const Command* command : group) PINNACE_TRY(run(*command));
    if (end < commands_.size() && commands_[end].kind == Command::kTimestamp) PINNACE_TRY(run(commands_[end]));
    begin = end + 1;
  }
  return {};
}

}  // namespace

Result<std::unique_ptr<gpu::Device>> open(const gpu::DeviceOptions& options, const Execution& execution,
                                          const SoftmetalLibrary* kernels) {
  if (!kernels) {
    PINNACE_ASSIGN(kernels, library());
  }
  constexpr std::string_view kOrders[] = {"forward", "reverse", "shuffled"};
  gpu::DeviceCaps caps;
  caps.name = "softmetal (Metal's kernels on this processor)";
  caps.driver = str_cat("interface ", SOFTMETAL_INTERFACE, ", ", kernels->kernel_count, " kernels, order ",
                        kOrders[execution.order], ", simd width ", execution.simd_width);
  caps.identity = str_cat("softmetal ", SOFTMETAL_INTERFACE, " ", execution.simd_width);
  caps.software = true;
  caps.unified_memory = !options.force_staging;
  caps.f16_storage = !options.no_f16;
  caps.simdgroup_matrices = execution.simd_width == 32 && !options.no_matrices;
  caps.subgroup_size = options.unknown_subgroup ? 0 : execution.simd_width;
  caps.shared_bytes = std::min(32u << 10, options.shared_bytes);
  caps.max_invocations = std::min(1024u, options.max_invocations);
  // Positions in the grid are 32-bit numbers.
  caps.max_groups.fill(std::min((1u << 22) - 1, options.max_groups));
  caps.max_binding_bytes = std::min(caps.max_binding_bytes, options.max_binding_bytes);
  caps.max_buffer_bytes = gpu::buffer_limit(std::min(caps.max_buffer_bytes, options.max_buffer_bytes));
  caps.max_turns = options.max_turns;
  caps.offset_alignment = std::max(16u, options.offset_alignment);
  caps.timestamp_ns = 1;
  auto device = std::make_unique<SoftDevice>(std::move(caps), options, execution, kernels);
  PINNACE_TRY(device->start());
  return std::unique_ptr<gpu::Device>(std::move(device));
}

}  // namespace pinnace::softmetal
