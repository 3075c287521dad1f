// The table of NNAPI's operations: every signature is accepted when an operation is added, every mutation of it
// refused; and a model gives the same results whole as operation by operation.
#include <cmath>
#include <map>
#include <random>
#include <set>
#include <string>

#include "cpp/nnapi/nnapi_client.h"
#include "cpp/nnapi/nnapi_forms.h"
#include "nnapi/operations.h"
#include "nnapi/to_graph.h"

namespace {

using namespace nnapi_client;
using namespace nnapi_forms;
using pinnace::nnapi::OperandCode;
using pinnace::nnapi::OperationInfo;

constexpr int32_t kCodes[] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};

int level_of(const OperationInfo& op, const Form& form) {
  return pinnace::nnapi::signature_feature_level(op.code, form.in, form.out);
}

TEST(NnapiOperations, EveryOneHasAFormThatItsLevelTakes) {
  const auto forms = plain_forms();
  for (const OperationInfo& op : pinnace::nnapi::all_operations()) {
    if (op.code == 96 || op.code == 97) continue;  // IF and WHILE take what their models take
    ASSERT_TRUE(forms.contains(op.name)) << op.name;
    const int level = level_of(op, forms.at(op.name));
    EXPECT_GE(level, op.feature_level) << op.name;
    // Inputs that came later raise it, to no more than the level of half-pixel centres.
    EXPECT_LE(level, std::max(op.feature_level, 4)) << op.name;
  }
}

TEST(NnapiOperations, OneOperandTooManyTooFewOrOfAnotherTypeIsRefused) {
  // What stays legal after a mutation: optional inputs at the end and open lists (count), alternative types (type).
  const std::set<std::string> open_counts = {"CONCATENATION",
                                             "PACK",
                                             "SPLIT",
                                             "BIDIRECTIONAL_SEQUENCE_LSTM",
                                             "BIDIRECTIONAL_SEQUENCE_RNN",
                                             "UNIDIRECTIONAL_SEQUENCE_RNN"};
  const std::set<std::string> alternative_types = {"CAST",           "DEQUANTIZE", "QUANTIZE", "RANK",
                                                   "LSH_PROJECTION", "ARGMAX",     "ARGMIN",   "RANDOM_MULTINOMIAL"};
  for (const auto& [name, form] : plain_forms()) {
    const auto all = pinnace::nnapi::all_operations();
    const auto op = std::find_if(all.begin(), all.end(), [&](const auto& o) { return o.name == name; });
    ASSERT_NE(op, all.end()) << name;
    for (Types Form::* side : {&Form::in, &Form::out}) {
      Form more = form;
      (more.*side).push_back(OperandCode::kTensorFloat32);
      if (!open_counts.contains(name)) {
        EXPECT_EQ(level_of(*op, more), 0) << name;
      }
      for (size_t i = 0; i < (form.*side).size(); ++i) {
        for (int32_t code : kCodes) {
          Form changed = form;
          (changed.*side)[i] = static_cast<OperandCode>(code);
          if (changed.*side == form.*side || alternative_types.contains(name)) continue;
          EXPECT_EQ(level_of(*op, changed), 0) << name << " operand " << i << " of type " << code;
        }
      }
    }
    Form none = form;
    none.out.clear();
    EXPECT_EQ(level_of(*op, none), 0) << name;
  }
}

TEST(NnapiOperations, LevelsRise) {
  using enum OperandCode;
  const auto level = [](int32_t code, Types in, Types out) {
    return pinnace::nnapi::signature_feature_level(code, in, out);
  };
  EXPECT_EQ(level(0, {kTensorFloat32, kTensorFloat32, kInt32}, {kTensorFloat32}), 1);
  EXPECT_EQ(level(0, {kTensorFloat16, kTensorFloat16, kInt32}, {kTensorFloat16}), 3);
  EXPECT_EQ(level(0, {kTensorInt32, kTensorInt32, kInt32}, {kTensorInt32}), 4);
  EXPECT_EQ(level(22, {kTensorInt32, kTensorInt32}, {kTensorInt32}), 6);
  EXPECT_EQ(level(83, {kTensorQuant8Asymm}, {kTensorQuant8Asymm}), 7);
  EXPECT_EQ(level(25, {kTensorFloat16, kFloat32}, {kTensorFloat16}), 0) << "scalars are float16 where tensors are";
}

/// Runs one operation per model, or all of `build` in one, on the same input.
std::vector<float> run_model(Builder& b, const std::vector<float>& in, size_t elements) {
  Compiled c(b);
  Execution run(c);
  std::vector<float> out(elements, NAN);
  EXPECT_EQ(run.input(0, in) + run.output(0, out), 0);
  EXPECT_EQ(ANeuralNetworksExecution_compute(run.execution), 0);
  return out;
}

/// A chain that mixes operations of either layout; `steps` of them from `first` on are put into `b`.
struct Chain {
  std::vector<std::vector<uint32_t>> shapes = {{1, 6, 6, 3}, {1, 6, 6, 4}, {1, 6, 6, 4}, {1, 6, 6, 4}, {1, 6, 6, 8},
                                               {1, 8, 8, 8}, {1, 4, 4, 8}, {1, 4, 4, 8}, {1, 8}};
  std::vector<float> values = std::vector<float>(512);

  Chain() {
    std::mt19937 random(7);
    for (float& v : values) v = static_cast<float>(random() % 200) / 100 - 1;
  }
  uint32_t weights(Builder& b, const std::vector<uint32_t>& dims, size_t from) const {
    size_t n = 1;
    for (uint32_t d : dims) n *= d;
    return b.constant<float>(
        kTensorFloat32, dims,
        {values.begin() + static_cast<ptrdiff_t>(from), values.begin() + static_cast<ptrdiff_t>(from + n)});
  }
  void step(Builder& b, size_t k, uint32_t x, uint32_t y) const {
    const auto s = [&](int32_t v) { return b.scalar(v); };
    switch (k) {
      case 0:
        return b.add(kConv2d, {x, weights(b, {4, 3, 3, 3}, 0), weights(b, {4}, 8), s(1), s(1), s(1), s(0)}, {y});
      case 1:
        return b.add(kAdd, {x, weights(b, {4}, 20), s(3)}, {y});
      case 2:
        return b.add(kAdd, {x, weights(b, {1, 6, 6, 4}, 30), s(0)}, {y});
      case 3:
        return b.add(2, {x, x, s(3)}, {y});  // CONCATENATION
      case 4:
        return b.add(32, {x, b.constant<int32_t>(kTensorInt32, {4, 2}, {0, 0, 2, 0, 1, 1, 0, 0})}, {y});  // PAD
      case 5:
        return b.add(1, {x, s(2), s(2), s(2), s(2), s(2), s(0)}, {y});  // AVERAGE_POOL_2D
      case 6:
        return b.add(18, {x, weights(b, {1, 1, 1, 8}, 99), s(0)}, {y});  // MUL
      default:
        return b.add(31, {x, b.constant<int32_t>(kTensorInt32, {2}, {1, 2}), s(0)}, {y});  // MEAN
    }
  }
};

TEST(NnapiLowering, AChainGivesWhatItsOperationsGiveOneByOne) {
  const Chain chain;
  std::vector<float> x(chain.values.begin(), chain.values.begin() + 108), step_by_step = x;
  Builder whole;
  const uint32_t input = whole.operand(kTensorFloat32, chain.shapes[0]);
  uint32_t at = input;
  for (size_t k = 0; k + 1 < chain.shapes.size(); ++k) {
    size_t elements = 1;
    for (uint32_t d : chain.shapes[k + 1]) elements *= d;
    Builder one;
    const uint32_t in = one.operand(kTensorFloat32, chain.shapes[k]);
    const uint32_t out = one.operand(kTensorFloat32, chain.shapes[k + 1]);
    chain.step(one, k, in, out);
    one.finish({in}, {out});
    step_by_step = run_model(one, step_by_step, elements);
    const uint32_t next = whole.operand(kTensorFloat32, chain.shapes[k + 1]);
    chain.step(whole, k, at, next);
    at = next;
  }
  whole.finish({input}, {at});
  const std::vector<float> together = run_model(whole, x, step_by_step.size());
  for (size_t i = 0; i < together.size(); ++i) EXPECT_NEAR(together[i], step_by_step[i], 1e-5) << i;
}

}  // namespace
