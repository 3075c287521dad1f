// docs/gpu_rules.md holds the rules' table word for word and names every operator that is lowered, but unary functions;
// each list is in order.
#include <gtest/gtest.h>

#include <fstream>
#include <iterator>
#include <vector>

#include "backends/gpu/lowering.h"

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

}  // namespace
}  // namespace pinnace::testing
