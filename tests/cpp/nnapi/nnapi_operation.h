// One operation of NNAPI as a test writes it down: its operands in order, then run once, results with their shapes.
#pragma once

#include <initializer_list>

#include "cpp/nnapi/nnapi_client.h"

namespace nnapi_client {

using Floats = std::vector<float>;
using Ints = std::vector<int32_t>;
using Dims = std::vector<uint32_t>;

inline constexpr int32_t kFloat32 = 0, kBool = 6, kTensorQuant16 = 12;

/// One operation: its first tensor is the model's input, the others are constants; scalars; outputs of dynamic shape.
struct Operation : Builder {
  std::vector<uint32_t> in, out;
  std::vector<std::byte> first;  ///< contents of the first tensor
  uint32_t input = 0;            ///< and its operand

  template <class T>
  Operation& tensor(int32_t type, Dims dims, const std::vector<T>& values, float scale = 0) {
    if (!first.empty()) {
      in.push_back(constant(type, std::move(dims), values, scale));
      return *this;
    }
    const auto* bytes = reinterpret_cast<const std::byte*>(values.data());
    first.assign(bytes, bytes + values.size() * sizeof(T));
    input = operand(type, std::move(dims), scale);
    in.push_back(input);
    return *this;
  }
  Operation& floats(Dims dims, const Floats& values) { return tensor(kTensorFloat32, std::move(dims), values); }
  Operation& ints(Dims dims, const Ints& values) { return tensor(kTensorInt32, std::move(dims), values); }
  Operation& q16(Dims dims, const std::vector<uint16_t>& values) {
    return tensor(kTensorQuant16, std::move(dims), values, 0.125f);
  }
  Operation& q8(Dims dims, const std::vector<uint8_t>& values, float scale) {
    return tensor(kTensorQuant8, std::move(dims), values, scale);
  }
  Operation& integers(std::initializer_list<int32_t> values) {
    for (int32_t v : values) in.push_back(scalar(v));
    return *this;
  }
  Operation& reals(std::initializer_list<float> values) {
    for (float v : values) {
      in.push_back(operand(kFloat32, {}));
      EXPECT_EQ(ANeuralNetworksModel_setOperandValue(model, static_cast<int32_t>(in.back()), &v, sizeof v), 0);
    }
    return *this;
  }
  Operation& flag(bool value) {
    in.push_back(operand(kBool, {}));
    EXPECT_EQ(ANeuralNetworksModel_setOperandValue(model, static_cast<int32_t>(in.back()), &value, 1), 0);
    return *this;
  }
  /// An output of that rank.
  Operation& gives(int32_t type, size_t rank, float scale = 0) {
    out.push_back(operand(type, Dims(rank, 0), scale));
    return *this;
  }
  Operation& done(int32_t code) {
    add(code, in, out);
    finish({input}, out);
    return *this;
  }
};

/// A finished model that has run once.
struct Ran {
  Compiled compiled;
  Execution execution;
  std::vector<std::vector<std::byte>> bytes;
  int code = -1;

  explicit Ran(const Operation& op) : compiled(op), execution(compiled), bytes(op.out.size()) {
    EXPECT_EQ(execution.input(0, op.first), 0);
    for (size_t i = 0; i < bytes.size(); ++i) {
      bytes[i].resize(1 << 14);
      EXPECT_EQ(execution.output(static_cast<int32_t>(i), bytes[i]), 0);
    }
    code = ANeuralNetworksExecution_compute(execution.execution);
  }
  Dims dims(int32_t i) const {
    uint32_t rank = 0;
    EXPECT_EQ(ANeuralNetworksExecution_getOutputOperandRank(execution.execution, i, &rank), 0);
    Dims found(rank);
    EXPECT_EQ(ANeuralNetworksExecution_getOutputOperandDimensions(execution.execution, i, found.data()), 0);
    return found;
  }
  template <class T>
  std::vector<T> values(int32_t i) const {
    size_t count = 1;
    for (uint32_t d : dims(i)) count *= d;
    const T* from = reinterpret_cast<const T*>(bytes[static_cast<size_t>(i)].data());
    return {from, from + count};
  }
};

}  // namespace nnapi_client
