// cancel_identities, cancel_transposes, merge_reshapes and common_subexpressions: what goes, and what must stay.
#include <gtest/gtest.h>

#include <algorithm>
#include <ctime>

#include "base/text.h"
#include "cpp/guarded.h"
#include "cpp/passes/apply.h"

namespace pinnace::testing {
namespace {

std::string with(std::string_view body, std::string_view input = "f32[2,3]") {
  return str_cat("graph \"g\" { symbol n 1..8 input %x : ", input, R"(
      const %same : i64[2] = {2,3} const %flat : i64[1] = {-1} const %zero : f32[] = {0} const %one : f32[1] = {1}
      const %copy : i64[2] = {0,-1} const %ones : i64[2] = {1,1} const %first : i64[1] = {0}
      )",
                 body, " output \"y\" %y }");
}

TEST(CancelIdentities, Goes) {
  for (const char* text :
       {"identity(%a)", "cast(%a) {to=\"f32\"}", "bit_cast(%a) {to=\"f32\"}", "cast_like(%a, %one)",
        "reshape(%a, %same)", "transpose(%a) {perm=[0,1]}", "add(%a, %zero)", "add(%zero, %a)", "sub(%a, %zero)",
        "mul(%a, %one)", "mul(%one, %a)", "div(%a, %one)", "concat(%a) {axis=0}", "max(%a)", "expand(%a, %ones)"}) {
    const auto r = apply_pass("cancel_identities", with(str_cat("%a = neg(%x) %b = ", text, " %y = abs(%b)")));
    EXPECT_EQ(r.ops, "neg abs") << text;
  }
}

TEST(CancelIdentities, Stays) {
  for (const char* text : {"cast(%a) {to=\"f64\"}", "bit_cast(%a) {to=\"i32\"}", "cast_like(%a, %same)",
                           "reshape(%a, %flat)", "transpose(%a)", "add(%a, %one)", "sub(%zero, %a)", "div(%one, %a)",
                           "mul(%a, %zero)", "add(%a, %zero) {activation=\"relu\"}"}) {
    EXPECT_EQ(apply_pass("cancel_identities", with(str_cat("%a = neg(%x) %b = ", text, " %y = abs(%b)"))).changes, 0)
        << text;
  }
}

TEST(CancelIdentities, NameOfTheOutputStays) {
  const auto r = apply_pass("cancel_identities", with("%a = neg(%x) %b = abs(%a) %y = identity(%a)"));
  EXPECT_EQ(r.ops, "neg");
  EXPECT_EQ(r.maker("y").op, "neg");
  EXPECT_EQ(apply_pass("cancel_identities", with("%y = identity(%x)")).changes, 0) << "an input cannot be renamed";
  EXPECT_EQ(apply_pass("cancel_identities", with("%a = neg(%x) %y = identity(%a) output \"a\" %a")).changes, 0);
  EXPECT_EQ(apply_pass("cancel_identities", with("%a = neg(%x) %y = identity(%a)"), {"a"}).changes, 0);
  EXPECT_EQ(apply_pass("cancel_identities", with("%a = neg(%x) %b = identity(%a) %y = abs(%b)"), {"b"}).maker("b").op,
            "neg");
}

TEST(CancelTransposes, Merges) {
  EXPECT_EQ(apply_pass("cancel_transposes", with("%a = transpose(%x) %b = transpose(%a) %y = neg(%b)")).ops, "neg");
  const auto r = apply_pass("cancel_transposes",
                            with("%a = transpose(%x) {perm=[1,2,0]} %y = transpose(%a) {perm=[0,2,1]}", "f32[2,3,4]"));
  EXPECT_EQ(r.ops, "transpose");
  EXPECT_EQ(std::get<std::vector<int64_t>>(*r.maker("y").attr("perm")), (std::vector<int64_t>{1, 0, 2}));
}

TEST(CancelTransposes, FirstIsNeeded) {
  EXPECT_EQ(
      apply_pass("cancel_transposes", with("%a = transpose(%x) %b = transpose(%a) %y = neg(%b) output \"a\" %a")).ops,
      "transpose neg");
}

TEST(CancelTransposes, OnesMoveNothing) {
  EXPECT_EQ(apply_pass("cancel_transposes", with("%y = transpose(%x) {perm=[1,0,2]}", "f32[1,n,4]")).ops, "reshape");
  EXPECT_EQ(apply_pass("cancel_transposes", with("%y = transpose(%x) {perm=[1,0,2]}", "f32[2,n,4]")).changes, 0);
}

TEST(MergeReshapes, Merges) {
  for (const char* text : {"%a = reshape(%x, %flat) %y = reshape(%a, %same)", "%a = flatten(%x) %y = squeeze(%a)",
                           "%a = unsqueeze(%x, %first) %y = reshape(%a, %flat)"}) {
    EXPECT_EQ(apply_pass("merge_reshapes", with(text)).ops, "reshape") << text;
  }
  EXPECT_EQ(apply_pass("merge_reshapes", with("%a = unsqueeze(%x, %first) %y = reshape(%a, %copy)", "f32[n,3]")).ops,
            "reshape");
}

TEST(MergeReshapes, ShapeIsNotKnown) {
  const auto r = apply_pass("merge_reshapes",
                            R"(graph "g" { symbol n 1..8 symbol m 1..8 input %x : f32[n,m] const %first : i64[1] = {0}
      %a = unsqueeze(%x, %first) %y = unsqueeze(%a, %first) output "y" %y })");
  EXPECT_EQ(r.changes, 0);
}

TEST(MergeReshapes, KeepsTheCheckOfAnOpenSize) {
  for (const char* text :
       {"%a = squeeze(%x, %first) %y = unsqueeze(%a, %first)", "%a = unsqueeze(%x, %last) %y = squeeze(%a, %first)"}) {
    const auto changes = [&](const char* input) {  // seeded inputs must fit: the dynamic size can be 1 only
      return apply_pass("merge_reshapes", str_cat("graph \"g\" { symbol k 1..1 input %x : ", input,
                                                  " const %first : i64[1] = {0} const %last : i64[1] = {-1} ", text,
                                                  " output \"y\" %y }"))
          .changes;
    };
    EXPECT_EQ(changes("f32[k,3]"), 0) << text;
    EXPECT_EQ(changes("f32[1,3]"), 1) << text;
  }
}

TEST(CommonSubexpressions, Merges) {
  EXPECT_EQ(apply_pass("common_subexpressions", with("%a = neg(%x) %b = neg(%x) %y = add(%a, %b)")).ops, "neg add");
  EXPECT_EQ(apply_pass("common_subexpressions",
                       with("const %z : f32[] = {0} %a = add(%x, %zero) %b = add(%x, %z) %y = mul(%a, %b)"))
                .ops,
            "add mul");
  EXPECT_EQ(
      apply_pass("common_subexpressions", with("%a = neg(%x) %b = neg(%x) %c = abs(%a) %d = abs(%b) %y = add(%c, %d)"))
          .ops,
      "neg abs add");
}

TEST(CommonSubexpressions, Stays) {
  for (const char* text :
       {"%a = leaky_relu(%x) %b = leaky_relu(%x) {alpha=0.5} %y = add(%a, %b)",
        "%a = neg(%x) %b = abs(%x) %y = add(%a, %b)", "%a = neg(%x) %b = neg(%x) %y = add(%a, %b) output \"b\" %b"}) {
    EXPECT_EQ(apply_pass("common_subexpressions", with(text)).changes, 0) << text;
  }
}

TEST(CommonSubexpressions, ComparesNumbersByTheirBits) {
  const auto ops = [](const char* a, const char* b) {
    return apply_pass("common_subexpressions", with(str_cat("%a = leaky_relu(%x) {alpha=", a, "} %b = leaky_relu(%x) ",
                                                            "{alpha=", b, "} %y = add(%a, %b)")))
        .ops;
  };
  EXPECT_EQ(ops("0.5", "0.5"), "leaky_relu add");
  EXPECT_EQ(ops("0.0", "-0.0"), "leaky_relu leaky_relu add");  // zeros of other signs come out
}

/// Chains of nodes that are alike: by their inputs, and where only attributes differ.
TEST(CommonSubexpressions, TakesTimeInProportion) {
  constexpr int kNodes = 20'000;
  std::string same, attributes, sum = "%s0 = neg(%x) ";
  for (int i = 0; i < kNodes; ++i) {
    same += str_cat("%n", i, " = abs(%x) ");
    attributes += str_cat("%n", i, " = leaky_relu(%x) {alpha=", 1 + i, ".5} ");
  }
  for (int i = 0; i < kNodes; ++i) sum += str_cat("%s", i + 1, " = add(%s", i, ", %n", i, ") ");
  const std::string end = str_cat("%y = neg(%s", kNodes, ")");
  for (const auto& [text, merged] : {std::pair(&same, kNodes - 1), std::pair(&attributes, 0)}) {
    auto graph = parse(with(str_cat(*text, sum, end)));
    ASSERT_TRUE(graph.ok()) << graph.status().message();
    ASSERT_TRUE(update_types(*graph).ok());
    const auto passes = all_passes();
    const auto pass = std::find_if(passes.begin(), passes.end(),
                                   [](const PassDef* each) { return each->name == "common_subexpressions"; });
    ASSERT_NE(pass, passes.end());
    const std::clock_t start = std::clock();  // processor time
    const auto changes = (*pass)->run(*graph, {});
    const double seconds = static_cast<double>(std::clock() - start) / CLOCKS_PER_SEC;
    ASSERT_TRUE(changes.ok());
    EXPECT_EQ(*changes, merged);
    EXPECT_LT(seconds, kSanitized ? 10 : 0.5);  // 0.03 is usual
  }
}

}  // namespace
}  // namespace pinnace::testing
