// Memory from file descriptors, and the weights in it.
#include "backends/nnapi/weight_store.h"

#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>

#include "backends/packed_constants.h"
#include "base/log.h"

namespace pinnace::nnapi_client {
namespace {

/// Payloads this far apart in the file are not mapped together: a driver may copy all of a memory that it is given.
constexpr uint64_t kMostBetween = 1 << 16;

}  // namespace

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
  if (code) return fail_with(Code::kDeviceLost, "Memory_createFromFd gives ", result_name(code));
  return made;
}

Result<std::unique_ptr<SharedMemory>> SharedMemory::of_file(std::shared_ptr<const Library> library, int descriptor,
                                                            size_t offset, size_t bytes) {
  std::unique_ptr<SharedMemory> made(new SharedMemory);
  made->bytes_ = bytes;
  if (const int code = library->functions.Memory_createFromFd(bytes, PROT_READ, descriptor, offset, &made->memory_)) {
    return fail_with(Code::kDeviceLost, "Memory_createFromFd gives ", result_name(code));
  }
  made->library_ = std::move(library);
  return made;
}

std::unique_ptr<SharedMemory> SharedMemory::of_description(std::shared_ptr<const Library> library,
                                                           const MemoryDesc* description) {
  std::unique_ptr<SharedMemory> made(new SharedMemory);
  if (library->functions.Memory_createFromDesc(description, &made->memory_)) return nullptr;
  made->library_ = std::move(library);
  return made;
}

SharedMemory::~SharedMemory() {
  if (memory_) library_->functions.Memory_free(memory_);
  if (data_) munmap(data_, bytes_);
}

void WeightStore::map(const std::shared_ptr<const Library>& library, std::vector<InFile>& files) {
  static const auto page = static_cast<uint64_t>(::sysconf(_SC_PAGESIZE));
  std::sort(files.begin(), files.end(),
            [](const InFile& a, const InFile& b) { return a.bytes->offset() < b.bytes->offset(); });
  std::vector<InFile> left;
  for (size_t first = 0, last = 0; first < files.size(); first = last) {
    uint64_t end = files[first].bytes->offset();
    for (last = first; last < files.size() && files[last].bytes->offset() <= end + kMostBetween; ++last) {
      end = files[last].bytes->offset() + files[last].bytes->bytes().size();
    }
    const uint64_t begin = files[first].bytes->offset() / page * page;
    auto mapped = SharedMemory::of_file(library, files[first].bytes->descriptor(), begin, end - begin);
    const std::shared_ptr<SharedMemory> memory = mapped ? std::move(*mapped) : nullptr;
    for (size_t i = first; i < last; ++i) {
      if (!memory) {
        left.push_back(std::move(files[i]));
        continue;
      }
      const StoredBytes& bytes = *files[i].bytes;
      placed_.emplace(files[i].name, PlacedWeight{memory, bytes.offset() - begin, bytes.bytes().data(), true});
      bytes.drop_pages();  // that the check has brought here
    }
  }
  files = std::move(left);
}

Result<std::vector<PlacedWeight>> WeightStore::place(const std::shared_ptr<const Library>& library,
                                                     const std::string& target, PackedConstants& packed,
                                                     std::span<const Weight> weights,
                                                     const std::function<Status(size_t)>& check) {
  const WorkLock lock(mutex_, "the placing of weights for NNAPI");
  PINNACE_TRY(lock.status());
  const LogTime time;
  const size_t placed_before = placed_.size();
  std::vector<InFile> files;
  std::map<Name, std::shared_ptr<const StoredBytes>> stored;
  for (const Weight& w : weights) {
    const Name name(w.key, w.bytes);
    if (!w.stores || placed_.contains(name) || stored.contains(name)) continue;
    PINNACE_ASSIGN(auto bytes, packed.stored(target, w.key, w.bytes));
    if (!bytes && packed.stored_required()) {
      return unsupported("a payload is required, and the file has nothing for ", target, " under '", w.key, "'");
    }
    if (!bytes) continue;
    PINNACE_TRY(bytes->check());
    if (bytes->descriptor() >= 0) files.push_back({name, bytes});
    stored.emplace(name, std::move(bytes));
  }
  map(library, files);
  size_t total = 0;
  std::map<Name, size_t> fresh;  // offsets of what is new
  for (size_t i = 0; i < weights.size(); ++i) {
    const Name name(weights[i].key, weights[i].bytes);
    if (placed_.contains(name) || fresh.contains(name)) continue;
    if (!stored.contains(name)) PINNACE_TRY(check(i));
    fresh.emplace(name, total);
    total += aligned_size(weights[i].bytes);
  }
  if (total > 0) {
    PINNACE_ASSIGN(std::shared_ptr<SharedMemory> memory,
                   SharedMemory::create(library, total, "an NNAPI model's weights"));
    packed.add_made_bytes(total);
    for (const Weight& w : weights) {
      const auto found = fresh.find({w.key, w.bytes});
      if (found == fresh.end()) continue;
      std::byte* const to = memory->data() + found->second;
      const auto of_file = stored.find(found->first);
      if (of_file == stored.end()) {
        w.fill(to);
      } else {
        std::memcpy(to, of_file->second->bytes().data(), w.bytes);
      }
      placed_.emplace(found->first, PlacedWeight{memory, found->second, to, of_file != stored.end()});
      fresh.erase(found);
    }
  }
  if (placed_.size() > placed_before) {
    PINNACE_LOG_INFO("weights for ", target, ": ", placed_.size() - placed_before, " placed, ", stored.size(),
                     " of them from the file, ", total, " bytes made, in ", time.text());
  }
  std::vector<PlacedWeight> all;
  for (const Weight& w : weights) all.push_back(placed_.at({w.key, w.bytes}));
  return all;
}

}  // namespace pinnace::nnapi_client
