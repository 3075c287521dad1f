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
#include "cpp/nnapi/nnapi_client.h"
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

/// An application that makes, uses and frees everything it needs for one answer.
class AnyClient {
 public:
  virtual ~AnyClient() = default;
  virtual Failure run() = 0;
  virtual bool is_right() const = 0;  ///< of the last run
};

/// relu(x + w) + c of forty numbers, w from a memory, c longer than what is copied when it is set.
class Client : public AnyClient {
 public:
  explicit Client(std::string cache) : cache_(std::move(cache)) {}

  Failure run() override {
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
  bool is_right() const override { return z_ == right(); }

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

/// The calls that Client leaves out: a loop around models of its own, a convolution of integers with a scale for each
/// channel, what a device says of itself, an output in a device's memory and the fence of another application.
class LoopClient : public AnyClient {
 public:
  Failure run() override {
    Undo undo;
    x_.assign(2, 0.0f);
    q_.assign(2, 0);
    if (const Failure f = ask_the_device(); f.code) return f;
    MAKE(Model, goes_on, Model_create);
    if (const Failure f = build_condition(goes_on); f.code) return f;
    MAKE(Model, body, Model_create);
    if (const Failure f = build_body(body); f.code) return f;
    MAKE(Model, model, Model_create);
    if (const Failure f = build(model, goes_on, body); f.code) return f;
    MAKE(Compilation, compilation, Compilation_create, model);
    TRY(Compilation_finish, compilation);
    uint32_t value = 0;
    TRY(Compilation_getPreferredMemoryAlignmentForOutput, compilation, 0, &value);
    TRY(Compilation_getPreferredMemoryPaddingForInput, compilation, 0, &value);
    return execute(compilation);
  }
  /// Three rounds add 10 each. Channels of the convolution: 1 * 1 + 1 and -1 * 2, of scale 1 around 128.
  bool is_right() const override {
    return x_ == std::vector<float>{31, 32} && q_ == std::vector<uint8_t>{130, 126} && second_ == q_;
  }

 private:
  static constexpr int32_t kBool8 = 9, kPerChannel = 11, kReference = 15, kLess = 58, kWhile = 97;

  static Failure ask_the_device() {
    ANeuralNetworksDevice* device = nullptr;
    const char *name = nullptr, *version = nullptr;
    int32_t type = 0;
    int64_t level = 0;
    bool supported = true;
    TRY(_getDevice, 0, &device);
    TRY(Device_getName, device, &name);
    TRY(Device_getVersion, device, &version);
    TRY(Device_getType, device, &type);
    TRY(Device_getFeatureLevel, device, &level);
    TRY(Device_getExtensionSupport, device, "com.example.extension", &supported);
    TRY(Device_wait, device);
    return {};
  }
  static Failure operand(ANeuralNetworksModel* model, int32_t type, std::vector<uint32_t> dims, float scale = 0,
                         int32_t zero = 0) {
    const ANeuralNetworksOperandType t{type, static_cast<uint32_t>(dims.size()), dims.empty() ? nullptr : dims.data(),
                                       scale, zero};
    TRY(Model_addOperand, model, &t);
    return {};
  }
  static Failure finish(ANeuralNetworksModel* model, std::vector<uint32_t> in, std::vector<uint32_t> out) {
    TRY(Model_identifyInputsAndOutputs, model, static_cast<uint32_t>(in.size()), in.data(),
        static_cast<uint32_t>(out.size()), out.data());
    TRY(Model_finish, model);
    return {};
  }
  static Failure add(ANeuralNetworksModel* model, int32_t op, std::vector<uint32_t> in, std::vector<uint32_t> out) {
    TRY(Model_addOperation, model, op, static_cast<uint32_t>(in.size()), in.data(), static_cast<uint32_t>(out.size()),
        out.data());
    return {};
  }
#define ASK(...) \
  if (const Failure f = __VA_ARGS__; f.code) return f

  /// i < 3 of (i, x).
  Failure build_condition(ANeuralNetworksModel* model) const {
    ASK(operand(model, kTensorInt32, {1}));
    ASK(operand(model, kTensorFloat32, {2}));
    ASK(operand(model, kTensorInt32, {1}));
    ASK(operand(model, kBool8, {1}));
    TRY(Model_setOperandValue, model, 2, &three_, sizeof three_);
    ASK(add(model, kLess, {0, 2}, {3}));
    return finish(model, {0, 1}, {3});
  }
  /// i + 1 and x + 10.
  Failure build_body(ANeuralNetworksModel* model) const {
    for (const int32_t type : {kTensorInt32, kTensorFloat32}) {
      for (const uint32_t size : {type == kTensorInt32 ? 1u : 2u, 1u}) ASK(operand(model, type, {size}));
      ASK(operand(model, type, {type == kTensorInt32 ? 1u : 2u}));
    }
    ASK(operand(model, kInt32, {}));
    TRY(Model_setOperandValue, model, 1, &one_, sizeof one_);
    TRY(Model_setOperandValue, model, 4, &ten_, sizeof ten_);
    TRY(Model_setOperandValue, model, 6, &none_, sizeof none_);
    ASK(add(model, kAdd, {0, 1, 6}, {2}));
    ASK(add(model, kAdd, {3, 4, 6}, {5}));
    return finish(model, {0, 3}, {2, 5});
  }
  Failure build(ANeuralNetworksModel* model, const ANeuralNetworksModel* goes_on,
                const ANeuralNetworksModel* body) const {
    ASK(operand(model, kReference, {}));
    ASK(operand(model, kReference, {}));
    ASK(operand(model, kTensorInt32, {1}));
    ASK(operand(model, kTensorFloat32, {2}));
    ASK(operand(model, kTensorInt32, {1}));
    ASK(operand(model, kTensorFloat32, {2}));
    TRY(Model_setOperandValueFromModel, model, 0, goes_on);
    TRY(Model_setOperandValueFromModel, model, 1, body);
    TRY(Model_setOperandValue, model, 2, &none_, sizeof none_);
    ASK(add(model, kWhile, {0, 1, 2, 3}, {4, 5}));
    ASK(operand(model, kTensorQuant8, {1, 1, 1, 2}, 1, 128));
    ASK(operand(model, kPerChannel, {2, 1, 1, 2}));
    ASK(operand(model, kTensorInt32, {2}));
    for (int i = 0; i < 4; ++i) ASK(operand(model, kInt32, {}));
    ASK(operand(model, kTensorQuant8, {1, 1, 1, 2}, 1, 128));
    const ANeuralNetworksSymmPerChannelQuantParams scales{0, 2, scales_};
    TRY(Model_setOperandSymmPerChannelQuantParams, model, 7, &scales);
    TRY(Model_setOperandValue, model, 7, filter_, sizeof filter_);
    TRY(Model_setOperandValue, model, 8, bias_, sizeof bias_);
    for (int i = 9; i < 12; ++i) TRY(Model_setOperandValue, model, i, &one_, sizeof one_);  // padding, strides
    TRY(Model_setOperandValue, model, 12, &none_, sizeof none_);
    ASK(add(model, kConv2d, {6, 7, 8, 9, 10, 11, 12}, {13}));
    return finish(model, {3, 6}, {5, 13});
  }
  Failure set_rest(ANeuralNetworksExecution* execution) {
    TRY(Execution_setInput, execution, 0, nullptr, first_, sizeof first_);
    TRY(Execution_setInput, execution, 1, nullptr, bytes_, sizeof bytes_);
    TRY(Execution_setOutput, execution, 0, nullptr, x_.data(), x_.size() * sizeof(float));
    return {};
  }
  Failure execute(ANeuralNetworksCompilation* compilation) {
    Undo undo;
    const uint32_t dims[] = {1, 1, 1, 2};
    MAKE(MemoryDesc, desc, MemoryDesc_create);
    TRY(MemoryDesc_addOutputRole, desc, compilation, 1, 1.0f);
    TRY(MemoryDesc_setDimensions, desc, 4, dims);
    TRY(MemoryDesc_finish, desc);
    MAKE(Memory, held, Memory_createFromDesc, desc);
    MAKE(Memory, seen, Memory_createFromFd, 2, PROT_READ | PROT_WRITE, fd_, 0);
    MAKE(Execution, first, Execution_create, compilation);
    ASK(set_rest(first));
    TRY(Execution_setOutputFromMemory, first, 1, nullptr, held, 0, 0);
    ANeuralNetworksEvent* done = nullptr;
    TRY(Execution_startComputeWithDependencies, first, nullptr, 0, 0, &done);
    undo.later([done] { ANeuralNetworksEvent_free(done); });
    int fence = -1;
    if (const int failed = ANeuralNetworksEvent_getSyncFenceFd(done, &fence)) {
      ANeuralNetworksEvent_wait(done);
      return {"Event_getSyncFenceFd", failed};
    }
    undo.later([fence] { close(fence); });
    ANeuralNetworksEvent* arrived = nullptr;
    if (const int failed = ANeuralNetworksEvent_createFromSyncFenceFd(fence, &arrived)) {
      ANeuralNetworksEvent_wait(done);
      return {"Event_createFromSyncFenceFd", failed};
    }
    undo.later([arrived] { ANeuralNetworksEvent_free(arrived); });
    if (const int failed = ANeuralNetworksEvent_wait(done)) return {"Event_wait", failed};
    TRY(Memory_copy, held, seen);
    if (pread(fd_, q_.data(), q_.size(), 0) != 2) return {"pread", -1};
    MAKE(Execution, second, Execution_create, compilation);
    ASK(set_rest(second));
    TRY(Execution_setOutput, second, 1, nullptr, second_.data(), second_.size());
    ANeuralNetworksEvent* last = nullptr;
    TRY(Execution_startComputeWithDependencies, second, &arrived, 1, 0, &last);
    undo.later([last] { ANeuralNetworksEvent_free(last); });
    TRY(Event_wait, last);
    return {};
  }
#undef ASK

  const int32_t none_ = 0, one_ = 1, three_ = 3;
  const float ten_ = 10, first_[2] = {1, 2}, scales_[2] = {0.25f, 0.5f};
  const int8_t filter_[4] = {4, 0, 0, 4};
  const int32_t bias_[2] = {4, 0};
  const uint8_t bytes_[2] = {129, 127};
  std::vector<float> x_;
  std::vector<uint8_t> q_, second_ = {0, 0};
  const int fd_ = memory_file();

  static int memory_file() {
    const int fd = memfd_create("nnapi", MFD_CLOEXEC);
    EXPECT_EQ(ftruncate(fd, 2), 0);
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

/// All calls of a client, of which the library meets each failure once.
void fail_client(AnyClient& client, const std::string& name, Fault fault, bool again,
                 const std::function<void()>& before, const std::function<std::string()>& left_behind,
                 std::vector<Fault> meets) {
  Failure failure;
  calls_again = again;
  calls_made_again = 0;
  failure = client.run();
  ASSERT_EQ(failure.code, 0) << failure.function;
  const auto call = [&]() -> pinnace::Status {
    failure = client.run();
    if (!failure.code) return {};
    if (failure.code == ANEURALNETWORKS_OUT_OF_MEMORY) return pinnace::Status::no_memory();
    return pinnace::Status(pinnace::Code::kFile, failure.function + " gives " + std::to_string(failure.code));
  };
  const auto after = [&](const pinnace::Status& status) -> std::string {
    if (status.ok() && !client.is_right()) return "other numbers";
    if (std::string left = left_behind(); !left.empty()) return left;
    const Failure now = client.run();
    if (now.code) return now.function + " fails for ever with " + std::to_string(now.code);
    return client.is_right() ? "" : "other numbers when called again";
  };
  fail_everywhere({"NNAPI, " + name + (again ? ", each call made again" : ""),
                   before,
                   call,
                   after,
                   [] {},
                   std::move(meets),
                   {},
                   "libneuralnetworks"},
                  fault);
  EXPECT_TRUE(!again || calls_made_again > 0) << "no call was made again";
  calls_again = false;
}

const std::vector<Fault> kAllKinds = {Fault::kAllocation, Fault::kNoMoreAllocations, Fault::kFile, Fault::kThread};

/// With a cache that is there or is to be made.
void fail_sums(Fault fault, bool again, bool cached) {
  const CacheFolder cache;
  Client client(cache.path);
  const auto before = [&] {
    if (cached) return;
    for (const auto& entry : std::filesystem::directory_iterator(cache.path)) std::filesystem::remove(entry);
  };
  const auto left_behind = [&]() -> std::string {
    for (const auto& entry : std::filesystem::directory_iterator(cache.path)) {
      if (entry.path().extension() != ".pnc") return entry.path().string() + " is left in the cache";
    }
    return "";
  };
  fail_client(client, cached ? "sums, cached" : "sums", fault, again, before, left_behind, kAllKinds);
}

void fail_loops(Fault fault, bool again) {
  LoopClient client;
  fail_client(client, "a loop and integers", fault, again, [] {}, [] { return std::string(); }, kAllKinds);
}

TEST_P(NnapiCallFaults, OfEveryCall) {
  if (!pinnace::testing::kFaultsCanBeMade) GTEST_SKIP() << "a sanitizer has the functions that are to fail";
  for (const bool cached : {false, true}) fail_sums(GetParam(), false, cached);
  fail_loops(GetParam(), false);
}

TEST(NnapiCallsMadeAgain, ACallThatHadNoMemoryWorksAgain) {
  if (!pinnace::testing::kFaultsCanBeMade) GTEST_SKIP() << "a sanitizer has the functions that are to fail";
  fail_sums(Fault::kAllocation, true, false);
  fail_loops(Fault::kAllocation, true);
}

INSTANTIATE_TEST_SUITE_P(All, NnapiCallFaults,
                         ::testing::Values(Fault::kAllocation, Fault::kNoMoreAllocations, Fault::kFile, Fault::kThread),
                         pinnace::testing::kFaultTestName);

}  // namespace
