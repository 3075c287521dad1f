// Functions of the C library that may fail, who calls them, and the loop over all their failures.
#include "cpp/fault_harness.h"

#include <gtest/gtest.h>

#include <dirent.h>
#include <dlfcn.h>
#include <fcntl.h>
#include <link.h>
#include <pthread.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>
#include <unwind.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>

namespace pinnace::testing {
namespace {

// ---- whose code is it?

enum class Owner : uint8_t { kOthers, kOurs, kStandard, kLibrary };
struct Range {
  uintptr_t begin, end;
  Owner owner;
};
constexpr size_t kMostRanges = 512;
Range ranges[kMostRanges];
size_t range_count = 0;
const char* wanted_library = nullptr;

Owner owner_of_file(const char* path) {
  const auto is = [&](const char* part) { return std::strstr(path, part) != nullptr; };
  const bool program = !*path;  // the test program has no name here
  if (wanted_library ? is(wanted_library) : program || is("libneuralnetworks")) return Owner::kOurs;
  if (is("/libstdc++.so") || is("/libc.so")) return Owner::kStandard;
  return is("/libprotobuf") || is("/libzip") || is("/libsimdjson") ? Owner::kLibrary : Owner::kOthers;
}

int add_ranges(dl_phdr_info* info, size_t, void*) {
  const Owner owner = owner_of_file(info->dlpi_name);
  for (int i = 0; i < info->dlpi_phnum && range_count < kMostRanges; ++i) {
    const auto& segment = info->dlpi_phdr[i];
    if (segment.p_type != PT_LOAD || !(segment.p_flags & PF_X)) continue;
    const uintptr_t begin = info->dlpi_addr + segment.p_vaddr;
    ranges[range_count++] = {begin, begin + segment.p_memsz, owner};
  }
  return 0;
}

Owner owner_of(uintptr_t address) {
  for (size_t i = 0; i < range_count; ++i) {
    if (ranges[i].begin <= address && address < ranges[i].end) return ranges[i].owner;
  }
  return Owner::kOthers;
}

struct Walk {
  uintptr_t caller;
  bool met = false;
  Owner owner = Owner::kOthers;
};

/// Who called: the C and C++ libraries ask on behalf of the frame above them.
Owner asker(const void* caller) {
  Walk walk{reinterpret_cast<uintptr_t>(caller)};
  walk.owner = owner_of(walk.caller);
  if (walk.owner != Owner::kStandard) return walk.owner;
  _Unwind_Backtrace(
      [](_Unwind_Context* context, void* given) {
        auto& w = *static_cast<Walk*>(given);
        const uintptr_t at = _Unwind_GetIP(context);
        w.met |= at == w.caller;
        if (!w.met) return _URC_NO_REASON;
        w.owner = owner_of(at);
        return w.owner == Owner::kStandard ? _URC_NO_REASON : _URC_END_OF_STACK;
      },
      &walk);
  return walk.owner;
}

// ---- the failure that is wanted

std::atomic<Fault> armed{Fault::kNone};
std::atomic<int64_t> met{0}, wanted{0};
std::atomic<bool> has_fired{false};
std::atomic<int64_t> live{0};
thread_local bool in_here = false;

bool fails(Fault kind, const void* caller) {
  const Fault now = armed.load(std::memory_order_relaxed);
  if (now == Fault::kNone || in_here) return false;
  const bool memory = kind == Fault::kAllocation;
  if (memory ? now != Fault::kAllocation && now != Fault::kNoMoreAllocations && now != Fault::kLibraryAllocation
             : now != kind) {
    return false;
  }
  in_here = true;
  const bool of_a_device = kind == Fault::kDevice || kind == Fault::kDeviceMemory;
  const Owner owner = of_a_device ? Owner::kOurs : asker(caller);
  in_here = false;
  if (owner != (now == Fault::kLibraryAllocation ? Owner::kLibrary : Owner::kOurs)) return false;
  const int64_t n = ++met, nth = wanted.load();
  if (nth == 0 || (now == Fault::kNoMoreAllocations ? n < nth : n != nth)) return false;
  has_fired = true;
  return true;
}

}  // namespace

// ---- whose blocks stay behind?

namespace {

/// Blocks that were allocated while a BlockWatch lives and are not freed yet, found by their address.
struct WatchedBlock {
  const void* block = nullptr;  // kGone where one was that is freed
  bool ours = false;
};
constexpr size_t kMostWatched = size_t{1} << 20;
WatchedBlock watched[kMostWatched];
const char kGone = 0;
std::atomic<bool> watching{false};
std::atomic_flag watched_busy;

/// The block's place, or the free one where it belongs; null where all are taken.
WatchedBlock* place_of(const void* block) {
  const size_t first = (reinterpret_cast<uintptr_t>(block) >> 4) * 0x9E3779B97F4A7C15u >> 44;
  for (size_t i = 0; i < kMostWatched; ++i) {
    WatchedBlock& at = watched[(first + i) % kMostWatched];
    if (at.block == block || !at.block) return &at;
  }
  return nullptr;
}

void watch_block(const void* block, const void* caller) {
  if (!watching.load(std::memory_order_relaxed) || in_here || !block) return;
  in_here = true;
  const bool ours = asker(caller) != Owner::kOthers;
  while (watched_busy.test_and_set(std::memory_order_acquire)) {
  }
  if (WatchedBlock* const at = place_of(block)) *at = {block, ours};
  watched_busy.clear(std::memory_order_release);
  in_here = false;
}

void forget_block(const void* block) {
  if (!watching.load(std::memory_order_relaxed)) return;
  while (watched_busy.test_and_set(std::memory_order_acquire)) {
  }
  if (WatchedBlock* const at = place_of(block); at && at->block == block) at->block = &kGone;
  watched_busy.clear(std::memory_order_release);
}

/// Tells blocks that our code asked for from those of drivers and other libraries. One at a time.
class BlockWatch {
 public:
  BlockWatch() {
    std::fill(std::begin(watched), std::end(watched), WatchedBlock{});
    watching = true;
  }
  ~BlockWatch() { watching = false; }
  BlockWatch(const BlockWatch&) = delete;
  BlockWatch& operator=(const BlockWatch&) = delete;
  /// Of those allocated since it was made, how many of ours are not freed.
  static int64_t ours() {
    return std::count_if(std::begin(watched), std::end(watched),
                         [](const WatchedBlock& at) { return at.block && at.block != &kGone && at.ours; });
  }
};

}  // namespace

const char* fault_name(Fault fault) {
  constexpr const char* kNames[] = {
      "none",   "allocation", "no more allocations", "allocation of a library", "file system",
      "thread", "device",     "device memory"};
  return kNames[static_cast<int>(fault)];
}

std::string fault_test_name(Fault fault) {
  std::string name = fault_name(fault);
  std::replace(name.begin(), name.end(), ' ', '_');
  return name;
}

FaultScope::FaultScope(Fault fault, int64_t nth, const char* library) {
  wanted_library = library;
  range_count = 0;
  dl_iterate_phdr(add_ranges, nullptr);
  met = 0;
  wanted = nth;
  has_fired = false;
  armed = fault;
}
FaultScope::~FaultScope() {
  armed = Fault::kNone;
}
int64_t FaultScope::sites() {
  return met;
}
bool FaultScope::fired() {
  return has_fired;
}

Fault device_call_fails() {
  for (const Fault kind : {Fault::kDevice, Fault::kDeviceMemory}) {
    if (fails(kind, nullptr)) return kind;
  }
  return Fault::kNone;
}
int64_t live_blocks() {
  return live;
}
bool allocation_fails(const void* caller) {
  return fails(Fault::kAllocation, caller);
}

}  // namespace pinnace::testing

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__) || !defined(__GLIBC__)
void* pinnace::testing::plain_allocate(size_t bytes, size_t alignment, const void*) {
  return alignment ? std::aligned_alloc(alignment, (bytes + alignment - 1) / alignment * alignment)
                   : std::malloc(bytes ? bytes : 1);
}
#else
using pinnace::testing::Fault;

extern "C" {  // glibc's names
// NOLINTBEGIN(bugprone-reserved-identifier)
void* __libc_malloc(size_t);
void* __libc_calloc(size_t, size_t);
void* __libc_realloc(void*, size_t);
void* __libc_memalign(size_t, size_t);
void __libc_free(void*);
// NOLINTEND(bugprone-reserved-identifier)
}

#define TAKEN_OVER extern "C" __attribute__((visibility("default"), noinline))
#define CALLER __builtin_return_address(0)

namespace pinnace::testing {
static void* counted(void* block, const void* caller) {
  if (block) live.fetch_add(1, std::memory_order_relaxed);
  watch_block(block, caller);
  return block;
}
void* plain_allocate(size_t bytes, size_t alignment, const void* caller) {
  return counted(alignment ? __libc_memalign(alignment, bytes ? bytes : 1) : __libc_malloc(bytes ? bytes : 1), caller);
}

/// The C library's own function of this name.
static void* real(const char* name, std::atomic<void*>& known) {
  void* found = known.load(std::memory_order_relaxed);
  if (!found) known = found = dlsym(RTLD_NEXT, name);
  return found;
}
}  // namespace pinnace::testing

#define REAL(name)                                      \
  reinterpret_cast<decltype(&::name)>([] {              \
    static constinit std::atomic<void*> known{nullptr}; \
    return pinnace::testing::real(#name, known);        \
  }())
#define FAILS(kind, error) (pinnace::testing::fails(kind, CALLER) && (errno = (error), true))

TAKEN_OVER void* malloc(size_t bytes) noexcept {
  return FAILS(Fault::kAllocation, ENOMEM) ? nullptr : pinnace::testing::counted(__libc_malloc(bytes), CALLER);
}
TAKEN_OVER void* calloc(size_t count, size_t bytes) noexcept {
  return FAILS(Fault::kAllocation, ENOMEM) ? nullptr : pinnace::testing::counted(__libc_calloc(count, bytes), CALLER);
}
TAKEN_OVER void* realloc(void* block, size_t bytes) noexcept {
  if (FAILS(Fault::kAllocation, ENOMEM)) return nullptr;
  // Before it is given back, after which another thread may have it.
  if (block) pinnace::testing::forget_block(block);
  void* const made = __libc_realloc(block, bytes);
  if (!block) return pinnace::testing::counted(made, CALLER);
  if (!made && !bytes) pinnace::testing::live.fetch_sub(1, std::memory_order_relaxed);
  pinnace::testing::watch_block(made, CALLER);
  return made;
}
TAKEN_OVER void* aligned_alloc(size_t alignment, size_t bytes) noexcept {
  return FAILS(Fault::kAllocation, ENOMEM) ? nullptr
                                           : pinnace::testing::counted(__libc_memalign(alignment, bytes), CALLER);
}
TAKEN_OVER void* memalign(size_t alignment, size_t bytes) noexcept {
  return FAILS(Fault::kAllocation, ENOMEM) ? nullptr
                                           : pinnace::testing::counted(__libc_memalign(alignment, bytes), CALLER);
}
TAKEN_OVER int posix_memalign(void** block, size_t alignment, size_t bytes) noexcept {
  void* const made = FAILS(Fault::kAllocation, ENOMEM)
                         ? nullptr
                         : pinnace::testing::counted(__libc_memalign(alignment, bytes), CALLER);
  if (made) *block = made;
  return made ? 0 : ENOMEM;
}
TAKEN_OVER void free(void* block) noexcept {
  if (block) {
    pinnace::testing::live.fetch_sub(1, std::memory_order_relaxed);
    pinnace::testing::forget_block(block);
  }
  __libc_free(block);
}

TAKEN_OVER int open(const char* path, int flags, ...) {
  va_list rest;
  va_start(rest, flags);
  const auto mode = static_cast<mode_t>(flags & (O_CREAT | O_TMPFILE) ? va_arg(rest, int) : 0);
  va_end(rest);
  return FAILS(Fault::kFile, EMFILE) ? -1 : REAL(open)(path, flags, mode);
}
TAKEN_OVER int openat(int folder, const char* path, int flags, ...) {
  va_list rest;
  va_start(rest, flags);
  const auto mode = static_cast<mode_t>(flags & (O_CREAT | O_TMPFILE) ? va_arg(rest, int) : 0);
  va_end(rest);
  return FAILS(Fault::kFile, EMFILE) ? -1 : REAL(openat)(folder, path, flags, mode);
}
TAKEN_OVER long syscall(long number, ...) noexcept {
  va_list rest;
  va_start(rest, number);
  long a[6];
  for (long& argument : a) argument = va_arg(rest, long);
  va_end(rest);
  const bool opens = number == SYS_openat2 || number == SYS_memfd_create;
  if (opens && FAILS(Fault::kFile, EMFILE)) return -1;
  return REAL(syscall)(number, a[0], a[1], a[2], a[3], a[4], a[5]);
}
TAKEN_OVER FILE* fopen(const char* path, const char* mode) {
  return FAILS(Fault::kFile, EMFILE) ? nullptr : REAL(fopen)(path, mode);
}
TAKEN_OVER DIR* opendir(const char* path) {
  return FAILS(Fault::kFile, EMFILE) ? nullptr : REAL(opendir)(path);
}
TAKEN_OVER DIR* fdopendir(int fd) {
  return FAILS(Fault::kFile, ENOMEM) ? nullptr : REAL(fdopendir)(fd);
}
TAKEN_OVER dirent* readdir(DIR* folder) {
  return FAILS(Fault::kFile, EIO) ? nullptr : REAL(readdir)(folder);
}
TAKEN_OVER ssize_t readlink(const char* path, char* to, size_t bytes) noexcept {
  return FAILS(Fault::kFile, EIO) ? -1 : REAL(readlink)(path, to, bytes);
}
TAKEN_OVER ssize_t readlinkat(int folder, const char* path, char* to, size_t bytes) noexcept {
  return FAILS(Fault::kFile, EIO) ? -1 : REAL(readlinkat)(folder, path, to, bytes);
}
TAKEN_OVER int access(const char* path, int how) noexcept {
  return FAILS(Fault::kFile, EIO) ? -1 : REAL(access)(path, how);
}
TAKEN_OVER int unlinkat(int folder, const char* path, int flags) noexcept {
  return FAILS(Fault::kFile, EIO) ? -1 : REAL(unlinkat)(folder, path, flags);
}
TAKEN_OVER int fstatat(int folder, const char* path, struct stat* about, int flags) noexcept {
  return FAILS(Fault::kFile, EIO) ? -1 : REAL(fstatat)(folder, path, about, flags);
}
TAKEN_OVER int futimens(int fd, const timespec times[2]) noexcept {
  return FAILS(Fault::kFile, EIO) ? -1 : REAL(futimens)(fd, times);
}
TAKEN_OVER int close(int fd) {
  const bool fails = pinnace::testing::fails(Fault::kFile, CALLER);
  const int done = REAL(close)(fd);  // closed all the same
  return fails ? (errno = EIO, -1) : done;
}
TAKEN_OVER ssize_t read(int fd, void* to, size_t bytes) {
  return FAILS(Fault::kFile, EIO) ? -1 : REAL(read)(fd, to, bytes);
}
TAKEN_OVER ssize_t pread(int fd, void* to, size_t bytes, off_t at) {
  return FAILS(Fault::kFile, EIO) ? -1 : REAL(pread)(fd, to, bytes, at);
}
TAKEN_OVER ssize_t write(int fd, const void* from, size_t bytes) {
  return FAILS(Fault::kFile, ENOSPC) ? -1 : REAL(write)(fd, from, bytes);
}
TAKEN_OVER int fsync(int fd) {
  return FAILS(Fault::kFile, EIO) ? -1 : REAL(fsync)(fd);
}
TAKEN_OVER int ftruncate(int fd, off_t bytes) noexcept {
  return FAILS(Fault::kFile, ENOSPC) ? -1 : REAL(ftruncate)(fd, bytes);
}
TAKEN_OVER int rename(const char* from, const char* to) noexcept {
  return FAILS(Fault::kFile, EIO) ? -1 : REAL(rename)(from, to);
}
TAKEN_OVER int renameat(int from_folder, const char* from, int to_folder, const char* to) noexcept {
  return FAILS(Fault::kFile, EIO) ? -1 : REAL(renameat)(from_folder, from, to_folder, to);
}
TAKEN_OVER int mkdir(const char* path, mode_t mode) noexcept {
  return FAILS(Fault::kFile, EIO) ? -1 : REAL(mkdir)(path, mode);
}
TAKEN_OVER int fstat(int fd, struct stat* about) noexcept {
  return FAILS(Fault::kFile, EIO) ? -1 : REAL(fstat)(fd, about);
}
TAKEN_OVER int stat(const char* path, struct stat* about) noexcept {
  return FAILS(Fault::kFile, EIO) ? -1 : REAL(stat)(path, about);
}
TAKEN_OVER int lstat(const char* path, struct stat* about) noexcept {
  return FAILS(Fault::kFile, EIO) ? -1 : REAL(lstat)(path, about);
}
TAKEN_OVER char* realpath(const char* path, char* to) noexcept {
  return FAILS(Fault::kFile, EIO) ? nullptr : REAL(realpath)(path, to);
}
TAKEN_OVER int eventfd(unsigned count, int flags) noexcept {
  return FAILS(Fault::kFile, EMFILE) ? -1 : REAL(eventfd)(count, flags);
}
TAKEN_OVER int fcntl(int fd, int command, ...) {
  va_list rest;
  va_start(rest, command);
  void* const argument = va_arg(rest, void*);
  va_end(rest);
  return FAILS(Fault::kFile, EMFILE) ? -1 : REAL(fcntl)(fd, command, argument);
}
TAKEN_OVER void* mmap(void* at, size_t bytes, int protection, int flags, int fd, off_t offset) noexcept {
  return FAILS(fd < 0 ? Fault::kAllocation : Fault::kFile, ENOMEM)
             ? MAP_FAILED
             : REAL(mmap)(at, bytes, protection, flags, fd, offset);
}
TAKEN_OVER int pthread_create(pthread_t* thread, const pthread_attr_t* attributes, void* (*body)(void*),
                              void* argument) noexcept {
  if (pinnace::testing::fails(Fault::kThread, CALLER)) return EAGAIN;
  return REAL(pthread_create)(thread, attributes, body, argument);
}
#endif

// ---- the loop

namespace pinnace::testing {
namespace {

constexpr int64_t kFarTooMany = 1'000'000;

bool all_of_them() {
  const char* all = std::getenv("PINNACE_TEST_ALL");
  return all && std::string_view(all) == "1";
}

bool expected(const FaultScenario& scenario, Fault fault, Code code) {
  if (fault == Fault::kFile && code == Code::kOutOfMemory) return true;  // no room for another mapping
  if (code == (fault == Fault::kFile     ? Code::kFile
               : fault == Fault::kDevice ? Code::kDeviceLost
                                         : Code::kOutOfMemory)) {
    return true;
  }
  return std::find(scenario.codes.begin(), scenario.codes.end(), code) != scenario.codes.end();
}

struct Counts {
  int64_t sites = 0, made = 0, told = 0, survived = 0;
};

/// One attempt; false if no failure was met.
bool attempt(const FaultScenario& scenario, Fault fault, int64_t nth, Counts& counts) {
  const auto where = [&] { return scenario.name + ", " + fault_name(fault) + " " + std::to_string(nth); };
  if (std::getenv("PINNACE_FAULTS_TRACE")) std::fprintf(stderr, "%s\n", where().c_str());
  scenario.before();
  Status status;
  int64_t sites = 0;
  bool fired = false;
  {
    const FaultScope scope(fault, nth, scenario.library);
    status = scenario.call();
    sites = FaultScope::sites();
    fired = FaultScope::fired();
  }
  if (nth == 0) counts.sites = sites;
  if (!fired) {
    EXPECT_TRUE(status.ok()) << where() << ", without a failure: " << status.message();
  } else {
    ++counts.made;
    ++(status.ok() ? counts.survived : counts.told);
    if (!status.ok()) {
      EXPECT_TRUE(expected(scenario, fault, status.code()))
          << where() << " is told as " << code_name(status.code()) << ": " << status.message();
    }
  }
  const std::string wrong = scenario.after(status);
  EXPECT_EQ(wrong, "") << where() << (status.ok() ? ", survived" : ", told as ") << status.message();
  status = {};
  scenario.end();
  return fired;
}

int64_t open_files() {
  const std::filesystem::directory_iterator all("/proc/self/fd");
  return std::distance(begin(all), end(all));
}

/// Blocks that stay behind where nothing fails.
int64_t loss_without_failure(const FaultScenario& scenario, Fault fault) {
  Counts unused;
  const int64_t before = live_blocks();
  attempt(scenario, fault, 0, unused);
  return std::max<int64_t>(0, live_blocks() - before);
}

/// The same again where the number of blocks or of open files has changed: what is made once and kept is not made a
/// second time. Drivers lose some of their own each time that a device is opened, `usual` of them: a call that failed
/// and was made again may have lost them twice.
bool attempt_without_loss(const FaultScenario& scenario, Fault fault, int64_t nth, int64_t usual, Counts& counts) {
  int64_t lost = 0, files = 0;
  bool fired = false;
  for (int i = 0; i < 4; ++i) {
    const int64_t open_before = open_files(), before = live_blocks();
    Counts again = counts;
    fired = attempt(scenario, fault, nth, again);
    lost = live_blocks() - before;
    if (i == 0) counts = again;
    files = open_files() - open_before;
    if (lost <= 0 && files <= 0) return fired;
    if (usual > 0 && lost <= 2 * usual && files <= 0) break;
    // protobuf loses a block here and there when its own memory ends, libzip an open file too: theirs.
    if (fault == Fault::kLibraryAllocation) return fired;
  }
  if (lost <= 2 * usual && files <= 0 && !scenario.library) {
    // Twice: what the first one leaves in a cache takes the place of blocks that were there before.
    const BlockWatch watch;
    Counts unused;
    attempt(scenario, fault, nth, unused);
    const int64_t ours = BlockWatch::ours();
    attempt(scenario, fault, nth, unused);
    if (BlockWatch::ours() <= ours) return fired;
  }
  ADD_FAILURE() << scenario.name << ", " << fault_name(fault) << " " << nth << ": " << lost << " blocks of memory and "
                << files << " open files are not given back";
  return fired;
}

}  // namespace

void fail_everywhere(const FaultScenario& scenario, Fault fault) {
  if (!kFaultsCanBeMade) GTEST_SKIP() << "a sanitizer has the functions that are to fail";
  const auto start = std::chrono::steady_clock::now();
  Counts counts;
  for (int i = 0; i < 2; ++i) attempt(scenario, fault, 0, counts);  // what is made once and kept is there
  const int64_t usual = loss_without_failure(scenario, fault);
  const int64_t step = all_of_them() ? 1 : std::max<int64_t>(1, (counts.sites + scenario.most - 1) / scenario.most);
  const char* const seed = std::getenv("PINNACE_TEST_SEED");
  const int64_t first = 1 + (seed ? std::strtoll(seed, nullptr, 10) : 0) % step;
  for (int64_t nth = first; nth < kFarTooMany; nth += step) {
    if (!attempt_without_loss(scenario, fault, nth, usual, counts)) break;
    if (::testing::Test::HasFatalFailure()) break;
  }
  if (counts.sites == 0) {
    EXPECT_EQ(std::count(scenario.meets.begin(), scenario.meets.end(), fault), 0)
        << scenario.name << " has no place for a failure of this kind: " << fault_name(fault);
    return;
  }
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - start;
  char row[256];
  std::snprintf(row, sizeof row, "| %s | %s | %lld | %lld | %lld | %lld | %.1f |", scenario.name.c_str(),
                fault_name(fault), static_cast<long long>(counts.sites), static_cast<long long>(counts.made),
                static_cast<long long>(counts.told), static_cast<long long>(counts.survived), took.count());
  std::printf("faults %s\n", row);
  if (const char* path = std::getenv("PINNACE_FAULTS_TABLE")) std::ofstream(path, std::ios::app) << row << "\n";
}

}  // namespace pinnace::testing
