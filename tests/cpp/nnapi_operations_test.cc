// The table of NNAPI's operations: every signature is accepted when an operation is added, every mutation of it
// refused; and a model gives the same results whole as operation by operation.
#include <cmath>
#include <map>
#include <random>
#include <set>
#include <string>

#include "cpp/nnapi_client.h"
#include "nnapi/lower.h"
#include "nnapi/operations.h"

namespace {

using namespace nnapi_client;
using pinnace::nnapi::OperandCode;
using pinnace::nnapi::OperationInfo;
using Types = std::vector<OperandCode>;

constexpr int32_t kCodes[] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};

struct Form {
  Types in, out;
  bool operator<(const Form& other) const { return std::tie(in, out) < std::tie(other.in, other.out); }
};

/// A form of each operation, in float32 where there is one; written down here rather than read from the table.
std::map<std::string, Form> plain_forms() {
  using enum OperandCode;
  const auto F = kTensorFloat32, I = kTensorInt32, S = kInt32, B = kBool, f = kFloat32, b8 = kTensorBool8;
  const auto many = [](OperandCode type, size_t n) { return Types(n, type); };
  const auto join = [](std::initializer_list<Types> parts) {
    Types all;
    for (const Types& p : parts) all.insert(all.end(), p.begin(), p.end());
    return all;
  };
  std::map<std::string, Form> forms;
  for (const char* name : {"ABS", "EXP", "FLOOR", "HARD_SWISH", "LOG", "LOGISTIC", "NEG", "RELU", "RELU1", "RELU6",
                           "RSQRT", "SIN", "SQRT", "TANH", "L2_NORMALIZATION"}) {
    forms[name] = {{F}, {F}};
  }
  for (const char* name : {"ADD", "SUB", "MUL", "DIV"}) forms[name] = {{F, F, S}, {F}};
  for (const char* name : {"MAXIMUM", "MINIMUM", "POW", "PRELU"}) forms[name] = {{F, F}, {F}};
  for (const char* name : {"EQUAL", "GREATER", "GREATER_EQUAL", "LESS", "LESS_EQUAL", "NOT_EQUAL"}) {
    forms[name] = {{F, F}, {b8}};
  }
  for (const char* name : {"AVERAGE_POOL_2D", "L2_POOL_2D", "MAX_POOL_2D"}) {
    forms[name] = {join({{F}, many(S, 9), {B}}), {F}};
  }
  for (const char* name : {"REDUCE_MAX", "REDUCE_MIN", "REDUCE_PROD", "REDUCE_SUM"}) forms[name] = {{F, I, B}, {F}};
  for (const char* name : {"RESHAPE", "SQUEEZE", "TRANSPOSE", "PAD", "TILE", "REVERSE"}) forms[name] = {{F, I}, {F}};
  for (const char* name : {"DEPTH_TO_SPACE", "SPACE_TO_DEPTH"}) forms[name] = {{F, S, B}, {F}};
  for (const char* name : {"LOGICAL_AND", "LOGICAL_OR"}) forms[name] = {{b8, b8}, {b8}};
  for (const char* name : {"REDUCE_ALL", "REDUCE_ANY"}) forms[name] = {{b8, I, B}, {b8}};
  for (const char* name : {"ARGMAX", "ARGMIN"}) forms[name] = {{F, S}, {I}};
  forms["LOGICAL_NOT"] = {{b8}, {b8}};
  forms["BATCH_MATMUL"] = {{F, F, B, B}, {F}};
  forms["BATCH_TO_SPACE_ND"] = {{F, I, B}, {F}};
  forms["CAST"] = {{F}, {I}};
  forms["CHANNEL_SHUFFLE"] = {{F, S, S}, {F}};
  forms["CONCATENATION"] = {{F, F, S}, {F}};
  forms["CONV_2D"] = {join({many(F, 3), many(S, 7), {B, S, S}}), {F}};
  forms["DEPTHWISE_CONV_2D"] = {join({many(F, 3), many(S, 8), {B, S, S}}), {F}};
  forms["GROUPED_CONV_2D"] = {join({many(F, 3), many(S, 8), {B}}), {F}};
  forms["TRANSPOSE_CONV_2D"] = {join({many(F, 3), many(S, 7), {B}}), {F}};
  forms["DEQUANTIZE"] = {{kTensorQuant8Asymm}, {F}};
  forms["QUANTIZE"] = {{F}, {kTensorQuant8Asymm}};
  forms["ELU"] = {{F, f}, {F}};
  forms["EMBEDDING_LOOKUP"] = {{I, F}, {F}};
  forms["EXPAND_DIMS"] = {{F, S}, {F}};
  forms["FILL"] = {{I, f}, {F}};
  forms["FULLY_CONNECTED"] = {{F, F, F, S}, {F}};
  forms["GATHER"] = {{F, S, I}, {F}};
  forms["HASHTABLE_LOOKUP"] = {{I, I, F}, {F, kTensorQuant8Asymm}};
  forms["INSTANCE_NORMALIZATION"] = {{F, f, f, f, B}, {F}};
  forms["LOCAL_RESPONSE_NORMALIZATION"] = {{F, S, f, f, f, S}, {F}};
  forms["LOG_SOFTMAX"] = {{F, f, S}, {F}};
  forms["LSH_PROJECTION"] = {{F, F, F, S}, {I}};
  forms["LSTM"] = {join({many(F, 20), {S, f, f}, many(F, 4)}), many(F, 4)};
  forms["MEAN"] = {{F, I, S}, {F}};
  forms["MIRROR_PAD"] = {{F, I, S}, {F}};
  forms["PACK"] = {{S, F, F}, {F}};
  forms["PAD_V2"] = {{F, I, f}, {F}};
  forms["RANK"] = {{F}, {S}};
  forms["RESIZE_BILINEAR"] = {{F, S, S, B, B, B}, {F}};
  forms["RESIZE_NEAREST_NEIGHBOR"] = {{F, S, S, B, B, B}, {F}};
  forms["RNN"] = {join({many(F, 5), {S}}), {F, F}};
  forms["SELECT"] = {{b8, F, F}, {F}};
  forms["SLICE"] = {{F, I, I}, {F}};
  forms["SOFTMAX"] = {{F, f, S}, {F}};
  forms["SPACE_TO_BATCH_ND"] = {{F, I, I, B}, {F}};
  forms["SPLIT"] = {{F, S, S}, {F, F}};
  forms["STRIDED_SLICE"] = {{F, I, I, I, S, S, S}, {F}};
  forms["SVDF"] = {join({many(F, 5), {S, S}}), {F, F}};
  forms["TOPK_V2"] = {{F, S}, {F, I}};
  forms["AXIS_ALIGNED_BBOX_TRANSFORM"] = {{F, F, I, F}, {F}};
  forms["BIDIRECTIONAL_SEQUENCE_LSTM"] = {join({many(F, 48), {S, f, f, B, B}, many(F, 8)}), {F}};
  forms["BIDIRECTIONAL_SEQUENCE_RNN"] = {join({many(F, 12), {S, B, B}}), {F}};
  forms["UNIDIRECTIONAL_SEQUENCE_LSTM"] = {join({many(F, 20), {S, f, f, B}, many(F, 4)}), {F}};
  forms["UNIDIRECTIONAL_SEQUENCE_RNN"] = {join({many(F, 5), {S, S}}), {F}};
  forms["BOX_WITH_NMS_LIMIT"] = {{F, F, I, f, S, S, f, f, f}, {F, F, I, I}};
  forms["DETECTION_POSTPROCESSING"] = {{F, F, F, f, f, f, f, B, S, S, S, f, f, B}, {F, F, I, I}};
  forms["GENERATE_PROPOSALS"] = {{F, F, F, F, f, f, S, S, f, f, B}, {F, F, I}};
  forms["HEATMAP_MAX_KEYPOINT"] = {{F, F, B}, {F, F}};
  forms["RANDOM_MULTINOMIAL"] = {{F, S, I}, {I}};
  forms["ROI_ALIGN"] = {{F, F, I, S, S, f, f, S, S, B}, {F}};
  forms["ROI_POOLING"] = {{F, F, I, S, S, f, f, B}, {F}};
  const auto q8 = kTensorQuant8Asymm, q16s = kTensorQuant16Symm, q8y = kTensorQuant8Symm,
             q8s = kTensorQuant8AsymmSigned;
  forms["QUANTIZED_16BIT_LSTM"] = {join({many(q8, 9), many(I, 4), {q16s, q8}}), {q16s, q8}};
  forms["QUANTIZED_LSTM"] = {
      join({{q8s}, many(q8y, 8), many(q16s, 3), many(I, 4), {q8y, I, q8s}, many(q16s, 5), many(f, 6), {S, f}}),
      {q8s, q16s, q8s}};
  return forms;
}

int level_of(const OperationInfo& op, const Form& form) {
  return pinnace::nnapi::signature_level(op.code, form.in, form.out);
}

TEST(NnapiOperations, EveryOneHasAFormThatItsLevelTakes) {
  const auto forms = plain_forms();
  for (const OperationInfo& op : pinnace::nnapi::all_operations()) {
    if (op.code == 96 || op.code == 97) continue;  // IF and WHILE take what their models take
    ASSERT_TRUE(forms.contains(op.name)) << op.name;
    const int level = level_of(op, forms.at(op.name));
    EXPECT_GE(level, op.level) << op.name;
    // Inputs that came later raise it, to no more than the level of half-pixel centres.
    EXPECT_LE(level, std::max(op.level, 4)) << op.name;
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
  const auto level = [](int32_t code, Types in, Types out) { return pinnace::nnapi::signature_level(code, in, out); };
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
