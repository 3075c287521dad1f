// One model in the hands of the library: built from plain data, compiled, executed. With library.cc and weight_store.cc
// the only code that calls NNAPI.
#pragma once

#include <chrono>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "backends/nnapi/library.h"
#include "backends/nnapi/weight_store.h"
#include "base/hash.h"
#include "base/process.h"

namespace pinnace::nnapi_client {

/// How models are compiled and run.
struct DriverOptions {
  int feature_level = 1;      ///< whose functions are used: at most the library's and the device's
  bool relaxed = false;       ///< float32 may be computed as float16 (feature level 2)
  int preference = 1;         ///< NNAPI's: low power, fast single answer, sustained speed
  int priority = 100;         ///< NNAPI's: low 90, medium 100, high 110 (feature level 4)
  int any_work = 0;           ///< 1: segments with however little work are taken
  uint64_t deadline_ns = 0;   ///< of a compilation and of a run; 0: none (feature level 4)
  std::string cache_folder;   ///< where the driver keeps what it compiled; empty: nowhere (feature level 3)
  std::string cache_problem;  ///< why it keeps nothing there though a folder is named

  /// What the target's Service says, and where it says nothing the environment: PINNACE_NNAPI_PREFERENCE (low_power,
  /// fast_single_answer, sustained_speed), PINNACE_NNAPI_PRIORITY (low, medium, high), PINNACE_NNAPI_WORK (worth, any),
  /// PINNACE_NNAPI_DEADLINE_MS, PINNACE_NNAPI_CACHE. kInvalidArgument names a variable with another value.
  static Result<DriverOptions> of(const TargetSpec& target, int level);
};

/// A constant of the model that lies in shared memory instead of in the operand.
struct ConstantInMemory {
  const nnapi::Model* body;  ///< the referenced model that has it; null: the model itself
  uint32_t operand;
  PlacedWeight place;
};

/// Bytes of one input or output of a run.
struct Bytes {
  void* data;
  size_t size;
  const SharedMemory* memory = nullptr;  ///< where they lie, at `offset`; null: in ordinary memory, at `data`
  size_t offset = 0;
};

class DriverModel {
 public:
  /// What one run at a time uses: a burst from feature level 3 on, from feature level 5 on an execution that is bound
  /// to memory of its own and used again, where inputs and outputs are small.
  struct Slot {
    explicit Slot(std::shared_ptr<const Library> of) : library(std::move(of)) {}
    ~Slot();
    std::shared_ptr<const Library> library;
    Burst* burst = nullptr;
    Execution* execution = nullptr;
    std::unique_ptr<SharedMemory> memory;
  };

  /// Builds a model and those that it refers to; constants of models that it does not refer to are passed over.
  /// Failures are kDeviceLost: another back end takes over, and says why.
  static Result<std::unique_ptr<DriverModel>> build(std::shared_ptr<const Library> library, const DeviceInfo& device,
                                                    const DriverOptions& options, const nnapi::Model& model,
                                                    std::span<const ConstantInMemory> constants);
  ~DriverModel();
  DriverModel(const DriverModel&) = delete;
  DriverModel& operator=(const DriverModel&) = delete;

  /// Whether the device takes each operation, in the model's order; all of them below feature level 3, where it cannot
  /// be asked.
  Result<std::vector<bool>> supported(size_t operations) const;
  /// Makes it ready for run().
  Status compile();
  /// Runs once and waits. Many threads may. device_ns, if not null, receives what the device says it took, or 0.
  /// loop_limit: for each loop; 0 is NNAPI's longest, 15 s. own: the caller's slot, made if it is null, gone after a
  /// failure; all runs with it have their Bytes::memory in the same places. Null: any that is idle.
  ///
  /// A code that says that the same call may succeed is tried three times; any other is kDeviceLost. kCancelled: a loop
  /// took longer than loop_limit.
  Status run(std::span<const Bytes> inputs, std::span<const Bytes> outputs, std::chrono::nanoseconds loop_limit,
             uint64_t* device_ns = nullptr, std::unique_ptr<Slot>* own = nullptr) const;

  /// Memory that the device maps.
  Result<std::unique_ptr<SharedMemory>> shared_memory(size_t bytes, std::string_view what) const {
    return SharedMemory::create(library_, bytes, what);
  }
  /// Whether the library has memories of a device's own choice (feature level 4).
  bool makes_memories() const { return options_.feature_level >= 4; }
  /// Two that serve as this input and as this output; false if the device makes none. After compile().
  bool make_memories(uint32_t input, uint32_t output, std::shared_ptr<SharedMemory> (&to)[2]) const;
  /// Copies all of a memory to one of the same size, one of them of the device's own.
  Status copy(const SharedMemory& from, const SharedMemory& to) const;

 private:
  DriverModel() = default;
  /// One of NNAPI's models, and those that it refers to before it; `body` is null for the outermost.
  Status add_all(const nnapi::Model& model, const nnapi::Model* body, Model*& to);
  /// The same to a hash.
  void hash_model(Hasher& hasher, const nnapi::Model& model, const nnapi::Model* body) const;
  Status create_compilation();
  void make_token(const nnapi::Model& model);
  Result<std::unique_ptr<Slot>> take_slot(std::span<const Bytes> inputs, std::span<const Bytes> outputs,
                                          std::unique_ptr<Slot>* own) const;
  void give_back(std::unique_ptr<Slot> slot) const;
  Status set_input(Execution* execution, size_t i, const Bytes& b) const;
  Status set_output(Execution* execution, size_t i, const Bytes& b) const;
  Status bind(Slot& slot, std::span<const Bytes> inputs, std::span<const Bytes> outputs) const;
  Status run_bound(const Slot& slot, std::span<const Bytes> inputs, std::span<const Bytes> outputs) const;
  Status run_once(const Slot& slot, std::span<const Bytes> inputs, std::span<const Bytes> outputs, int& code,
                  std::chrono::nanoseconds loop_limit, uint64_t* device_ns) const;
  /// Whether to try once more. A loop that took too long takes as long again.
  bool again(int code) const { return transient(code) && (bodies_.empty() || code != kMissedDeadlineTransient); }
  /// `call` receives the name of the last call that was made.
  int compute(Execution* execution, const Slot& slot, const char*& call) const;
  Status failure(const char* call, int code) const;

  std::shared_ptr<const Library> library_;
  DeviceInfo device_;
  DriverOptions options_;
  std::vector<ConstantInMemory> constants_;          // keeps their memory
  std::vector<std::shared_ptr<const void>> owners_;  // of longer values
  uint8_t token_[32] = {};
  Model* model_ = nullptr;
  std::vector<Model*> bodies_;  // that model_ refers to, directly or not
  Compilation* compilation_ = nullptr;
  mutable ProcessMutex mutex_;
  mutable std::vector<std::unique_ptr<Slot>> idle_;
};

}  // namespace pinnace::nnapi_client
