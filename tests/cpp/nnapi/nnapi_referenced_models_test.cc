// IF and WHILE as they are added to a model: referenced models must have the operands that they stand for.
#include <sys/stat.h>
#include <unistd.h>

#include <chrono>
#include <deque>
#include <filesystem>

#include "cpp/child_process.h"
#include "cpp/nnapi/nnapi_client.h"
#include "cpp/scratch_folder.h"

namespace {

using namespace nnapi_client;
constexpr int kBadData = 4, kBool8 = 9, kModel = 15, kIf = 96, kWhile = 97;
constexpr int32_t kValueTypes[] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 12, 13, 14, 15};

bool is_scalar(int32_t type) {
  return type <= 2 || type == 6 || type == 10 || type == 15;
}
bool is_quantised(int32_t type) {
  return type == 5 || type == 7 || type == 12 || type == 13 || type == 14;
}

/// y = tanh(x) on one type and shape.
struct Unary : Builder {
  explicit Unary(const std::vector<uint32_t>& dims = {2}, int32_t type = kTensorFloat32, float scale = 0) {
    const uint32_t x = operand(type, dims, scale), y = operand(type, dims, scale);
    add(28, {x}, {y});
    finish({x}, {y});
  }
};

/// A condition: x < x of one element.
struct Less : Builder {
  explicit Less(std::vector<uint32_t> out = {1}, int32_t type = kTensorFloat32) {
    const uint32_t x = operand(type, {1}), y = operand(kBool8, std::move(out));
    add(58, {x, x}, {y});
    finish({x}, {y});
  }
};

/// A model that the operation is added to.
struct Outer : Builder {
  uint32_t model_operand(const Builder* value) {
    const uint32_t index = operand(kModel, {});
    if (value) {
      EXPECT_EQ(ANeuralNetworksModel_setOperandValueFromModel(model, static_cast<int32_t>(index), value->model), 0);
    }
    return index;
  }
  uint32_t of_type(int32_t type, std::vector<uint32_t> dims = {2}) {
    return operand(type, is_scalar(type) ? std::vector<uint32_t>{} : std::move(dims), is_quantised(type) ? 1.0f : 0.0f);
  }
  int try_add(int32_t code, std::vector<uint32_t> in, std::vector<uint32_t> out) const {
    static const uint32_t none = 0;
    return ANeuralNetworksModel_addOperation(model, code, static_cast<uint32_t>(in.size()),
                                             in.empty() ? &none : in.data(), static_cast<uint32_t>(out.size()),
                                             out.empty() ? &none : out.data());
  }
};

TEST(NnapiReferencedModels, BranchesHaveTheOperandsOfTheIf) {
  const Unary yes, no, longer({3}), wider({2, 1});
  Outer b;
  const uint32_t c = b.of_type(kBool8, {1}), c2 = b.of_type(kBool8, {2}), x = b.of_type(kTensorFloat32);
  const uint32_t y = b.of_type(kTensorFloat32), then = b.model_operand(&yes), otherwise = b.model_operand(&no);
  EXPECT_EQ(b.try_add(kIf, {c2, then, otherwise, x}, {y}), kBadData) << "a condition of two elements";
  EXPECT_EQ(b.try_add(kIf, {c, then, otherwise}, {y}), kBadData);
  EXPECT_EQ(b.try_add(kIf, {c, then, otherwise, x, x}, {y}), kBadData);
  EXPECT_EQ(b.try_add(kIf, {c, then, otherwise, x}, {}), kBadData);
  EXPECT_EQ(b.try_add(kIf, {c, then, otherwise, x}, {y, y}), kBadData);
  EXPECT_EQ(b.try_add(kIf, {c, then, x, x}, {y}), kBadData);
  EXPECT_EQ(b.try_add(kIf, {c, b.model_operand(nullptr), otherwise, x}, {y}), kBadData) << "no model set";
  EXPECT_EQ(b.try_add(kIf, {c, then, b.model_operand(&longer), x}, {y}), kBadData);
  EXPECT_EQ(b.try_add(kIf, {c, b.model_operand(&wider), otherwise, x}, {y}), kBadData);
  for (int32_t type : kValueTypes) {
    if (type != kTensorFloat32) {
      EXPECT_EQ(b.try_add(kIf, {c, then, otherwise, b.of_type(type)}, {y}), kBadData) << type;
      EXPECT_EQ(b.try_add(kIf, {c, then, otherwise, x}, {b.of_type(type)}), kBadData) << type;
    }
    if (type != kBool8) {
      EXPECT_EQ(b.try_add(kIf, {b.of_type(type, {1}), then, otherwise, x}, {y}), kBadData) << type;
    }
  }
  EXPECT_EQ(b.try_add(kIf, {c, then, otherwise, x}, {y}), 0);
  EXPECT_EQ(b.try_add(kIf, {c, then, then, x}, {b.of_type(kTensorFloat32)}), 0) << "one model twice";
}

TEST(NnapiReferencedModels, ScalesAreCompared) {
  const Unary inner({2}, kTensorQuant8, 0.5f);
  Outer b;
  const uint32_t c = b.of_type(kBool8, {1}), m = b.model_operand(&inner);
  const uint32_t same = b.operand(kTensorQuant8, {2}, 0.5f), other = b.operand(kTensorQuant8, {2}, 0.25f);
  const uint32_t shifted = b.operand(kTensorQuant8, {2}, 0.5f, 1);
  EXPECT_EQ(b.try_add(kIf, {c, m, m, other}, {same}), kBadData);
  EXPECT_EQ(b.try_add(kIf, {c, m, m, same}, {other}), kBadData);
  EXPECT_EQ(b.try_add(kIf, {c, m, m, same}, {shifted}), kBadData);
  EXPECT_EQ(b.try_add(kIf, {c, m, m, same}, {same}), 0);
}

TEST(NnapiReferencedModels, ConditionAndBodyHaveTheOperandsOfTheWhile) {
  const Less condition, wide({2});
  const Unary body({1}), longer({3});
  Outer b;
  const uint32_t c = b.model_operand(&condition), m = b.model_operand(&body), x = b.of_type(kTensorFloat32, {1});
  const uint32_t y = b.of_type(kTensorFloat32, {1});
  EXPECT_EQ(b.try_add(kWhile, {c, m}, {y}), kBadData);
  EXPECT_EQ(b.try_add(kWhile, {c, m, x, x}, {y}), kBadData);
  EXPECT_EQ(b.try_add(kWhile, {c, m, x}, {y, y}), kBadData);
  EXPECT_EQ(b.try_add(kWhile, {c, m, x}, {}), kBadData);
  EXPECT_EQ(b.try_add(kWhile, {m, c, x}, {y}), kBadData) << "the other way round";
  EXPECT_EQ(b.try_add(kWhile, {b.model_operand(&wide), m, x}, {y}), kBadData) << "a condition of two elements";
  EXPECT_EQ(b.try_add(kWhile, {c, b.model_operand(&longer), x}, {y}), kBadData);
  for (int32_t type : kValueTypes) {
    if (type == kTensorFloat32) continue;
    EXPECT_EQ(b.try_add(kWhile, {c, m, b.of_type(type, {1})}, {y}), kBadData) << type;
    EXPECT_EQ(b.try_add(kWhile, {c, m, x}, {b.of_type(type, {1})}), kBadData) << type;
    if (type == kModel) continue;
    EXPECT_EQ(b.try_add(kWhile, {b.of_type(type, {1}), m, x}, {y}), kBadData) << type;
    EXPECT_EQ(b.try_add(kWhile, {c, b.of_type(type, {1}), x}, {y}), kBadData) << type;
  }
  EXPECT_EQ(b.try_add(kWhile, {c, m, x}, {y}), 0);
}

TEST(NnapiReferencedModels, AreOfLevelFour) {
  Child child({"PINNACE_NNAPI_LEVEL=29"});
  if (!child.here()) return;
  Outer b;
  const ANeuralNetworksOperandType type{kModel, 0, nullptr, 0, 0};
  EXPECT_EQ(ANeuralNetworksModel_addOperand(b.model, &type), kBadData);
}

/// An IF of the condition x < x whose branches are both the same IF, and so on, `depth` deep; tanh(y) in the last.
struct Nested {
  std::deque<Outer> models;
  explicit Nested(int depth) {
    for (int d = 0; d <= depth; ++d) {
      Outer& m = models.emplace_back();
      const uint32_t c = m.of_type(kBool8, {1}), x = m.of_type(kTensorFloat32), y = m.of_type(kTensorFloat32);
      if (d == 0) {
        m.add(28, {x}, {y});
      } else {
        const uint32_t branch = m.model_operand(&models[models.size() - 2]);
        m.add(kIf, {c, branch, branch, c, x}, {y});
      }
      const std::vector<uint32_t> inputs = {c, x};
      EXPECT_EQ(ANeuralNetworksModel_identifyInputsAndOutputs(m.model, 2, inputs.data(), 1, &y), 0);
      if (d < depth) EXPECT_EQ(ANeuralNetworksModel_finish(m.model), 0) << d;
    }
  }
  int finish() { return ANeuralNetworksModel_finish(models.back().model); }
};

TEST(NnapiReferencedModels, SixtyFourDeepAtMost) {
  EXPECT_EQ(Nested(64).finish(), 0);
  EXPECT_EQ(Nested(65).finish(), kBadData);
}

/// Both branches are one model, so that 2^40 paths lead to the last.
TEST(NnapiReferencedModels, AreLookedAtOnceForACacheAndForADevice) {
  Child child({"PINNACE_NNAPI_UNSUPPORTED=CONV_2D"});
  if (!child.here()) return;
  const auto folder = pinnace::testing::scratch_folder() / ("nnapi_nested_" + std::to_string(getpid()));
  ASSERT_EQ(mkdir(folder.c_str(), 0700), 0);
  Nested nested(40);
  ASSERT_EQ(nested.finish(), 0);
  ANeuralNetworksCompilation* compilation = nullptr;
  const ANeuralNetworksDevice* const cpu = device();
  ASSERT_EQ(ANeuralNetworksCompilation_createForDevices(nested.models.back().model, &cpu, 1, &compilation), 0);
  const std::vector<uint8_t> token(ANEURALNETWORKS_BYTE_SIZE_OF_CACHE_TOKEN, 7);
  ASSERT_EQ(ANeuralNetworksCompilation_setCaching(compilation, folder.c_str(), token.data()), 0);
  ASSERT_EQ(ANeuralNetworksCompilation_setTimeout(compilation, 50'000'000), 0);
  const auto start = std::chrono::steady_clock::now();
  EXPECT_EQ(ANeuralNetworksCompilation_finish(compilation), ANEURALNETWORKS_MISSED_DEADLINE_TRANSIENT)
      << "mapping both branches of each takes longer";
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(5));
  ANeuralNetworksCompilation_free(compilation);
  std::filesystem::remove_all(folder);
}

/// Every IF has the operands of its branches in its graph, constants that nothing reads too.
TEST(NnapiReferencedModels, OperandsOfReferencesAreCounted) {
  Outer branch;
  const uint32_t x = branch.of_type(kTensorFloat32), y = branch.of_type(kTensorFloat32);
  for (int i = 0; i < 1000; ++i) branch.constant<float>(kTensorFloat32, {2}, {1, 2});
  branch.add(28, {x}, {y});
  branch.finish({x}, {y});
  Outer outer;
  const uint32_t c = outer.of_type(kBool8, {1}), a = outer.of_type(kTensorFloat32);
  const uint32_t model = outer.model_operand(&branch);
  std::vector<uint32_t> outputs;
  for (int i = 0; i < 200; ++i) {
    outputs.push_back(outer.of_type(kTensorFloat32));
    outer.add(kIf, {c, model, model, a}, {outputs.back()});
  }
  outer.finish({c, a}, outputs);
  ANeuralNetworksCompilation* compilation = nullptr;
  const ANeuralNetworksDevice* const cpu = device();
  ASSERT_EQ(ANeuralNetworksCompilation_createForDevices(outer.model, &cpu, 1, &compilation), 0);
  ASSERT_EQ(ANeuralNetworksCompilation_finish(compilation), 0) << "other values may still be taken";
  ANeuralNetworksExecution* execution = nullptr;
  ASSERT_EQ(ANeuralNetworksExecution_create(compilation, &execution), 0);
  const std::vector<uint8_t> yes = {1};
  const std::vector<float> values = {1, 2};
  std::vector<std::vector<float>> made(outputs.size(), std::vector<float>(2));
  ANeuralNetworksExecution_setInput(execution, 0, nullptr, yes.data(), 1);
  ANeuralNetworksExecution_setInput(execution, 1, nullptr, values.data(), 8);
  for (size_t i = 0; i < made.size(); ++i) {
    ANeuralNetworksExecution_setOutput(execution, static_cast<int32_t>(i), nullptr, made[i].data(), 8);
  }
  EXPECT_EQ(ANeuralNetworksExecution_compute(execution), ANEURALNETWORKS_OP_FAILED);
  ANeuralNetworksExecution_free(execution);
  ANeuralNetworksCompilation_free(compilation);
}

}  // namespace
