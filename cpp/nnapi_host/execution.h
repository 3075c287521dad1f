// Execution: bindings of inputs and outputs, and the states of a computation.
#pragma once

#include "nnapi_host/deadline.h"
#include "nnapi_host/objects.h"

namespace pinnace::nnapi_host {

/// One input or output as the client has set it.
struct Binding {
  bool set = false;
  std::vector<uint32_t> dims;  ///< 0: dynamic
  bool dynamic_rank = false;
  std::byte* data = nullptr;  ///< null: omitted
  size_t length = 0;
  std::shared_ptr<Mapping> mapping;      ///< keeps `data`
  std::shared_ptr<DeviceMemory> device;  ///< likewise
};

enum class ExecutionState : uint8_t { kPreparation, kComputation, kCompleted };

/// NNAPI's limits on the time that a WHILE loop takes, in nanoseconds.
inline constexpr uint64_t kDefaultLoopTimeout = 2'000'000'000, kMaximumLoopTimeout = 15'000'000'000;

}  // namespace pinnace::nnapi_host

struct ANeuralNetworksExecution {
  using State = pinnace::nnapi_host::ExecutionState;
  std::shared_ptr<pinnace::nnapi_host::Engine> engine;
  uint32_t explicit_devices = 0;
  std::vector<pinnace::nnapi_host::Binding> inputs, outputs;
  bool reusable = false, padding = false, measure = false;
  uint64_t timeout_ns = 0;  ///< 0: none
  uint64_t loop_timeout_ns = pinnace::nnapi_host::kDefaultLoopTimeout;

  mutable std::mutex mutex;  ///< guards what follows
  State state = State::kPreparation;
  int result = 0;                                  ///< of the last computation
  std::vector<std::vector<uint32_t>> output_dims;  ///< of the last computation, where it found them
  uint64_t duration_ns = UINT64_MAX;

  /// From preparation (or completion, if reusable) to computation. A failure changes nothing. The clock of the time-out
  /// starts, `deadline` receives its end.
  int start(pinnace::nnapi_host::Deadline& deadline);
  /// The computation itself, then completion. Begins only before the deadline, and is cancelled there.
  int compute(const pinnace::nnapi_host::Deadline& deadline);
  /// Completion without a computation.
  void fail(int code);
  /// Undoes start() where no thread could be had: the client may try again.
  void withdraw();

 private:
  /// `found` receives the outputs' dimensions, as far as the computation comes to them.
  int run(std::vector<std::vector<uint32_t>>& found, const pinnace::nnapi_host::Deadline& deadline);
  int check_ready() const;
  /// Says of memories of descriptors whether they hold a value.
  void mark_outputs(bool initialized) const;
};
