// libneuralnetworks.so through its C interface: models are built, compiled and run as a client does it.
#include "cpp/nnapi_client.h"

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

}  // namespace
