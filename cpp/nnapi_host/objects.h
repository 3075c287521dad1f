// The objects behind the C interface's handles, and what their files share: checks of arguments and of shapes.
#pragma once

#include <chrono>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/memory.h"
#include "base/threads/thread.h"
#include "nnapi/operations.h"
#include "nnapi_host/calls.h"
#include "nnapi_host/engine.h"

namespace pinnace::nnapi_host {

/// The library's and its devices' feature level, 1 to 8.
int feature_level();
/// Those of this machine: the CPU, then a GPU where Vulkan is. They live for ever; the first call looks for them.
std::span<const ANeuralNetworksDevice> all_devices();
/// True if the device takes the operation: it has a mapping, the back end takes what it becomes, and the test bed
/// does not pretend otherwise. `model` is finished.
bool device_takes(const ANeuralNetworksDevice& device, const nnapi::Model& model, const nnapi::Operation& operation);
/// The same of a back end, to the operation by itself: what it reads is an input unless it is a constant. All shapes
/// and what becomes attributes must be known, and everything must run there.
bool backend_takes(const Backend& backend, const nnapi::Model& model, const nnapi::Operation& operation);
/// Devices of a call: NULL list or entry, none, one twice, or none of ours.
int check_devices(const ANeuralNetworksDevice* const* devices, uint32_t count);

/// The result code that a status means to a client.
int code_of(const Status& status);

/// Dimensions of an operand as the model states them, made more precise by `type` (may be null). `dims` receives them,
/// 0 where they are still dynamic; `dynamic_rank` whether even their number is. BAD_DATA where `type` makes no sense by
/// itself, where its rank or a dimension is not what the operand knows, and where a dimension stays dynamic though none
/// may. Its type code, scale and zero point need not be the operand's: as in Android's runtime, nobody looks at them.
int merge_type(const nnapi::Operand& operand, const ANeuralNetworksOperandType* type, bool may_be_dynamic,
               std::vector<uint32_t>& dims, bool& dynamic_rank);
/// Bytes of an operand of these dimensions, 0 if they are dynamic; nothing if there are more than 2^32 - 1.
std::optional<uint64_t> bytes_of(const nnapi::Operand& operand, std::span<const uint32_t> dims, bool dynamic_rank);

/// A mapped file descriptor, or zero bytes.
class Mapping {
 public:
  /// Of nothing yet. `protect` is the client's, of PROT_READ and PROT_WRITE.
  Mapping(size_t bytes, int protect) : bytes_(bytes), protect_(protect) {}
  ~Mapping();
  /// `address` is unmapped in the end.
  void take(void* address) { address_ = address; }
  Mapping(const Mapping&) = delete;
  Mapping& operator=(const Mapping&) = delete;
  std::byte* data() const { return static_cast<std::byte*>(address_); }
  size_t size() const { return bytes_; }
  bool readable() const;
  bool writable() const;

 private:
  void* address_ = nullptr;
  size_t bytes_;
  int protect_;
};

/// Where a memory made from a descriptor may be used. Compilations are told apart by who owns them, for the address of
/// one that is gone is soon another's.
struct Role {
  std::weak_ptr<const Engine> engine;
  bool input;
  uint32_t index;
  bool operator==(const Role& other) const {
    return !engine.owner_before(other.engine) && !other.engine.owner_before(engine) && input == other.input &&
           index == other.index;
  }
};

/// Memory made from a descriptor. Shared by whoever uses it, so that it may be freed while a computation runs.
struct DeviceMemory {
  nnapi::Operand operand;  ///< of its roles, with the descriptor's dimensions
  std::vector<Role> roles;
  Buffer bytes;
  mutable std::mutex mutex;  ///< guards what follows
  bool initialized = false;
};

/// The end of one computation, or what a client's fence stands for. Shared between events, the thread that computes,
/// and computations that wait for it.
struct Completion {
  std::mutex mutex;
  std::condition_variable changed;
  bool done = false;
  int result = 0;
  int fence = -1;        ///< owned; readable when done; -1: none
  bool foreign = false;  ///< `fence` is the client's, and alone says when it is done
  ~Completion();

  void set(int code);
  int wait();
};

}  // namespace pinnace::nnapi_host

struct ANeuralNetworksDevice {
  std::string name;
  std::string version;
  int32_t type;                     ///< NNAPI's number
  const pinnace::Backend* backend;  ///< that computes
};

struct ANeuralNetworksMemory {
  std::shared_ptr<pinnace::nnapi_host::Mapping> mapping;      ///< of a file descriptor, or
  std::shared_ptr<pinnace::nnapi_host::DeviceMemory> device;  ///< of a descriptor
};

struct ANeuralNetworksMemoryDesc {
  std::vector<pinnace::nnapi_host::Role> roles;
  std::optional<pinnace::nnapi::Operand> operand;  ///< of the roles, dimensions merged
  std::vector<uint32_t> dims;                      ///< by setDimensions; empty: none
  bool finished = false;
};

struct ANeuralNetworksModel {
  std::shared_ptr<pinnace::nnapi::Model> model = std::make_shared<pinnace::nnapi::Model>();
  std::vector<uint32_t> order;  ///< for each operation its place among addOperation's calls
  bool finished = false;        ///< finish was called, and had the memory to answer
  bool valid = false;           ///< and succeeded
};

struct ANeuralNetworksCompilation {
  std::shared_ptr<const pinnace::nnapi::Model> model;  ///< finished; the client may free its own
  std::vector<const ANeuralNetworksDevice*> devices;   ///< that the client chose, the one it prefers first; empty: none
  int32_t preference = 1;
  uint64_t timeout_ns = 0;      ///< 0: none
  std::string cache_directory;  ///< empty: no caching
  pinnace::nnapi_host::CacheToken cache_token = {};
  bool finished = false;
  std::shared_ptr<pinnace::nnapi_host::Engine> engine;  ///< once finish succeeded
};

struct ANeuralNetworksBurst {
  std::shared_ptr<pinnace::nnapi_host::Engine> engine;
  std::mutex running;
};

struct ANeuralNetworksEvent {
  explicit ANeuralNetworksEvent(std::shared_ptr<pinnace::nnapi_host::Completion> c) : completion(std::move(c)) {}
  std::shared_ptr<pinnace::nnapi_host::Completion> completion;
  pinnace::Thread thread;  ///< that computes; joined when the event is freed
};
