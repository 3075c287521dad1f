// Weights in memory that NNAPI maps: written once, shared by every model of a Prepared that reads them, never copied.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "backends/nnapi/library.h"
#include "backends/nnapi/lowering.h"

namespace pinnace::nnapi_client {

/// Bytes behind a file descriptor, which a driver can map too.
class SharedMemory {
 public:
  /// kOutOfMemory names `what` and the size.
  static Result<std::unique_ptr<SharedMemory>> create(std::shared_ptr<const Library> library, size_t bytes,
                                                      std::string_view what);
  ~SharedMemory();
  SharedMemory(const SharedMemory&) = delete;
  SharedMemory& operator=(const SharedMemory&) = delete;

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
};

/// Weights by key. Thread-safe.
class WeightStore {
 public:
  /// Where each weight lies; those that are not there yet are written into one new memory.
  Result<std::vector<PlacedWeight>> place(const std::shared_ptr<const Library>& library,
                                          std::span<const Weight> weights);

 private:
  std::mutex mutex_;
  std::map<std::pair<std::string, size_t>, PlacedWeight> placed_;  // by key and size
};

}  // namespace pinnace::nnapi_client
