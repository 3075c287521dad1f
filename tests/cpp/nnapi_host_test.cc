// libneuralnetworks.so through its C interface: models are built, compiled and run as a client does it.
#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "nnapi_host/neural_networks.h"

namespace {

constexpr int32_t kInt32 = 1, kTensorFloat32 = 3, kTensorInt32 = 4, kTensorQuant8 = 5;
constexpr int32_t kAdd = 0, kConv2d = 3, kSoftmax = 25;

/// A model under construction; calls that must succeed are asserted.
struct Builder {
  ANeuralNetworksModel* model = nullptr;
  uint32_t operands = 0;

  Builder() { EXPECT_EQ(ANeuralNetworksModel_create(&model), 0); }
  ~Builder() { ANeuralNetworksModel_free(model); }

  uint32_t operand(int32_t type, std::vector<uint32_t> dims, float scale = 0, int32_t zero = 0) {
    const ANeuralNetworksOperandType t{type, static_cast<uint32_t>(dims.size()), dims.empty() ? nullptr : dims.data(),
                                       scale, zero};
    EXPECT_EQ(ANeuralNetworksModel_addOperand(model, &t), 0);
    return operands++;
  }
  uint32_t scalar(int32_t value) {
    const uint32_t index = operand(kInt32, {});
    EXPECT_EQ(ANeuralNetworksModel_setOperandValue(model, static_cast<int32_t>(index), &value, sizeof value), 0);
    return index;
  }
  template <class T>
  uint32_t constant(int32_t type, std::vector<uint32_t> dims, const std::vector<T>& values, float scale = 0) {
    const uint32_t index = operand(type, std::move(dims), scale);
    EXPECT_EQ(ANeuralNetworksModel_setOperandValue(model, static_cast<int32_t>(index), values.data(),
                                                   values.size() * sizeof(T)),
              0);
    return index;
  }
  void add(int32_t code, std::vector<uint32_t> in, std::vector<uint32_t> out) {
    EXPECT_EQ(ANeuralNetworksModel_addOperation(model, code, static_cast<uint32_t>(in.size()), in.data(),
                                                static_cast<uint32_t>(out.size()), out.data()),
              0);
  }
  void finish(std::vector<uint32_t> in, std::vector<uint32_t> out) {
    EXPECT_EQ(ANeuralNetworksModel_identifyInputsAndOutputs(model, static_cast<uint32_t>(in.size()), in.data(),
                                                            static_cast<uint32_t>(out.size()), out.data()),
              0);
    EXPECT_EQ(ANeuralNetworksModel_finish(model), 0);
  }
};

struct Compiled {
  ANeuralNetworksCompilation* compilation = nullptr;
  explicit Compiled(const Builder& b) {
    EXPECT_EQ(ANeuralNetworksCompilation_create(b.model, &compilation), 0);
    EXPECT_EQ(ANeuralNetworksCompilation_finish(compilation), 0);
  }
  ~Compiled() { ANeuralNetworksCompilation_free(compilation); }
};

struct Execution {
  ANeuralNetworksExecution* execution = nullptr;
  explicit Execution(const Compiled& c) { EXPECT_EQ(ANeuralNetworksExecution_create(c.compilation, &execution), 0); }
  ~Execution() { ANeuralNetworksExecution_free(execution); }

  template <class T>
  int input(int32_t index, const std::vector<T>& values) {
    return ANeuralNetworksExecution_setInput(execution, index, nullptr, values.data(), values.size() * sizeof(T));
  }
  template <class T>
  int output(int32_t index, std::vector<T>& values) {
    return ANeuralNetworksExecution_setOutput(execution, index, nullptr, values.data(), values.size() * sizeof(T));
  }
};

/// z = relu(x + y), both inputs.
struct AddModel : Builder {
  AddModel() {
    const uint32_t x = operand(kTensorFloat32, {2, 2}), y = operand(kTensorFloat32, {1, 2}), act = scalar(1);
    const uint32_t z = operand(kTensorFloat32, {2, 2});
    add(kAdd, {x, y, act}, {z});
    finish({x, y}, {z});
  }
};

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
