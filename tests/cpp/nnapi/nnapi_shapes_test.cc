// What addOperation asks of ranks and dimensions: what Android's runtime asks, no more and no less. What it lets pass
// has a meaning, or is refused when it is mapped.
#include <deque>
#include <map>
#include <random>
#include <set>
#include <string>

#include "cpp/nnapi/nnapi_client.h"
#include "cpp/nnapi/nnapi_forms.h"
#include "nnapi/operations.h"
#include "nnapi/to_graph.h"

namespace {

using namespace nnapi_forms;
namespace nnapi = pinnace::nnapi;
using nnapi::Lifetime;
using nnapi::Model;
using nnapi::OperandCode;
using nnapi::OperationInfo;
using Dims = std::vector<uint32_t>;

constexpr uint32_t kAny = 0;  // a dynamic dimension; no dimensions at all are a dynamic rank

const OperationInfo& info_of(const std::string& name) {
  for (const OperationInfo& op : nnapi::all_operations()) {
    if (op.name == name) return op;
  }
  ADD_FAILURE() << name;
  return nnapi::all_operations()[0];
}

/// A model with one operation in its plain form; operands beyond the lists have dynamic ranks.
Model model_of(const std::string& name, const std::vector<Dims>& in, const std::vector<Dims>& out = {},
               const Form* form = nullptr) {
  static const auto forms = plain_forms();
  const Form& used = form ? *form : forms.at(name);
  Model model;
  nnapi::Operation operation{info_of(name).code, {}, {}};
  const auto add = [&](const Types& types, const std::vector<Dims>& dims, std::vector<uint32_t>& to, Lifetime from) {
    for (size_t i = 0; i < types.size(); ++i) {
      nnapi::Operand operand;
      operand.type = types[i];
      operand.lifetime = from;
      if (nnapi::info(types[i]).quantized) operand.scale = 1;
      if (operand.tensor() && i < dims.size()) operand.dims = dims[i];
      to.push_back(static_cast<uint32_t>(model.operands.size()));
      model.operands.push_back(std::move(operand));
    }
  };
  add(used.in, in, operation.inputs, Lifetime::kInput);
  add(used.out, out, operation.outputs, Lifetime::kOutput);
  model.inputs = operation.inputs;
  model.outputs = operation.outputs;
  model.operations.push_back(std::move(operation));
  return model;
}
bool accepts(const std::string& name, const std::vector<Dims>& in, const std::vector<Dims>& out = {},
             const Form* form = nullptr) {
  const Model model = model_of(name, in, out, form);
  return nnapi::validate_operation(model, model.operations[0]).ok();
}

/// Operations whose first tensor has at most four dimensions, whatever is known of the others.
const std::set<std::string> kFourAtMost = {"CHANNEL_SHUFFLE",
                                           "CONCATENATION",
                                           "DEQUANTIZE",
                                           "FLOOR",
                                           "L2_NORMALIZATION",
                                           "LOCAL_RESPONSE_NORMALIZATION",
                                           "LOGISTIC",
                                           "MEAN",
                                           "PAD",
                                           "PAD_V2",
                                           "REDUCE_ALL",
                                           "REDUCE_ANY",
                                           "REDUCE_MAX",
                                           "REDUCE_MIN",
                                           "REDUCE_PROD",
                                           "REDUCE_SUM",
                                           "RELU",
                                           "RELU1",
                                           "RELU6",
                                           "SOFTMAX",
                                           "SQUEEZE",
                                           "STRIDED_SLICE",
                                           "TANH",
                                           "TRANSPOSE"};

TEST(NnapiShapes, OfMostOperationsEveryRankIsTaken) {
  int tried = 0;
  for (const auto& [name, form] : plain_forms()) {
    size_t first = 0;
    while (!nnapi::info(form.in[first]).tensor) ++first;
    for (size_t rank = 1; rank <= 9; ++rank) {
      std::vector<Dims> in(first + 1);
      in[first] = Dims(rank, 2);
      const bool taken = kFourAtMost.contains(name) ? rank <= 4 : name == "CONV_2D" ? rank == 4 : true;
      EXPECT_EQ(accepts(name, in), taken) << name << " of rank " << rank;
      ++tried;
    }
    EXPECT_TRUE(accepts(name, {})) << name << " of dynamic ranks";
  }
  EXPECT_EQ(tried, 104 * 9);
}

TEST(NnapiShapes, ReshapeTakesEveryRank) {
  for (size_t rank = 1; rank <= 8; ++rank) {
    EXPECT_TRUE(accepts("RESHAPE", {Dims(rank, 2), {2}}, {Dims(9 - rank, 2)})) << rank;
  }
}

TEST(NnapiShapes, ArithmeticLooksAtRanksOnceBothAreKnown) {
  const Dims four(4, 2), five(5, 2);
  for (const char* name : {"ADD", "DIV", "MUL", "SUB"}) {
    EXPECT_TRUE(accepts(name, {four, four}));
    EXPECT_FALSE(accepts(name, {five, four}));
    EXPECT_FALSE(accepts(name, {four, five}));
    EXPECT_TRUE(accepts(name, {five, {}}));
    EXPECT_TRUE(accepts(name, {{}, five}));
  }
  for (const char* name : {"MAXIMUM", "MINIMUM", "POW", "PRELU", "EQUAL", "LESS"}) {
    EXPECT_TRUE(accepts(name, {five, five})) << name;
  }
  EXPECT_FALSE(accepts("CONCATENATION", {four, five}));
}

TEST(NnapiShapes, ConvolutionsAskForAnImageAndItsFilter) {
  const Dims three(3, 2), four(4, 2), five(5, 2);
  EXPECT_TRUE(accepts("CONV_2D", {four, four, {2}}));
  EXPECT_FALSE(accepts("CONV_2D", {three, four, {2}}));
  EXPECT_FALSE(accepts("CONV_2D", {four, three, {2}}));
  EXPECT_FALSE(accepts("CONV_2D", {{}, five, {2}}));
  for (const char* name : {"DEPTHWISE_CONV_2D", "GROUPED_CONV_2D", "TRANSPOSE_CONV_2D"}) {
    EXPECT_TRUE(accepts(name, {three, five, {2}})) << name << " leaves that to the computation";
  }
}

TEST(NnapiShapes, FullyConnectedLooksOnceAllRanksAreKnown) {
  const auto takes = [](const Dims& x, const Dims& weights, const Dims& bias) {
    return accepts("FULLY_CONNECTED", {x, weights, bias});
  };
  EXPECT_TRUE(takes({2, 6}, {5, 6}, {5}));
  EXPECT_TRUE(takes({2, 2, 3}, {5, 6}, {5}));
  EXPECT_TRUE(takes({2, 2, 3, 1}, {5, 6}, {5}));
  EXPECT_FALSE(takes({6}, {5, 6}, {5})) << "rank 1";
  EXPECT_FALSE(takes({1, 1, 1, 1, 6}, {5, 6}, {5})) << "rank 5";
  EXPECT_FALSE(takes({2, 6}, {5, 6, 1}, {5})) << "weights that are no matrix";
  EXPECT_FALSE(takes({2, 6}, {30}, {5}));
  EXPECT_FALSE(takes({2, 6}, {5, 6}, {1, 5})) << "a bias that is no list";
  EXPECT_FALSE(takes({2, 7}, {5, 6}, {5})) << "14 elements are no rows of 6";
  EXPECT_FALSE(takes({2, 6}, {5, 6}, {4})) << "4 biases for 5 units";
  EXPECT_TRUE(takes({kAny, 7}, {5, 6}, {5})) << "the number of elements is dynamic";
  EXPECT_TRUE(takes({2, 7}, {5, kAny}, {5}));
  EXPECT_TRUE(takes({2, 6}, {kAny, 6}, {4}));
  EXPECT_TRUE(takes({2, 6}, {5, 6}, {kAny}));
  for (const Dims& open : {Dims{}}) {
    EXPECT_TRUE(takes({6}, open, {5}));
    EXPECT_TRUE(takes({6}, {5, 6}, open));
    EXPECT_TRUE(takes(open, {30}, {5}));
  }
}

TEST(NnapiShapes, ReverseTakesOneAxisAndKeepsTheRank) {
  const auto takes = [](const Dims& x, const Dims& axis, const Dims& y) { return accepts("REVERSE", {x, axis}, {y}); };
  EXPECT_TRUE(takes({2, 3}, {1}, {2, 3}));
  EXPECT_TRUE(takes(Dims(9, 1), {1}, Dims(9, 1))) << "the computation refuses it";
  EXPECT_FALSE(takes({2, 3}, {2}, {2, 3}));
  EXPECT_FALSE(takes({2, 3}, {1, 1}, {2, 3}));
  EXPECT_FALSE(takes({2, 3}, {1}, {2, 3, 1}));
  EXPECT_TRUE(takes({2, 3}, {kAny}, {2, 3}));
  EXPECT_TRUE(takes({2, 3}, {}, {2, 3}));
  EXPECT_TRUE(takes({}, {1}, {2, 3}));
  EXPECT_TRUE(takes({2, 3}, {1}, {}));
  EXPECT_TRUE(takes({2, 3}, {1}, {5, 7})) << "sizes are the computation's";
}

TEST(NnapiShapes, MirrorPadTakesAPairForEachDimension) {
  const auto takes = [](const Dims& x, const Dims& pads, const Dims& y) {
    return accepts("MIRROR_PAD", {x, pads}, {y});
  };
  EXPECT_TRUE(takes({2, 3}, {2, 2}, {4, 5}));
  EXPECT_FALSE(takes({2, 3}, {4}, {4, 5}));
  EXPECT_FALSE(takes({2, 3}, {2, 3}, {4, 5}));
  EXPECT_FALSE(takes({2, 3}, {3, 2}, {4, 5}));
  EXPECT_FALSE(takes({2, 3}, {2, 2}, {4, 5, 1}));
  EXPECT_TRUE(takes({}, {3, 2}, {4, 5}));
  EXPECT_TRUE(takes({2, 3}, {kAny, kAny}, {4, 5}));
  EXPECT_TRUE(takes({2, 3}, {}, {}));
}

TEST(NnapiShapes, PackAgreesInRanksNotInSizes) {
  const auto takes = [](const Dims& a, const Dims& b, const Dims& y) { return accepts("PACK", {{}, a, b}, {y}); };
  EXPECT_TRUE(takes({2, 3}, {2, 3}, {2, 2, 3}));
  EXPECT_TRUE(takes({2, 3}, {3, 2}, {2, 2, 3})) << "sizes are the computation's";
  EXPECT_FALSE(takes({2, 3}, {2, 3, 1}, {}));
  EXPECT_FALSE(takes({2, 3}, {2, 3}, {2, 3}));
  EXPECT_FALSE(takes({}, {2, 3}, {2, 3}));
  EXPECT_TRUE(takes({}, {2, 3}, {2, 2, 3}));
  EXPECT_TRUE(takes({2, 3}, {}, {}));
}

TEST(NnapiShapes, CastComparesOnceTheOutputIsKnown) {
  const auto takes = [](const Dims& x, const Dims& y) { return accepts("CAST", {x}, {y}); };
  EXPECT_TRUE(takes({2, 3}, {2, 3}));
  EXPECT_FALSE(takes({2, 3}, {3, 2}));
  EXPECT_FALSE(takes({kAny, 3}, {2, 3})) << "the output may not know more than the input";
  EXPECT_TRUE(takes({2, 3}, {kAny, 7})) << "an output that is open is not compared";
  EXPECT_TRUE(takes({}, {2, 3}));
  EXPECT_TRUE(takes({2, 3}, {}));
}

TEST(NnapiShapes, QuantisationIsComparedOfQuantisedTensors) {
  const auto q8 = OperandCode::kTensorQuant8Asymm, i32 = OperandCode::kTensorInt32, scalar = OperandCode::kInt32;
  const auto differs = [](const std::string& name, const Form& form, size_t input) {
    Model model = model_of(name, {}, {}, &form);
    model.operands[model.operations[0].inputs[input]].scale = 0.25f;
    return !nnapi::validate_operation(model, model.operations[0]).ok();
  };
  EXPECT_TRUE(differs("PACK", {{scalar, q8, q8}, {q8}}, 2));
  EXPECT_TRUE(differs("REVERSE", {{q8, i32}, {q8}}, 0));
  EXPECT_TRUE(differs("MIRROR_PAD", {{q8, i32, scalar}, {q8}}, 0));
  EXPECT_FALSE(differs("PACK", {{scalar, i32, i32}, {i32}}, 2))
      << "an int32 tensor may have a scale that means nothing";
  EXPECT_FALSE(differs("REVERSE", {{i32, i32}, {i32}}, 0));
}

// What passes here reaches the mappings with ranks that no rule has looked at: it must answer.
TEST(NnapiShapes, LoweringAnswersToEveryRank) {
  std::mt19937 random(19);
  const auto below = [&](uint32_t n) { return static_cast<uint32_t>(random() % n); };
  std::map<std::string, int> mapped;
  int refused = 0;
  for (const auto& [name, form] : plain_forms()) {
    for (int round = 0; round < 150; ++round) {
      const uint32_t usual = 1 + below(5);
      const auto dims = [&](const Types& types) {
        std::vector<Dims> all;
        for (size_t i = 0; i < types.size(); ++i) {
          Dims& d = all.emplace_back(below(4) ? usual : 1 + below(6));
          for (uint32_t& size : d) size = 1 + below(3);
        }
        return all;
      };
      Model model = model_of(name, dims(form.in));
      std::deque<std::vector<int32_t>> kept;
      for (uint32_t i : model.operations[0].inputs) {
        nnapi::Operand& operand = model.operands[i];
        const bool whole = operand.type == OperandCode::kTensorInt32, scalar = !operand.tensor();
        if (!scalar && (!whole || below(8) == 0)) continue;
        std::vector<int32_t>& values = kept.emplace_back(1024);  // more than six dimensions of 3 have elements
        for (int32_t& v : values) v = static_cast<int32_t>(below(4)) - (below(6) == 0);
        if (operand.type == OperandCode::kFloat32) values[0] = 0x3f800000;
        operand.data = std::as_bytes(std::span(values)).first(operand.bytes());
        operand.lifetime = Lifetime::kConstant;
        std::erase(model.inputs, i);
      }
      if (model.inputs.empty() || !nnapi::validate_operation(model, model.operations[0]).ok()) continue;
      ASSERT_TRUE(nnapi::finish_model(model).ok());
      std::vector<nnapi::InputSpec> specs;
      for (uint32_t i : model.inputs) specs.push_back({model.operands[i].dims});
      const auto result = nnapi::to_graph(model, specs);
      if (result.ok()) {
        ++mapped[name];
      } else {
        EXPECT_FALSE(result.status().message().empty());
        ++refused;
      }
    }
  }
  EXPECT_GT(mapped.size(), 40u) << "most would be wrong of a test that hits nothing";
  EXPECT_GT(refused, 2000);
}

}  // namespace
