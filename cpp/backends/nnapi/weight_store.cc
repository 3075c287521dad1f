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

void WeightStore::keep(const Name& name, PlacedWeight weight, bool lasts) {
  Held held{.weight = {}, .kept = lasts ? weight.memory : nullptr, .memory = weight.memory};
  weight.memory = nullptr;
  held.weight = std::move(weight);
  placed_.insert_or_assign(name, std::move(held));
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
      keep(files[i].name, {memory, bytes.offset() - begin, bytes.bytes().data(), true}, true);
      bytes.drop_pages();  // that the check has brought here
    }
  }
  files = std::move(left);
}

Result<std::vector<PlacedWeight>> WeightStore::place(const std::shared_ptr<const Library>& library,
                                                     const std::string& target, PackedConstants& packed,
                                                     std::span<const Weight> weights, const Maker& maker) {
  const WorkLock lock(mutex_, "the placing of weights for NNAPI");
  PINNACE_TRY(lock.status());
  const LogTime time;
  std::erase_if(placed_, [](const auto& held) { return held.second.memory.expired(); });
  std::vector<std::shared_ptr<SharedMemory>> present;  // so that what is there stays while this works
  for (const Weight& w : weights) {
    const auto there = placed_.find({w.key, w.bytes});
    if (there != placed_.end()) present.push_back(there->second.memory.lock());
    if (there != placed_.end() && !present.back()) placed_.erase(there);
  }
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
  size_t total[2] = {0, 0};  // of those that last, and of others
  struct Fresh {
    size_t offset;
    bool lasts;
  };
  std::map<Name, Fresh> fresh;
  for (size_t i = 0; i < weights.size(); ++i) {
    const Name name(weights[i].key, weights[i].bytes);
    if (placed_.contains(name) || fresh.contains(name)) continue;
    if (!stored.contains(name)) PINNACE_TRY(maker.check(i));
    const bool lasts = maker.lasts(i);
    fresh.emplace(name, Fresh{total[lasts], lasts});
    total[lasts] += aligned_size(weights[i].bytes);
  }
  std::shared_ptr<SharedMemory> made[2];
  for (const bool lasts : {false, true}) {
    if (total[lasts] == 0) continue;
    PINNACE_ASSIGN(auto memory, SharedMemory::create(library, total[lasts], "an NNAPI model's weights"));
    // Counted before there is a pointer, which counts back when it goes. Executables, which may be the last to have
    // it, do not outlive `packed`.
    packed.add_made_bytes(total[lasts]);
    made[lasts] = {memory.release(), [&packed, bytes = total[lasts]](SharedMemory* done) {
                     packed.drop_made_bytes(bytes);
                     delete done;
                   }};
  }
  for (const Weight& w : weights) {
    const auto found = fresh.find({w.key, w.bytes});
    if (found == fresh.end()) continue;
    const auto [offset, lasts] = found->second;
    std::byte* const to = made[lasts]->data() + offset;
    const auto of_file = stored.find(found->first);
    if (of_file == stored.end()) {
      w.fill(to);
    } else {
      std::memcpy(to, of_file->second->bytes().data(), w.bytes);
    }
    keep(found->first, {made[lasts], offset, to, of_file != stored.end()}, lasts);
    fresh.erase(found);
  }
  if (placed_.size() > placed_before) {
    PINNACE_LOG_INFO("weights for ", target, ": ", placed_.size() - placed_before, " placed, ", stored.size(),
                     " of them from the file, ", total[false] + total[true], " bytes made, in ", time.text());
  }
  std::vector<PlacedWeight> all;
  for (const Weight& w : weights) {
    const Held& held = placed_.at({w.key, w.bytes});
    all.push_back(held.weight);
    all.back().memory = held.memory.lock();
  }
  return all;
}

}  // namespace pinnace::nnapi_client
