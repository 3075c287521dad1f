// A segment as recorded work: steps with planned memory, and the buffers and command lists of each run under way.
#pragma once

#include "backends/gpu/segment.h"
#include "backends/gpu/weight_store.h"

namespace pinnace::gpu {

class GpuExecutable final : public Executable {
 public:
  /// Makes the kernels, uploads the weights, plans the memory and records a first run. kUnsupported if a node is
  /// refused.
  static Result<std::unique_ptr<Executable>> compile(FittedSegment fitted, PackedConstants& packed,
                                                     std::shared_ptr<Context> context, std::string_view backend);

  size_t workspace_bytes() const override { return 0; }
  std::string_view kernel(size_t i) const override { return kernels_[i]; }
  std::string notice(size_t i) const override { return notices_[i]; }
  Status run(const RunContext& context, std::span<const TensorView> inputs,
             std::span<const TensorView> outputs) const override;

 private:
  /// Memory of one use, in as many buffers as the device's largest asks for. Places count through all of them; nothing
  /// lies across two.
  using Memory = std::vector<std::unique_ptr<DeviceBuffer>>;
  /// What one run at a time uses.
  struct Instance {
    Memory activations, upload, download;
    std::vector<std::unique_ptr<CommandList>> lists;     ///< submitted in order
    std::vector<std::unique_ptr<CommandList>> profiled;  ///< the same with time stamps, recorded when first wanted
  };
  GpuExecutable() = default;
  Status make_ready();
  Status plan();
  Result<std::unique_ptr<Instance>> instance() const;
  Result<Memory> memory(size_t bytes, BufferUse use) const;
  std::byte* host(const Memory& memory, size_t place) const { return memory[place / block_]->host() + place % block_; }
  Status record(Instance& instance, bool timed, std::vector<std::unique_ptr<CommandList>>& lists) const;
  /// What binding b of a step is.
  Binding binding(const Instance& instance, const Step& step, size_t b) const;
  /// kDeviceLost: a number that 32 bits do not hold; the device is well.
  Status enter(Instance& instance, std::span<const TensorView> inputs) const;
  Status submit(Instance& instance, const RunContext& context) const;
  /// What steps found wrong with their operands: kInvalidArgument, or kDeviceLost for what another back end can do.
  Status device_errors(const Instance& instance) const;
  Status profile(const Instance& instance, const RunContext& context,
                 std::chrono::steady_clock::time_point start) const;

  std::shared_ptr<Context> context_;
  /// What weights_ point into.
  std::shared_ptr<const WeightStore::OnDevice> held_;
  std::set<std::shared_ptr<const WeightStore::Tables>> tables_;
  std::string_view backend_;
  std::vector<std::string> notices_;  ///< per node of the segment
  std::vector<const Node*> nodes_;
  std::vector<std::string> kernels_;  ///< per node of the segment
  std::vector<DeviceTensor> tensors_;
  std::vector<Step> steps_;
  std::vector<const Kernel*> ready_;  ///< per step
  std::vector<Binding> weights_;      ///< per weight
  size_t block_ = 0;                  ///< most bytes of a buffer, a multiple of what planned memory is aligned to
  std::vector<size_t> offsets_;       ///< per tensor, in the memory of its place
  std::vector<size_t> slices_;        ///< first step of each command list
  size_t activation_bytes_ = 0, upload_bytes_ = 0, download_bytes_ = 0;
  std::vector<size_t> upload_offsets_, download_offsets_;  ///< per input, output
  std::vector<std::string> error_labels_;                  ///< per error record
  std::vector<size_t> error_offsets_;  ///< per error record, in the downloaded memory, kStep bytes each
  mutable ProcessMutex mutex_;
  mutable std::vector<std::unique_ptr<Instance>> free_;
};

}  // namespace pinnace::gpu
