// Makes the Nth allocation, call of the file system, start of a thread or call of a device fail, for every N until a
// call that meets no failure succeeds, as SQLite's anomaly tests do. The C library's functions are taken over by
// functions of the same name in the test program; a failure is made only where our own code asked, directly or through
// the C++ library.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include <pinnace/status.h>

namespace pinnace::testing {

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__) || !defined(__GLIBC__)
inline constexpr bool kFaultsCanBeMade = false;  // sanitizers have these functions themselves
#else
inline constexpr bool kFaultsCanBeMade = true;
#endif

enum class Fault : uint8_t {
  kNone,
  kAllocation,         ///< one of operator new, malloc, calloc, realloc, aligned_alloc and posix_memalign gives nothing
  kNoMoreAllocations,  ///< and all after it as well
  kLibraryAllocation,  ///< one that protobuf, libzip or simdjson asks for by itself
  kFile,          ///< open, read, write, map, flush, rename, list, describe, close, duplicate, remove, follow links
  kThread,        ///< pthread_create
  kDevice,        ///< a call that device_call_fails() is asked about: the device is lost
  kDeviceMemory,  ///< the same: the device has no memory left
};
const char* fault_name(Fault fault);
/// Of a test with a fault as its parameter: its name, with "_" for spaces.
std::string fault_test_name(Fault fault);
inline constexpr auto kFaultTestName = [](const auto& info) { return fault_test_name(info.param); };

/// Whose code may meet failures: everything of ours, or only what lies in this library (a part of its file's name).
struct FaultScope {
  /// `nth` counts from 1; 0 only counts. One at a time.
  FaultScope(Fault fault, int64_t nth, const char* library = nullptr);
  ~FaultScope();
  FaultScope(const FaultScope&) = delete;
  FaultScope& operator=(const FaultScope&) = delete;
  /// Places met so far at which the failure could have been made.
  static int64_t sites();
  static bool fired();
};

/// For devices that tests pretend: kDevice or kDeviceMemory if this call is to fail so, else kNone.
Fault device_call_fails();
/// Blocks of memory that are held now, by whomever.
int64_t live_blocks();
/// For operator new: true if this allocation is to fail, that code at `caller` asked for.
bool allocation_fails(const void* caller);
/// Memory that cannot be refused but by the system, for the code at `caller`.
void* plain_allocate(size_t bytes, size_t alignment, const void* caller);

/// One public call, tried with every failure.
struct FaultScenario {
  std::string name;
  std::function<void()> before;                     ///< makes what the call needs; nothing fails
  std::function<Status()> call;                     ///< nothing but the public call: what it allocates may fail
  std::function<std::string(const Status&)> after;  ///< what is wrong afterwards; after a failure the call works again
  std::function<void()> end;                        ///< frees everything that was made since `before`
  /// The kinds of failure for which the call has places; a run of one of these that met none has shown nothing.
  std::vector<Fault> meets = {Fault::kAllocation, Fault::kNoMoreAllocations};
  /// What a failure may be told as, beside kOutOfMemory for memory and threads and kFile for files.
  std::vector<Code> codes = {};
  const char* library = nullptr;  ///< see FaultScope
  int64_t most = 40;              ///< failures of one kind, where not all are made
};

/// Runs the scenario with every failure of this kind (PINNACE_TEST_ALL=1), else with a seeded few of them, and says
/// with gtest what went wrong: a code that does not say why, an object that does not work again, memory that is not
/// given back, a kind that it meets and that found no place. Prints a row: scenario, kind, places, failures made, of
/// these told, survived, seconds; none where the call has no place for this kind.
void fail_everywhere(const FaultScenario& scenario, Fault fault);

}  // namespace pinnace::testing
