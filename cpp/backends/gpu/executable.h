// A segment as recorded work: steps with planned memory, and the buffers and command lists of each run under way.
#pragma once

#include <optional>

#include "backends/gpu/segment.h"
#include "backends/gpu/weight_store.h"

namespace pinnace::gpu {

/// What a device that is well cannot do, for want of memory too, is done without it: kDeviceLost by a rule. Mistakes of
/// the caller stay what they are.
Status without_device(const Status& status);

class GpuExecutable final : public Executable {
 public:
  /// Makes the kernels, uploads the weights, plans the memory and records a first run. kUnsupported if a node is
  /// refused.
  static Result<std::unique_ptr<Executable>> compile(FittedSegment fitted, const Segment& segment,
                                                     std::shared_ptr<Context> context, std::string_view backend);

  size_t workspace_bytes() const override { return 0; }
  std::string_view kernel(size_t i) const override { return kernels_[i]; }
  std::string notice(size_t i) const override { return notices_[i]; }
  Status run(const RunContext& context, std::span<const TensorView> inputs,
             std::span<const TensorView> outputs) const override;
  Result<std::unique_ptr<KeptStates>> keep_states(bool survives) const override;

 private:
  class States;  // kept_states.h
  /// Memory of one use, in as many buffers as the device's largest asks for. Places count through all of them; nothing
  /// lies across two.
  using Memory = std::vector<std::unique_ptr<DeviceBuffer>>;
  /// A run as it was recorded.
  struct Recorded {
    std::vector<std::unique_ptr<CommandList>> lists;     ///< submitted in order
    std::vector<std::unique_ptr<CommandList>> profiled;  ///< the same with time stamps, recorded when first wanted
  };
  /// What one run at a time uses; of an executable with states, what the runs of one session use.
  struct Instance {
    Memory activations, upload, download;
    /// Two values of each state that stays, of which a run reads one and leaves the next in the other. Host memory has
    /// the same bytes: it is this memory, or a copy that each run makes at its end where the device has memory of its
    /// own.
    Memory states[2], copies[2];
    Recorded recorded[2];                          ///< by which of the two is read; without states the first alone
    std::unique_ptr<CommandList> copies_enter[2];  ///< copies to states; null where there are none
    const Memory& states_on_host(int which) const { return copies[which].empty() ? states[which] : copies[which]; }
  };
  /// A state that stays on the device.
  struct State {
    TensorType type;
    size_t place = 0;  ///< in Instance::states
  };
  GpuExecutable() = default;
  /// Finds those of the segment's states whose bytes on the device say all that the host's would.
  void find_states(const Segment& segment);
  Status make_ready();
  Status plan();
  Result<std::unique_ptr<Instance>> instance() const;
  Result<Memory> memory(size_t bytes, BufferUse use) const;
  std::byte* host(const Memory& memory, size_t place) const { return memory[place / block_]->host() + place % block_; }
  Status record(const Instance& instance, int now, bool timed, std::vector<std::unique_ptr<CommandList>>& lists) const;
  Status record_copies(Instance& instance) const;
  /// What binding b of a step is, in runs that read the states `now`.
  Binding binding(const Instance& instance, int now, const Step& step, size_t b) const;
  Status run(Instance& instance, int now, bool copies_enter, const RunContext& context,
             std::span<const TensorView> inputs, std::span<const TensorView> outputs) const;
  /// kDeviceLost for a number that 32 bits do not hold; the device is well.
  Status refused_wide(std::string_view what, int64_t number) const;
  /// The errors of refused_wide.
  Status enter(Instance& instance, std::span<const TensorView> inputs) const;
  /// copies_enter: before all else, what the host wrote goes where the states are.
  Status submit(Instance& instance, int now, bool copies_enter, const RunContext& context) const;
  /// What steps found wrong with their operands: kInvalidArgument, or kDeviceLost for what another back end can do.
  Status device_errors(const Instance& instance) const;
  Status profile(const Recorded& recorded, const RunContext& context,
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
  std::vector<std::optional<State>> states_;  ///< per state of the segment; empty: it passes through the host
  size_t activation_bytes_ = 0, upload_bytes_ = 0, download_bytes_ = 0, state_bytes_ = 0;
  std::vector<size_t> upload_offsets_, download_offsets_;  ///< per input, output
  std::vector<std::string> error_labels_;                  ///< per error record
  std::vector<size_t> error_offsets_;  ///< per error record, in the downloaded memory, kStep bytes each
  mutable ProcessMutex mutex_;
  mutable std::vector<std::unique_ptr<Instance>> free_;
};

}  // namespace pinnace::gpu
