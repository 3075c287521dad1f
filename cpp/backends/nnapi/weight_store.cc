// Memory from file descriptors, and the weights in it.
#include "backends/nnapi/weight_store.h"

#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace pinnace::nnapi_client {

Result<std::unique_ptr<SharedMemory>> SharedMemory::create(std::shared_ptr<const Library> library, size_t bytes,
                                                           std::string_view what) {
  std::unique_ptr<SharedMemory> made(new SharedMemory);
  made->bytes_ = std::max<size_t>(bytes, 1);
  // By number, for C libraries of Android before 11 have no such function.
  const auto fd = static_cast<int>(syscall(SYS_memfd_create, "pinnace", 1u));  // closed when a program is started
  if (fd < 0) return out_of_memory(what, " needs ", bytes, " bytes behind a file descriptor, which the system refuses");
  void* mapped = MAP_FAILED;
  if (ftruncate(fd, static_cast<off_t>(made->bytes_)) == 0) {
    mapped = mmap(nullptr, made->bytes_, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  }
  int code = kNoError;
  if (mapped != MAP_FAILED) {
    made->data_ = static_cast<std::byte*>(mapped);
    code = library->functions.Memory_createFromFd(made->bytes_, PROT_READ | PROT_WRITE, fd, 0, &made->memory_);
    made->library_ = std::move(library);
  }
  close(fd);  // the library has its own
  if (mapped == MAP_FAILED) return out_of_memory(what, " needs ", bytes, " bytes");
  if (code) return Status(Code::kDeviceLost, str_cat("Memory_createFromFd gives ", result_name(code)));
  return made;
}

SharedMemory::~SharedMemory() {
  if (memory_) library_->functions.Memory_free(memory_);
  if (data_) munmap(data_, bytes_);
}

Result<std::vector<PlacedWeight>> WeightStore::place(const std::shared_ptr<const Library>& library,
                                                     std::span<const Weight> weights) {
  std::lock_guard lock(mutex_);
  std::vector<PlacedWeight> all;
  size_t total = 0;
  std::map<std::pair<std::string, size_t>, size_t> fresh;  // offsets of what is new
  for (const Weight& w : weights) {
    const auto name = std::make_pair(w.key, w.bytes);
    if (placed_.contains(name) || fresh.contains(name)) continue;
    fresh.emplace(name, total);
    total += aligned_size(w.bytes);
  }
  if (total > 0) {
    PINNACE_ASSIGN(std::shared_ptr<SharedMemory> memory,
                   SharedMemory::create(library, total, "an NNAPI model's weights"));
    for (const Weight& w : weights) {
      const auto found = fresh.find({w.key, w.bytes});
      if (found == fresh.end()) continue;
      w.fill(memory->data() + found->second);
      placed_.emplace(found->first, PlacedWeight{memory, found->second});
      fresh.erase(found);
    }
  }
  for (const Weight& w : weights) all.push_back(placed_.at({w.key, w.bytes}));
  return all;
}

}  // namespace pinnace::nnapi_client
