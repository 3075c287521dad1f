// The test bed of libneuralnetworks.so: what each environment variable does to a client. docs/nnapi.md lists them.
#include <sys/mman.h>

#include <atomic>
#include <chrono>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <thread>

#include "cpp/child_process.h"
#include "cpp/nnapi/nnapi_client.h"
#include "cpp/scratch_folder.h"

namespace {

using namespace nnapi_client;
constexpr int kOk = 0, kBadData = 4, kFailed = 5, kBadState = 6, kUnavailable = 9, kDead = 14;

/// A folder of the parent's that goes away with the test.
struct Folder {
  const std::filesystem::path path =
      pinnace::testing::scratch_folder() / ("nnapi_test_bed_" + std::to_string(getpid()));
  Folder() { std::filesystem::create_directories(path); }
  ~Folder() { std::filesystem::remove_all(path); }
};

std::string read_file(const std::string& path) {
  std::ifstream file(path);
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

/// An AddModel's execution with everything bound.
struct Ready {
  AddModel model;
  Compiled compiled{model};
  Execution run{compiled};
  std::vector<float> x = {1, 2, 3, 4}, y = {1, 1}, z = std::vector<float>(4);
  ANeuralNetworksExecution* execution = run.execution;
  explicit Ready(bool reusable = false) {
    if (reusable) {
      EXPECT_EQ(ANeuralNetworksExecution_setReusable(execution, true), kOk);
    }
    EXPECT_EQ(run.input(0, x) + run.input(1, y) + run.output(0, z), kOk);
  }
  int compute() const { return ANeuralNetworksExecution_compute(execution); }
};

int start_and_wait(ANeuralNetworksExecution* execution) {
  ANeuralNetworksEvent* event = nullptr;
  EXPECT_EQ(ANeuralNetworksExecution_startCompute(execution, &event), kOk);
  const int code = ANeuralNetworksEvent_wait(event);
  ANeuralNetworksEvent_free(event);
  return code;
}

// -------------------------------------------------------------------------------------------------------- levels

TEST(NnapiTestBed, PretendsALowerLevel) {
  Child child({"PINNACE_NNAPI_LEVEL=28"});
  if (!child.here()) return;
  EXPECT_EQ(ANeuralNetworks_getRuntimeFeatureLevel(), 28);
  int64_t level = 0;
  EXPECT_EQ(ANeuralNetworksDevice_getFeatureLevel(device(), &level), kOk);
  EXPECT_EQ(level, 28);
  Builder b;
  const uint32_t two = 2;
  const ANeuralNetworksOperandType half{8, 1, &two, 0, 0}, known{kTensorFloat32, 1, &two, 0, 0};
  EXPECT_EQ(ANeuralNetworksModel_addOperand(b.model, &half), kBadData) << "float16 is of feature level 3";
  EXPECT_EQ(ANeuralNetworksModel_addOperand(b.model, &known), kOk);
  EXPECT_EQ(ANeuralNetworksModel_addOperand(b.model, &known), kOk);
  const uint32_t in = 0, out = 1;
  EXPECT_EQ(ANeuralNetworksModel_addOperation(b.model, 38, 1, &in, 1, &out), kBadData) << "ABS is of feature level 3";
  EXPECT_EQ(ANeuralNetworksModel_addOperation(b.model, 28, 1, &in, 1, &out), kOk);
  Ready ready;
  EXPECT_EQ(ready.compute(), kFailed) << "a function of feature level 3";
  EXPECT_EQ(start_and_wait(ready.execution), kOk);
  EXPECT_EQ(ready.z[3], 5);
}

TEST(NnapiTestBed, EveryLevelHasItsCode) {
  Child child({"PINNACE_NNAPI_LEVEL=fl6"});
  if (!child.here()) return;
  EXPECT_EQ(ANeuralNetworks_getRuntimeFeatureLevel(), 1000006);
}

TEST(NnapiTestBed, WrongValuesRefuseEveryCall) {
  Child child({"PINNACE_NNAPI_LEVEL=26", "PINNACE_NNAPI_UNSUPPORTED=AD", "PINNACE_NNAPI_TRACE=file",
               "PINNACE_NNAPI_DUMP=folder", "PINNACE_NNAPI_FAULTS=Model_free=BAD_DATA", "PINNACE_NNAPI_STRICT=yes"});
  if (child.here()) {
    ANeuralNetworksModel* model = nullptr;
    EXPECT_EQ(ANeuralNetworksModel_create(&model), kUnavailable);
    EXPECT_EQ(model, nullptr);
    uint32_t count = 0;
    EXPECT_EQ(ANeuralNetworks_getDeviceCount(&count), kUnavailable);
    return;
  }
  EXPECT_TRUE(child.says("pinnace-nnapi: PINNACE_NNAPI_LEVEL=26: must be 27 to 31, ")) << child.output;
  for (const char* name :
       {"UNSUPPORTED=AD:", "TRACE=file:", "DUMP=folder:", "FAULTS=Model_free=BAD_DATA:", "STRICT="}) {
    EXPECT_TRUE(child.says(std::string("PINNACE_NNAPI_") + name)) << name;
  }
}

TEST(NnapiTestBed, FaultsAreReadStrictly) {
  for (const char* wrong : {"Model_make=BAD_DATA", "Model_create", "Model_create=", "Model_create=15", "Model_create=0",
                            "Model_create@0=BAD_DATA", "Model_create@3-2=BAD_DATA", "Model_create@x=BAD_DATA",
                            "Model_create=delay:1", "Model_create=delay:9999s", "getDefaultLoopTimeout=dead"}) {
    Child child({std::string("PINNACE_NNAPI_FAULTS=") + wrong});
    if (child.here()) {
      ANeuralNetworksModel* model = nullptr;
      EXPECT_EQ(ANeuralNetworksModel_create(&model), kUnavailable);
      return;
    }
    EXPECT_TRUE(child.says("FUNCTION[@call]")) << wrong;
  }
}

// ---------------------------------------------------------------------------------------------------- operations

TEST(NnapiTestBed, PretendsThatOperationsAreMissing) {
  Child child({"PINNACE_NNAPI_UNSUPPORTED=ALL,-TANH"});
  if (!child.here()) return;
  Builder b;
  const uint32_t x = b.operand(kTensorFloat32, {2}), t = b.operand(kTensorFloat32, {2});
  const uint32_t act = b.scalar(0), y = b.operand(kTensorFloat32, {2});
  b.add(28, {x}, {t});
  b.add(kAdd, {t, t, act}, {y});
  b.finish({x}, {y});
  const ANeuralNetworksDevice* list[1] = {device()};
  bool supported[2] = {};
  ASSERT_EQ(ANeuralNetworksModel_getSupportedOperationsForDevices(b.model, list, 1, supported), kOk);
  EXPECT_TRUE(supported[0]);
  EXPECT_FALSE(supported[1]);
  ANeuralNetworksCompilation* compilation = nullptr;
  ASSERT_EQ(ANeuralNetworksCompilation_createForDevices(b.model, list, 1, &compilation), kOk);
  EXPECT_EQ(ANeuralNetworksCompilation_finish(compilation), kBadData);
  ANeuralNetworksCompilation_free(compilation);
  Compiled elsewhere(b);  // where no device was chosen another one stands in
  Execution run(elsewhere);
  std::vector<float> in = {0, 0}, out = {7, 7};
  ASSERT_EQ(run.input(0, in) + run.output(0, out), kOk);
  EXPECT_EQ(ANeuralNetworksExecution_compute(run.execution), kOk);
  EXPECT_EQ(out[1], 0);
}

// --------------------------------------------------------------------------------------------------------- trace

TEST(NnapiTestBed, TracesCalls) {
  const Folder folder;
  const std::string path = folder.path / "trace.txt";
  Child child({"PINNACE_NNAPI_TRACE=" + path, "PINNACE_NNAPI_FAULTS=Event_wait@1=DEAD_OBJECT"});
  if (child.here()) {
    Ready ready;
    EXPECT_EQ(start_and_wait(ready.execution), kDead);
    return;
  }
  const std::string text = read_file(path);
  for (const char* line :
       {" Model_create(&) = NO_ERROR -> model1 ", " Model_addOperand(model1, TENSOR_FLOAT32[2,2]) = NO_ERROR ",
        " Model_addOperation(model1, ADD, 3, [0,1,2], 1, [3]) = NO_ERROR ",
        " Compilation_create(model1, &) = NO_ERROR -> compilation1 ", "Execution_setInput(execution1, 0, null, 0x",
        " Execution_startCompute(execution1, &) = NO_ERROR -> event1 ", " Event_wait(event1) = DEAD_OBJECT (injected) ",
        " Event_free(event1) ", " Execution_free(execution1) "}) {
    EXPECT_NE(text.find(line), std::string::npos) << line << "\n" << text;
  }
}

// ---------------------------------------------------------------------------------------------------------- dump

TEST(NnapiTestBed, DumpsModelsWithTheValuesOfTheFirstComputation) {
  const Folder folder;
  const std::string models = folder.path / "models";
  Child child({"PINNACE_NNAPI_DUMP=" + models});
  if (child.here()) {
    Builder open;  // an input of dynamic shape, which the computation gives
    const uint32_t x = open.operand(kTensorFloat32, {0}), y = open.operand(kTensorFloat32, {0});
    open.add(28, {x}, {y});
    open.finish({x}, {y});
    Compiled c(open);
    Execution run(c);
    const uint32_t two = 2;
    const ANeuralNetworksOperandType type{kTensorFloat32, 1, &two, 0, 0};
    const float in[2] = {0, INFINITY};
    float out[2];
    ASSERT_EQ(ANeuralNetworksExecution_setInput(run.execution, 0, &type, in, sizeof in), kOk);
    ASSERT_EQ(ANeuralNetworksExecution_setOutput(run.execution, 0, nullptr, out, sizeof out), kOk);
    ASSERT_EQ(ANeuralNetworksExecution_compute(run.execution), kOk);
    AddModel never_computed;
    return;
  }
  std::string all;
  for (const auto& file : std::filesystem::directory_iterator(models)) all += read_file(file.path());
  for (const char* part :
       {R"("format": "nnapi-vectors-1", "spec": "model1_)", R"([0, "inf"])", "[0, 1]", R"({"op": "TANH", "code": 28,)",
        R"("type": "TENSOR_FLOAT32", "code": 3, "dims": [2], "life": "output", "buf": 1})", R"("spec": "model2_)",
        R"("dims": [2,2], "life": "output", "buf": 3, "ignored": true})", R"("min_level": 27, "relaxed": false)"}) {
    EXPECT_NE(all.find(part), std::string::npos) << part << "\n" << all;
  }
}

// -------------------------------------------------------------------------------------------------------- faults

TEST(NnapiTestBed, InjectsCodesAtChosenCalls) {
  Child child(
      {"PINNACE_NNAPI_FAULTS=Model_create@2=OUT_OF_MEMORY;Compilation_finish@2-3=10;Burst_create@2+=OP_FAILED"});
  if (!child.here()) return;
  ANeuralNetworksModel *first = nullptr, *second = first;
  EXPECT_EQ(ANeuralNetworksModel_create(&first), kOk);
  EXPECT_EQ(ANeuralNetworksModel_create(&second), 1);
  EXPECT_EQ(second, nullptr);
  EXPECT_EQ(ANeuralNetworksModel_create(&second), kOk);
  AddModel model;
  Compiled compiled(model);
  ANeuralNetworksCompilation* compilation = nullptr;
  ASSERT_EQ(ANeuralNetworksCompilation_create(model.model, &compilation), kOk);
  EXPECT_EQ(ANeuralNetworksCompilation_finish(compilation), 10);
  EXPECT_EQ(ANeuralNetworksCompilation_finish(compilation), 10);
  EXPECT_EQ(ANeuralNetworksCompilation_finish(compilation), kOk) << "what failed by injection changed nothing";
  ANeuralNetworksBurst *burst = nullptr, *none = nullptr;
  EXPECT_EQ(ANeuralNetworksBurst_create(compilation, &burst), kOk);
  for (int i = 0; i < 3; ++i) EXPECT_EQ(ANeuralNetworksBurst_create(compilation, &none), kFailed);
  ANeuralNetworksBurst_free(burst);
  ANeuralNetworksCompilation_free(compilation);
  ANeuralNetworksModel_free(first);
  ANeuralNetworksModel_free(second);
}

TEST(NnapiTestBed, FailsComputationsHoweverTheyAreStarted) {
  Child child({"PINNACE_NNAPI_FAULTS=computation@2-3=RESOURCE_EXHAUSTED_TRANSIENT"});
  if (!child.here()) return;
  Ready ready(true);
  EXPECT_EQ(ready.compute(), kOk);
  EXPECT_EQ(ready.compute(), 12);
  uint32_t rank = 0;
  EXPECT_EQ(ANeuralNetworksExecution_getOutputOperandRank(ready.execution, 0, &rank), kBadState);
  EXPECT_EQ(start_and_wait(ready.execution), 12);
  EXPECT_EQ(ready.compute(), kOk);
}

TEST(NnapiTestBed, ADeadCompilationStaysDead) {
  Child child({"PINNACE_NNAPI_FAULTS=Execution_compute@2=dead"});
  if (!child.here()) return;
  Ready ready(true), other;
  EXPECT_EQ(ready.compute(), kOk);
  EXPECT_EQ(ready.compute(), kDead);
  EXPECT_EQ(ready.compute(), kDead);
  ANeuralNetworksExecution* next = nullptr;
  EXPECT_EQ(ANeuralNetworksExecution_create(ready.compiled.compilation, &next), kDead);
  EXPECT_EQ(other.compute(), kOk) << "of another compilation";
  EXPECT_EQ(ANeuralNetworksDevice_wait(device()), kOk);
  Ready again;
  EXPECT_EQ(again.compute(), kOk);
}

TEST(NnapiTestBed, DelaysCalls) {
  Child child({"PINNACE_NNAPI_FAULTS=Execution_compute@2=delay:30ms+OP_FAILED"});
  if (!child.here()) return;
  Ready ready(true);
  EXPECT_EQ(ready.compute(), kOk);
  const auto begin = std::chrono::steady_clock::now();
  EXPECT_EQ(ready.compute(), kFailed);
  EXPECT_GE(std::chrono::steady_clock::now() - begin, std::chrono::milliseconds(30));
}

// -------------------------------------------------------------------------------------------------------- strict

/// What strict mode says of `body`, which the child runs.
#define STRICT(body, ...)                                                                                   \
  Child child({"PINNACE_NNAPI_STRICT=1"});                                                                  \
  if (child.here()) {                                                                                       \
    body;                                                                                                   \
    return;                                                                                                 \
  }                                                                                                         \
  for (const char* line : {__VA_ARGS__}) {                                                                  \
    EXPECT_TRUE(child.says(std::string("pinnace-nnapi: strict: ") + line)) << line << "\n" << child.output; \
  }

void correct_client() {
  Ready ready(true);
  EXPECT_EQ(ready.compute(), kOk);
  EXPECT_EQ(start_and_wait(ready.execution), kOk);
  ANeuralNetworksBurst* burst = nullptr;
  EXPECT_EQ(ANeuralNetworksBurst_create(ready.compiled.compilation, &burst), kOk);
  EXPECT_EQ(ANeuralNetworksExecution_burstCompute(ready.execution, burst), kOk);
  ANeuralNetworksBurst_free(burst);
}

TEST(NnapiTestBedStrict, HasNothingToSayOfACorrectClient) {
  STRICT(correct_client(), "0 violations\n");
}

void free_a_model_too_early() {
  auto* model = new AddModel;
  Compiled compiled(*model);
  delete model;
}
TEST(NnapiTestBedStrict, ObjectsLiveAsLongAsWhatNeedsThem) {
  STRICT(free_a_model_too_early(), "freed-too-early: Model_free(model1): compilation1 needs it\n", "1 violations\n");
}

void free_a_memory_that_is_bound() {
  AddModel model;
  Compiled compiled(model);
  Execution run(compiled);
  const int fd = memfd_create("nnapi", MFD_CLOEXEC);
  ASSERT_EQ(ftruncate(fd, 16), 0);
  ANeuralNetworksMemory* memory = nullptr;
  ASSERT_EQ(ANeuralNetworksMemory_createFromFd(16, PROT_READ, fd, 0, &memory), kOk);
  close(fd);
  ASSERT_EQ(ANeuralNetworksExecution_setInputFromMemory(run.execution, 0, nullptr, memory, 0, 16), kOk);
  ANeuralNetworksMemory_free(memory);
}
TEST(NnapiTestBedStrict, MemoriesLiveUntilTheyAreNoLongerRead) {
  STRICT(free_a_memory_that_is_bound(), "freed-too-early: Memory_free(memory1): execution1 needs it\n");
}

void use_after_free() {
  ANeuralNetworksModel* model = nullptr;
  ASSERT_EQ(ANeuralNetworksModel_create(&model), kOk);
  ANeuralNetworksModel_free(model);
  EXPECT_EQ(ANeuralNetworksModel_finish(model), kBadData) << "not looked into";
  ANeuralNetworksModel_free(model);
}
TEST(NnapiTestBedStrict, FreedObjectsAreNotUsed) {
  STRICT(use_after_free(), "not-alive: Model_finish: 0x", "not-alive: Model_free: 0x");
}

void free_an_event_without_waiting() {
  Ready ready;
  ANeuralNetworksEvent* event = nullptr;
  ASSERT_EQ(ANeuralNetworksExecution_startCompute(ready.execution, &event), kOk);
  ANeuralNetworksEvent_free(event);
}
TEST(NnapiTestBedStrict, EventsAreWaitedFor) {
  STRICT(free_an_event_without_waiting(), "not-waited: Event_free(event1): Event_wait did not return before\n");
}

void free_what_computes() {
  Ready ready;
  auto* run = new Execution(ready.compiled);
  ASSERT_EQ(run->input(0, ready.x) + run->input(1, ready.y) + run->output(0, ready.z), kOk);
  ANeuralNetworksEvent* event = nullptr;
  ASSERT_EQ(ANeuralNetworksExecution_startCompute(run->execution, &event), kOk);
  uint32_t rank = 0;  // until then the library would read the execution
  while (ANeuralNetworksExecution_getOutputOperandRank(run->execution, 0, &rank) != kOk) std::this_thread::yield();
  delete run;
  EXPECT_EQ(ANeuralNetworksEvent_wait(event), kOk);
  ANeuralNetworksEvent_free(event);
}
TEST(NnapiTestBedStrict, WhatComputesIsNotFreed) {
  STRICT(free_what_computes(), "not-waited: Execution_free(execution2): its computation was not waited for\n");
}

void bind_twice() {
  Ready ready;
  EXPECT_EQ(ready.run.input(0, ready.x), kBadState);
}
TEST(NnapiTestBedStrict, NothingIsBoundTwice) {
  STRICT(bind_twice(), "bound-twice: Execution_setInput: input 0 of execution1 is bound already\n", "1 violations\n");
}

void bind_another_type() {
  Builder b;
  const uint32_t x = b.operand(kTensorQuant8, {2}, 0.5f), y = b.operand(kTensorQuant8, {2}, 0.5f);
  b.add(19, {x}, {y});  // RELU
  b.finish({x}, {y});
  Compiled compiled(b);
  Execution run(compiled);
  std::vector<uint8_t> in(2), out(2);
  const uint32_t dims[1] = {2};
  const ANeuralNetworksOperandType same{kTensorQuant8, 1, dims, 0.5f, 0}, other{kTensorQuant8, 1, dims, 0.25f, 0};
  EXPECT_EQ(ANeuralNetworksExecution_setInput(run.execution, 0, &same, in.data(), 2), kOk);
  EXPECT_EQ(ANeuralNetworksExecution_setOutput(run.execution, 0, &other, out.data(), 2), kOk);
}
TEST(NnapiTestBedStrict, TypesBesideBindingsAreThoseOfTheModel) {
  STRICT(bind_another_type(),
         "other-type: Execution_setOutput: output 0 of execution1 has another type, scale or zero point in the model\n",
         "1 violations\n");
}

void overlap_output_and_input() {
  AddModel model;
  Compiled compiled(model);
  Execution run(compiled);
  std::vector<float> x(4), y(2);
  ASSERT_EQ(run.input(0, x) + run.input(1, y) + run.output(0, x), kOk);
  ANeuralNetworksExecution_compute(run.execution);
}
TEST(NnapiTestBedStrict, OutputsLieByThemselves) {
  STRICT(overlap_output_and_input(), "overlap: output 0 of execution1 overlaps input 0\n");
}

void change_a_constant() {
  Builder b;
  const uint32_t x = b.operand(kTensorFloat32, {64}), act = b.scalar(0);
  const uint32_t w = b.constant<float>(kTensorFloat32, {64}, std::vector<float>(64)),
                 y = b.operand(kTensorFloat32, {64});
  b.add(kAdd, {x, w, act}, {y});
  b.finish({x}, {y});
  b.kept[0][3] = std::byte{1};
  Compiled compiled(b);
}
TEST(NnapiTestBedStrict, ConstantsStayAsTheyAre) {
  STRICT(change_a_constant(),
         "constant-changed: Compilation_finish: operand 2 of model1 has another value than when it was set\n");
}

void leave_things() {
  ANeuralNetworksModel* model = nullptr;
  ANeuralNetworksMemoryDesc* desc = nullptr;
  EXPECT_EQ(ANeuralNetworksModel_create(&model) + ANeuralNetworksMemoryDesc_create(&desc), kOk);
  static std::vector<const void*> kept;  // no leak to a sanitizer
  kept = {model, desc};
}
TEST(NnapiTestBedStrict, EverythingIsFreed) {
  STRICT(leave_things(), "never-freed: ", "1 violations\n");
  EXPECT_TRUE(child.says("model1") && child.says("descriptor1")) << child.output;
}

void call_wrongly() {
  Builder b;
  const ANeuralNetworksOperandType type{kTensorFloat32, 1, nullptr, 0, 0};
  EXPECT_EQ(ANeuralNetworksModel_addOperand(b.model, &type), kBadData);
}
TEST(NnapiTestBedStrict, RefusedCallsAreMistakes) {
  STRICT(call_wrongly(), "refused: Model_addOperand(model1) gave BAD_DATA\n");
}

void ask_for_a_hardware_buffer() {
  int none = 0;
  ANeuralNetworksMemory* memory = nullptr;
  EXPECT_EQ(ANeuralNetworksMemory_createFromAHardwareBuffer(reinterpret_cast<const AHardwareBuffer*>(&none), &memory),
            kBadData);
}
TEST(NnapiTestBedStrict, HardwareBuffersAreAndroids) {
  STRICT(ask_for_a_hardware_buffer(),
         "refused: Memory_createFromAHardwareBuffer gave BAD_DATA: there are no hardware buffers but on Android\n");
}

void change_from_two_threads() {
  Builder b;
  std::atomic<bool> done = false;
  std::thread slow([&] {  // its first call, which is given a delay
    EXPECT_EQ(ANeuralNetworksModel_relaxComputationFloat32toFloat16(b.model, true), kOk);
    done = true;
  });
  while (!done) {
    ANeuralNetworksModel_setOperandValue(b.model, 0, nullptr, 0);
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  slow.join();
}
TEST(NnapiTestBedStrict, OneThreadAtATimeChangesAnObject) {
  Child child({"PINNACE_NNAPI_STRICT=1", "PINNACE_NNAPI_FAULTS=Model_relaxComputationFloat32toFloat16=delay:500ms"});
  if (child.here()) return change_from_two_threads();
  EXPECT_TRUE(child.says("strict: two-threads: Model_setOperandValue: another thread is changing model1\n"))
      << child.output;
}

}  // namespace
