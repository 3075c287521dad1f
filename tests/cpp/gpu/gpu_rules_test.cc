// docs/gpu_rules.md holds the rules' table word for word and names every operator that is lowered, but unary functions;
// each list is in order. A refusal names the one input, rank or form that breaks the rule.
#include <gtest/gtest.h>

#include <fstream>
#include <iterator>
#include <vector>

#include "backends/gpu/lowering.h"
#include "cpp/gpu/gpu_session.h"
#include "cpp/lone_node.h"

namespace pinnace::testing {
namespace {

/// These follow the others in each list, and new ones need not be on the page.
bool is_unary(const std::string& name) {
  const OpDef* op = find_op(name);
  return op && op->unary != UnaryKind::kNone;
}

TEST(GpuRules, AreDocumented) {
  std::ifstream file(PINNACE_TEST_DATA "/../../docs/gpu_rules.md");
  const std::string page{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  for (const RuleInfo& rule : gpu::kRules) {
    const std::string row = str_cat("| ", rule.id, " | ", rule.text, " | ", rule.meaning, " |");
    EXPECT_NE(page.find(row), std::string::npos) << "docs/gpu_rules.md lacks:\n" << row;
  }
  std::vector<std::string> names;
#define LOWERING(op, function) names.push_back(#op);
#include "backends/gpu/lowerings.inc"
#undef LOWERING
  for (const std::string& name : names) EXPECT_NE(find_op(name), nullptr) << name;
  std::erase_if(names, is_unary);
  for (const std::string& name : names) EXPECT_NE(page.find(str_cat("`", name, "`")), std::string::npos) << name;
  EXPECT_TRUE(std::is_sorted(names.begin(), names.end()));
  std::vector<std::string> quantized;
#define QUANTIZED_LOWERING(op, function) quantized.push_back(#op);
#include "backends/gpu/quantized_lowerings.inc"
#undef QUANTIZED_LOWERING
  const size_t second = page.find("## Operators on quantised tensors");
  ASSERT_NE(second, std::string::npos);
  for (const std::string& name : quantized) EXPECT_NE(find_op(name), nullptr) << name;
  std::erase_if(quantized, is_unary);
  for (const std::string& name : quantized) {
    EXPECT_NE(page.find(str_cat("`", name, "`"), second), std::string::npos) << name;
  }
  EXPECT_TRUE(std::is_sorted(quantized.begin(), quantized.end()));
}

/// The verdict on a call of which the inputs in `values`, bit by bit, are values of the run. It needs no device.
Verdict ask(const char* op, const char* inputs, const char* attributes, uint32_t values) {
  const Case source{.inputs = inputs, .attributes = attributes};
  const auto built = build_case(op, source, 1);
  EXPECT_TRUE(built.ok()) << built.status().message();
  if (!built.ok()) return {};
  const auto types = infer_case(*built);
  EXPECT_TRUE(types.ok()) << types.status().message();
  if (!types.ok()) return {};
  const auto in = built->input_views();
  std::vector<TensorView> out;
  for (const TensorType& type : *types) out.push_back({&type, nullptr});
  std::vector<const TensorType*> in_types;
  for (const TensorView& v : in) in_types.push_back(v.type);
  const NodeView view(built->node(), *built->op, in_types, {}, built->declared());
  return LoneNode(view, values, in, out).verdict(vulkan_backend(), {"vulkan", ""}, *built->op);
}

TEST(GpuRules, RefusalsNameWhatBreaksThem) {
  constexpr struct {
    const char *op, *inputs, *attributes;
    uint32_t values;
    const char *rule, *text, *value;
  } kCalls[] = {
      {"resize", "f32[1,2,5,5];none;none;i64{1,2,9,9}", "", 1, "", "", ""},
      {"resize", "f32[1,2,5];none;none;i64{1,2,9}", "", 1, "V-4", "the rank is one that the kernel does not take",
       "float32[1,2,5]"},
      {"resize", "f32[1,2,5,5];none;none;i64{1,2,9,9}", "", 0b1001, "V-6", "the input must be a constant", "sizes"},
      {"resize", "f32[1,2,5,5];none;f32{1,1,2,2}", "", 0b101, "V-6", "the input must be a constant", "scales"},
      {"resize", "f32[1,2,5,5];none;none;i64{1,3,9,9}", "", 1, "V-7", "a form of the operator that has no kernel",
       "axis 1"},
      {"slice", "f32[9];i64{1};i64{7}", "", 1, "", "", ""},
      {"slice", "f32[9];i64{1};i64{7}", "", 0b11, "V-6", "the input must be a constant", "starts"},
      {"slice", "f32[9];i64{1};i64{7};i64{0}", "", 0b1001, "V-6", "the input must be a constant", "axes"},
      {"slice", "f32[9];i64{1};i64{7};i64{0};i64{2}", "", 0b10001, "V-6", "the input must be a constant", "steps"},
      {"pad", "f32[9];i64{1,2}", "", 0b11, "V-6", "the input must be a constant", "pads"},
      {"pad", "f32[9];i64{1,2};none;i64{0}", "", 0b1001, "V-6", "the input must be a constant", "axes"},
  };
  for (const auto& call : kCalls) {
    const Verdict verdict = ask(call.op, call.inputs, call.attributes, call.values);
    EXPECT_EQ(verdict.supported, *call.rule == '\0') << call.op << " " << call.inputs << ": " << verdict.value;
    EXPECT_EQ(verdict.rule, call.rule) << call.op << " " << call.inputs << ": " << verdict.value;
    EXPECT_EQ(verdict.text, call.text) << call.op << " " << call.inputs;
    EXPECT_EQ(verdict.value, call.value) << call.op << " " << call.inputs;
  }
}

}  // namespace
}  // namespace pinnace::testing
