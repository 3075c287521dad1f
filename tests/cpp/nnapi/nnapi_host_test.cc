// libneuralnetworks.so through its C interface: models are built, compiled and run as a client does it.
#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <cstring>
#include <tuple>

#include "cpp/nnapi/nnapi_client.h"

namespace {

using namespace nnapi_client;

TEST(NnapiHost, AddsWithBroadcastAndActivation) {
  AddModel model;
  Compiled compiled(model);
  Execution run(compiled);
  std::vector<float> x = {1, -2, 3, 4}, y = {10, -20}, z(4);
  ASSERT_EQ(run.input(0, x), 0);
  ASSERT_EQ(run.input(1, y), 0);
  ASSERT_EQ(run.output(0, z), 0);
  ASSERT_EQ(ANeuralNetworksExecution_compute(run.execution), 0);
  EXPECT_EQ(z, (std::vector<float>{11, 0, 13, 0}));
  uint32_t rank = 0, dims[2] = {};
  EXPECT_EQ(ANeuralNetworksExecution_getOutputOperandRank(run.execution, 0, &rank), 0);
  EXPECT_EQ(ANeuralNetworksExecution_getOutputOperandDimensions(run.execution, 0, dims), 0);
  EXPECT_EQ(rank, 2u);
  EXPECT_EQ(dims[1], 2u);
}

TEST(NnapiHost, MemoryMayBeginAnywhere) {
  AddModel model;
  Compiled compiled(model);
  Execution run(compiled);
  const float x[] = {1, -2, 3, 4}, y[] = {10, -20}, want[] = {11, 0, 13, 0};
  std::vector<std::byte> bytes(1 + sizeof x + sizeof y + sizeof want);
  std::byte *const at_x = bytes.data() + 1, *const at_y = at_x + sizeof x, *const at_z = at_y + sizeof y;
  std::memcpy(at_x, x, sizeof x);
  std::memcpy(at_y, y, sizeof y);
  ASSERT_EQ(ANeuralNetworksExecution_setInput(run.execution, 0, nullptr, at_x, sizeof x), 0);
  ASSERT_EQ(ANeuralNetworksExecution_setInput(run.execution, 1, nullptr, at_y, sizeof y), 0);
  ASSERT_EQ(ANeuralNetworksExecution_setOutput(run.execution, 0, nullptr, at_z, sizeof want), 0);
  ASSERT_EQ(ANeuralNetworksExecution_compute(run.execution), 0);
  float got[std::size(want)];
  std::memcpy(got, at_z, sizeof got);
  for (size_t i = 0; i < std::size(want); ++i) EXPECT_EQ(got[i], want[i]) << i;
}
TEST(NnapiHost, StartedComputationIsWaitedFor) {
  AddModel model;
  Compiled compiled(model);
  Execution run(compiled);
  std::vector<float> x = {1, 2, 3, 4}, y = {1, 1}, z(4);
  ASSERT_EQ(run.input(0, x) + run.input(1, y) + run.output(0, z), 0);
  ANeuralNetworksEvent* event = nullptr;
  ASSERT_EQ(ANeuralNetworksExecution_startCompute(run.execution, &event), 0);
  EXPECT_EQ(ANeuralNetworksEvent_wait(event), 0);
  EXPECT_EQ(ANeuralNetworksEvent_wait(event), 0);
  ANeuralNetworksEvent_free(event);
  EXPECT_EQ(z, (std::vector<float>{2, 3, 4, 5}));
}

TEST(NnapiHost, ConvolvesChannelsLastAndTellsAValueFromAnAttribute) {
  Builder b;
  const uint32_t x = b.operand(kTensorFloat32, {1, 3, 3, 1});
  const uint32_t w = b.constant<float>(kTensorFloat32, {1, 2, 2, 1}, {.25f, .25f, .25f, .25f});
  const uint32_t bias = b.constant<float>(kTensorFloat32, {1}, {1});
  const uint32_t scheme = b.operand(kInt32, {});  // an input of the model, known when it runs
  const uint32_t one = b.scalar(1), none = b.scalar(0);
  const uint32_t y = b.operand(kTensorFloat32, {1, 0, 0, 1});
  b.add(kConv2d, {x, w, bias, scheme, one, one, none}, {y});
  b.finish({x, scheme}, {y});
  Compiled compiled(b);
  std::vector<float> in(9, 4.0f);
  for (const auto& [value, size] : {std::pair{1, 9}, {2, 4}, {1, 9}}) {
    Execution run(compiled);
    std::vector<float> out(9, -1.0f);
    const std::vector<int32_t> padding = {value};
    ASSERT_EQ(run.input(0, in) + run.input(1, padding) + run.output(0, out), 0);
    ASSERT_EQ(ANeuralNetworksExecution_compute(run.execution), 0);
    uint32_t dims[4] = {};
    EXPECT_EQ(ANeuralNetworksExecution_getOutputOperandDimensions(run.execution, 0, dims), 0);
    EXPECT_EQ(static_cast<int>(dims[1] * dims[2]), size);
    EXPECT_EQ(out[0], 5.0f);
  }
}

TEST(NnapiHost, SmallOutputReportsItsTrueShape) {
  Builder b;
  const uint32_t x = b.operand(kTensorFloat32, {0, 2}), beta = b.operand(0, {});
  const float one = 1;
  ASSERT_EQ(ANeuralNetworksModel_setOperandValue(b.model, static_cast<int32_t>(beta), &one, sizeof one), 0);
  const uint32_t y = b.operand(kTensorFloat32, {0, 2});
  b.add(kSoftmax, {x, beta}, {y});
  b.finish({x}, {y});
  Compiled compiled(b);
  Execution run(compiled);
  const uint32_t dims[2] = {3, 2};
  const ANeuralNetworksOperandType type{kTensorFloat32, 2, dims, 0, 0};
  std::vector<float> in = {0, 0, 1, 1, 2, 2}, out(2);
  ASSERT_EQ(ANeuralNetworksExecution_setInput(run.execution, 0, &type, in.data(), in.size() * sizeof(float)), 0);
  ASSERT_EQ(run.output(0, out), 0);
  EXPECT_EQ(ANeuralNetworksExecution_compute(run.execution), ANEURALNETWORKS_OUTPUT_INSUFFICIENT_SIZE);
  uint32_t found[2] = {};
  EXPECT_EQ(ANeuralNetworksExecution_getOutputOperandDimensions(run.execution, 0, found),
            ANEURALNETWORKS_OUTPUT_INSUFFICIENT_SIZE);
  EXPECT_EQ(found[0], 3u);
}

TEST(NnapiHost, QuantisedValuesKeepTheirScales) {
  Builder b;
  const uint32_t x = b.operand(kTensorQuant8, {4}, 0.5f, 128), act = b.scalar(0);
  const uint32_t y = b.operand(kTensorQuant8, {4}, 1.0f, 100);
  b.add(kAdd, {x, x, act}, {y});
  b.finish({x}, {y});
  Compiled compiled(b);
  Execution run(compiled);
  std::vector<uint8_t> in = {128, 130, 126, 255}, out(4);
  ASSERT_EQ(run.input(0, in) + run.output(0, out), 0);
  ASSERT_EQ(ANeuralNetworksExecution_compute(run.execution), 0);
  EXPECT_EQ(out, (std::vector<uint8_t>{100, 102, 98, 227}));
}

/// An eventfd that stands for a client's fence.
struct ClientFence {
  int fd = eventfd(0, EFD_CLOEXEC);
  ANeuralNetworksEvent* event = nullptr;
  ClientFence() { EXPECT_EQ(ANeuralNetworksEvent_createFromSyncFenceFd(fd, &event), 0); }
  ~ClientFence() {
    ANeuralNetworksEvent_free(event);
    close(fd);
  }
  void signal() const { EXPECT_EQ(eventfd_write(fd, 1), 0); }
};

bool readable(int fd) {
  struct pollfd p = {fd, POLLIN, 0};
  return poll(&p, 1, 0) == 1;
}

TEST(NnapiHost, AComputationWaitsForFencesAndHasOne) {
  AddModel model;
  Compiled compiled(model);
  Execution run(compiled);
  std::vector<float> x = {1, 2, 3, 4}, y = {1, 1}, z(4);
  ASSERT_EQ(run.input(0, x) + run.input(1, y) + run.output(0, z), 0);
  ANeuralNetworksEvent* event = nullptr;
  int fence = -1;
  {
    ClientFence before;
    const ANeuralNetworksEvent* list[1] = {before.event};
    ASSERT_EQ(ANeuralNetworksExecution_startComputeWithDependencies(run.execution, list, 1, 0, &event), 0);
    ASSERT_EQ(ANeuralNetworksEvent_getSyncFenceFd(event, &fence), 0);
    EXPECT_FALSE(readable(fence));
    // Until the fence is signalled the computation is under way.
    EXPECT_EQ(ANeuralNetworksExecution_compute(run.execution), ANEURALNETWORKS_BAD_STATE);
    EXPECT_EQ(run.input(0, x), ANEURALNETWORKS_BAD_STATE);
    before.signal();
  }  // events may go before what waits for them
  EXPECT_EQ(ANeuralNetworksEvent_wait(event), 0);
  EXPECT_TRUE(readable(fence));
  close(fence);
  ANeuralNetworksEvent_free(event);
  EXPECT_EQ(z, (std::vector<float>{2, 3, 4, 5}));
}

TEST(NnapiHost, AFailedDependencyFailsTheComputation) {
  AddModel model;
  Compiled compiled(model);
  Builder bad;  // runs, and fails
  const uint32_t x = bad.operand(kTensorFloat32, {2}), act = bad.scalar(9), y = bad.operand(kTensorFloat32, {2});
  bad.add(kAdd, {x, x, act}, {y});
  bad.finish({x}, {y});
  Compiled bad_compiled(bad);
  Execution first(bad_compiled), second(compiled);
  std::vector<float> two(2), out(2), a = {1, 2, 3, 4}, b = {1, 1}, z(4);
  ASSERT_EQ(first.input(0, two) + first.output(0, out), 0);
  ASSERT_EQ(second.input(0, a) + second.input(1, b) + second.output(0, z), 0);
  ANeuralNetworksEvent *failed = nullptr, *event = nullptr;
  ASSERT_EQ(ANeuralNetworksExecution_startComputeWithDependencies(first.execution, nullptr, 0, 0, &failed), 0);
  const ANeuralNetworksEvent* list[1] = {failed};
  ASSERT_EQ(ANeuralNetworksExecution_startComputeWithDependencies(second.execution, list, 1, 0, &event), 0);
  EXPECT_NE(ANeuralNetworksEvent_wait(event), 0);
  uint32_t rank = 0;
  EXPECT_EQ(ANeuralNetworksExecution_getOutputOperandRank(second.execution, 0, &rank), ANEURALNETWORKS_BAD_STATE);
  ANeuralNetworksEvent_free(failed);
  ANeuralNetworksEvent_free(event);
}

TEST(NnapiHost, AReusableExecutionSeesNewInputs) {
  AddModel model;
  Compiled compiled(model);
  Execution run(compiled);
  std::vector<float> x = {1, 2, 3, 4}, y = {1, 1}, z(4);
  ASSERT_EQ(ANeuralNetworksExecution_setReusable(run.execution, true), 0);
  ASSERT_EQ(run.input(0, x) + run.input(1, y) + run.output(0, z), 0);
  for (float value : {5.0f, 6.0f}) {
    x[0] = value;
    ASSERT_EQ(ANeuralNetworksExecution_compute(run.execution), 0);
    EXPECT_EQ(z[0], value + 1);
    EXPECT_EQ(run.input(0, x), ANEURALNETWORKS_BAD_STATE) << "nothing is bound again";
  }
}

TEST(NnapiHost, ABurstTakesOneComputationAfterAnother) {
  AddModel model;
  Compiled compiled(model);
  ANeuralNetworksBurst* burst = nullptr;
  ASSERT_EQ(ANeuralNetworksBurst_create(compiled.compilation, &burst), 0);
  for (int i = 0; i < 3; ++i) {
    Execution run(compiled);
    std::vector<float> x(4, static_cast<float>(i)), y = {1, 1}, z(4);
    ASSERT_EQ(run.input(0, x) + run.input(1, y) + run.output(0, z), 0);
    ASSERT_EQ(ANeuralNetworksExecution_burstCompute(run.execution, burst), 0);
    EXPECT_EQ(z[3], static_cast<float>(i + 1));
  }
  ANeuralNetworksBurst_free(burst);
}

TEST(NnapiHost, TimeIsMeasuredWhereAskedFor) {
  AddModel model;
  ANeuralNetworksDevice* device = nullptr;
  ASSERT_EQ(ANeuralNetworks_getDevice(0, &device), 0);
  const ANeuralNetworksDevice* list[1] = {device};
  ANeuralNetworksCompilation* compilation = nullptr;
  ASSERT_EQ(ANeuralNetworksCompilation_createForDevices(model.model, list, 1, &compilation), 0);
  ASSERT_EQ(ANeuralNetworksCompilation_finish(compilation), 0);
  ANeuralNetworksExecution* execution = nullptr;
  ASSERT_EQ(ANeuralNetworksExecution_create(compilation, &execution), 0);
  float x[4] = {}, y[2] = {}, z[4];
  ASSERT_EQ(ANeuralNetworksExecution_setMeasureTiming(execution, true), 0);
  ASSERT_EQ(ANeuralNetworksExecution_setInput(execution, 0, nullptr, x, sizeof x), 0);
  ASSERT_EQ(ANeuralNetworksExecution_setInput(execution, 1, nullptr, y, sizeof y), 0);
  ASSERT_EQ(ANeuralNetworksExecution_setOutput(execution, 0, nullptr, z, sizeof z), 0);
  ASSERT_EQ(ANeuralNetworksExecution_compute(execution), 0);
  uint64_t ns = 0;
  EXPECT_EQ(ANeuralNetworksExecution_getDuration(execution, 1, &ns), 0);
  EXPECT_GT(ns, 0u);
  EXPECT_LT(ns, 10'000'000'000u);
  ANeuralNetworksExecution_free(execution);
  ANeuralNetworksCompilation_free(compilation);
}

TEST(NnapiHost, ASqueezeWithoutAxesAndAnOpenRank) {
  Builder b;
  const uint32_t x = b.operand(kTensorFloat32, {}), axes = b.operand(kTensorInt32, {0});
  const uint32_t y = b.operand(kTensorFloat32, {});
  ASSERT_EQ(ANeuralNetworksModel_setOperandValue(b.model, static_cast<int32_t>(axes), nullptr, 0), 0);
  b.add(34, {x, axes}, {y});
  b.finish({x}, {y});
  Compiled compiled(b);
  for (const auto& [dims, rank] : {std::pair{std::vector<uint32_t>{1, 3, 1}, 1u}, {{2, 1, 3}, 2u}, {{1, 1}, 1u}}) {
    Execution run(compiled);
    size_t elements = 1;
    for (uint32_t d : dims) elements *= d;
    std::vector<float> in(elements), out(6);
    const ANeuralNetworksOperandType type{kTensorFloat32, static_cast<uint32_t>(dims.size()), dims.data(), 0, 0};
    const size_t bytes = elements * sizeof(float);
    ASSERT_EQ(ANeuralNetworksExecution_setInput(run.execution, 0, &type, in.data(), bytes), 0);
    ASSERT_EQ(run.output(0, out), 0);
    ASSERT_EQ(ANeuralNetworksExecution_compute(run.execution), 0);
    uint32_t found = 0;
    EXPECT_EQ(ANeuralNetworksExecution_getOutputOperandRank(run.execution, 0, &found), 0);
    EXPECT_EQ(found, rank);
  }
}

TEST(NnapiHost, EveryByteButZeroIsTrue) {
  Builder b;
  const uint32_t x = b.operand(9, {4}), y = b.operand(9, {4});
  b.add(62, {x}, {y});  // LOGICAL_NOT
  b.finish({x}, {y});
  Compiled compiled(b);
  Execution run(compiled);
  std::vector<uint8_t> in = {0, 1, 2, 255}, out(4);
  ASSERT_EQ(run.input(0, in) + run.output(0, out), 0);
  ASSERT_EQ(ANeuralNetworksExecution_compute(run.execution), 0);
  EXPECT_EQ(out, (std::vector<uint8_t>{1, 0, 0, 0}));
}

TEST(NnapiHost, TheLargerIndexOfEqualElementsComesFirst) {
  Builder b;
  const uint32_t x = b.operand(kTensorFloat32, {5}), k = b.scalar(3);
  const uint32_t values = b.operand(kTensorFloat32, {3}), indices = b.operand(kTensorInt32, {3});
  b.add(90, {x, k}, {values, indices});  // TOPK_V2
  b.finish({x}, {values, indices});
  Compiled compiled(b);
  Execution run(compiled);
  std::vector<float> in = {2, 7, 2, 7, 2}, best(3);
  std::vector<int32_t> where(3);
  ASSERT_EQ(run.input(0, in) + run.output(0, best) + run.output(1, where), 0);
  ASSERT_EQ(ANeuralNetworksExecution_compute(run.execution), 0);
  EXPECT_EQ(best, (std::vector<float>{7, 7, 2}));
  EXPECT_EQ(where, (std::vector<int32_t>{3, 1, 4}));
}

TEST(NnapiHost, IntegersAreDividedDownwardsAndByZeroWithoutATrap) {
  Builder b;
  const uint32_t x = b.operand(kTensorInt32, {4}), y = b.operand(kTensorInt32, {4}), act = b.scalar(0);
  const uint32_t z = b.operand(kTensorInt32, {4});
  b.add(30, {x, y, act}, {z});
  b.finish({x, y}, {z});
  Compiled compiled(b);
  Execution run(compiled);
  std::vector<int32_t> a = {-5, 7, 3, INT32_MIN}, d = {2, -2, 0, -1}, q(4);
  ASSERT_EQ(run.input(0, a) + run.input(1, d) + run.output(0, q), 0);
  ASSERT_EQ(ANeuralNetworksExecution_compute(run.execution), 0);
  EXPECT_EQ(q[0], -3);
  EXPECT_EQ(q[1], -4);
}

TEST(NnapiHost, IndicesOutsideFailTheComputation) {
  for (int32_t index : {-1, 3}) {
    Builder b;
    const uint32_t i = b.operand(kTensorInt32, {1}), x = b.operand(kTensorFloat32, {3, 2});
    const uint32_t y = b.operand(kTensorFloat32, {1, 2});
    b.add(7, {i, x}, {y});  // EMBEDDING_LOOKUP
    b.finish({i, x}, {y});
    Compiled compiled(b);
    Execution run(compiled);
    std::vector<int32_t> at = {index};
    std::vector<float> values(6), out(2);
    ASSERT_EQ(run.input(0, at) + run.input(1, values) + run.output(0, out), 0);
    EXPECT_EQ(ANeuralNetworksExecution_compute(run.execution), ANEURALNETWORKS_OP_FAILED) << index;
  }
}

/// beta times the largest is beyond float32; beta times differences is not.
TEST(NnapiHost, SoftmaxTakesTheLargestOffBeforeItMultiplies) {
  for (const auto& [beta, given, wanted] : std::vector<std::tuple<float, std::vector<float>, std::vector<float>>>{
           {2.0f, {3e38f, 2.9e38f, 0}, {1, 0, 0}}, {3e37f, {100, 100, 99}, {0.5, 0.5, 0}}}) {
    Builder model;
    const uint32_t x = model.operand(kTensorFloat32, {1, 3}), b = model.operand(0, {});
    const uint32_t y = model.operand(kTensorFloat32, {1, 3});
    ASSERT_EQ(ANeuralNetworksModel_setOperandValue(model.model, static_cast<int32_t>(b), &beta, sizeof beta), 0);
    model.add(kSoftmax, {x, b}, {y});
    model.finish({x}, {y});
    Compiled compiled(model);
    Execution run(compiled);
    std::vector<float> made(3);
    ASSERT_EQ(run.input(0, given), 0);
    ASSERT_EQ(run.output(0, made), 0);
    ASSERT_EQ(ANeuralNetworksExecution_compute(run.execution), 0);
    EXPECT_EQ(made, wanted) << beta;
  }
}

}  // namespace
