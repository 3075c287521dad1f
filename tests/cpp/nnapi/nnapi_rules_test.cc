// One node per rule by which the NNAPI back end refuses nodes: it breaks that rule alone, for the same node with one
// thing changed is taken. And docs/nnapi_rules.md holds the rules' table word for word.
#include <gtest/gtest.h>

#include <fstream>
#include <set>
#include <sstream>

#include "backends/nnapi/rules.h"
#include "backends/packed_constants.h"
#include "cpp/counted_memory.h"
#include "cpp/nnapi/nnapi_node.h"

namespace pinnace::testing {
namespace {

/// A call of an operator at a level; `open`: also inputs after the first are values of the run.
struct Call {
  const char* inputs;
  const char* attributes = "";
  int level = 8;
  bool open = false;
  const char* quantization = "";
  int outputs = 1;
  uint32_t values = 0;  ///< which inputs are values of the run, bit by bit; 0: what `open` says
};
struct Broken {
  const char* rule;
  const char* op;
  Call refused, taken;
  const char* taken_op = nullptr;  ///< another operator, where that is what is changed
};

constexpr const char* kAcos =
    "then_branch=graph \"t\" { input %x : f32[?] %y = acos(%x) output \"y\" %y }, "
    "else_branch=graph \"e\" { input %x : f32[?] %y = abs(%x) output \"y\" %y }";
constexpr const char* kAbs =
    "then_branch=graph \"t\" { input %x : f32[?] %y = relu(%x) output \"y\" %y }, "
    "else_branch=graph \"e\" { input %x : f32[?] %y = abs(%x) output \"y\" %y }";
constexpr const char* kScan =
    "carried=1, body=graph \"b\" { input %i : i64[] input %c : bool[] input %x : f32[?] %y = add(%x, %x) "
    "output \"c\" %c output \"x\" %y output \"all\" %y }";
constexpr Broken kBroken[] = {
    {"N-1", "acos", {"f32[2,3]"}, {"f32[2,3]"}, "abs"},
    {"N-2", "exp", {"f32[2,3]", "", 2}, {"f32[2,3]", "", 3}},
    {"N-2",
     "conv",
     {"f32[1,64,3,3];f32[64,64,3,3]", "dilations=[32,32], pads=[32,32,32,32]", 1},
     {"f32[1,64,3,3];f32[64,64,3,3]", "dilations=[4,4], pads=[4,4,4,4]", 1}},
    {"N-2",
     "quantized_lstm",
     {"i8[1,1];i8[4,1];i8[4,1];i8[1,1];i16[1,1]",
      "cell_exponent=-11, h_factors=[1.0,1.0,1.0,1.0], hidden_factor=1.0, x_factors=[1.0,1.0,1.0,1.0]", 3},
     {"i8[1,1];i8[4,1];i8[4,1];i8[1,1];i16[1,1]",
      "cell_exponent=-11, h_factors=[1.0,1.0,1.0,1.0], hidden_factor=1.0, x_factors=[1.0,1.0,1.0,1.0]", 4}},
    {"N-3", "transpose", {"i32[2,3]"}, {"f32[2,3]"}},
    {"N-4", "add", {"f64[2,3];f64[2,3]"}, {"f32[2,3];f32[2,3]"}},
    {"N-4", "add", {"u8[2,3];u8[2,3]"}, {"f32[2,3];f32[2,3]"}},
    {"N-5", "add", {"f32[1,2,3,1,2];f32[2]"}, {"f32[2,3,1,2];f32[2]"}},
    {"N-5", "add", {"f32[1,2,3,1,2];f32[2]"}, {"f32[1,2,3,1,2];f32[1]"}},
    {"N-6", "add", {"f32[0,3];f32[0,3]"}, {"f32[1,3];f32[1,3]"}},
    {"N-8", "conv", {"f32[1,2,5];f32[3,2,3]", "", 8, true}, {"f32[1,2,5,5];f32[3,2,3,3]", "", 8, true}},
    {"N-8",
     "quantized_lstm",
     {"i8[1,1];i8[4,1];i8[4,1];i8[1,1];i16[1,1]",
      "cell_exponent=-11, h_factors=[1.0,1.0,1.0,1.0], hidden_factor=1.0, x_factors=[1.0,1.0,1.0,1.0]", 8, true},
     {"i8[1,1];i8[4,1];i8[4,1];i8[1,1];i16[1,1]",
      "cell_exponent=-11, h_factors=[1.0,1.0,1.0,1.0], hidden_factor=1.0, x_factors=[1.0,1.0,1.0,1.0]"}},
    {"N-4", "min", {"u16[4];u16[4]"}, {"f32[4];f32[4]"}},
    {"N-12",
     "quantized_lstm_u8",
     {"u8[1,1];u8[4,2];i32[4];i16[1,1];u8[1,1]", "factor=0.1"},
     {"u8[1,1];u8[4,2];i32[4];i16[1,1];u8[1,1]", "factor=0.125"}},
    {"N-9", "resize", {"f32[1,2,5];none;none;i64{1,2,9}"}, {"f32[1,2,5,5];none;none;i64{1,2,9,9}"}},
    {"N-10",
     "max_pool",
     {"f32[1,2,7,7]", "kernel_shape=[2,2], dilations=[2,2]"},
     {"f32[1,2,7,7]", "kernel_shape=[2,2]"}},
    {"N-11", "pad", {"f32[2,3];i64{-1,0,0,0}"}, {"f32[2,3];i64{1,0,0,0}"}},
    {"N-12",
     "conv",
     {"u8[1,1,3,3]{scale 0.1, zero 3};u8[2,1,3,3]{scales [0.1,0.2], zeros [100,128], axis 0}", "", 8, false,
      "scale 2, zero 1"},
     {"u8[1,1,3,3]{scale 0.1, zero 3};u8[2,1,3,3]{scales [0.1,0.2], zeros [128,128], axis 0}", "", 8, false,
      "scale 2, zero 1"}},
    {"N-13", "top_k", {"f32[4];i64{2}", "largest=0", 8, false, "", 2}, {"f32[4];i64{2}", "largest=1", 8, false, "", 2}},
    {"N-14",
     "conv_transpose",
     {"f32[1,65,3,3];f32[65,1,3,3]", "group=65"},
     {"f32[1,64,3,3];f32[64,1,3,3]", "group=64"}},
    {"N-15", "add", {"i64[2]{1,2};i64[2]{1,2}"}, {"i32[2]{1,2};i32[2]{1,2}"}},
    {"N-15", "cast", {"f32[2]", "to=\"i64\""}, {"f32[2]", "to=\"i32\""}},
    {"N-20", "if", {"bool[];f32[2]", kAcos, 8, true}, {"bool[];f32[2]", kAbs, 8, true}},
    {"N-21",
     "loop",
     {"i64[]{3};none;f32[2]", kScan, 8, true, "", 2},
     {"i64[]{3};none;f32[2]", kScan, 8, true, "", 2, ~1u}},
    {"N-22", "gru", {"f32[65,1,2];f32[1,6,2];f32[1,6,2]"}, {"f32[64,1,2];f32[1,6,2];f32[1,6,2]"}},
    {"N-19", "mat_mul", {"f32[2,3,4];f32[1,4,5]", "", 8, true}, {"f32[2,3,4];f32[2,4,5]", "", 8, true}},
};

Verdict ask(const char* op, const Call& call, const std::string& precision = "fp32") {
  const Case source{.inputs = call.inputs,
                    .attributes = call.attributes,
                    .outputs = call.outputs,
                    .output_quantization = call.quantization};
  const auto built = build_case(op, source, 1);
  EXPECT_TRUE(built.ok()) << built.status().message();
  if (!built.ok()) return {};
  const auto types = infer_case(*built);
  EXPECT_TRUE(types.ok()) << types.status().message();
  if (!types.ok()) return {};
  const auto in = built->input_views();
  std::vector<TensorView> out;
  for (const TensorType& type : *types) out.push_back({&type, nullptr});
  std::vector<const TensorType*> in_types, declared = built->declared();
  for (const TensorView& v : in) in_types.push_back(v.type);
  const NodeView view(built->node(), *built->op, in_types, {}, declared);
  TargetSpec target = nnapi_level(call.level);
  target.precision = precision;
  const uint32_t values = call.values ? call.values : call.open ? ~0u : 1u;
  return LoneNode(view, values, in, out).verdict(nnapi_backend(), target, *built->op);
}

TEST(NnapiRules, EachRefusesWhatBreaksItAlone) {
  for (const Broken& b : kBroken) {
    const Verdict refused = ask(b.op, b.refused);
    EXPECT_FALSE(refused.supported) << b.rule << ": " << b.op << " " << b.refused.inputs;
    EXPECT_EQ(refused.rule, b.rule) << b.op << " " << b.refused.inputs << ": " << refused.text << ", is "
                                    << refused.value;
    EXPECT_FALSE(refused.text.empty());
    EXPECT_FALSE(refused.value.empty()) << b.rule;
    const Verdict taken = ask(b.taken_op ? b.taken_op : b.op, b.taken);
    EXPECT_TRUE(taken.supported) << b.rule << ": " << taken.rule << " " << taken.text << ", is " << taken.value;
    EXPECT_FALSE(taken.kernel.empty());
  }
}

TEST(NnapiRules, PrecisionIsFp32OrFp16) {
  const Call call{"f32[2,3]"};
  EXPECT_EQ(ask("relu", call, "bf16").rule, "N-7");
  EXPECT_TRUE(ask("relu", call, "fp16").supported);
}

TEST(NnapiRules, BytesAreCountedIn32Bits) {
  const TensorType large{DType::kF32, {Dim(65536), Dim(65536)}, nullptr}, small{DType::kF32, {Dim(65536)}, nullptr};
  for (const TensorType* type : {&large, &small}) {
    Graph graph;
    const ValueId x = graph.add_value("x", *type), y = graph.add_value("y", *type);
    const Node* node = graph.add_node("relu", 1, "r", {x}, {y});
    const TensorType* const types[] = {type};
    const Verdict v = nnapi_backend().supports(NodeView(*node, *find_op("relu"), types, {}, types), nnapi_level(8));
    EXPECT_EQ(v.rule, type == &large ? "N-16" : "") << v.value;
  }
}

/// The places of top_k's row from its end to its begin are written with the weights, not when the question is asked.
TEST(NnapiRules, AQuestionTakesNoMemoryOfATensorsSize) {
  const TensorType x{DType::kF32, {Dim(1 << 29)}, nullptr}, k{DType::kI64, {Dim(1)}, nullptr};
  const TensorType values{DType::kF32, {Dim(1)}, nullptr}, places{DType::kI64, {Dim(1)}, nullptr};
  Graph graph;
  const std::vector<ValueId> inputs = {graph.add_value("x", x), graph.add_value("k", k)};
  const std::vector<ValueId> outputs = {graph.add_value("values", values), graph.add_value("places", places)};
  const OpDef& op = *find_op("top_k");
  const Node* node = graph.add_node("top_k", op.version, "t", inputs, outputs);
  const TensorType *const in[] = {&x, &k}, *const out[] = {&values, &places};
  const int64_t one = 1;
  const void* const data[] = {nullptr, &one};
  const MemoryWatch watch(1 << 20);
  const Verdict v = nnapi_backend().supports(NodeView(*node, op, in, data, out), nnapi_level(8));
  EXPECT_TRUE(v.supported) << v.rule << ' ' << v.value;
  EXPECT_EQ(watch.overdrawn(), 0u);
}

/// A relu of four floats, which enter or, where they do not, are known.
class OneRelu {
 public:
  explicit OneRelu(bool enters) {
    const ValueId x = graph_.add_value("x", type_), y = graph_.add_value("y", type_);
    graph_.add_node("relu", 1, "r", {x}, {y});
    type_inference_ = begin_type_inference(graph_);
    type_inference_.types = {type_, type_};
    type_inference_.data = {enters ? nullptr : std::make_shared<Constant>(nullptr, zeros_, sizeof zeros_), nullptr};
    type_inference_.computed = {false};
    if (enters) inputs_ = {x};
    outputs_ = {y};
  }
  std::vector<Verdict> review(const TargetSpec& target, bool elsewhere) {
    const Segment segment{graph_, type_inference_, {0}, inputs_, outputs_, ops_, packed_, ""};
    return nnapi_backend().review(segment, target, elsewhere);
  }

 private:
  const TensorType type_{DType::kF32, {Dim(4)}, nullptr};
  const float zeros_[4] = {};
  Graph graph_;
  TypeInference type_inference_;
  std::vector<ValueId> inputs_, outputs_;
  const OpTable ops_;
  PackedConstants packed_;
};

TEST(NnapiRules, SomethingEnters) {
  EXPECT_TRUE(OneRelu(true).review(nnapi_level(8), false).empty());
  const auto verdicts = OneRelu(false).review(nnapi_level(8), false);
  ASSERT_EQ(verdicts.size(), 1u);
  EXPECT_EQ(verdicts[0].rule, "N-23");
}

TEST(NnapiRules, OnlyAutoAsksWhatPays) {
  OneRelu relu(true);
  TargetSpec target = nnapi_level(2);  // below feature level 3 no device is asked
  EXPECT_TRUE(relu.review(target, true).empty());
  target.automatic = true;
  EXPECT_TRUE(relu.review(target, false).empty()) << "there is nowhere else";
  const auto verdicts = relu.review(target, true);
  ASSERT_EQ(verdicts.size(), 1u);
  EXPECT_EQ(verdicts[0].rule, "N-18");
  EXPECT_EQ(verdicts[0].value, "1 nodes, about 0 us of work here; a call with 32 bytes about 50 us");
}

std::string text_of(const std::string& path) {
  std::ifstream in(path);
  std::stringstream text;
  text << in.rdbuf();
  return text.str();
}

TEST(NnapiRules, EveryRuleIsTestedAndDocumented) {
  // Those that need a segment or a device: PrecisionIsFp32OrFp16, BytesAreCountedIn32Bits, SomethingEnters,
  // OnlyAutoAsksWhatPays, tests/python/nnapi/nnapi_backend_test.py.
  std::set<std::string> tested = {"N-7", "N-16", "N-17", "N-18", "N-23"};
  for (const Broken& b : kBroken) tested.insert(b.rule);
  const std::string page = text_of(PINNACE_TEST_DATA "/../../docs/nnapi_rules.md");
  for (const RuleInfo& rule : nnapi_client::kRules) {
    EXPECT_TRUE(tested.contains(rule.id)) << rule.id;
    const std::string row = str_cat("| ", rule.id, " | ", rule.text, " | ", rule.meaning, " |\n");
    EXPECT_NE(page.find(row), std::string::npos) << "docs/nnapi_rules.md lacks:\n" << row;
  }
}

}  // namespace
}  // namespace pinnace::testing
