// What a client may free and what it may still change: objects outlive their handles where others need them, memories
// belong to the compilations that they were made for, and a finished model is what was checked.
#include <sys/mman.h>
#include <unistd.h>

#include <memory>

#include "cpp/nnapi/nnapi_client.h"

namespace {

using namespace nnapi_client;
constexpr int kOk = 0, kBadData = 4, kFailed = 5;
constexpr int kRelu = 19, kTanh = 28, kIf = 96, kBool8 = 9, kModel = 15, kQuant8PerChannel = 11;

/// y = relu(x) on one type and shape.
struct ReluModel : Builder {
  ReluModel(int32_t type, const std::vector<uint32_t>& dims, float scale = 0, int32_t code = kRelu) {
    const uint32_t x = operand(type, dims, scale), y = operand(type, dims, scale);
    add(code, {x}, {y});
    finish({x}, {y});
  }
};

struct Description {
  ANeuralNetworksMemoryDesc* desc = nullptr;
  Description() { EXPECT_EQ(ANeuralNetworksMemoryDesc_create(&desc), kOk); }
  ~Description() { ANeuralNetworksMemoryDesc_free(desc); }
  int input(const Compiled& c, uint32_t index = 0) const {
    return ANeuralNetworksMemoryDesc_addInputRole(desc, c.compilation, index, 1);
  }
  int output(const Compiled& c, uint32_t index = 0) const {
    return ANeuralNetworksMemoryDesc_addOutputRole(desc, c.compilation, index, 1);
  }
};

/// Memory for input 0 and output 0 of a compilation.
struct InOut {
  ANeuralNetworksMemory* memory = nullptr;
  explicit InOut(const Compiled& c) {
    const Description d;
    EXPECT_EQ(d.input(c) + d.output(c) + ANeuralNetworksMemoryDesc_finish(d.desc), kOk);
    EXPECT_EQ(ANeuralNetworksMemory_createFromDesc(d.desc, &memory), kOk);
  }
  ~InOut() { ANeuralNetworksMemory_free(memory); }
};

// ------------------------------------------------------------------------------------------- what a client may free

/// Where a compilation was, the next one often is.
TEST(NnapiLifetimes, MemoriesOfAFreedCompilationFitNoOther) {
  const ReluModel bytes(kTensorQuant8, {256}, 0.5f), same(kTensorQuant8, {256}, 0.5f), floats(kTensorFloat32, {256});
  for (int round = 0; round < 20; ++round) {
    auto first = std::make_unique<Compiled>(bytes);
    const InOut of_first(*first);
    first = nullptr;
    const Compiled next(round % 2 ? same : floats);
    const Execution run(next);
    EXPECT_EQ(ANeuralNetworksExecution_setInputFromMemory(run.execution, 0, nullptr, of_first.memory, 0, 0), kBadData);
    EXPECT_EQ(ANeuralNetworksExecution_setOutputFromMemory(run.execution, 0, nullptr, of_first.memory, 0, 0), kBadData);
  }
}

TEST(NnapiLifetimes, ADescriptorKnowsAFreedCompilationFromTheNext) {
  const ReluModel model(kTensorQuant8, {256}, 0.5f);
  for (int round = 0; round < 20; ++round) {
    const Description d;
    auto first = std::make_unique<Compiled>(model);
    ASSERT_EQ(d.input(*first), kOk);
    EXPECT_EQ(d.input(*first), kBadData) << "twice";
    first = nullptr;
    const Compiled next(model);
    EXPECT_EQ(d.input(next), kOk);
    ASSERT_EQ(ANeuralNetworksMemoryDesc_finish(d.desc), kOk);
    ANeuralNetworksMemory* memory = nullptr;
    ASSERT_EQ(ANeuralNetworksMemory_createFromDesc(d.desc, &memory), kOk);
    const Execution run(next);
    EXPECT_EQ(ANeuralNetworksExecution_setInputFromMemory(run.execution, 0, nullptr, memory, 0, 0), kOk);
    ANeuralNetworksMemory_free(memory);
  }
}

TEST(NnapiLifetimes, AnExecutionTakesMemoriesOfItsFreedCompilation) {
  const ReluModel model(kTensorFloat32, {4});
  auto compiled = std::make_unique<Compiled>(model);
  const InOut memory(*compiled);
  Execution write(*compiled), read(*compiled);
  compiled = nullptr;
  const std::vector<float> x = {-1, 2, -3, 4};
  std::vector<float> y(4);
  ASSERT_EQ(write.input(0, x), kOk);
  ASSERT_EQ(ANeuralNetworksExecution_setOutputFromMemory(write.execution, 0, nullptr, memory.memory, 0, 0), kOk);
  ASSERT_EQ(ANeuralNetworksExecution_setInputFromMemory(read.execution, 0, nullptr, memory.memory, 0, 0), kOk);
  ASSERT_EQ(read.output(0, y), kOk);
  EXPECT_EQ(ANeuralNetworksExecution_compute(write.execution), kOk);
  EXPECT_EQ(ANeuralNetworksExecution_compute(read.execution), kOk);
  EXPECT_EQ(y, (std::vector<float>{0, 2, 0, 4}));
}

/// Where a model was, the next one often is.
TEST(NnapiLifetimes, AModelMayGoBeforeItsCompilationIsFinished) {
  auto relu = std::make_unique<ReluModel>(kTensorFloat32, std::vector<uint32_t>{4});
  ANeuralNetworksCompilation* c = nullptr;
  ANeuralNetworksExecution* e = nullptr;
  ASSERT_EQ(ANeuralNetworksCompilation_create(relu->model, &c), kOk);
  relu = nullptr;
  const ReluModel other(kTensorFloat32, {4}, 0, kTanh);
  ASSERT_EQ(ANeuralNetworksCompilation_finish(c), kOk);
  ASSERT_EQ(ANeuralNetworksExecution_create(c, &e), kOk);
  const float x[4] = {-1, 2, -3, 4};
  float y[4] = {};
  ASSERT_EQ(ANeuralNetworksExecution_setInput(e, 0, nullptr, x, sizeof x), kOk);
  ASSERT_EQ(ANeuralNetworksExecution_setOutput(e, 0, nullptr, y, sizeof y), kOk);
  EXPECT_EQ(ANeuralNetworksExecution_compute(e), kOk);
  EXPECT_EQ(y[0], 0);
  EXPECT_EQ(y[3], 4);
  ANeuralNetworksExecution_free(e);
  ANeuralNetworksCompilation_free(c);
}

/// 2^62 elements of 4 bytes are 0 bytes to who counts in 64 bits.
TEST(NnapiLifetimes, ADescriptorHasNoMoreBytesThanAnOperand) {
  Builder b;
  const uint32_t x = b.operand(kTensorFloat32, {0, 0}), y = b.operand(kTensorFloat32, {0, 0});
  b.add(kRelu, {x}, {y});
  b.finish({x}, {y});
  const Compiled c(b);
  for (const std::vector<uint32_t>& dims :
       {std::vector<uint32_t>{1u << 31, 1u << 31}, {1u << 16, 1u << 14}, {UINT32_MAX, UINT32_MAX}}) {
    const Description d;
    ANeuralNetworksMemory* memory = nullptr;
    ASSERT_EQ(d.input(c), kOk);
    ASSERT_EQ(ANeuralNetworksMemoryDesc_setDimensions(d.desc, 2, dims.data()), kOk);
    ASSERT_EQ(ANeuralNetworksMemoryDesc_finish(d.desc), kOk);
    EXPECT_EQ(ANeuralNetworksMemory_createFromDesc(d.desc, &memory), kFailed) << dims[0];
    EXPECT_EQ(memory, nullptr);
    ANeuralNetworksMemory_free(memory);
  }
}

// ----------------------------------------------------------------------------------------- what a client may change

/// x + y, not yet finished, inputs and output named; one more operand that may be an output.
struct Named : Builder {
  uint32_t x = operand(kTensorFloat32, {64}), y = operand(kTensorFloat32, {64}), act = scalar(0);
  uint32_t z = operand(kTensorFloat32, {64});
  std::vector<float> ten = std::vector<float>(64, 10);
  Named() {
    add(kAdd, {x, y, act}, {z});
    name({x, y}, {z});
  }
  void name(const std::vector<uint32_t>& in, const std::vector<uint32_t>& out) const {
    ASSERT_EQ(ANeuralNetworksModel_identifyInputsAndOutputs(model, static_cast<uint32_t>(in.size()), in.data(),
                                                            static_cast<uint32_t>(out.size()), out.data()),
              kOk);
  }
  int set(uint32_t i) const {
    return ANeuralNetworksModel_setOperandValue(model, static_cast<int32_t>(i), ten.data(), 256);
  }
  int omit(uint32_t i) const {
    return ANeuralNetworksModel_setOperandValue(model, static_cast<int32_t>(i), nullptr, 0);
  }
  int end() const { return ANeuralNetworksModel_finish(model); }
};

TEST(NnapiLifetimes, AnInputThatGetsAValueIsNone) {
  const Named untouched, constant, omitted, mapped;
  EXPECT_EQ(untouched.end(), kOk);
  EXPECT_EQ(constant.set(constant.x), kOk);
  EXPECT_EQ(constant.end(), kBadData);
  EXPECT_EQ(omitted.omit(omitted.y), kOk);
  EXPECT_EQ(omitted.end(), kBadData);
  const int fd = memfd_create("nnapi", MFD_CLOEXEC);
  ASSERT_EQ(ftruncate(fd, 256), 0);
  ANeuralNetworksMemory* memory = nullptr;
  ASSERT_EQ(ANeuralNetworksMemory_createFromFd(256, PROT_READ, fd, 0, &memory), kOk);
  close(fd);
  EXPECT_EQ(ANeuralNetworksModel_setOperandValueFromMemory(mapped.model, 0, memory, 0, 256), kOk);
  EXPECT_EQ(mapped.end(), kBadData);
  ANeuralNetworksMemory_free(memory);
}

TEST(NnapiLifetimes, AModelThatIsAnInputCannotBeGivenOne) {
  const ReluModel value(kTensorFloat32, {64});
  Named b;
  const uint32_t m = b.operand(kModel, {});
  b.name({b.x, b.y, m}, {b.z});
  EXPECT_EQ(ANeuralNetworksModel_setOperandValueFromModel(b.model, static_cast<int32_t>(m), value.model), kOk);
  EXPECT_EQ(b.end(), kBadData);
}

TEST(NnapiLifetimes, AnOutputThatGetsAValueIsNone) {
  for (bool omitted : {false, true}) {
    const Named written;
    EXPECT_EQ(omitted ? written.omit(written.z) : written.set(written.z), kOk);
    EXPECT_EQ(written.end(), kBadData);
    Named unwritten;
    const uint32_t more = unwritten.operand(kTensorFloat32, {64});
    unwritten.name({unwritten.x, unwritten.y}, {unwritten.z, more});
    EXPECT_EQ(omitted ? unwritten.omit(more) : unwritten.set(more), kOk);
    EXPECT_EQ(unwritten.end(), kBadData);
  }
}

/// An input that gets a value is one no longer, once the others are named again.
TEST(NnapiLifetimes, InputsCanBeNamedAgainWithoutOneThatHasAValue) {
  Named b;
  ASSERT_EQ(b.set(b.y), kOk);
  b.name({b.x}, {b.z});
  ASSERT_EQ(b.end(), kOk);
  const Compiled c(b);
  Execution run(c);
  const std::vector<float> x(64, 1);
  std::vector<float> z(64);
  ASSERT_EQ(run.input(0, x) + run.output(0, z), kOk);
  EXPECT_EQ(ANeuralNetworksExecution_compute(run.execution), kOk);
  EXPECT_EQ(z, std::vector<float>(64, 11));
}

/// What was checked when the operation was added must still hold.
TEST(NnapiLifetimes, ABranchThatIsReplacedIsCheckedAgain) {
  const ReluModel one(kTensorFloat32, {2}), alike(kTensorFloat32, {2}, 0, kTanh), longer(kTensorFloat32, {3});
  const AddModel two;
  const auto finish = [&](const Builder& replacement) {
    Builder b;
    const uint32_t c = b.operand(kBool8, {1}), then = b.operand(kModel, {}), otherwise = b.operand(kModel, {});
    const uint32_t x = b.operand(kTensorFloat32, {2}), y = b.operand(kTensorFloat32, {2});
    const auto set = [&](uint32_t i, const Builder& value) {
      EXPECT_EQ(ANeuralNetworksModel_setOperandValueFromModel(b.model, static_cast<int32_t>(i), value.model), kOk);
    };
    set(then, one);
    set(otherwise, one);
    b.add(kIf, {c, then, otherwise, x}, {y});
    set(otherwise, replacement);
    const uint32_t in[] = {c, x};
    EXPECT_EQ(ANeuralNetworksModel_identifyInputsAndOutputs(b.model, 2, in, 1, &y), kOk);
    return ANeuralNetworksModel_finish(b.model);
  };
  EXPECT_EQ(finish(alike), kOk);
  EXPECT_EQ(finish(longer), kBadData);
  EXPECT_EQ(finish(two), kBadData);
}

TEST(NnapiLifetimes, ScalesPerChannelThatAreReplacedAreCheckedAgain) {
  const std::vector<float> scales = {0.5f, 0.25f};
  const auto finish = [&](uint32_t dimension) {
    Builder b;
    const uint32_t x = b.operand(kTensorQuant8, {1, 4, 4, 2}, 0.5f), w = b.operand(kQuant8PerChannel, {2, 1, 1, 2});
    const auto set = [&](uint32_t along) {
      const ANeuralNetworksSymmPerChannelQuantParams q{along, 2, scales.data()};
      EXPECT_EQ(ANeuralNetworksModel_setOperandSymmPerChannelQuantParams(b.model, static_cast<int32_t>(w), &q), kOk);
    };
    set(0);
    const int8_t weights[4] = {1, 2, 3, 4};
    EXPECT_EQ(ANeuralNetworksModel_setOperandValue(b.model, static_cast<int32_t>(w), weights, 4), kOk);
    const uint32_t bias = b.constant<int32_t>(kTensorInt32, {2}, {0, 0}), valid = b.scalar(2), step = b.scalar(1);
    const uint32_t act = b.scalar(0), y = b.operand(kTensorQuant8, {1, 4, 4, 2}, 1);
    b.add(kConv2d, {x, w, bias, valid, step, step, act}, {y});
    set(dimension);
    EXPECT_EQ(ANeuralNetworksModel_identifyInputsAndOutputs(b.model, 1, &x, 1, &y), kOk);
    return ANeuralNetworksModel_finish(b.model);
  };
  EXPECT_EQ(finish(0), kOk);
  EXPECT_EQ(finish(3), kBadData);
}

}  // namespace
