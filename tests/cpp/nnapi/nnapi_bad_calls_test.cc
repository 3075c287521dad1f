// Wrong calls of libneuralnetworks.so: each gives its result code and changes nothing. One test per rule.
#include <fcntl.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmath>

#include "cpp/nnapi/nnapi_client.h"

namespace {

using namespace nnapi_client;
constexpr int kOk = 0, kNull = 3, kBadData = 4, kFailed = 5, kBadState = 6, kTooSmall = 8;

int add_operand(ANeuralNetworksModel* model, int32_t type, std::vector<uint32_t> dims, float scale = 0,
                int32_t zero = 0) {
  const ANeuralNetworksOperandType t{type, static_cast<uint32_t>(dims.size()), dims.empty() ? nullptr : dims.data(),
                                     scale, zero};
  return ANeuralNetworksModel_addOperand(model, &t);
}

/// Memory of a file that only this test sees.
struct FdMemory {
  ANeuralNetworksMemory* memory = nullptr;
  explicit FdMemory(size_t bytes) {
    const int fd = memfd_create("nnapi", MFD_CLOEXEC);
    EXPECT_EQ(ftruncate(fd, static_cast<off_t>(bytes)), 0);
    EXPECT_EQ(ANeuralNetworksMemory_createFromFd(bytes, PROT_READ | PROT_WRITE, fd, 0, &memory), kOk);
    close(fd);
  }
  ~FdMemory() { ANeuralNetworksMemory_free(memory); }
};

/// Memory for one role of a compilation.
struct RoleMemory {
  ANeuralNetworksMemory* memory = nullptr;
  RoleMemory(const Compiled& c, bool input, uint32_t index) {
    ANeuralNetworksMemoryDesc* desc = nullptr;
    EXPECT_EQ(ANeuralNetworksMemoryDesc_create(&desc), kOk);
    EXPECT_EQ((input ? ANeuralNetworksMemoryDesc_addInputRole : ANeuralNetworksMemoryDesc_addOutputRole)(
                  desc, c.compilation, index, 1.0f),
              kOk);
    EXPECT_EQ(ANeuralNetworksMemoryDesc_finish(desc), kOk);
    EXPECT_EQ(ANeuralNetworksMemory_createFromDesc(desc, &memory), kOk);
    ANeuralNetworksMemoryDesc_free(desc);
  }
  ~RoleMemory() { ANeuralNetworksMemory_free(memory); }
};

/// An AddModel's execution with everything bound.
struct Ready {
  AddModel model;
  Compiled compiled{model};
  Execution run{compiled};
  std::vector<float> x = {1, 2, 3, 4}, y = {1, 1}, z = std::vector<float>(4);
  ANeuralNetworksExecution* execution = run.execution;
  Ready() { EXPECT_EQ(run.input(0, x) + run.input(1, y) + run.output(0, z), kOk); }
};

// ---------------------------------------------------------------------------------------------------- the model

TEST(NnapiBadCalls, NullObjectsAndNullResults) {
  AddModel model;
  Compiled c(model);
  EXPECT_EQ(ANeuralNetworksModel_create(nullptr), kNull);
  EXPECT_EQ(ANeuralNetworksModel_finish(nullptr), kNull);
  EXPECT_EQ(ANeuralNetworksModel_addOperand(model.model, nullptr), kNull);
  EXPECT_EQ(ANeuralNetworksModel_relaxComputationFloat32toFloat16(nullptr, true), kNull);
  EXPECT_EQ(ANeuralNetworksCompilation_create(model.model, nullptr), kNull);
  EXPECT_EQ(ANeuralNetworksCompilation_finish(nullptr), kNull);
  EXPECT_EQ(ANeuralNetworksExecution_create(c.compilation, nullptr), kNull);
  EXPECT_EQ(ANeuralNetworksExecution_compute(nullptr), kNull);
  EXPECT_EQ(ANeuralNetworksEvent_wait(nullptr), kNull);
  EXPECT_EQ(ANeuralNetworksBurst_create(c.compilation, nullptr), kNull);
  EXPECT_EQ(ANeuralNetworksMemoryDesc_create(nullptr), kNull);
  EXPECT_EQ(ANeuralNetworksMemory_copy(nullptr, nullptr), kNull);
  EXPECT_EQ(ANeuralNetworks_getDeviceCount(nullptr), kNull);
  EXPECT_EQ(ANeuralNetworksDevice_getName(device(), nullptr), kNull);
  EXPECT_EQ(ANeuralNetworksDevice_wait(nullptr), kNull);
  ANeuralNetworksModel_free(nullptr);
  ANeuralNetworksCompilation_free(nullptr);
  ANeuralNetworksExecution_free(nullptr);
  ANeuralNetworksEvent_free(nullptr);
  ANeuralNetworksBurst_free(nullptr);
  ANeuralNetworksMemory_free(nullptr);
  ANeuralNetworksMemoryDesc_free(nullptr);
}

TEST(NnapiBadCalls, OperandTypesWithWrongQuantisation) {
  Builder b;
  ANeuralNetworksModel* m = b.model;
  EXPECT_EQ(add_operand(m, kTensorQuant8, {1}, -1.0f), kBadData);
  EXPECT_EQ(add_operand(m, kTensorQuant8, {1}, NAN), kBadData);
  EXPECT_EQ(add_operand(m, kTensorQuant8, {1}, 0), kBadData);
  EXPECT_EQ(add_operand(m, kTensorQuant8, {1}, 1, -1), kBadData);
  EXPECT_EQ(add_operand(m, kTensorQuant8, {1}, 1, 256), kBadData);
  EXPECT_EQ(add_operand(m, 14, {1}, 1, -129), kBadData);
  EXPECT_EQ(add_operand(m, 14, {1}, 1, 128), kBadData);
  EXPECT_EQ(add_operand(m, 12, {1}, 1, 65536), kBadData);
  EXPECT_EQ(add_operand(m, 7, {1}, 1, 1), kBadData);
  EXPECT_EQ(add_operand(m, 13, {1}, 1, 1), kBadData);
  EXPECT_EQ(add_operand(m, 11, {1}, 1, 0), kBadData);
  EXPECT_EQ(add_operand(m, 11, {1}, 0, 1), kBadData);
  EXPECT_EQ(add_operand(m, kTensorFloat32, {1}, 1), kBadData);
  EXPECT_EQ(add_operand(m, kTensorFloat32, {1}, 0, 1), kBadData);
  EXPECT_EQ(add_operand(m, kInt32, {1}), kBadData);
  EXPECT_EQ(add_operand(m, kTensorInt32, {1}, .5f, 3), kOk) << "a bias has a scale";
  EXPECT_EQ(add_operand(m, 10000, {}), kOk) << "OEM types are still types";
  EXPECT_EQ(add_operand(m, 10001, {1}), kOk);
}

TEST(NnapiBadCalls, OperandTypesWithWrongDimensions) {
  Builder b;
  const uint32_t one = 1;
  ANeuralNetworksOperandType type{kTensorFloat32, 1, nullptr, 0, 0};
  EXPECT_EQ(ANeuralNetworksModel_addOperand(b.model, &type), kBadData);
  type = {kTensorFloat32, 0, &one, 0, 0};
  EXPECT_EQ(ANeuralNetworksModel_addOperand(b.model, &type), kBadData);
  EXPECT_EQ(add_operand(b.model, -1, {1}), kBadData);
  EXPECT_EQ(add_operand(b.model, 16, {1}), kBadData);
  EXPECT_EQ(add_operand(b.model, kTensorFloat32, {65536, 65536}), kBadData);
  EXPECT_EQ(add_operand(b.model, kTensorFloat32, {32768, 32768}), kBadData) << "4 bytes each";
  EXPECT_EQ(add_operand(b.model, kTensorQuant8, {32768, 32768}, 1), kOk);
}

TEST(NnapiBadCalls, FinishedModelsStay) {
  AddModel b;
  const float value = 0;
  const uint32_t index = 0;
  EXPECT_EQ(add_operand(b.model, kTensorFloat32, {1}), kBadState);
  EXPECT_EQ(ANeuralNetworksModel_setOperandValue(b.model, 0, &value, sizeof value), kBadState);
  EXPECT_EQ(ANeuralNetworksModel_addOperation(b.model, kAdd, 1, &index, 1, &index), kBadState);
  EXPECT_EQ(ANeuralNetworksModel_identifyInputsAndOutputs(b.model, 1, &index, 1, &index), kBadState);
  EXPECT_EQ(ANeuralNetworksModel_relaxComputationFloat32toFloat16(b.model, true), kBadState);
  EXPECT_EQ(ANeuralNetworksModel_finish(b.model), kBadState);
}

TEST(NnapiBadCalls, ValuesOfOperands) {
  Builder b;
  ANeuralNetworksModel* m = b.model;
  const float values[4] = {};
  b.operand(kTensorFloat32, {2});
  b.operand(kTensorFloat32, {0});
  b.operand(kTensorFloat32, {});
  EXPECT_EQ(ANeuralNetworksModel_setOperandValue(m, 0, nullptr, 4), kNull);
  EXPECT_EQ(ANeuralNetworksModel_setOperandValue(m, 0, nullptr, 0), kOk) << "an optional operand left out";
  EXPECT_EQ(ANeuralNetworksModel_setOperandValue(m, 0, values, 4), kBadData);
  EXPECT_EQ(ANeuralNetworksModel_setOperandValue(m, 0, values, 12), kBadData);
  EXPECT_EQ(ANeuralNetworksModel_setOperandValue(m, 3, values, 8), kBadData);
  EXPECT_EQ(ANeuralNetworksModel_setOperandValue(m, -1, values, 8), kBadData);
  EXPECT_EQ(ANeuralNetworksModel_setOperandValue(m, 1, values, 4), kBadData);
  EXPECT_EQ(ANeuralNetworksModel_setOperandValue(m, 2, values, 4), kBadData);
  EXPECT_EQ(ANeuralNetworksModel_setOperandValue(m, 0, values, 8), kOk);
}

TEST(NnapiBadCalls, ValuesFromMemory) {
  Builder b;
  b.operand(kTensorFloat32, {2});
  FdMemory memory(64);
  const auto set = [&](int32_t index, size_t offset, size_t length) {
    return ANeuralNetworksModel_setOperandValueFromMemory(b.model, index, memory.memory, offset, length);
  };
  EXPECT_EQ(set(0, 65, 8), kBadData);
  EXPECT_EQ(set(0, 60, 8), kBadData);
  EXPECT_EQ(set(0, SIZE_MAX, 8), kBadData) << "offset and length together overflow";
  EXPECT_EQ(set(0, 0, 4), kBadData);
  EXPECT_EQ(set(1, 0, 8), kBadData);
  EXPECT_EQ(set(-1, 0, 8), kBadData);
  EXPECT_EQ(set(0, 56, 8), kOk);
  AddModel add;
  Compiled c(add);
  RoleMemory role(c, true, 0);
  EXPECT_EQ(ANeuralNetworksModel_setOperandValueFromMemory(b.model, 0, role.memory, 0, 8), kBadData);
}

TEST(NnapiBadCalls, ValuesFromModels) {
  Builder b, open;
  AddModel add;
  b.operand(15, {});
  b.operand(kTensorFloat32, {2});
  EXPECT_EQ(ANeuralNetworksModel_setOperandValueFromModel(b.model, 0, open.model), kBadState);
  EXPECT_EQ(ANeuralNetworksModel_setOperandValueFromModel(b.model, 2, add.model), kBadData);
  EXPECT_EQ(ANeuralNetworksModel_setOperandValueFromModel(b.model, -1, add.model), kBadData);
  EXPECT_EQ(ANeuralNetworksModel_setOperandValueFromModel(b.model, 1, add.model), kBadData);
  EXPECT_EQ(ANeuralNetworksModel_setOperandValueFromModel(b.model, 0, add.model), kOk);
}

TEST(NnapiBadCalls, ScalesPerChannel) {
  Builder b;
  b.operand(11, {2, 3});
  b.operand(kTensorFloat32, {2, 3});
  const float scales[3] = {1, 1, 1}, bad[2] = {1, 0};
  const auto set = [&](int32_t index, uint32_t dim, uint32_t count, const float* values) {
    const ANeuralNetworksSymmPerChannelQuantParams q{dim, count, values};
    return ANeuralNetworksModel_setOperandSymmPerChannelQuantParams(b.model, index, &q);
  };
  EXPECT_EQ(set(2, 0, 2, scales), kBadData);
  EXPECT_EQ(set(-1, 0, 2, scales), kBadData);
  EXPECT_EQ(set(1, 0, 2, scales), kBadData);
  EXPECT_EQ(set(0, 2, 2, scales), kBadData);
  EXPECT_EQ(set(0, 1, 2, scales), kBadData);
  EXPECT_EQ(set(0, 0, 2, bad), kBadData);
  EXPECT_EQ(set(0, 0, 2, nullptr), kBadData);
  EXPECT_EQ(ANeuralNetworksModel_setOperandSymmPerChannelQuantParams(b.model, 0, nullptr), kNull);
  EXPECT_EQ(set(0, 1, 3, scales), kOk);
}

TEST(NnapiBadCalls, Operations) {
  Builder b;
  const uint32_t x = b.operand(kTensorFloat32, {2}), act = b.scalar(0), q = b.operand(kTensorQuant8, {2}, 1);
  const uint32_t y = b.operand(kTensorFloat32, {2});
  const auto add = [&](int32_t code, std::vector<uint32_t> in, std::vector<uint32_t> out) {
    return ANeuralNetworksModel_addOperation(b.model, code, static_cast<uint32_t>(in.size()), in.data(),
                                             static_cast<uint32_t>(out.size()), out.data());
  };
  EXPECT_EQ(ANeuralNetworksModel_addOperation(b.model, kAdd, 0, nullptr, 1, &y), kNull);
  EXPECT_EQ(ANeuralNetworksModel_addOperation(b.model, kAdd, 1, &x, 0, nullptr), kNull);
  EXPECT_EQ(add(-1, {x, x, act}, {y}), kBadData);
  EXPECT_EQ(add(106, {x, x, act}, {y}), kBadData);
  EXPECT_EQ(add(kAdd, {x, x, 99}, {y}), kBadData);
  EXPECT_EQ(add(kAdd, {x, x, act}, {99}), kBadData);
  EXPECT_EQ(add(kAdd, {x, x}, {y}), kBadData);
  EXPECT_EQ(add(kAdd, {x, x, act, act}, {y}), kBadData);
  EXPECT_EQ(add(kAdd, {x, x, act}, {y, y}), kBadData);
  EXPECT_EQ(add(kAdd, {x, q, act}, {y}), kBadData);
  EXPECT_EQ(add(kAdd, {x, x, act}, {q}), kBadData);
  EXPECT_EQ(add(kAdd, {x, x, act}, {y}), kOk);
}

TEST(NnapiBadCalls, InputsAndOutputs) {
  Builder b;
  const uint32_t x = b.operand(kTensorFloat32, {2}), act = b.scalar(0), y = b.operand(kTensorFloat32, {2});
  b.add(kAdd, {x, x, act}, {y});
  const auto identify = [&](std::vector<uint32_t> in, std::vector<uint32_t> out) {
    return ANeuralNetworksModel_identifyInputsAndOutputs(b.model, static_cast<uint32_t>(in.size()), in.data(),
                                                         static_cast<uint32_t>(out.size()), out.data());
  };
  EXPECT_EQ(ANeuralNetworksModel_identifyInputsAndOutputs(b.model, 0, nullptr, 1, &y), kNull);
  EXPECT_EQ(ANeuralNetworksModel_identifyInputsAndOutputs(b.model, 1, &x, 0, nullptr), kNull);
  EXPECT_EQ(identify({x}, {x}), kBadData);
  EXPECT_EQ(identify({x, x}, {y}), kBadData);
  EXPECT_EQ(identify({x}, {y, y}), kBadData);
  EXPECT_EQ(identify({x, act}, {y}), kBadData) << "a constant";
  EXPECT_EQ(identify({x, 99}, {y}), kBadData);
  EXPECT_EQ(identify({x}, {y}), kOk);
  EXPECT_EQ(ANeuralNetworksModel_finish(b.model), kOk);
}

TEST(NnapiBadCalls, ModelsThatCannotBeFinished) {
  Builder empty;
  EXPECT_EQ(ANeuralNetworksModel_finish(empty.model), kBadData);
  EXPECT_EQ(ANeuralNetworksModel_finish(empty.model), kBadState) << "a failed finish is final";
  const auto finish = [](auto build) {
    Builder b;
    const uint32_t x = b.operand(kTensorFloat32, {2}), act = b.scalar(0), t = b.operand(kTensorFloat32, {2});
    const uint32_t y = b.operand(kTensorFloat32, {2});
    build(b, x, act, t, y);
    EXPECT_EQ(ANeuralNetworksModel_identifyInputsAndOutputs(b.model, 1, &x, 1, &y), kOk);
    return ANeuralNetworksModel_finish(b.model);
  };
  using Index = uint32_t;
  EXPECT_EQ(finish([](Builder& b, Index x, Index act, Index t, Index y) {
              b.add(kAdd, {x, y, act}, {t});
              b.add(kAdd, {x, t, act}, {y});
            }),
            kBadData)
      << "a cycle";
  EXPECT_EQ(finish([](Builder& b, Index x, Index act, Index t, Index y) { b.add(kAdd, {x, t, act}, {y}); }), kBadData)
      << "read, never written";
  EXPECT_EQ(finish([](Builder& b, Index x, Index act, Index, Index y) { b.add(kAdd, {x, x, act}, {y}); }), kBadData)
      << "neither read nor written";
  EXPECT_EQ(finish([](Builder& b, Index x, Index act, Index t, Index y) {
              b.add(kAdd, {x, x, act}, {t});
              b.add(kAdd, {x, x, act}, {y});
              b.add(kAdd, {x, t, act}, {y});
            }),
            kBadData)
      << "written twice";
  EXPECT_EQ(finish([](Builder& b, Index x, Index act, Index t, Index y) {
              b.add(kAdd, {x, t, act}, {y});
              b.add(kAdd, {x, x, act}, {t});
            }),
            kOk)
      << "any order will do";
}

// ---------------------------------------------------------------------------------------------------- compilation

TEST(NnapiBadCalls, CompilationsOfUnfinishedModels) {
  Builder b;
  ANeuralNetworksCompilation* c = nullptr;
  const ANeuralNetworksDevice* list[1] = {device()};
  EXPECT_EQ(ANeuralNetworksCompilation_create(b.model, &c), kBadState);
  EXPECT_EQ(ANeuralNetworksCompilation_createForDevices(b.model, list, 1, &c), kBadState);
  EXPECT_EQ(c, nullptr);
}

TEST(NnapiBadCalls, ListsOfDevices) {
  AddModel b;
  ANeuralNetworksCompilation* c = nullptr;
  bool supported = false;
  const ANeuralNetworksDevice *twice[2] = {device(), device()}, *null[1] = {nullptr};
  const auto both = [&](const ANeuralNetworksDevice* const* list, uint32_t count, int code) {
    EXPECT_EQ(ANeuralNetworksCompilation_createForDevices(b.model, list, count, &c), code);
    EXPECT_EQ(ANeuralNetworksModel_getSupportedOperationsForDevices(b.model, list, count, &supported), code);
  };
  both(twice, 0, kBadData);
  both(twice, 2, kBadData);
  both(nullptr, 1, kNull);
  both(null, 1, kNull);
  ANeuralNetworksDevice* none = nullptr;
  uint32_t count = 0;
  ASSERT_EQ(ANeuralNetworks_getDeviceCount(&count), kOk);
  EXPECT_EQ(ANeuralNetworks_getDevice(count, &none), kBadData);
  const ANeuralNetworksDevice* foreign[1] = {reinterpret_cast<const ANeuralNetworksDevice*>(&count)};
  both(foreign, 1, kBadData);
}

TEST(NnapiBadCalls, ChoicesOfACompilation) {
  AddModel b;
  const uint8_t token[32] = {};
  const ANeuralNetworksDevice* list[1] = {device()};
  ANeuralNetworksCompilation *c = nullptr, *explicit_c = nullptr;
  ASSERT_EQ(ANeuralNetworksCompilation_create(b.model, &c), kOk);
  ASSERT_EQ(ANeuralNetworksCompilation_createForDevices(b.model, list, 1, &explicit_c), kOk);
  EXPECT_EQ(ANeuralNetworksCompilation_setPreference(c, 40), kBadData);
  EXPECT_EQ(ANeuralNetworksCompilation_setPreference(c, -1), kBadData);
  EXPECT_EQ(ANeuralNetworksCompilation_setPriority(c, 0), kBadData);
  EXPECT_EQ(ANeuralNetworksCompilation_setPriority(c, 110), kOk);
  EXPECT_EQ(ANeuralNetworksCompilation_setCaching(c, nullptr, token), kNull);
  EXPECT_EQ(ANeuralNetworksCompilation_setCaching(c, "/tmp", nullptr), kNull);
  EXPECT_EQ(ANeuralNetworksCompilation_setTimeout(c, 1), kBadData);
  EXPECT_EQ(ANeuralNetworksCompilation_setTimeout(explicit_c, 1), kOk);
  uint32_t value = 0;
  ANeuralNetworksExecution* e = nullptr;
  ANeuralNetworksBurst* burst = nullptr;
  ANeuralNetworksMemoryDesc* desc = nullptr;
  ASSERT_EQ(ANeuralNetworksMemoryDesc_create(&desc), kOk);
  EXPECT_EQ(ANeuralNetworksExecution_create(c, &e), kBadState);
  EXPECT_EQ(ANeuralNetworksBurst_create(c, &burst), kBadState);
  EXPECT_EQ(ANeuralNetworksCompilation_getPreferredMemoryAlignmentForInput(c, 0, &value), kBadState);
  EXPECT_EQ(ANeuralNetworksMemoryDesc_addInputRole(desc, c, 0, 1), kBadData);
  ASSERT_EQ(ANeuralNetworksCompilation_finish(c), kOk);
  EXPECT_EQ(ANeuralNetworksCompilation_setPreference(c, 1), kBadState);
  EXPECT_EQ(ANeuralNetworksCompilation_setPriority(c, 100), kBadState);
  EXPECT_EQ(ANeuralNetworksCompilation_setCaching(c, "/tmp", token), kBadState);
  EXPECT_EQ(ANeuralNetworksCompilation_setTimeout(c, 1), kBadState);
  EXPECT_EQ(ANeuralNetworksCompilation_finish(c), kBadState);
  EXPECT_EQ(ANeuralNetworksCompilation_getPreferredMemoryAlignmentForInput(c, 2, &value), kBadData);
  EXPECT_EQ(ANeuralNetworksCompilation_getPreferredMemoryPaddingForInput(c, 2, &value), kBadData);
  EXPECT_EQ(ANeuralNetworksCompilation_getPreferredMemoryAlignmentForOutput(c, 1, &value), kBadData);
  EXPECT_EQ(ANeuralNetworksCompilation_getPreferredMemoryPaddingForOutput(c, 1, &value), kBadData);
  EXPECT_EQ(ANeuralNetworksCompilation_getPreferredMemoryPaddingForOutput(c, 0, &value), kOk);
  ANeuralNetworksMemoryDesc_free(desc);
  ANeuralNetworksCompilation_free(c);
  ANeuralNetworksCompilation_free(explicit_c);
}

TEST(NnapiBadCalls, AnOperationThatNothingRuns) {
  Builder b;
  const uint32_t x = b.operand(kTensorFloat32, {2}), y = b.operand(kTensorFloat32, {2});
  b.add(10000, {x}, {y});
  b.finish({x}, {y});
  const ANeuralNetworksDevice* list[1] = {device()};
  bool supported = true;
  EXPECT_EQ(ANeuralNetworksModel_getSupportedOperationsForDevices(b.model, list, 1, &supported), kOk);
  EXPECT_FALSE(supported);
  ANeuralNetworksCompilation* c = nullptr;
  ASSERT_EQ(ANeuralNetworksCompilation_createForDevices(b.model, list, 1, &c), kOk);
  EXPECT_EQ(ANeuralNetworksCompilation_finish(c), kBadData);
  ANeuralNetworksExecution* e = nullptr;
  EXPECT_EQ(ANeuralNetworksExecution_create(c, &e), kBadState);
  ANeuralNetworksCompilation_free(c);
}

TEST(NnapiBadCalls, ABadConstantFailsWhenRun) {
  Builder b;
  const uint32_t x = b.operand(kTensorFloat32, {2}), act = b.scalar(999), y = b.operand(kTensorFloat32, {2});
  b.add(kAdd, {x, x, act}, {y});
  b.finish({x}, {y});
  Compiled c(b);
  Execution run(c);
  std::vector<float> in = {1, 2};
  RoleMemory out(c, false, 0);
  FdMemory copy(8);
  ASSERT_EQ(ANeuralNetworksMemory_copy(copy.memory, out.memory), kOk);
  ASSERT_EQ(run.input(0, in), kOk);
  ASSERT_EQ(ANeuralNetworksExecution_setOutputFromMemory(run.execution, 0, nullptr, out.memory, 0, 0), kOk);
  EXPECT_NE(ANeuralNetworksExecution_compute(run.execution), kOk);
  EXPECT_EQ(ANeuralNetworksMemory_copy(out.memory, copy.memory), kBadData) << "a failed run leaves no value";
}

// ------------------------------------------------------------------------------------------------------- execution

TEST(NnapiBadCalls, BindingsOfPointers) {
  AddModel b;
  Compiled c(b);
  Execution run(c);
  std::vector<float> x(4), y(2), z(4);
  ANeuralNetworksExecution* e = run.execution;
  EXPECT_EQ(ANeuralNetworksExecution_setInput(e, 0, nullptr, nullptr, 16), kNull);
  EXPECT_EQ(ANeuralNetworksExecution_setOutput(e, 0, nullptr, nullptr, 16), kNull);
  EXPECT_EQ(ANeuralNetworksExecution_setInput(e, 0, nullptr, x.data(), 15), kBadData);
  EXPECT_EQ(ANeuralNetworksExecution_setInput(e, 0, nullptr, x.data(), 17), kBadData);
  EXPECT_EQ(ANeuralNetworksExecution_setInput(e, 0, nullptr, x.data(), 0), kBadData);
  EXPECT_EQ(ANeuralNetworksExecution_setOutput(e, 0, nullptr, z.data(), 15), kBadData);
  EXPECT_EQ(ANeuralNetworksExecution_setInput(e, 999, nullptr, x.data(), 16), kBadData);
  EXPECT_EQ(ANeuralNetworksExecution_setInput(e, -1, nullptr, x.data(), 16), kBadData);
  EXPECT_EQ(ANeuralNetworksExecution_setOutput(e, 1, nullptr, z.data(), 16), kBadData);
  const uint32_t dims[2] = {2, 2}, other[2] = {2, 3}, three[3] = {1, 2, 2}, open[2] = {2, 0};
  const auto typed = [&](ANeuralNetworksOperandType type) {
    return ANeuralNetworksExecution_setInput(e, 0, &type, x.data(), 16);
  };
  EXPECT_EQ(typed({kTensorFloat32, 2, nullptr, 0, 0}), kBadData);
  EXPECT_EQ(typed({kTensorFloat32, 0, dims, 0, 0}), kBadData);
  EXPECT_EQ(typed({-1, 2, dims, 0, 0}), kBadData) << "no such type";
  EXPECT_EQ(typed({kTensorFloat32, 2, dims, 1, 0}), kBadData) << "no such type: floats have no scale";
  EXPECT_EQ(typed({kTensorFloat32, 2, dims, 0, 1}), kBadData);
  EXPECT_EQ(typed({kTensorQuant8, 2, dims, 0, 0}), kBadData) << "no such type: its scale is 0";
  EXPECT_EQ(typed({kTensorFloat32, 2, other, 0, 0}), kBadData);
  EXPECT_EQ(typed({kTensorFloat32, 3, three, 0, 0}), kBadData);
  EXPECT_EQ(typed({kTensorFloat32, 0, nullptr, 0, 0}), kBadData) << "the operand knows its rank";
  EXPECT_EQ(typed({kTensorFloat32, 2, open, 0, 0}), kBadData) << "the operand knows both sizes";
  EXPECT_EQ(typed({kTensorFloat32, 2, dims, 0, 0}), kOk);
  EXPECT_EQ(run.input(0, x), kBadState) << "bound already";
  FdMemory memory(16);
  EXPECT_EQ(ANeuralNetworksExecution_setInputFromMemory(e, 0, nullptr, memory.memory, 0, 16), kBadState);
  EXPECT_EQ(ANeuralNetworksExecution_compute(e), kBadData) << "not all is bound";
  EXPECT_EQ(run.input(1, y), kOk);
  EXPECT_EQ(run.output(0, z), kOk);
  EXPECT_EQ(ANeuralNetworksExecution_compute(e), kOk) << "failed calls changed nothing";
}

TEST(NnapiBadCalls, BindingsOfOpenShapes) {
  Builder b;
  const uint32_t x = b.operand(kTensorFloat32, {0, 0}), act = b.scalar(0), y = b.operand(kTensorFloat32, {0, 0});
  b.add(kAdd, {x, x, act}, {y});
  b.finish({x}, {y});
  Compiled c(b);
  Execution run(c);
  std::vector<float> in(4), out(4);
  const uint32_t huge[2] = {1u << 31, 1u << 31}, half[2] = {2, 0}, one[1] = {4}, dims[2] = {2, 2};
  const auto typed = [&](uint32_t rank, const uint32_t* sizes) {
    const ANeuralNetworksOperandType type{kTensorFloat32, rank, sizes, 0, 0};
    return ANeuralNetworksExecution_setInput(run.execution, 0, &type, in.data(), 16);
  };
  EXPECT_EQ(typed(2, huge), kBadData);
  EXPECT_EQ(run.input(0, in), kBadData) << "the shape is still open";
  EXPECT_EQ(typed(2, half), kBadData) << "one size is still open";
  EXPECT_EQ(typed(1, one), kBadData) << "the operand knows its rank";
  EXPECT_EQ(typed(0, nullptr), kBadData);
  FdMemory memory(16);
  EXPECT_EQ(ANeuralNetworksExecution_setInputFromMemory(run.execution, 0, nullptr, memory.memory, 0, 16), kBadData);
  EXPECT_EQ(typed(2, dims), kOk);
  EXPECT_EQ(run.output(0, out), kOk) << "an output may stay open";
  ANeuralNetworksEvent* event = nullptr;
  EXPECT_EQ(ANeuralNetworksExecution_startComputeWithDependencies(run.execution, nullptr, 0, 0, &event), kBadData);
  EXPECT_EQ(event, nullptr);
}

TEST(NnapiBadCalls, BindingsOfMemories) {
  AddModel b;
  Compiled c(b);
  Execution run(c);
  ANeuralNetworksExecution* e = run.execution;
  FdMemory memory(64);
  EXPECT_EQ(ANeuralNetworksExecution_setInputFromMemory(e, 0, nullptr, memory.memory, 65, 16), kBadData);
  EXPECT_EQ(ANeuralNetworksExecution_setInputFromMemory(e, 0, nullptr, memory.memory, 56, 16), kBadData);
  EXPECT_EQ(ANeuralNetworksExecution_setInputFromMemory(e, 0, nullptr, memory.memory, 0, 8), kBadData);
  EXPECT_EQ(ANeuralNetworksExecution_setOutputFromMemory(e, 0, nullptr, memory.memory, SIZE_MAX, 16), kBadData);
  RoleMemory role(c, true, 0);
  EXPECT_EQ(ANeuralNetworksExecution_setInputFromMemory(e, 0, nullptr, role.memory, 4, 0), kBadData);
  EXPECT_EQ(ANeuralNetworksExecution_setInputFromMemory(e, 0, nullptr, role.memory, 0, 16), kBadData);
  EXPECT_EQ(ANeuralNetworksExecution_setInputFromMemory(e, 1, nullptr, role.memory, 0, 0), kBadData) << "no such role";
  EXPECT_EQ(ANeuralNetworksExecution_setOutputFromMemory(e, 0, nullptr, role.memory, 0, 0), kBadData);
  const uint32_t dims[2] = {1, 4};
  const ANeuralNetworksOperandType type{kTensorFloat32, 2, dims, 0, 0};
  EXPECT_EQ(ANeuralNetworksExecution_setInputFromMemory(e, 0, &type, role.memory, 0, 0), kBadData);
  ASSERT_EQ(ANeuralNetworksExecution_setInputFromMemory(e, 0, nullptr, role.memory, 0, 0), kOk);
  std::vector<float> y(2), z(4);
  ASSERT_EQ(run.input(1, y) + run.output(0, z), kOk);
  EXPECT_EQ(ANeuralNetworksExecution_compute(e), kFailed) << "nothing was ever written to the memory";
}

TEST(NnapiBadCalls, PaddingAndItsTime) {
  AddModel b;
  Compiled c(b);
  Execution run(c);
  std::vector<float> x(16), y(2), z(4);
  ASSERT_EQ(ANeuralNetworksExecution_enableInputAndOutputPadding(run.execution, true), kOk);
  EXPECT_EQ(ANeuralNetworksExecution_setInput(run.execution, 0, nullptr, x.data(), 15), kBadData);
  EXPECT_EQ(run.input(0, x), kOk);
  EXPECT_EQ(ANeuralNetworksExecution_enableInputAndOutputPadding(run.execution, false), kBadState);
}

TEST(NnapiBadCalls, SettersAfterTheStart) {
  Ready r;
  ASSERT_EQ(ANeuralNetworksExecution_compute(r.execution), kOk);
  EXPECT_EQ(ANeuralNetworksExecution_setLoopTimeout(r.execution, 1), kBadState);
  EXPECT_EQ(ANeuralNetworksExecution_setTimeout(r.execution, 1), kBadState);
  EXPECT_EQ(ANeuralNetworksExecution_setMeasureTiming(r.execution, true), kBadState);
  EXPECT_EQ(ANeuralNetworksExecution_setReusable(r.execution, true), kBadState);
  EXPECT_EQ(ANeuralNetworksExecution_enableInputAndOutputPadding(r.execution, true), kBadState);
  EXPECT_EQ(r.run.input(0, r.x), kBadState);
  EXPECT_EQ(r.run.output(0, r.z), kBadState);
  ANeuralNetworksEvent* event = nullptr;
  EXPECT_EQ(ANeuralNetworksExecution_compute(r.execution), kBadState);
  EXPECT_EQ(ANeuralNetworksExecution_startCompute(r.execution, &event), kBadState);
  EXPECT_EQ(ANeuralNetworksExecution_startComputeWithDependencies(r.execution, nullptr, 0, 0, &event), kBadState);
  EXPECT_EQ(event, nullptr);
}

TEST(NnapiBadCalls, WhatNeedsOneDevice) {
  Ready r;
  EXPECT_EQ(ANeuralNetworksExecution_setTimeout(r.execution, 1), kBadData);
  EXPECT_EQ(ANeuralNetworksExecution_setMeasureTiming(r.execution, true), kBadData);
  ANeuralNetworksEvent* event = nullptr;
  EXPECT_EQ(ANeuralNetworksExecution_startComputeWithDependencies(r.execution, nullptr, 0, 1, &event), kBadData);
  EXPECT_EQ(ANeuralNetworksExecution_setLoopTimeout(r.execution, UINT64_MAX), kOk) << "cut to the maximum";
}

TEST(NnapiBadCalls, StartsWithoutEventsOrWithWrongDependencies) {
  Ready r;
  ANeuralNetworksEvent* event = nullptr;
  const ANeuralNetworksEvent* null[1] = {nullptr};
  EXPECT_EQ(ANeuralNetworksExecution_startCompute(r.execution, nullptr), kNull);
  EXPECT_EQ(ANeuralNetworksExecution_startComputeWithDependencies(r.execution, nullptr, 0, 0, nullptr), kNull);
  EXPECT_EQ(ANeuralNetworksExecution_startComputeWithDependencies(r.execution, nullptr, 1, 0, &event), kNull);
  EXPECT_EQ(ANeuralNetworksExecution_startComputeWithDependencies(r.execution, null, 1, 0, &event), kNull);
  EXPECT_EQ(ANeuralNetworksExecution_compute(r.execution), kOk);
}

TEST(NnapiBadCalls, QueriesAtTheWrongTime) {
  Ready r;
  uint32_t rank = 0, dims[4] = {};
  uint64_t ns = 0;
  EXPECT_EQ(ANeuralNetworksExecution_getOutputOperandRank(r.execution, 0, &rank), kBadState);
  EXPECT_EQ(ANeuralNetworksExecution_getOutputOperandDimensions(r.execution, 0, dims), kBadState);
  EXPECT_EQ(ANeuralNetworksExecution_getDuration(r.execution, 0, &ns), kBadState);
  EXPECT_EQ(ns, UINT64_MAX);
  ASSERT_EQ(ANeuralNetworksExecution_compute(r.execution), kOk);
  EXPECT_EQ(ANeuralNetworksExecution_getOutputOperandRank(r.execution, 1, &rank), kBadData);
  EXPECT_EQ(ANeuralNetworksExecution_getOutputOperandRank(r.execution, -1, &rank), kBadData);
  EXPECT_EQ(ANeuralNetworksExecution_getDuration(r.execution, 0, &ns), kBadState) << "not measured";
  Builder b;
  const uint32_t x = b.operand(kTensorFloat32, {2, 3}), n = b.operand(kInt32, {});
  b.add(101, {x}, {n});
  b.finish({x}, {n});
  Compiled c(b);
  Execution run(c);
  std::vector<float> in(6);
  std::vector<int32_t> out(1);
  ASSERT_EQ(run.input(0, in) + run.output(0, out), kOk);
  ASSERT_EQ(ANeuralNetworksExecution_compute(run.execution), kOk);
  EXPECT_EQ(out[0], 2);
  EXPECT_EQ(ANeuralNetworksExecution_getOutputOperandRank(run.execution, 0, &rank), kOk);
  EXPECT_EQ(rank, 0u);
  EXPECT_EQ(ANeuralNetworksExecution_getOutputOperandDimensions(run.execution, 0, dims), kBadData);
}

TEST(NnapiBadCalls, BurstsOfOtherCompilations) {
  Ready r, other;
  ANeuralNetworksBurst* burst = nullptr;
  ASSERT_EQ(ANeuralNetworksBurst_create(other.compiled.compilation, &burst), kOk);
  EXPECT_EQ(ANeuralNetworksExecution_burstCompute(r.execution, burst), kBadData);
  EXPECT_EQ(ANeuralNetworksExecution_burstCompute(other.execution, burst), kOk);
  EXPECT_EQ(ANeuralNetworksExecution_burstCompute(r.execution, nullptr), kNull);
  ANeuralNetworksBurst_free(burst);
}

TEST(NnapiBadCalls, Fences) {
  ANeuralNetworksEvent* event = nullptr;
  EXPECT_EQ(ANeuralNetworksEvent_createFromSyncFenceFd(-1, &event), kBadData);
  EXPECT_EQ(ANeuralNetworksEvent_createFromSyncFenceFd(0, &event), kBadData);
  EXPECT_EQ(event, nullptr);
  EXPECT_EQ(ANeuralNetworksEvent_createFromSyncFenceFd(1, nullptr), kNull);
  Ready r;
  int fd = 7;
  ASSERT_EQ(ANeuralNetworksExecution_startCompute(r.execution, &event), kOk);
  EXPECT_EQ(ANeuralNetworksEvent_getSyncFenceFd(event, &fd), kBadData) << "started without a fence";
  EXPECT_EQ(fd, -1);
  EXPECT_EQ(ANeuralNetworksEvent_getSyncFenceFd(event, nullptr), kNull);
  ANeuralNetworksEvent_free(event);
}

// --------------------------------------------------------------------------------------------------------- memory

TEST(NnapiBadCalls, Descriptors) {
  AddModel b;
  Compiled c(b);
  ANeuralNetworksMemoryDesc* desc = nullptr;
  ANeuralNetworksMemory* memory = nullptr;
  ASSERT_EQ(ANeuralNetworksMemoryDesc_create(&desc), kOk);
  EXPECT_EQ(ANeuralNetworksMemoryDesc_finish(desc), kBadData) << "no role";
  EXPECT_EQ(ANeuralNetworksMemory_createFromDesc(desc, &memory), kBadState);
  EXPECT_EQ(ANeuralNetworksMemoryDesc_addInputRole(desc, c.compilation, 2, 1), kBadData);
  EXPECT_EQ(ANeuralNetworksMemoryDesc_addInputRole(desc, c.compilation, 0, 0), kBadData);
  EXPECT_EQ(ANeuralNetworksMemoryDesc_addInputRole(desc, c.compilation, 0, 1.5f), kBadData);
  EXPECT_EQ(ANeuralNetworksMemoryDesc_addInputRole(desc, c.compilation, 0, NAN), kBadData);
  EXPECT_EQ(ANeuralNetworksMemoryDesc_addInputRole(desc, nullptr, 0, 1), kNull);
  EXPECT_EQ(ANeuralNetworksMemoryDesc_addInputRole(desc, c.compilation, 0, 1), kOk);
  EXPECT_EQ(ANeuralNetworksMemoryDesc_addInputRole(desc, c.compilation, 0, 1), kBadData) << "twice";
  EXPECT_EQ(ANeuralNetworksMemoryDesc_addInputRole(desc, c.compilation, 1, 1), kBadData) << "another shape";
  EXPECT_EQ(ANeuralNetworksMemoryDesc_addOutputRole(desc, c.compilation, 0, 1), kOk);
  const uint32_t dims[2] = {2, 3};
  EXPECT_EQ(ANeuralNetworksMemoryDesc_setDimensions(desc, 2, dims), kBadData);
  EXPECT_EQ(ANeuralNetworksMemoryDesc_setDimensions(desc, 1, dims), kBadData);
  EXPECT_EQ(ANeuralNetworksMemoryDesc_setDimensions(desc, 2, nullptr), kNull);
  EXPECT_EQ(ANeuralNetworksMemoryDesc_finish(desc), kOk);
  EXPECT_EQ(ANeuralNetworksMemoryDesc_finish(desc), kBadState);
  EXPECT_EQ(ANeuralNetworksMemoryDesc_setDimensions(desc, 0, nullptr), kBadState);
  EXPECT_EQ(ANeuralNetworksMemoryDesc_addInputRole(desc, c.compilation, 0, 1), kBadState);
  EXPECT_EQ(ANeuralNetworksMemory_createFromDesc(desc, &memory), kOk);
  ANeuralNetworksMemoryDesc_free(desc);
  ANeuralNetworksMemory_free(memory);
}

TEST(NnapiBadCalls, Copies) {
  AddModel b;
  Compiled c(b);
  RoleMemory x(c, true, 0), y(c, true, 1);
  FdMemory right(16), wrong(12);
  EXPECT_EQ(ANeuralNetworksMemory_copy(x.memory, right.memory), kBadData) << "never written";
  EXPECT_EQ(ANeuralNetworksMemory_copy(wrong.memory, x.memory), kBadData);
  EXPECT_EQ(ANeuralNetworksMemory_copy(right.memory, x.memory), kOk);
  EXPECT_EQ(ANeuralNetworksMemory_copy(x.memory, y.memory), kBadData);
  EXPECT_EQ(ANeuralNetworksMemory_copy(x.memory, right.memory), kOk);
  EXPECT_EQ(ANeuralNetworksMemory_copy(wrong.memory, x.memory), kBadData);
  EXPECT_EQ(ANeuralNetworksMemory_copy(x.memory, right.memory), kBadData) << "the failed copy left no value";
}

TEST(NnapiBadCalls, FileDescriptors) {
  ANeuralNetworksMemory* memory = nullptr;
  EXPECT_EQ(ANeuralNetworksMemory_createFromFd(16, PROT_READ, -1, 0, &memory), kFailed);
  EXPECT_EQ(ANeuralNetworksMemory_createFromFd(16, PROT_READ, 9999, 0, &memory), kFailed);
  EXPECT_EQ(memory, nullptr);
  EXPECT_EQ(ANeuralNetworksMemory_createFromFd(16, PROT_READ, 1, 0, nullptr), kNull);
}

TEST(NnapiBadCalls, HardwareBuffersAreAndroids) {
  int none = 0;  // nothing looks at it
  const auto* buffer = reinterpret_cast<const AHardwareBuffer*>(&none);
  ANeuralNetworksMemory* memory = reinterpret_cast<ANeuralNetworksMemory*>(&none);
  EXPECT_EQ(ANeuralNetworksMemory_createFromAHardwareBuffer(buffer, nullptr), kNull);
  EXPECT_EQ(ANeuralNetworksMemory_createFromAHardwareBuffer(nullptr, &memory), kNull);
  EXPECT_EQ(memory, nullptr);
  memory = reinterpret_cast<ANeuralNetworksMemory*>(&none);
  EXPECT_EQ(ANeuralNetworksMemory_createFromAHardwareBuffer(buffer, &memory), kBadData);
  EXPECT_EQ(memory, nullptr);
}

/// Of the type beside a binding only the dimensions count: the computation goes by what the model says.
TEST(NnapiBadCalls, TypesBesideABindingMayHaveAnotherScaleZeroPointOrCode) {
  Builder b;
  const uint32_t x = b.operand(kTensorQuant8, {2}, 0.5f, 10), y = b.operand(kTensorQuant8, {2}, 0.5f, 10);
  b.add(19, {x}, {y});  // RELU
  b.finish({x}, {y});
  Compiled c(b);
  const uint32_t dims[1] = {2}, other[1] = {3};
  struct {
    int32_t type;
    float scale;
    int32_t zero;
  } const types[] = {{kTensorQuant8, 0.5f, 10}, {kTensorQuant8, 2, 10}, {kTensorQuant8, 0.5f, 0}, {14, 3, -5},
                     {kTensorFloat32, 0, 0},    {kTensorInt32, 7, 9}};
  for (const auto& [type, scale, zero] : types) {
    const ANeuralNetworksOperandType given{type, 1, dims, scale, zero}, wrong{type, 1, other, scale, zero};
    for (const bool from_memory : {false, true}) {
      SCOPED_TRACE(testing::Message() << type << ", " << scale << ", " << zero << (from_memory ? ", memory" : ""));
      Execution run(c);
      std::vector<uint8_t> in = {4, 20}, out(2);
      FdMemory memory(2), target(2);
      const auto set_input = [&](const ANeuralNetworksOperandType& t) {
        return from_memory ? ANeuralNetworksExecution_setInputFromMemory(run.execution, 0, &t, memory.memory, 0, 2)
                           : ANeuralNetworksExecution_setInput(run.execution, 0, &t, in.data(), 2);
      };
      const auto set_output = [&](const ANeuralNetworksOperandType& t) {
        return from_memory ? ANeuralNetworksExecution_setOutputFromMemory(run.execution, 0, &t, target.memory, 0, 2)
                           : ANeuralNetworksExecution_setOutput(run.execution, 0, &t, out.data(), 2);
      };
      EXPECT_EQ(set_input(wrong), kBadData);
      EXPECT_EQ(set_output(wrong), kBadData);
      EXPECT_EQ(set_input(given), kOk);
      EXPECT_EQ(set_output(given), kOk);
      EXPECT_EQ(ANeuralNetworksExecution_compute(run.execution), kOk);
      if (!from_memory) {
        EXPECT_EQ(out, (std::vector<uint8_t>{10, 20}));
      }
    }
  }
}

TEST(NnapiBadCalls, OutputsThatAreTooSmallOrTooLarge) {
  Builder b;
  const uint32_t x = b.operand(kTensorFloat32, {1}), n = b.operand(kTensorInt32, {1});
  const uint32_t y = b.operand(kTensorFloat32, {0});
  b.add(89, {x, n}, {y});  // TILE
  b.finish({x, n}, {y});
  Compiled c(b);
  std::vector<float> in = {1}, out(2);
  for (const auto& [times, code] : {std::pair{2, kOk}, {3, kTooSmall}}) {
    Execution run(c);
    const std::vector<int32_t> multiple = {times};
    ASSERT_EQ(run.input(0, in) + run.input(1, multiple) + run.output(0, out), kOk);
    EXPECT_EQ(ANeuralNetworksExecution_compute(run.execution), code);
    uint32_t dim = 0;
    EXPECT_EQ(ANeuralNetworksExecution_getOutputOperandDimensions(run.execution, 0, &dim), code);
    EXPECT_EQ(dim, static_cast<uint32_t>(times));
  }
  Execution run(c);
  const std::vector<int32_t> multiple = {INT32_MAX};
  ASSERT_EQ(run.input(0, in) + run.input(1, multiple) + run.output(0, out), kOk);
  EXPECT_NE(ANeuralNetworksExecution_compute(run.execution), kOk) << "more bytes than 32 bits count";
}

}  // namespace
