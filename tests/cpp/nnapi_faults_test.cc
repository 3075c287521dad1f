// A client that uses every part of libneuralnetworks.so while each call fails with each result code: whatever was made
// can be freed, nothing is lost, and the next attempt succeeds.
#include <malloc.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <string_view>

#include "cpp/child_process.h"
#include "cpp/counted_memory.h"
#include "cpp/fault_harness.h"
#include "cpp/nnapi_client.h"
#include "cpp/scratch_folder.h"

namespace {

using namespace nnapi_client;
using pinnace::testing::fail_everywhere;
using pinnace::testing::Fault;

/// The call that failed, and its code.
struct Failure {
  std::string function;
  int code = 0;
};

/// Frees what was made, the last thing first.
class Undo {
 public:
  ~Undo() {
    for (auto last = all_.rbegin(); last != all_.rend(); ++last) (*last)();
  }
  void later(std::function<void()> free) { all_.push_back(std::move(free)); }

 private:
  std::vector<std::function<void()>> all_;
};

/// True: a call that had no memory is made again at once, but for computations, which an execution may make once.
bool calls_again = false;
int calls_made_again = 0;

#define TRY(name, ...)                                                                                          \
  do {                                                                                                          \
    int code = ANeuralNetworks##name(__VA_ARGS__);                                                              \
    if (calls_again && code == ANEURALNETWORKS_OUT_OF_MEMORY && !std::string_view(#name).ends_with("ompute") && \
        !std::string_view(#name).starts_with("Event_wait")) {                                                   \
      ++calls_made_again;                                                                                       \
      code = ANeuralNetworks##name(__VA_ARGS__);                                                                \
    }                                                                                                           \
    if (code) return Failure{#name, code};                                                                      \
  } while (false)
#define MAKE(type, variable, name, ...)      \
  ANeuralNetworks##type* variable = nullptr; \
  TRY(name, ##__VA_ARGS__, &variable);       \
  undo.later([variable] { ANeuralNetworks##type##_free(variable); })

/// relu(x + w) + c of eight numbers, w from a memory, c longer than what is copied when it is set.
class Client {
 public:
  explicit Client(std::string cache) : cache_(std::move(cache)) {}

  Failure run() {
    Undo undo;
    std::fill(z_.begin(), z_.end(), -1.0f);
    MAKE(Memory, weights, Memory_createFromFd, sizeof w_, PROT_READ | PROT_WRITE, fd_, 0);
    MAKE(Model, model, Model_create);
    if (const Failure f = build(model, weights); f.code) return f;
    ANeuralNetworksDevice* device = nullptr;
    bool supported[2] = {};
    TRY(_getDevice, 0, &device);
    TRY(Model_getSupportedOperationsForDevices, model, &device, 1, supported);
    MAKE(Compilation, compilation, Compilation_createForDevices, model, &device, 1);
    if (const Failure f = compile(compilation); f.code) return f;
    if (const Failure f = run_simply(compilation); f.code) return f;
    if (const Failure f = run_in_burst(compilation, weights); f.code) return f;
    return run_fenced(compilation);
  }
  const std::vector<float>& result() const { return z_; }
  std::vector<float> right() const {
    std::vector<float> sum;
    for (size_t i = 0; i < 40; ++i) sum.push_back(std::max(0.0f, x_[i] + w_[i]) + c_[i]);
    return sum;
  }

 private:
  static constexpr uint32_t kSize = 40;

  Failure operand(ANeuralNetworksModel* model, int32_t type, uint32_t size) {
    const ANeuralNetworksOperandType t{type, size ? 1u : 0u, size ? &size : nullptr, 0, 0};
    TRY(Model_addOperand, model, &t);
    return {};
  }
  Failure build(ANeuralNetworksModel* model, const ANeuralNetworksMemory* weights) {
    const std::pair<int32_t, uint32_t> operands[] = {{kTensorFloat32, kSize}, {kTensorFloat32, kSize}, {kInt32, 0},
                                                     {kTensorFloat32, kSize}, {kTensorFloat32, kSize}, {kInt32, 0},
                                                     {kTensorFloat32, kSize}};
    for (const auto& [type, size] : operands) {
      if (const Failure f = operand(model, type, size); f.code) return f;
    }
    const int32_t relu = 1, none = 0;
    const uint32_t first[] = {0, 1, 2}, second[] = {3, 4, 5}, t = 3, x = 0, y = 6;
    TRY(Model_setOperandValueFromMemory, model, 1, weights, 0, sizeof w_);
    TRY(Model_setOperandValue, model, 2, &relu, sizeof relu);
    TRY(Model_setOperandValue, model, 4, c_.data(), kSize * sizeof(float));
    TRY(Model_setOperandValue, model, 5, &none, sizeof none);
    TRY(Model_addOperation, model, kAdd, 3, first, 1, &t);
    TRY(Model_addOperation, model, kAdd, 3, second, 1, &y);
    TRY(Model_identifyInputsAndOutputs, model, 1, &x, 1, &y);
    TRY(Model_relaxComputationFloat32toFloat16, model, false);
    TRY(Model_finish, model);
    return {};
  }
  Failure compile(ANeuralNetworksCompilation* compilation) {
    const uint8_t token[32] = {1, 2, 3};
    TRY(Compilation_setPreference, compilation, 1);
    TRY(Compilation_setPriority, compilation, 100);
    TRY(Compilation_setTimeout, compilation, 1'000'000'000'000);
    TRY(Compilation_setCaching, compilation, cache_.c_str(), token);
    TRY(Compilation_finish, compilation);
    uint32_t value = 0;
    TRY(Compilation_getPreferredMemoryAlignmentForInput, compilation, 0, &value);
    TRY(Compilation_getPreferredMemoryPaddingForOutput, compilation, 0, &value);
    return {};
  }
  Failure run_simply(ANeuralNetworksCompilation* compilation) {
    Undo undo;
    MAKE(Execution, execution, Execution_create, compilation);
    TRY(Execution_setReusable, execution, true);
    TRY(Execution_enableInputAndOutputPadding, execution, false);
    TRY(Execution_setMeasureTiming, execution, true);
    TRY(Execution_setTimeout, execution, 1'000'000'000'000);
    TRY(Execution_setLoopTimeout, execution, 1'000'000'000);
    TRY(Execution_setInput, execution, 0, nullptr, x_.data(), kSize * sizeof(float));
    TRY(Execution_setOutput, execution, 0, nullptr, z_.data(), kSize * sizeof(float));
    TRY(Execution_compute, execution);
    uint32_t rank = 0, dims[1];
    uint64_t ns = 0;
    TRY(Execution_getOutputOperandRank, execution, 0, &rank);
    TRY(Execution_getOutputOperandDimensions, execution, 0, dims);
    TRY(Execution_getDuration, execution, 0, &ns);
    MAKE(Event, event, Execution_startCompute, execution);
    TRY(Event_wait, event);
    return {};
  }
  Failure run_in_burst(ANeuralNetworksCompilation* compilation, const ANeuralNetworksMemory* memory) {
    Undo undo;
    MAKE(MemoryDesc, desc, MemoryDesc_create);
    TRY(MemoryDesc_addInputRole, desc, compilation, 0, 1.0f);
    TRY(MemoryDesc_addOutputRole, desc, compilation, 0, 1.0f);
    TRY(MemoryDesc_finish, desc);
    MAKE(Memory, state, Memory_createFromDesc, desc);
    TRY(Memory_copy, memory, state);
    MAKE(Burst, burst, Burst_create, compilation);
    MAKE(Execution, execution, Execution_create, compilation);
    TRY(Execution_setInputFromMemory, execution, 0, nullptr, state, 0, 0);
    TRY(Execution_setOutput, execution, 0, nullptr, z_.data(), kSize * sizeof(float));
    TRY(Execution_burstCompute, execution, burst);
    return {};
  }
  Failure run_fenced(ANeuralNetworksCompilation* compilation) {
    Undo undo;
    MAKE(Execution, first, Execution_create, compilation);
    MAKE(Execution, second, Execution_create, compilation);
    for (ANeuralNetworksExecution* execution : {first, second}) {
      float* const to = execution == first ? other_.data() : z_.data();
      TRY(Execution_setInput, execution, 0, nullptr, x_.data(), kSize * sizeof(float));
      TRY(Execution_setOutput, execution, 0, nullptr, to, kSize * sizeof(float));
    }
    MAKE(Event, before, Execution_startComputeWithDependencies, first, nullptr, 0, 0);
    Failure failed;
    ANeuralNetworksEvent* event = nullptr;
    if (const int code = ANeuralNetworksExecution_startComputeWithDependencies(second, &before, 1, 0, &event)) {
      failed = {"Execution_startComputeWithDependencies", code};
    }
    if (event) undo.later([event] { ANeuralNetworksEvent_free(event); });
    for (ANeuralNetworksEvent* e : {before, event}) {  // all are waited for before anything is freed
      if (!e) continue;
      const int code = ANeuralNetworksEvent_wait(e);
      if (code && !failed.code) failed = {"Event_wait", code};
    }
    if (failed.code) return failed;
    int fence = -1;
    TRY(Event_getSyncFenceFd, event, &fence);
    close(fence);
    return {};
  }

  const std::string cache_;
  std::vector<float> x_ = numbers(-20), c_ = numbers(3), z_ = numbers(0), other_ = numbers(0);
  float w_[kSize] = {};
  const int fd_ = file();

  static std::vector<float> numbers(float first) {
    std::vector<float> all(kSize);
    for (float& v : all) v = first++;
    return all;
  }
  int file() {
    for (uint32_t i = 0; i < kSize; ++i) w_[i] = static_cast<float>(i % 7);
    const int fd = memfd_create("nnapi", MFD_CLOEXEC);
    EXPECT_EQ(write(fd, w_, sizeof w_), static_cast<ssize_t>(sizeof w_));
    return fd;
  }
};

size_t entries(const char* folder) {
  size_t count = 0;
  for ([[maybe_unused]] const auto& entry : std::filesystem::directory_iterator(folder)) ++count;
  return count;
}
size_t mappings() {
  std::ifstream file("/proc/self/maps");
  size_t count = 0;
  for (std::string line; std::getline(file, line);) ++count;
  return count;
}
size_t heap_bytes() {
  const struct mallinfo2 info = mallinfo2();
  return info.uordblks + info.hblkhd;
}

struct CacheFolder {
  const std::filesystem::path path = pinnace::testing::scratch_folder() / ("nnapi_faults_" + std::to_string(getpid()));
  CacheFolder() { std::filesystem::create_directories(path); }
  ~CacheFolder() { std::filesystem::remove_all(path); }
};

/// Every function that the client calls and that may fail.
constexpr const char* kStages[] = {"Memory_createFromFd",
                                   "Model_create",
                                   "Model_addOperand",
                                   "Model_setOperandValueFromMemory",
                                   "Model_setOperandValue",
                                   "Model_addOperation",
                                   "Model_identifyInputsAndOutputs",
                                   "Model_relaxComputationFloat32toFloat16",
                                   "Model_finish",
                                   "getDevice",
                                   "Model_getSupportedOperationsForDevices",
                                   "Compilation_createForDevices",
                                   "Compilation_setPreference",
                                   "Compilation_setPriority",
                                   "Compilation_setTimeout",
                                   "Compilation_setCaching",
                                   "Compilation_finish",
                                   "Compilation_getPreferredMemoryAlignmentForInput",
                                   "Compilation_getPreferredMemoryPaddingForOutput",
                                   "Execution_create",
                                   "Execution_setReusable",
                                   "Execution_enableInputAndOutputPadding",
                                   "Execution_setMeasureTiming",
                                   "Execution_setTimeout",
                                   "Execution_setLoopTimeout",
                                   "Execution_setInput",
                                   "Execution_setOutput",
                                   "Execution_compute",
                                   "Execution_getOutputOperandRank",
                                   "Execution_getOutputOperandDimensions",
                                   "Execution_getDuration",
                                   "Execution_startCompute",
                                   "Event_wait",
                                   "MemoryDesc_create",
                                   "MemoryDesc_addInputRole",
                                   "MemoryDesc_addOutputRole",
                                   "MemoryDesc_finish",
                                   "Memory_createFromDesc",
                                   "Memory_copy",
                                   "Burst_create",
                                   "Execution_setInputFromMemory",
                                   "Execution_burstCompute",
                                   "Execution_startComputeWithDependencies",
                                   "Event_getSyncFenceFd"};

TEST(NnapiFaults, EachCodeAtEachStageIsSurvived) {
  std::string faults;
  for (const char* stage : kStages) {
    for (int code = 1; code <= 14; ++code) {
      faults += std::string(stage) + "@" + std::to_string(code) + "=" + std::to_string(code) + ";";
    }
  }
  // The computation itself, however it was started.
  for (int code = 1; code <= 14; ++code) {
    faults += "computation@" + std::to_string(code) + "=" + std::to_string(code) + ";";
  }
  Child child({"PINNACE_NNAPI_STRICT=1", "PINNACE_NNAPI_FAULTS=" + faults});
  if (!child.here()) {
    EXPECT_TRUE(child.says("strict: 0 violations")) << child.output;
    return;
  }
  const CacheFolder cache;
  Client client(cache.path);
  std::map<std::string, std::set<int>> seen;
  int attempts = 0;
  for (Failure failure = client.run(); failure.code; failure = client.run(), ++attempts) {
    seen[failure.function].insert(failure.code);
    ASSERT_LT(attempts, 2000) << failure.function << " fails for ever with " << failure.code;
  }
  EXPECT_EQ(client.result(), client.right());
  for (const char* stage : kStages) {
    const std::string name = stage == std::string("getDevice") ? "_getDevice" : stage;
    EXPECT_EQ(seen[name].size(), 14u) << name;
  }
}

/// `rounds` of a client that fails here and there: what it has made and freed leaves nothing.
void stay_level(int rounds) {
  const CacheFolder cache;
  Client client(cache.path);
  const auto round = [&] {
    const Failure failure = client.run();
    EXPECT_TRUE(failure.code || client.result() == client.right());
    return failure.code != 0;
  };
  int failures = 0;
  for (int i = 0; i < 50; ++i) failures += round();  // what is kept for ever is made now
  const size_t files = entries("/proc/self/fd"), maps = mappings(), heap = heap_bytes();
  for (int i = 0; i < rounds; ++i) failures += round();
  EXPECT_EQ(entries("/proc/self/fd"), files);
  EXPECT_LE(mappings(), maps + 8) << "threads keep their stacks";
  EXPECT_TRUE(!pinnace::testing::kMemoryIsCounted || heap_bytes() <= heap + (1u << 18)) << heap_bytes() - heap;
  EXPECT_GT(failures, 0);
}

TEST(NnapiFaults, MemoryAndDescriptorsStayLevel) {
  std::string faults;
  for (int call = 3; call < 100'000; call += 97) {
    faults += "computation@" + std::to_string(call) + "=" + (call % 2 ? "OP_FAILED;" : "DEAD_OBJECT;");
  }
  faults += "Compilation_finish@7=OUT_OF_MEMORY;Model_finish@9=BAD_DATA;Memory_createFromDesc@11=OP_FAILED";
  Child child({"PINNACE_NNAPI_FAULTS=" + faults});
  if (!child.here()) return;
  const char* all = std::getenv("PINNACE_TEST_ALL");
  stay_level(all && *all == '1' ? 10'000 : 300);
}

class NnapiCallFaults : public ::testing::TestWithParam<Fault> {};

/// All calls of the client, of which the library meets each failure once; with a cache that is there or is to be made.
void fail_client(Fault fault, bool again, bool cached) {
  const CacheFolder cache;
  Client client(cache.path);
  Failure failure;
  calls_again = again;
  calls_made_again = 0;
  ASSERT_EQ(client.run().code, 0);
  const auto before = [&] {
    if (cached) return;
    for (const auto& entry : std::filesystem::directory_iterator(cache.path)) std::filesystem::remove(entry);
  };
  const auto call = [&]() -> pinnace::Status {
    failure = client.run();
    if (!failure.code) return {};
    if (failure.code == ANEURALNETWORKS_OUT_OF_MEMORY) return pinnace::Status::no_memory();
    return pinnace::Status(pinnace::Code::kFile, failure.function + " gives " + std::to_string(failure.code));
  };
  const auto after = [&](const pinnace::Status& status) -> std::string {
    if (status.ok() && client.result() != client.right()) return "other numbers";
    for (const auto& entry : std::filesystem::directory_iterator(cache.path)) {
      if (entry.path().extension() != ".pnc") return entry.path().string() + " is left in the cache";
    }
    const Failure now = client.run();
    if (now.code) return now.function + " fails for ever with " + std::to_string(now.code);
    return client.result() == client.right() ? "" : "other numbers when called again";
  };
  fail_everywhere({std::string("NNAPI, all calls") + (cached ? ", cached" : "") + (again ? ", each made again" : ""),
                   before,
                   call,
                   after,
                   [] {},
                   {},
                   "libneuralnetworks"},
                  fault);
  EXPECT_TRUE(!again || calls_made_again > 0) << "no call was made again";
  calls_again = false;
}

TEST_P(NnapiCallFaults, OfEveryCall) {
  if (!pinnace::testing::kFaultsCanBeMade) GTEST_SKIP() << "a sanitizer has the functions that are to fail";
  for (const bool cached : {false, true}) fail_client(GetParam(), false, cached);
}

TEST(NnapiCallsMadeAgain, ACallThatHadNoMemoryWorksAgain) {
  if (!pinnace::testing::kFaultsCanBeMade) GTEST_SKIP() << "a sanitizer has the functions that are to fail";
  fail_client(Fault::kAllocation, true, false);
}

INSTANTIATE_TEST_SUITE_P(All, NnapiCallFaults,
                         ::testing::Values(Fault::kAllocation, Fault::kNoMoreAllocations, Fault::kFile, Fault::kThread),
                         [](const auto& info) {
                           std::string name = pinnace::testing::fault_name(info.param);
                           std::replace(name.begin(), name.end(), ' ', '_');
                           return name;
                         });

}  // namespace
