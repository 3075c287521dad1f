// Lookups by key, projections by hash and random draws through the C interface, worked out by hand.
#include <algorithm>
#include <cmath>
#include <set>

#include "cpp/nnapi/nnapi_operation.h"

namespace {

using namespace nnapi_client;

constexpr int32_t kHashtableLookup = 10, kLshProjection = 15, kRandomMultinomial = 74;

TEST(NnapiLookup, RowsByKeyAndZeroBytesForNone) {
  Operation op;
  op.ints({4}, {30, 7, -5, 99}).ints({3}, {-5, 0, 30}).floats({3, 2}, {1, 2, 3, 4, 5, 6});
  op.gives(kTensorFloat32, 2).gives(kTensorQuant8, 1, 1).done(kHashtableLookup);
  const Ran ran(op);
  ASSERT_EQ(ran.code, 0);
  EXPECT_EQ(ran.dims(0), (Dims{4, 2}));
  EXPECT_EQ(ran.values<float>(0), (Floats{5, 6, 0, 0, 1, 2, 0, 0}));
  EXPECT_EQ(ran.values<uint8_t>(1), (std::vector<uint8_t>{1, 0, 1, 0}));
}

TEST(NnapiLookup, StoredIntegersAreZeroWhateverTheZeroPointIs) {
  Operation op;
  op.ints({2}, {1, 2}).ints({1}, {2});
  const std::vector<uint8_t> row = {7, 8};
  op.in.push_back(op.operand(kTensorQuant8, {1, 2}, 0.5f, 100));
  ASSERT_EQ(ANeuralNetworksModel_setOperandValue(op.model, static_cast<int32_t>(op.in.back()), row.data(), 2), 0);
  op.out = {op.operand(kTensorQuant8, {0, 0}, 0.5f, 100)};
  op.gives(kTensorQuant8, 1, 1).done(kHashtableLookup);
  const Ran ran(op);
  ASSERT_EQ(ran.code, 0);
  EXPECT_EQ(ran.values<uint8_t>(0), (std::vector<uint8_t>{0, 0, 7, 8}));
}

TEST(NnapiLookup, KeysWithoutValuesFail) {
  Operation op;
  op.ints({1}, {1}).ints({2}, {1, 2}).floats({3}, {1, 2, 3});
  op.gives(kTensorFloat32, 1).gives(kTensorQuant8, 1, 1).done(kHashtableLookup);
  EXPECT_EQ(Ran(op).code, ANEURALNETWORKS_OP_FAILED);
}

/// Bits of the FarmHash library for these seeds and rows: 0 1, 1 0, 1 0, 0 0; with weights 1 1, 1 0, 1 1, 1 0.
Ran project(int32_t type, bool weighted) {
  Operation op;
  op.floats({4, 2}, {0.123f, 0.456f, -0.321f, -0.654f, 1.234f, 5.678f, -4.321f, -8.765f});
  op.ints({3, 2}, {12345, 54321, 67890, 9876, -12345678, -87654321});
  if (weighted) {
    op.floats({3}, {0.12f, 0.34f, 0.56f});
  } else {
    op.in.push_back(op.operand(kTensorFloat32, {3}));
    EXPECT_EQ(ANeuralNetworksModel_setOperandValue(op.model, static_cast<int32_t>(op.in.back()), nullptr, 0), 0);
  }
  op.integers({type}).gives(kTensorInt32, 1).done(kLshProjection);
  return Ran(op);
}

TEST(NnapiLookup, ProjectionsByHash) {
  EXPECT_EQ(project(1, false).values<int32_t>(0), (Ints{1, 2, 2, 0}));
  EXPECT_EQ(project(3, false).values<int32_t>(0), (Ints{1, 6, 10, 12})) << "row i plus 4 i";
  EXPECT_EQ(project(2, true).values<int32_t>(0), (Ints{1, 1, 1, 0, 1, 1, 1, 0}));
  EXPECT_EQ(project(0, true).code, ANEURALNETWORKS_OP_FAILED);
  EXPECT_EQ(project(4, true).code, ANEURALNETWORKS_OP_FAILED);
}

constexpr int32_t kTensorBool = 9, kModel = 15;

/// A referenced model as an operand.
uint32_t reference(Builder& b, const Builder& other) {
  const uint32_t index = b.operand(kModel, {});
  EXPECT_EQ(ANeuralNetworksModel_setOperandValueFromModel(b.model, static_cast<int32_t>(index), other.model), 0);
  return index;
}

/// 1000 draws of two classes, of which the second is three times as likely.
Operation& draw(Operation& op, const Ints& seeds) {
  op.floats({1, 2}, {0, std::log(3.0f)}).integers({1000}).ints({2}, seeds).gives(kTensorInt32, 2);
  return op.done(kRandomMultinomial);
}
Ints drawn(const Ints& seeds) {
  Operation op;
  const Ran ran(draw(op, seeds));
  EXPECT_EQ(ran.code, 0);
  return ran.values<int32_t>(0);
}

TEST(NnapiLookup, ClassesAreDrawnAsOftenAsTheyAreLikely) {
  for (const Ints& seeds : {Ints{37, 42}, Ints{0, 1}, Ints{0, 0}}) {
    const Ints classes = drawn(seeds);
    const auto ones = std::count(classes.begin(), classes.end(), 1);
    EXPECT_EQ(std::count(classes.begin(), classes.end(), 0) + ones, 1000);
    EXPECT_NEAR(static_cast<double>(ones), 750, 70) << "five standard deviations";
  }
}

TEST(NnapiLookup, SeedsDecideUnlessBothAreZero) {
  EXPECT_EQ(drawn({37, 42}), drawn({37, 42}));
  EXPECT_NE(drawn({37, 42}), drawn({42, 37}));
  EXPECT_EQ(drawn({0, 5}), drawn({0, 5}));
  EXPECT_NE(drawn({0, 0}), drawn({0, 0}));
}

TEST(NnapiLookup, EachRunDrawsAnew) {
  Operation op;
  draw(op, {0, 0});
  const Compiled compiled(op);
  std::set<Ints> seen;
  for (int i = 0; i < 3; ++i) {
    Execution run(compiled);
    Ints out(1000);
    ASSERT_EQ(run.input(0, op.first) + ANeuralNetworksExecution_setOutput(run.execution, 0, nullptr, out.data(), 4000),
              0);
    ASSERT_EQ(ANeuralNetworksExecution_compute(run.execution), 0);
    seen.insert(out);
  }
  EXPECT_EQ(seen.size(), 3u);
}

TEST(NnapiLookup, SeedsMayComeWithTheRun) {
  Operation op;
  op.ints({2}, {0, 0});  // the model's input
  const uint32_t logits = op.constant<float>(kTensorFloat32, {1, 2}, {0, std::log(3.0f)});
  op.in = {logits, op.scalar(1000), op.input};
  op.gives(kTensorInt32, 2).done(kRandomMultinomial);
  const Compiled compiled(op);
  const auto run = [&](const Ints& seeds) {
    Execution execution(compiled);
    Ints out(1000);
    EXPECT_EQ(execution.input(0, seeds) + execution.output(0, out), 0);
    EXPECT_EQ(ANeuralNetworksExecution_compute(execution.execution), 0);
    return out;
  };
  EXPECT_NE(run({0, 0}), run({0, 0}));
  EXPECT_EQ(run({37, 42}), run({37, 42}));
  EXPECT_EQ(run({37, 42}), drawn({37, 42}));
}

TEST(NnapiLookup, TwoOperationsOfARunDrawByThemselves) {
  Operation op;
  op.floats({1, 2}, {0, 0}).integers({1000}).ints({2}, {0, 0}).gives(kTensorInt32, 2).gives(kTensorInt32, 2);
  for (const uint32_t out : op.out) op.add(kRandomMultinomial, op.in, {out});
  op.finish({op.input}, op.out);
  const Ran ran(op);
  ASSERT_EQ(ran.code, 0);
  EXPECT_NE(ran.values<int32_t>(0), ran.values<int32_t>(1));
}

constexpr int32_t kLess = 58, kIf = 96, kWhile = 97;
const Dims kDrawn = {1, 1000};

uint32_t draws(Builder& b, uint32_t logits) {
  const uint32_t y = b.operand(kTensorInt32, kDrawn);
  b.add(kRandomMultinomial, {logits, b.scalar(1000), b.constant<int32_t>(kTensorInt32, {2}, {0, 0})}, {y});
  return y;
}
uint32_t sum(Builder& b, const Dims& dims, uint32_t x, int32_t constant) {
  const uint32_t y = b.operand(kTensorInt32, dims);
  b.add(kAdd, {x, b.constant<int32_t>(kTensorInt32, {1}, {constant}), b.scalar(0)}, {y});
  return y;
}

TEST(NnapiLookup, EachIterationDrawsAnew) {
  // State: what was drawn before, what is drawn now, the number of draws.
  Builder condition, body;
  for (Builder* b : {&condition, &body}) {
    const uint32_t before = b->operand(kTensorInt32, kDrawn), now = b->operand(kTensorInt32, kDrawn);
    const uint32_t count = b->operand(kTensorInt32, {1}), logits = b->operand(kTensorFloat32, {1, 2});
    if (b == &body) {
      b->finish({before, now, count, logits}, {sum(*b, kDrawn, now, 0), draws(*b, logits), sum(*b, {1}, count, 1)});
    } else {
      const uint32_t less = b->operand(kTensorBool, {1});
      b->add(kLess, {count, b->constant<int32_t>(kTensorInt32, {1}, {2})}, {less});
      b->finish({before, now, count, logits}, {less});
    }
  }
  Operation op;
  op.in = {reference(op, condition), reference(op, body)};
  op.floats({1, 2}, {0, 0});
  const uint32_t logits = op.in.back(), none = op.constant<int32_t>(kTensorInt32, kDrawn, Ints(1000, -1));
  op.in.back() = none;
  op.in.insert(op.in.end(), {none, op.constant<int32_t>(kTensorInt32, {1}, {0}), logits});
  op.gives(kTensorInt32, 2).gives(kTensorInt32, 2).done(kWhile);
  const Ran ran(op), again(op);
  ASSERT_EQ(ran.code, 0);
  const Ints first = ran.values<int32_t>(0), second = ran.values<int32_t>(1);
  EXPECT_NE(first, second);
  EXPECT_NE(first, again.values<int32_t>(0));
  for (const Ints& drawn : {first, second}) {
    EXPECT_EQ(std::count(drawn.begin(), drawn.end(), 0) + std::count(drawn.begin(), drawn.end(), 1), 1000);
  }
}

TEST(NnapiLookup, ABranchDrawsAnew) {
  Builder then_branch, else_branch;
  for (Builder* b : {&then_branch, &else_branch}) {
    const uint32_t logits = b->operand(kTensorFloat32, {1, 2}), x = b->operand(kTensorInt32, kDrawn);
    b->finish({logits, x}, {b == &then_branch ? draws(*b, logits) : sum(*b, kDrawn, x, 5)});
  }
  Builder model;
  const uint32_t condition = model.operand(kTensorBool, {1}), logits = model.operand(kTensorFloat32, {1, 2});
  const uint32_t x = model.operand(kTensorInt32, kDrawn), y = model.operand(kTensorInt32, kDrawn);
  model.add(kIf, {condition, reference(model, then_branch), reference(model, else_branch), logits, x}, {y});
  model.finish({condition, logits, x}, {y});
  const Compiled compiled(model);
  const auto run = [&](uint8_t taken) {
    Execution execution(compiled);
    const std::vector<uint8_t> truth = {taken};
    const Floats even = {0, 0};
    const Ints twos(1000, 2);
    Ints out(1000);
    EXPECT_EQ(execution.input(0, truth) + execution.input(1, even) + execution.input(2, twos), 0);
    EXPECT_EQ(execution.output(0, out), 0);
    EXPECT_EQ(ANeuralNetworksExecution_compute(execution.execution), 0);
    return out;
  };
  EXPECT_NE(run(1), run(1));
  EXPECT_EQ(run(0), Ints(1000, 7));
}

TEST(NnapiLookup, NothingToDrawFails) {
  Operation op;
  op.floats({1, 2}, {NAN, INFINITY}).integers({1}).ints({2}, {1, 2}).gives(kTensorInt32, 2).done(kRandomMultinomial);
  EXPECT_EQ(Ran(op).code, ANEURALNETWORKS_OP_FAILED);
}

}  // namespace
