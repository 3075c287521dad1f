// A client of NNAPI for tests: models are built, compiled and bound with every call checked.
#pragma once

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <deque>
#include <vector>

#include "nnapi_host/neural_networks.h"

namespace nnapi_client {

inline constexpr int32_t kInt32 = 1, kTensorFloat32 = 3, kTensorInt32 = 4, kTensorQuant8 = 5;
inline constexpr int32_t kAdd = 0, kConv2d = 3, kSoftmax = 25;

/// A model under construction; calls that must succeed are asserted.
struct Builder {
  ANeuralNetworksModel* model = nullptr;
  uint32_t operands = 0;
  std::deque<std::vector<std::byte>> kept = {};  ///< constants, which the model does not copy

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
    const auto* bytes = reinterpret_cast<const std::byte*>(values.data());
    const std::vector<std::byte>& copy = kept.emplace_back(bytes, bytes + values.size() * sizeof(T));
    EXPECT_EQ(ANeuralNetworksModel_setOperandValue(model, static_cast<int32_t>(index), copy.data(), copy.size()), 0);
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

/// The library's first device, the CPU.
inline const ANeuralNetworksDevice* device() {
  ANeuralNetworksDevice* found = nullptr;
  EXPECT_EQ(ANeuralNetworks_getDevice(0, &found), 0);
  return found;
}

}  // namespace nnapi_client
