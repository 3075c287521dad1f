// OpDef::traits say what is so: those that promise something of results are held against the cases of each operator.
#include <gtest/gtest.h>

#include <cstring>

#include "cases/run_case.h"
#include "ops/op.h"

namespace pinnace::testing {
namespace {

/// Calls f(built, result) for every case of an operator that gives a result.
template <class F>
int for_results(const OpDef& op, F f) {
  int ran = 0;
  for (const CaseList& list : all_cases()) {
    if (op.name != list.op) continue;
    for (size_t i = 0; i < list.cases.size(); ++i) {
      const auto built = build_case(list.op, list.cases[i], case_seed(list.op, i));
      if (!built.ok() || built->expect.error) continue;
      const auto result = run_case(*built);
      if (!result.ok()) continue;  // the parity test reports it
      f(*built, *result);
      ++ran;
    }
  }
  return ran;
}

TEST(OperatorTraits, SameTypeMeansSameElements) {
  int same = 0;
  for (const OpDef* op : all_ops()) {
    if (!op->has(Trait::kKeepsSameType | Trait::kView | Trait::kKeepsOnlyInput)) continue;
    const int ran = for_results(*op, [&](const BuiltCase& built, const auto& result) {
      const TensorView x = built.input_views()[0];
      const TensorType& y = result[0].type;
      const bool keeps = op->has(Trait::kKeepsOnlyInput) ? built.inputs.size() == 1 : *x.type == y;
      if (!keeps && !op->has(Trait::kView)) return;
      ASSERT_EQ(x.type->bytes(), y.bytes()) << op->name;
      if (y.bytes() > 0) {
        EXPECT_EQ(std::memcmp(x.bytes, result[0].bytes.data(), static_cast<size_t>(y.bytes())), 0) << op->name;
      }
      ++same;
    });
    EXPECT_GT(ran, 0) << op->name;
  }
  EXPECT_GT(same, 50);
}

TEST(OperatorTraits, AgreeWithEachOther) {
  for (const OpDef* op : all_ops()) {
    if (op->has(Trait::kReshapes)) {
      EXPECT_TRUE(op->has(Trait::kView) && op->has(Trait::kMoves)) << op->name;
    }
    if (op->has(Trait::kProduct | Trait::kRecurrent)) {
      EXPECT_NE(op->multiply_adds, nullptr) << op->name;
    }
    EXPECT_EQ(op->has(Trait::kControlFlow), op->reference == nullptr) << op->name;
    if (op->has(Trait::kElementwise)) {
      EXPECT_FALSE(op->has(Trait::kView | Trait::kProduct | Trait::kReduction)) << op->name;
    }
  }
}

}  // namespace
}  // namespace pinnace::testing
