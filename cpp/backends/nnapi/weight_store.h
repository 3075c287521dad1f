// Weights in memory that NNAPI maps, shared by every model of a Prepared that reads them: of the model file where that
// has them laid out for the target, so that they are never copied, else written once.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "backends/nnapi/library.h"
#include "backends/nnapi/lowering.h"
#include "base/threads/work_mutex.h"

namespace pinnace::nnapi_client {

/// Version of the bytes under a weight's key: goes up whenever a lowering writes others under the same one.
inline constexpr int kWeightLayout = 1;

/// Bytes behind a file descriptor, which a driver can map too, or a driver's own.
class SharedMemory {
 public:
  /// kOutOfMemory names `what` and the size.
  static Result<std::unique_ptr<SharedMemory>> create(std::shared_ptr<const Library> library, size_t bytes,
                                                      std::string_view what);
  /// Part of a file, to be read; nothing is mapped here, and the library has a descriptor of its own. `offset` is a
  /// multiple of the page size. kDeviceLost: the library does not map it.
  static Result<std::unique_ptr<SharedMemory>> of_file(std::shared_ptr<const Library> library, int descriptor,
                                                       size_t offset, size_t bytes);
  /// Memory of the device's own choice. Null if it makes none.
  static std::unique_ptr<SharedMemory> of_description(std::shared_ptr<const Library> library,
                                                      const MemoryDesc* description);
  ~SharedMemory();
  SharedMemory(const SharedMemory&) = delete;
  SharedMemory& operator=(const SharedMemory&) = delete;

  /// Null for a part of a file and for a device's own.
  std::byte* data() const { return data_; }
  const Memory* memory() const { return memory_; }

 private:
  SharedMemory() = default;
  std::shared_ptr<const Library> library_;
  std::byte* data_ = nullptr;
  size_t bytes_ = 0;
  Memory* memory_ = nullptr;
};

/// A weight in a SharedMemory.
struct PlacedWeight {
  std::shared_ptr<SharedMemory> memory;
  size_t offset = 0;
  const std::byte* data = nullptr;  ///< the same bytes in this process
  bool stored = false;              ///< the file's
};

/// Weights by key. Thread-safe.
class WeightStore {
 public:
  /// What the store asks of whoever makes weights.
  struct Maker {
    /// Looks at the constants that weight i is made of, before it is.
    std::function<Status(size_t i)> check;
    /// Whether weight i is the same for all sizes: it is kept as long as the store. Others go with the last executable
    /// that has them, for every plan may have its own.
    std::function<bool(size_t i)> lasts;
  };
  /// Where each weight lies. Those that are not there yet come from what the file has packed under `target`, mapped
  /// where the file is, else copied; what it does not have is written into new memory.
  ///
  /// kCorruptFile: what the file has is damaged. kUnsupported: it must have all that it can, and does not. Others as
  /// WorkMutex::lock().
  Result<std::vector<PlacedWeight>> place(const std::shared_ptr<const Library>& library, const std::string& target,
                                          PackedConstants& packed, std::span<const Weight> weights, const Maker& maker);

 private:
  using Name = std::pair<std::string, size_t>;  // key and size
  struct InFile {
    Name name;
    std::shared_ptr<const StoredBytes> bytes;
  };
  /// Places what lies in one mapped file; what the library does not map is left in `files`.
  void map(const std::shared_ptr<const Library>& library, std::vector<InFile>& files);

  /// Adds what lies in `memory`, which the store keeps only if the weight lasts.
  void keep(const Name& name, PlacedWeight weight, bool lasts);
  struct Held {
    PlacedWeight weight;                 ///< without its memory
    std::shared_ptr<SharedMemory> kept;  ///< null of one that does not last
    std::weak_ptr<SharedMemory> memory;
  };

  WorkMutex mutex_;
  std::map<Name, Held> placed_;
};

}  // namespace pinnace::nnapi_client
