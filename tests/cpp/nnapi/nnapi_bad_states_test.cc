// Wrong calls of libneuralnetworks.so, continued: NULL everywhere, objects that failed, calls at the wrong time.
#include <sys/mman.h>
#include <unistd.h>

#include <chrono>
#include <memory>
#include <string>
#include <thread>

#include "cpp/child_process.h"
#include "cpp/nnapi/nnapi_client.h"

namespace {

using namespace nnapi_client;
constexpr int kOk = 0, kNull = 3, kBadData = 4, kBadState = 6;

/// A compilation whose finish failed: no device takes its operation.
struct FailedCompilation {
  Builder b;
  ANeuralNetworksCompilation* compilation = nullptr;
  FailedCompilation() {
    const uint32_t x = b.operand(kTensorFloat32, {2}), y = b.operand(kTensorFloat32, {2});
    b.add(10000, {x}, {y});
    b.finish({x}, {y});
    EXPECT_EQ(ANeuralNetworksCompilation_create(b.model, &compilation), kOk);
    EXPECT_EQ(ANeuralNetworksCompilation_finish(compilation), kBadData);
  }
  ~FailedCompilation() { ANeuralNetworksCompilation_free(compilation); }
};

struct Ready {
  AddModel model;
  Compiled compiled{model};
  Execution run{compiled};
  std::vector<float> x = {1, 2, 3, 4}, y = {1, 1}, z = std::vector<float>(4);
  ANeuralNetworksExecution* execution = run.execution;
  Ready() { EXPECT_EQ(run.input(0, x) + run.input(1, y) + run.output(0, z), kOk); }
};

// ----------------------------------------------------------------------------------------------------------- NULL

/// Calls a function with nothing but zeros and null pointers.
template <class... P>
int with_nothing(int (*function)(P...)) {
  return function(P{}...);
}
template <class R, class... P>
int with_nothing(R (*function)(P...)) {
  function(P{}...);  // frees nothing, or asks for a number
  return kNull;
}

TEST(NnapiBadStates, EveryFunctionSurvivesNull) {
  int functions = 0;
#define FUNCTION(name, ...)                                       \
  EXPECT_EQ(with_nothing(ANeuralNetworks##name), kNull) << #name; \
  ++functions;
#define RUNTIME_FUNCTION(name, ...)                                \
  EXPECT_EQ(with_nothing(ANeuralNetworks_##name), kNull) << #name; \
  ++functions;
#include "nnapi_host/functions.inc"
#undef RUNTIME_FUNCTION
#undef FUNCTION
  EXPECT_EQ(functions, 75);
}

TEST(NnapiBadStates, PlacesForResultsMustBeThere) {
  Ready r;
  const ANeuralNetworksDevice* d = device();
  ANeuralNetworksMemoryDesc* desc = nullptr;
  ANeuralNetworksEvent* event = nullptr;
  ASSERT_EQ(ANeuralNetworksMemoryDesc_create(&desc), kOk);
  ASSERT_EQ(ANeuralNetworksMemoryDesc_addInputRole(desc, r.compiled.compilation, 0, 1), kOk);
  ASSERT_EQ(ANeuralNetworksMemoryDesc_finish(desc), kOk);
  ASSERT_EQ(ANeuralNetworksExecution_startCompute(r.execution, &event), kOk);
  ASSERT_EQ(ANeuralNetworksEvent_wait(event), kOk);
  EXPECT_EQ(ANeuralNetworks_getDevice(0, nullptr), kNull);
  EXPECT_EQ(ANeuralNetworksDevice_getType(d, nullptr), kNull);
  EXPECT_EQ(ANeuralNetworksDevice_getVersion(d, nullptr), kNull);
  EXPECT_EQ(ANeuralNetworksDevice_getFeatureLevel(d, nullptr), kNull);
  EXPECT_EQ(ANeuralNetworksModel_getSupportedOperationsForDevices(r.model.model, &d, 1, nullptr), kNull);
  EXPECT_EQ(ANeuralNetworksCompilation_createForDevices(r.model.model, &d, 1, nullptr), kNull);
  EXPECT_EQ(ANeuralNetworksMemory_createFromDesc(desc, nullptr), kNull);
  EXPECT_EQ(ANeuralNetworksExecution_getOutputOperandRank(r.execution, 0, nullptr), kNull);
  EXPECT_EQ(ANeuralNetworksExecution_getOutputOperandDimensions(r.execution, 0, nullptr), kNull);
  EXPECT_EQ(ANeuralNetworksExecution_getDuration(r.execution, 0, nullptr), kNull);
  const ANeuralNetworksCompilation* c = r.compiled.compilation;
  EXPECT_EQ(ANeuralNetworksCompilation_getPreferredMemoryAlignmentForInput(c, 0, nullptr), kNull);
  EXPECT_EQ(ANeuralNetworksCompilation_getPreferredMemoryPaddingForInput(c, 0, nullptr), kNull);
  EXPECT_EQ(ANeuralNetworksCompilation_getPreferredMemoryAlignmentForOutput(c, 0, nullptr), kNull);
  EXPECT_EQ(ANeuralNetworksCompilation_getPreferredMemoryPaddingForOutput(c, 0, nullptr), kNull);
  ANeuralNetworksEvent_free(event);
  ANeuralNetworksMemoryDesc_free(desc);
}

// --------------------------------------------------------------------------------------------- objects that failed

TEST(NnapiBadStates, ModelsThatFailed) {
  Builder failed, outer;
  EXPECT_EQ(ANeuralNetworksModel_finish(failed.model), kBadData);
  outer.operand(15, {});
  EXPECT_EQ(ANeuralNetworksModel_setOperandValueFromModel(outer.model, 0, failed.model), kBadState);
  ANeuralNetworksCompilation* c = nullptr;
  EXPECT_EQ(ANeuralNetworksCompilation_create(failed.model, &c), kBadState);
  EXPECT_EQ(c, nullptr);
}

TEST(NnapiBadStates, FinishedModelsTakeNoValues) {
  AddModel done, value;
  const int fd = memfd_create("nnapi", MFD_CLOEXEC);
  ASSERT_EQ(ftruncate(fd, 16), 0);
  ANeuralNetworksMemory* memory = nullptr;
  ASSERT_EQ(ANeuralNetworksMemory_createFromFd(16, PROT_READ, fd, 0, &memory), kOk);
  close(fd);
  const float scale = 1;
  const ANeuralNetworksSymmPerChannelQuantParams q{0, 1, &scale};
  EXPECT_EQ(ANeuralNetworksModel_setOperandValueFromMemory(done.model, 0, memory, 0, 16), kBadState);
  EXPECT_EQ(ANeuralNetworksModel_setOperandValueFromModel(done.model, 0, value.model), kBadState);
  EXPECT_EQ(ANeuralNetworksModel_setOperandSymmPerChannelQuantParams(done.model, 0, &q), kBadState);
  ANeuralNetworksMemory_free(memory);
}

TEST(NnapiBadStates, CompilationsThatFailed) {
  FailedCompilation f;
  ANeuralNetworksCompilation* c = f.compilation;
  ANeuralNetworksExecution* e = nullptr;
  ANeuralNetworksBurst* burst = nullptr;
  ANeuralNetworksMemoryDesc* desc = nullptr;
  uint32_t value = 0;
  EXPECT_EQ(ANeuralNetworksCompilation_finish(c), kBadState);
  EXPECT_EQ(ANeuralNetworksExecution_create(c, &e), kBadState);
  EXPECT_EQ(ANeuralNetworksBurst_create(c, &burst), kBadState);
  EXPECT_EQ(ANeuralNetworksCompilation_getPreferredMemoryAlignmentForInput(c, 0, &value), kBadState);
  EXPECT_EQ(ANeuralNetworksCompilation_getPreferredMemoryPaddingForInput(c, 0, &value), kBadState);
  EXPECT_EQ(ANeuralNetworksCompilation_getPreferredMemoryAlignmentForOutput(c, 0, &value), kBadState);
  EXPECT_EQ(ANeuralNetworksCompilation_getPreferredMemoryPaddingForOutput(c, 0, &value), kBadState);
  ASSERT_EQ(ANeuralNetworksMemoryDesc_create(&desc), kOk);
  EXPECT_EQ(ANeuralNetworksMemoryDesc_addInputRole(desc, c, 0, 1), kBadData);
  EXPECT_EQ(ANeuralNetworksMemoryDesc_addOutputRole(desc, c, 0, 1), kBadData);
  ANeuralNetworksMemoryDesc_free(desc);
}

TEST(NnapiBadStates, ExecutionsThatFailedHaveNoShapesAndNoDuration) {
  Child child({"PINNACE_NNAPI_FAULTS=computation=OP_FAILED"});
  if (!child.here()) return;
  AddModel model;
  ANeuralNetworksDevice* d = const_cast<ANeuralNetworksDevice*>(device());
  ANeuralNetworksCompilation* c = nullptr;
  ANeuralNetworksExecution* e = nullptr;
  ASSERT_EQ(ANeuralNetworksCompilation_createForDevices(model.model, &d, 1, &c), kOk);
  ASSERT_EQ(ANeuralNetworksCompilation_finish(c) + ANeuralNetworksExecution_create(c, &e), kOk);
  float x[4] = {}, y[2] = {}, z[4];
  ASSERT_EQ(ANeuralNetworksExecution_setMeasureTiming(e, true), kOk);
  ASSERT_EQ(ANeuralNetworksExecution_setInput(e, 0, nullptr, x, sizeof x), kOk);
  ASSERT_EQ(ANeuralNetworksExecution_setInput(e, 1, nullptr, y, sizeof y), kOk);
  ASSERT_EQ(ANeuralNetworksExecution_setOutput(e, 0, nullptr, z, sizeof z), kOk);
  EXPECT_EQ(ANeuralNetworksExecution_compute(e), 5);
  uint32_t rank = 0, dims[2];
  uint64_t ns = 0;
  EXPECT_EQ(ANeuralNetworksExecution_getOutputOperandRank(e, 0, &rank), kBadState);
  EXPECT_EQ(ANeuralNetworksExecution_getOutputOperandDimensions(e, 0, dims), kBadState);
  EXPECT_EQ(ANeuralNetworksExecution_getDuration(e, 0, &ns), kBadState);
  EXPECT_EQ(ns, UINT64_MAX);
  ANeuralNetworksExecution_free(e);
  ANeuralNetworksCompilation_free(c);
}

// ---------------------------------------------------------------------------------------------- at the wrong time

TEST(NnapiBadStates, OutputsAreBoundOnceAndOfTheirType) {
  AddModel b;
  Compiled c(b);
  Execution run(c);
  std::vector<float> z(6);
  const uint32_t dims[2] = {2, 2}, other[2] = {2, 3}, open[2] = {0, 2};
  const auto typed = [&](ANeuralNetworksOperandType type, size_t length) {
    return ANeuralNetworksExecution_setOutput(run.execution, 0, &type, z.data(), length);
  };
  EXPECT_EQ(typed({kTensorFloat32, 2, nullptr, 0, 0}, 16), kBadData);
  EXPECT_EQ(typed({kTensorFloat32, 0, dims, 0, 0}, 16), kBadData);
  EXPECT_EQ(typed({kTensorFloat32, 0, nullptr, 0, 0}, 16), kBadData) << "the operand knows its rank";
  EXPECT_EQ(typed({kTensorFloat32, 2, open, 0, 0}, 16), kBadData) << "the operand knows both sizes";
  EXPECT_EQ(typed({kTensorFloat32, 2, dims, 0.5f, 0}, 16), kBadData);
  EXPECT_EQ(typed({kTensorFloat32, 2, other, 0, 0}, 24), kBadData);
  EXPECT_EQ(ANeuralNetworksExecution_setOutput(run.execution, 999, nullptr, z.data(), 16), kBadData);
  EXPECT_EQ(ANeuralNetworksExecution_setOutput(run.execution, -1, nullptr, z.data(), 16), kBadData);
  EXPECT_EQ(typed({kTensorFloat32, 2, dims, 0, 0}, 16), kOk);
  EXPECT_EQ(typed({kTensorFloat32, 2, dims, 0, 0}, 16), kBadState);
  const int fd = memfd_create("nnapi", MFD_CLOEXEC);
  ASSERT_EQ(ftruncate(fd, 16), 0);
  ANeuralNetworksMemory* memory = nullptr;
  ASSERT_EQ(ANeuralNetworksMemory_createFromFd(16, PROT_READ | PROT_WRITE, fd, 0, &memory), kOk);
  close(fd);
  EXPECT_EQ(ANeuralNetworksExecution_setOutputFromMemory(run.execution, 0, nullptr, memory, 0, 16), kBadState);
  EXPECT_EQ(ANeuralNetworksExecution_setInputFromMemory(run.execution, 0, nullptr, memory, 0, 16), kOk);
  EXPECT_EQ(ANeuralNetworksExecution_setInputFromMemory(run.execution, 0, nullptr, memory, 0, 16), kBadState);
  EXPECT_EQ(run.input(0, std::vector<float>(4)), kBadState);
  ANeuralNetworksMemory_free(memory);
}

TEST(NnapiBadStates, AnOutputOfOpenShapeCannotBeFenced) {
  Builder b;
  const uint32_t x = b.operand(kTensorFloat32, {2}), y = b.operand(kTensorFloat32, {0});
  b.add(28, {x}, {y});
  b.finish({x}, {y});
  Compiled c(b);
  Execution run(c);
  std::vector<float> in = {0, 0}, out = {1, 1};
  ASSERT_EQ(run.input(0, in) + run.output(0, out), kOk);
  ANeuralNetworksEvent* event = nullptr;
  EXPECT_EQ(ANeuralNetworksExecution_startComputeWithDependencies(run.execution, nullptr, 0, 0, &event), kBadData);
  EXPECT_EQ(event, nullptr);
  EXPECT_EQ(ANeuralNetworksExecution_compute(run.execution), kOk) << "the refused call changed nothing";
}

TEST(NnapiBadStates, OneComputationAtATime) {
  Child child({"PINNACE_NNAPI_FAULTS=computation@1=delay:1500ms"});
  if (!child.here()) return;
  Ready r, other;
  Execution second(r.compiled);
  ASSERT_EQ(second.input(0, r.x) + second.input(1, r.y) + second.output(0, other.z), kOk);
  ANeuralNetworksBurst* burst = nullptr;
  ASSERT_EQ(ANeuralNetworksBurst_create(r.compiled.compilation, &burst), kOk);
  std::thread thread([&] { EXPECT_EQ(ANeuralNetworksExecution_burstCompute(r.execution, burst), kOk); });
  // Until the thread's computation is under way.
  while (ANeuralNetworksExecution_setLoopTimeout(r.execution, 1) != kBadState) std::this_thread::yield();
  EXPECT_EQ(ANeuralNetworksExecution_compute(r.execution), kBadState);
  ANeuralNetworksEvent* event = nullptr;
  EXPECT_EQ(ANeuralNetworksExecution_startCompute(r.execution, &event), kBadState);
  EXPECT_EQ(ANeuralNetworksExecution_burstCompute(second.execution, burst), kBadState) << "the burst is busy";
  thread.join();
  EXPECT_EQ(ANeuralNetworksExecution_burstCompute(r.execution, burst), kBadState) << "not reusable";
  EXPECT_EQ(ANeuralNetworksExecution_burstCompute(second.execution, burst), kOk);
  ANeuralNetworksBurst_free(burst);
}

// -------------------------------------------------------------------------------------------------- descriptors

TEST(NnapiBadStates, RolesOfADescriptorAgree) {
  const auto one = [](int32_t type, float scale, int32_t zero, const std::vector<uint32_t>& dims) {
    auto b = std::make_unique<Builder>();
    const uint32_t x = b->operand(type, dims, scale, zero), y = b->operand(type, dims, scale, zero);
    b->add(19, {x}, {y});  // RELU
    b->finish({x}, {y});
    return b;
  };
  const auto first = one(kTensorQuant8, 0.5f, 3, {2, 2});
  Compiled c(*first);
  ANeuralNetworksMemoryDesc* desc = nullptr;
  ASSERT_EQ(ANeuralNetworksMemoryDesc_create(&desc), kOk);
  ASSERT_EQ(ANeuralNetworksMemoryDesc_addInputRole(desc, c.compilation, 0, 1), kOk);
  const struct {
    int32_t type;
    float scale;
    int32_t zero;
    std::vector<uint32_t> dims;
    int code;
  } others[] = {{kTensorFloat32, 0, 0, {2, 2}, kBadData},   {kTensorQuant8, 0.25f, 3, {2, 2}, kBadData},
                {kTensorQuant8, 0.5f, 4, {2, 2}, kBadData}, {kTensorQuant8, 0.5f, 3, {2, 3}, kBadData},
                {kTensorQuant8, 0.5f, 3, {4}, kBadData},    {14, 0.5f, 3, {2, 2}, kBadData},
                {kTensorQuant8, 0.5f, 3, {2, 2}, kOk}};
  for (const auto& o : others) {
    const auto model = one(o.type, o.scale, o.zero, o.dims);
    Compiled other(*model);
    EXPECT_EQ(ANeuralNetworksMemoryDesc_addOutputRole(desc, other.compilation, 0, 1), o.code) << o.type;
  }
  ANeuralNetworksMemoryDesc_free(desc);
}

TEST(NnapiBadStates, ADescriptorOfAScalarHasNoDimensions) {
  Builder b;
  const uint32_t x = b.operand(kTensorFloat32, {2, 3}), n = b.operand(kInt32, {});
  b.add(101, {x}, {n});  // RANK
  b.finish({x}, {n});
  Compiled c(b);
  ANeuralNetworksMemoryDesc *scalar = nullptr, *before = nullptr;
  const uint32_t one = 1;
  ASSERT_EQ(ANeuralNetworksMemoryDesc_create(&scalar) + ANeuralNetworksMemoryDesc_create(&before), kOk);
  ASSERT_EQ(ANeuralNetworksMemoryDesc_addOutputRole(scalar, c.compilation, 0, 1), kOk);
  EXPECT_EQ(ANeuralNetworksMemoryDesc_setDimensions(scalar, 1, &one), kBadData);
  EXPECT_EQ(ANeuralNetworksMemoryDesc_setDimensions(scalar, 1, nullptr), kNull);
  ASSERT_EQ(ANeuralNetworksMemoryDesc_setDimensions(before, 1, &one), kOk);
  EXPECT_EQ(ANeuralNetworksMemoryDesc_addOutputRole(before, c.compilation, 0, 1), kBadData);
  EXPECT_EQ(ANeuralNetworksMemoryDesc_finish(scalar), kOk);
  EXPECT_EQ(ANeuralNetworksMemoryDesc_addOutputRole(scalar, c.compilation, 0, 1), kBadState);
  ANeuralNetworksMemoryDesc_free(scalar);
  ANeuralNetworksMemoryDesc_free(before);
}

// --------------------------------------------------------------------------------------------------------- sizes

TEST(NnapiBadStates, ImagesThatCannotBeAreRefusedAtOnce) {
  for (int32_t operation : {23, 94}) {  // RESIZE_BILINEAR, RESIZE_NEAREST_NEIGHBOR
    Builder b;
    const uint32_t x = b.operand(kTensorQuant8, {1, 1, 2, 1}, 1), width = b.scalar(INT32_MAX), height = b.scalar(1);
    const uint32_t no = b.operand(6, {}), y = b.operand(kTensorQuant8, {0, 0, 0, 0}, 1);
    const bool value = false;
    ASSERT_EQ(ANeuralNetworksModel_setOperandValue(b.model, static_cast<int32_t>(no), &value, 1), kOk);
    b.add(operation, {x, width, height, no}, {y});
    b.finish({x}, {y});
    Compiled compiled(b);
    Execution run(compiled);
    std::vector<uint8_t> in = {1, 2}, out(4);
    ASSERT_EQ(run.input(0, in) + run.output(0, out), kOk);
    const auto begin = std::chrono::steady_clock::now();
    EXPECT_EQ(ANeuralNetworksExecution_compute(run.execution), 5);
    EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(3));
  }
}

// --------------------------------------------------------------------------------------------------------- loops

TEST(NnapiBadStates, AnEndlessLoopIsEnded) {
  Builder condition, body, loop;
  const uint32_t a = condition.operand(kTensorFloat32, {1}), always = condition.operand(9, {1});
  condition.add(48, {a, a}, {always});  // EQUAL
  condition.finish({a}, {always});
  const uint32_t p = body.operand(kTensorFloat32, {1}), q = body.operand(kTensorFloat32, {1});
  body.add(19, {p}, {q});
  body.finish({p}, {q});
  const uint32_t c = loop.operand(15, {}), m = loop.operand(15, {}), x = loop.operand(kTensorFloat32, {1});
  const uint32_t y = loop.operand(kTensorFloat32, {1});
  ASSERT_EQ(ANeuralNetworksModel_setOperandValueFromModel(loop.model, static_cast<int32_t>(c), condition.model), kOk);
  ASSERT_EQ(ANeuralNetworksModel_setOperandValueFromModel(loop.model, static_cast<int32_t>(m), body.model), kOk);
  loop.add(97, {c, m, x}, {y});
  loop.finish({x}, {y});
  Compiled compiled(loop);
  Execution run(compiled);
  std::vector<float> in = {1}, out = {0};
  ASSERT_EQ(ANeuralNetworksExecution_setLoopTimeout(run.execution, 1'000'000), kOk);
  ASSERT_EQ(run.input(0, in) + run.output(0, out), kOk);
  const int code = ANeuralNetworksExecution_compute(run.execution);
  EXPECT_TRUE(code == 10 || code == 11) << code;
}

}  // namespace
