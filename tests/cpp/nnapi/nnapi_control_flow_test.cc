// IF and WHILE through the C interface: what runs, what changes shape, what ends too late, and what is refused.
#include <chrono>
#include <memory>

#include "cpp/nnapi/nnapi_client.h"

namespace {

using namespace nnapi_client;

constexpr int32_t kTensorBool = 9, kModel = 15;
constexpr int32_t kConcatenation = 2, kMul = 18, kGather = 51, kLess = 58, kSlice = 86;
constexpr int32_t kIf = 96, kWhile = 97, kOem = 10000;

struct Referring : Builder {
  uint32_t reference(const Builder& other) {
    const uint32_t index = operand(kModel, {});
    EXPECT_EQ(ANeuralNetworksModel_setOperandValueFromModel(model, static_cast<int32_t>(index), other.model), 0);
    return index;
  }
  int try_add(int32_t code, std::vector<uint32_t> in, std::vector<uint32_t> out) {
    return ANeuralNetworksModel_addOperation(model, code, static_cast<uint32_t>(in.size()), in.data(),
                                             static_cast<uint32_t>(out.size()), out.data());
  }
};

/// y = x `code` constant, floats of these dimensions; the model has a second input that it does not read.
struct Branch : Builder {
  Branch(int32_t code, const std::vector<uint32_t>& dims, float constant_value) {
    const uint32_t x = operand(kTensorFloat32, dims), unused = operand(kTensorFloat32, {1});
    const uint32_t c = constant<float>(kTensorFloat32, {1}, {constant_value});
    const uint32_t y = operand(kTensorFloat32, dims);
    add(code, {x, c, scalar(0)}, {y});
    finish({x, unused}, {y});
  }
};

struct IfModel : Referring {
  IfModel(const Builder& then_branch, const Builder& else_branch, std::vector<uint32_t> dims = {2}) {
    const uint32_t condition = operand(kTensorBool, {1}), x = operand(kTensorFloat32, {2});
    const uint32_t unused = operand(kTensorFloat32, {1}), y = operand(kTensorFloat32, std::move(dims));
    add(kIf, {condition, reference(then_branch), reference(else_branch), x, unused}, {y});
    finish({condition, x, unused}, {y});
  }
};

/// Runs an IfModel; `got` has room for what comes.
int run_if(const Compiled& compiled, uint8_t condition, const std::vector<float>& x, std::vector<float>& got) {
  Execution run(compiled);
  const std::vector<uint8_t> c = {condition};
  const std::vector<float> unused = {0};
  EXPECT_EQ(run.input(0, c) + run.input(1, x) + run.input(2, unused) + run.output(0, got), 0);
  return ANeuralNetworksExecution_compute(run.execution);
}

TEST(NnapiControlFlow, IfRunsTheBranchThatTheConditionNames) {
  for (const std::vector<uint32_t>& dims : {std::vector<uint32_t>{2}, {0}, {}}) {  // known, dynamic, of dynamic rank
    const Branch add_ten(kAdd, dims, 10), times_three(kMul, dims, 3);
    IfModel model(add_ten, times_three);
    Compiled compiled(model);
    std::vector<float> y(2);
    for (const uint8_t truth : {1, 255}) {  // every byte but 0 is true
      EXPECT_EQ(run_if(compiled, truth, {1, 2}, y), 0);
      EXPECT_EQ(y, (std::vector<float>{11, 12}));
    }
    EXPECT_EQ(run_if(compiled, 0, {1, 2}, y), 0);
    EXPECT_EQ(y, (std::vector<float>{3, 6}));
  }
}

TEST(NnapiControlFlow, ABranchThatTheseShapesDoNotFitIsNoFaultWhereItIsNotTaken) {
  const Branch fits(kAdd, {2}, 10), open(kMul, {0}, 2);
  Builder never;  // adds three elements to the two of x
  const uint32_t x = never.operand(kTensorFloat32, {0}), unused = never.operand(kTensorFloat32, {1});
  const uint32_t c = never.constant<float>(kTensorFloat32, {3}, {1, 2, 3}), y = never.operand(kTensorFloat32, {0});
  never.add(kAdd, {x, c, never.scalar(0)}, {y});
  never.finish({x, unused}, {y});
  IfModel model(open, never);
  Compiled compiled(model);
  std::vector<float> got(2);
  EXPECT_EQ(run_if(compiled, 1, {1, 2}, got), 0);
  EXPECT_EQ(got, (std::vector<float>{2, 4}));
  EXPECT_EQ(run_if(compiled, 0, {1, 2}, got), ANEURALNETWORKS_OP_FAILED);
}

TEST(NnapiControlFlow, BranchesMayDifferInShape) {
  const Branch same(kAdd, {0}, 10);
  Builder twice;
  const uint32_t x = twice.operand(kTensorFloat32, {0}), unused = twice.operand(kTensorFloat32, {1});
  const uint32_t y = twice.operand(kTensorFloat32, {0});
  twice.add(kConcatenation, {x, x, twice.scalar(0)}, {y});
  twice.finish({x, unused}, {y});
  IfModel model(same, twice, {0});
  Compiled compiled(model);
  for (const auto& [condition, size] : {std::pair{1, 2u}, {0, 4u}}) {
    Execution run(compiled);
    const std::vector<uint8_t> c = {static_cast<uint8_t>(condition)};
    const std::vector<float> in = {1, 2}, none = {0};
    std::vector<float> got(4);
    ASSERT_EQ(run.input(0, c) + run.input(1, in) + run.input(2, none) + run.output(0, got), 0);
    ASSERT_EQ(ANeuralNetworksExecution_compute(run.execution), 0);
    uint32_t dims[1] = {};
    EXPECT_EQ(ANeuralNetworksExecution_getOutputOperandDimensions(run.execution, 0, dims), 0);
    EXPECT_EQ(dims[0], size);
    EXPECT_EQ(got[1], condition ? 12.0f : 2.0f);
  }
}

// -------------------------------------------------------------------------------------------------------- loops

/// i < n; inputs value, i, n.
struct LessThan : Builder {
  explicit LessThan(std::vector<uint32_t> dims) {
    const uint32_t value = operand(kTensorFloat32, std::move(dims)), i = operand(kTensorInt32, {1});
    const uint32_t n = operand(kTensorInt32, {1}), goes_on = operand(kTensorBool, {1});
    add(kLess, {i, n}, {goes_on});
    finish({value, i, n}, {goes_on});
  }
};

/// value' = value * value or concat(value, value), i' = i + step.
struct Body : Builder {
  Body(int32_t code, const std::vector<uint32_t>& dims, int32_t step = 1) {
    const uint32_t value = operand(kTensorFloat32, dims), i = operand(kTensorInt32, {1});
    const uint32_t n = operand(kTensorInt32, {1}), next = operand(kTensorFloat32, dims);
    const uint32_t one = constant<int32_t>(kTensorInt32, {1}, {step}), none = scalar(0);
    const uint32_t i_next = operand(kTensorInt32, {1});
    add(code, {value, value, none}, {next});
    add(kAdd, {i, one, none}, {i_next});
    finish({value, i, n}, {next, i_next});
  }
};

/// value and i from 0 go round until i is n; only the value comes out.
struct WhileModel : Referring {
  WhileModel(const Builder& condition, const Builder& body, std::vector<uint32_t> made = {2}) {
    const uint32_t x = operand(kTensorFloat32, {2}), n = operand(kTensorInt32, {1});
    const uint32_t zero = constant<int32_t>(kTensorInt32, {1}, {0}), y = operand(kTensorFloat32, std::move(made));
    add(kWhile, {reference(condition), reference(body), x, zero, n}, {y});
    finish({x, n}, {y});
  }
};

TEST(NnapiControlFlow, WhileRunsUntilItsConditionFails) {
  const LessThan condition({2});
  const Body square(kMul, {2});
  WhileModel model(condition, square);
  Compiled compiled(model);
  for (const auto& [n, expected] : {std::pair{0, 3.0f}, {-1, 3.0f}, {1, 9.0f}, {2, 81.0f}, {3, 6561.0f}}) {
    Execution run(compiled);
    const std::vector<float> x = {3, 1};
    const std::vector<int32_t> count = {n};
    std::vector<float> y(2);
    ASSERT_EQ(run.input(0, x) + run.input(1, count) + run.output(0, y), 0);
    ASSERT_EQ(ANeuralNetworksExecution_compute(run.execution), 0);
    EXPECT_EQ(y, (std::vector<float>{expected, 1})) << n;
  }
}

TEST(NnapiControlFlow, ValuesMayGrowFromIterationToIteration) {
  const LessThan condition({0});
  const Body twice(kConcatenation, {0});
  WhileModel model(condition, twice, {0});
  Compiled compiled(model);
  Execution run(compiled);
  const std::vector<float> x = {3, 1};
  const std::vector<int32_t> count = {3};
  std::vector<float> y(16);
  ASSERT_EQ(run.input(0, x) + run.input(1, count) + run.output(0, y), 0);
  ASSERT_EQ(ANeuralNetworksExecution_compute(run.execution), 0);
  uint32_t dims[1] = {};
  EXPECT_EQ(ANeuralNetworksExecution_getOutputOperandDimensions(run.execution, 0, dims), 0);
  EXPECT_EQ(dims[0], 16u);
  for (size_t i = 0; i < 16; ++i) EXPECT_EQ(y[i], i % 2 ? 1.0f : 3.0f);
}

TEST(NnapiControlFlow, ALoopMayLookUpWhatItMade) {
  // Fibonacci's numbers: each iteration appends the sum of elements i and i + 1, which are the last two.
  for (const std::vector<uint32_t>& dims : {std::vector<uint32_t>{0}, {}}) {
    const LessThan condition(dims);
    Builder body;
    const uint32_t value = body.operand(kTensorFloat32, dims), i = body.operand(kTensorInt32, {1});
    const uint32_t n = body.operand(kTensorInt32, {1}), next = body.operand(kTensorFloat32, dims);
    const uint32_t one = body.constant<int32_t>(kTensorInt32, {1}, {1}), none = body.scalar(0);
    const uint32_t a = body.operand(kTensorFloat32, dims), b = body.operand(kTensorFloat32, dims);
    const uint32_t sum = body.operand(kTensorFloat32, dims), i_next = body.operand(kTensorInt32, {1});
    body.add(kAdd, {i, one, none}, {i_next});
    body.add(kGather, {value, none, i}, {a});
    body.add(kGather, {value, none, i_next}, {b});
    body.add(kAdd, {a, b, none}, {sum});
    body.add(kConcatenation, {value, sum, none}, {next});
    body.finish({value, i, n}, {next, i_next});
    WhileModel model(condition, body, {8});
    Compiled compiled(model);
    Execution run(compiled);
    const std::vector<float> x = {1, 1};
    const std::vector<int32_t> count = {6};
    std::vector<float> y(8);
    ASSERT_EQ(run.input(0, x) + run.input(1, count) + run.output(0, y), 0);
    ASSERT_EQ(ANeuralNetworksExecution_compute(run.execution), 0);
    EXPECT_EQ(y, (std::vector<float>{1, 1, 2, 3, 5, 8, 13, 21}));
  }
}

TEST(NnapiControlFlow, ALoopInALoop) {
  // The outer body squares its value in an inner loop of n rounds: x^(2^(n n)).
  const LessThan condition({2}), inner_condition({2});
  const Body square(kMul, {2});
  Referring body;
  const uint32_t value = body.operand(kTensorFloat32, {2}), i = body.operand(kTensorInt32, {1});
  const uint32_t n = body.operand(kTensorInt32, {1}), next = body.operand(kTensorFloat32, {2});
  const uint32_t zero = body.constant<int32_t>(kTensorInt32, {1}, {0}), none = body.scalar(0);
  const uint32_t one = body.constant<int32_t>(kTensorInt32, {1}, {1}), i_next = body.operand(kTensorInt32, {1});
  body.add(kWhile, {body.reference(inner_condition), body.reference(square), value, zero, n}, {next});
  body.add(kAdd, {i, one, none}, {i_next});
  body.finish({value, i, n}, {next, i_next});
  WhileModel model(condition, body);
  Compiled compiled(model);
  Execution run(compiled);
  const std::vector<float> x = {2, 1};
  const std::vector<int32_t> count = {2};
  std::vector<float> y(2);
  ASSERT_EQ(run.input(0, x) + run.input(1, count) + run.output(0, y), 0);
  ASSERT_EQ(ANeuralNetworksExecution_compute(run.execution), 0);
  EXPECT_EQ(y, (std::vector<float>{65536, 1}));
}

TEST(NnapiControlFlow, AnEndlessLoopMissesItsDeadline) {
  const LessThan condition({2});
  const Body stays(kMul, {2}, 0);
  WhileModel model(condition, stays);
  Compiled compiled(model);
  Execution run(compiled), next(compiled);
  const std::vector<float> x = {1, 1};
  const std::vector<int32_t> count = {1}, none = {0};
  std::vector<float> y(2);
  ASSERT_EQ(run.input(0, x) + run.input(1, count) + run.output(0, y), 0);
  ASSERT_EQ(ANeuralNetworksExecution_setLoopTimeout(run.execution, 1'000'000), 0);
  const auto began = std::chrono::steady_clock::now();
  const int code = ANeuralNetworksExecution_compute(run.execution);
  EXPECT_TRUE(code == ANEURALNETWORKS_MISSED_DEADLINE_TRANSIENT || code == ANEURALNETWORKS_MISSED_DEADLINE_PERSISTENT)
      << code;
  EXPECT_GE(std::chrono::steady_clock::now() - began, std::chrono::milliseconds(1));
  // The compilation goes on, and its next execution has a time-out of its own.
  ASSERT_EQ(next.input(0, x) + next.input(1, none) + next.output(0, y), 0);
  EXPECT_EQ(ANeuralNetworksExecution_compute(next.execution), 0);
}

TEST(NnapiControlFlow, AnEndlessLoopWithoutInputsDoesNotHangTheCompilation) {
  const LessThan condition({2});
  const Body stays(kMul, {2}, 0);
  Referring model;
  const uint32_t x = model.constant<float>(kTensorFloat32, {2}, {1, 1}), given = model.operand(kTensorFloat32, {2});
  const uint32_t n = model.constant<int32_t>(kTensorInt32, {1}, {1});
  const uint32_t zero = model.constant<int32_t>(kTensorInt32, {1}, {0}), none = model.scalar(0);
  const uint32_t y = model.operand(kTensorFloat32, {2}), sum = model.operand(kTensorFloat32, {2});
  model.add(kWhile, {model.reference(condition), model.reference(stays), x, zero, n}, {y});
  model.add(kAdd, {y, given, none}, {sum});
  model.finish({given}, {sum});
  Compiled compiled(model);
  Execution run(compiled);
  const std::vector<float> in = {1, 1};
  std::vector<float> out(2);
  ASSERT_EQ(run.input(0, in) + run.output(0, out), 0);
  ASSERT_EQ(ANeuralNetworksExecution_setLoopTimeout(run.execution, 1'000'000), 0);
  EXPECT_EQ(ANeuralNetworksExecution_compute(run.execution), ANEURALNETWORKS_MISSED_DEADLINE_PERSISTENT);
}

// --------------------------------------------------------------------------------------------------- attributes

/// value' = value * value[at], at being the loop's counter or its limit.
struct SlicingBody : Builder {
  explicit SlicingBody(bool by_counter) {
    const uint32_t value = operand(kTensorFloat32, {2}), i = operand(kTensorInt32, {1});
    const uint32_t n = operand(kTensorInt32, {1}), next = operand(kTensorFloat32, {2});
    const uint32_t part = operand(kTensorFloat32, {0}), none = scalar(0);
    const uint32_t size = constant<int32_t>(kTensorInt32, {1}, {1}), i_next = operand(kTensorInt32, {1});
    add(kSlice, {value, by_counter ? i : n, size}, {part});
    add(kMul, {value, part, none}, {next});
    add(kAdd, {i, size, none}, {i_next});
    finish({value, i, n}, {next, i_next});
  }
};

TEST(NnapiControlFlow, AnAttributeMayEnterALoopButNotBeComputedThere) {
  const LessThan condition({2});
  for (const bool by_counter : {false, true}) {
    const SlicingBody body(by_counter);
    WhileModel model(condition, body);
    Compiled compiled(model);
    Execution run(compiled);
    const std::vector<float> x = {5, 3};
    const std::vector<int32_t> n = {1};
    std::vector<float> y(2);
    ASSERT_EQ(run.input(0, x) + run.input(1, n) + run.output(0, y), 0);
    const int code = ANeuralNetworksExecution_compute(run.execution);
    if (by_counter) {
      EXPECT_EQ(code, ANEURALNETWORKS_OP_FAILED);
    } else {
      EXPECT_EQ(code, 0);
      EXPECT_EQ(y, (std::vector<float>{15, 9}));
    }
  }
}

// ------------------------------------------------------------------------------------------------------ refusals

TEST(NnapiControlFlow, ReferencedModelsThatDoNotFitAreRefused) {
  const Branch good(kAdd, {2}, 1), longer(kAdd, {3}, 1);
  Builder one_input;
  const uint32_t a = one_input.operand(kTensorFloat32, {2}), b = one_input.operand(kTensorFloat32, {2});
  one_input.add(kAdd, {a, a, one_input.scalar(0)}, {b});
  one_input.finish({a}, {b});
  const LessThan condition({2});
  const Body body(kMul, {2}), wider(kMul, {3});

  Referring m;
  const uint32_t truth = m.operand(kTensorBool, {1}), two = m.operand(kTensorBool, {2});
  const uint32_t open = m.operand(kTensorBool, {0}), x = m.operand(kTensorFloat32, {2});
  const uint32_t unused = m.operand(kTensorFloat32, {1}), y = m.operand(kTensorFloat32, {2});
  const uint32_t ints = m.operand(kTensorInt32, {2}), i = m.operand(kTensorInt32, {1}),
                 n = m.operand(kTensorInt32, {1});
  const uint32_t ok = m.reference(good);
  for (const uint32_t bad : {m.reference(longer), m.reference(one_input), m.operand(kModel, {})}) {
    EXPECT_EQ(m.try_add(kIf, {truth, ok, bad, x, unused}, {y}), ANEURALNETWORKS_BAD_DATA);
    EXPECT_EQ(m.try_add(kIf, {truth, bad, ok, x, unused}, {y}), ANEURALNETWORKS_BAD_DATA);
  }
  for (const uint32_t bad : {two, open, x}) {
    EXPECT_EQ(m.try_add(kIf, {bad, ok, ok, x, unused}, {y}), ANEURALNETWORKS_BAD_DATA);
  }
  EXPECT_EQ(m.try_add(kIf, {truth, ok, ok, x, unused}, {ints}), ANEURALNETWORKS_BAD_DATA);
  EXPECT_EQ(m.try_add(kIf, {truth, ok, ok, x, unused}, {y, y}), ANEURALNETWORKS_BAD_DATA);
  EXPECT_EQ(m.try_add(kIf, {truth, ok, ok, x}, {y}), ANEURALNETWORKS_BAD_DATA);
  const uint32_t c = m.reference(condition), r = m.reference(body);
  EXPECT_EQ(m.try_add(kWhile, {c, m.reference(wider), x, i, n}, {y}), ANEURALNETWORKS_BAD_DATA);
  EXPECT_EQ(m.try_add(kWhile, {r, r, x, i, n}, {y}), ANEURALNETWORKS_BAD_DATA);  // two outputs are no condition
  EXPECT_EQ(m.try_add(kWhile, {c, r, x, i}, {y}), ANEURALNETWORKS_BAD_DATA);
  EXPECT_EQ(m.try_add(kWhile, {c, r, i, x, n}, {y}), ANEURALNETWORKS_BAD_DATA);
  EXPECT_EQ(m.try_add(kWhile, {c, r, x, i, n}, {ints}), ANEURALNETWORKS_BAD_DATA);
  EXPECT_EQ(m.try_add(kWhile, {c, r, x, i, n}, {y}), 0);
  EXPECT_EQ(m.try_add(kIf, {truth, ok, ok, x, unused}, {m.operand(kTensorFloat32, {2})}), 0);
}

TEST(NnapiControlFlow, AnOperationIsSupportedIfWhatItRefersToIs) {
  const Branch good(kAdd, {2}, 1);
  Referring oem;
  const uint32_t x = oem.operand(kTensorFloat32, {2}), unused = oem.operand(kTensorFloat32, {1});
  const uint32_t y = oem.operand(kTensorFloat32, {2});
  oem.add(kOem, {x}, {y});
  oem.finish({x, unused}, {y});
  ANeuralNetworksDevice* device = nullptr;
  ASSERT_EQ(ANeuralNetworks_getDevice(0, &device), 0);
  for (const bool supported : {true, false}) {
    IfModel model(good, supported ? static_cast<const Builder&>(good) : oem);
    bool answer = !supported;
    ASSERT_EQ(ANeuralNetworksModel_getSupportedOperationsForDevices(model.model, &device, 1, &answer), 0);
    EXPECT_EQ(answer, supported);
    ANeuralNetworksCompilation* compilation = nullptr;
    ASSERT_EQ(ANeuralNetworksCompilation_createForDevices(model.model, &device, 1, &compilation), 0);
    EXPECT_EQ(ANeuralNetworksCompilation_finish(compilation), supported ? 0 : ANEURALNETWORKS_BAD_DATA);
    ANeuralNetworksCompilation_free(compilation);
  }
}

/// Each model refers to the one before twice: the last stands for 2^depth operations.
int run_nested(int depth, std::vector<float>& y) {
  std::vector<std::unique_ptr<Builder>> models;
  models.push_back(std::make_unique<Branch>(kAdd, std::vector<uint32_t>{2}, 1.0f));
  for (int k = 0; k < depth; ++k) {
    auto next = std::make_unique<Referring>();
    const uint32_t x = next->operand(kTensorFloat32, {2}), limit = next->operand(kTensorFloat32, {1});
    const uint32_t condition = next->operand(kTensorBool, {1}), made = next->operand(kTensorFloat32, {2});
    const uint32_t zero = next->constant<float>(kTensorFloat32, {1}, {0});
    next->add(kLess, {zero, limit}, {condition});
    next->add(kIf, {condition, next->reference(*models.back()), next->reference(*models.back()), x, limit}, {made});
    next->finish({x, limit}, {made});
    models.push_back(std::move(next));
  }
  Compiled compiled(*models.back());
  Execution run(compiled);
  const std::vector<float> x = {1, 2}, limit = {1};
  EXPECT_EQ(run.input(0, x) + run.input(1, limit) + run.output(0, y), 0);
  return ANeuralNetworksExecution_compute(run.execution);
}

TEST(NnapiControlFlow, ReferencesThatMultiplyComeToAnEnd) {
  std::vector<float> y(2);
  EXPECT_EQ(run_nested(3, y), 0);
  EXPECT_EQ(y, (std::vector<float>{2, 3}));
  y = {0, 0};
  EXPECT_EQ(run_nested(40, y), 0);  // with values that are known one branch of two is left
  EXPECT_EQ(y, (std::vector<float>{2, 3}));
}

// ------------------------------------------------------------------------------------------------- unused values

constexpr int32_t kExpandDims = 50, kFill = 100;

enum class Made { kGrowing, kOfAnotherRank, kOfAValue };

/// value' = what `made` says, i' = i + 1; inputs value, i, n.
struct UnusedBody : Builder {
  UnusedBody(Made made, const std::vector<uint32_t>& dims) {
    const uint32_t value = operand(kTensorFloat32, dims), i = operand(kTensorInt32, {1});
    const uint32_t n = operand(kTensorInt32, {1}), next = operand(kTensorFloat32, dims), j = operand(kTensorInt32, {1});
    const uint32_t one = constant<int32_t>(kTensorInt32, {1}, {1});
    switch (made) {
      case Made::kGrowing:
        add(kConcatenation, {value, value, scalar(0)}, {next});
        break;
      case Made::kOfAnotherRank:
        add(kExpandDims, {value, scalar(0)}, {next});
        break;
      case Made::kOfAValue: {  // i elements, so that the shape is known only in the loop
        const uint32_t two = operand(0, {});
        const float number = 2;
        EXPECT_EQ(ANeuralNetworksModel_setOperandValue(model, static_cast<int32_t>(two), &number, sizeof number), 0);
        add(kFill, {i, two}, {next});
      }
    }
    add(kAdd, {i, one, scalar(0)}, {j});
    finish({value, i, n}, {next, j});
  }
};

TEST(NnapiControlFlow, AnUnusedOutputOfUnknownDimensionsNeedsNoShape) {
  for (const Made made : {Made::kGrowing, Made::kOfAnotherRank, Made::kOfAValue}) {
    for (const std::vector<uint32_t>& dims : {std::vector<uint32_t>{}, {0}}) {
      if (made == Made::kOfAnotherRank && !dims.empty()) continue;
      for (const std::vector<uint32_t>& of_input : {std::vector<uint32_t>{2}, {0}}) {
        SCOPED_TRACE(testing::Message() << static_cast<int>(made) << ", rank " << dims.size() << ", " << of_input[0]);
        const LessThan condition(dims);
        const UnusedBody body(made, dims);
        Referring model;
        const uint32_t value = model.operand(kTensorFloat32, of_input), i = model.operand(kTensorInt32, {1});
        const uint32_t n = model.operand(kTensorInt32, {1}), unused = model.operand(kTensorFloat32, dims);
        const uint32_t j = model.operand(kTensorInt32, {1});
        model.add(kWhile, {model.reference(condition), model.reference(body), value, i, n}, {unused, j});
        model.finish({value, i, n}, {j});
        Compiled compiled(model);
        for (const int32_t count : {0, 1, 5}) {
          Execution run(compiled);
          const std::vector<float> x = {1, 2};
          const std::vector<int32_t> first = {1}, last = {count};
          std::vector<int32_t> got = {-1};
          const uint32_t two[1] = {2};
          const ANeuralNetworksOperandType type{kTensorFloat32, 1, two, 0, 0};
          ASSERT_EQ(ANeuralNetworksExecution_setInput(run.execution, 0, &type, x.data(), 8), 0);
          ASSERT_EQ(run.input(1, first) + run.input(2, last) + run.output(0, got), 0);
          EXPECT_EQ(ANeuralNetworksExecution_compute(run.execution), 0);
          EXPECT_EQ(got[0], std::max(1, count));
        }
      }
    }
  }
}

// Nobody reads y, but z is made of it: both are computed, in the order of the body.
TEST(NnapiControlFlow, AValueThatOthersAreMadeOfIsCarried) {
  Builder condition, body;
  {
    const uint32_t y = condition.operand(kTensorFloat32, {1}), z = condition.operand(kTensorFloat32, {1});
    const uint32_t limit = condition.constant<float>(kTensorFloat32, {1}, {20});
    const uint32_t goes_on = condition.operand(kTensorBool, {1});
    condition.add(kLess, {z, limit}, {goes_on});
    condition.finish({y, z}, {goes_on});
  }
  {
    const uint32_t y = body.operand(kTensorFloat32, {1}), z = body.operand(kTensorFloat32, {1});
    const uint32_t two = body.constant<float>(kTensorFloat32, {1}, {2});
    const uint32_t next = body.operand(kTensorFloat32, {1}), sum = body.operand(kTensorFloat32, {1});
    body.add(kMul, {y, two, body.scalar(0)}, {next});
    body.add(kAdd, {z, y, body.scalar(0)}, {sum});
    body.finish({y, z}, {next, sum});
  }
  Referring model;
  const uint32_t y = model.operand(kTensorFloat32, {1}), z = model.operand(kTensorFloat32, {1});
  const uint32_t last = model.operand(kTensorFloat32, {1}), sum = model.operand(kTensorFloat32, {1});
  model.add(kWhile, {model.reference(condition), model.reference(body), y, z}, {last, sum});
  model.finish({y, z}, {sum});
  Compiled compiled(model);
  Execution run(compiled);
  const std::vector<float> one = {1}, zero = {0};
  std::vector<float> got(1);
  ASSERT_EQ(run.input(0, one) + run.input(1, zero) + run.output(0, got), 0);
  EXPECT_EQ(ANeuralNetworksExecution_compute(run.execution), 0);
  EXPECT_EQ(got[0], 31);  // 1 + 2 + 4 + 8 + 16
}

}  // namespace
