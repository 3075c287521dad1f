// The driver of the passes: what `check` takes for a fault of a pass, by the types that a graph computes in.
#include <gtest/gtest.h>

#include "base/text.h"
#include "cpp/passes/apply.h"

namespace pinnace::testing {
namespace {

const PassDef& pass_of(std::string_view name) {
  for (const PassDef* pass : all_passes()) {
    if (pass->name == name) return *pass;
  }
  ADD_FAILURE() << "no pass " << name;
  return *all_passes().front();
}

std::string scaled_product(std::string_view type) {
  std::string weights = "0.37";
  for (int i = 1; i < 16 * 16; ++i) weights += str_cat(",0.", 101 + i * 7919 % 883);
  return str_cat("graph \"g\" { input %x : ", type, "[4,16] const %w : ", type, "[16,16] = {", weights,
                 "} const %s : ", type,
                 "[] = {0.37} %a = mat_mul(%x, %w) %y = mul(%a, %s) %z = sigmoid(%y) output \"z\" %z }");
}

TEST(PassCheck, BoundsKnowTheTypesThatAreComputedIn) {
  for (const char* type : {"f32", "f64", "f16", "bf16"}) {
    auto graph = parse(scaled_product(type));
    ASSERT_TRUE(graph.ok() && update_types(*graph).ok());
    const auto passed = run_passes(*graph, {}, {.disabled = {}, .check = true});
    ASSERT_TRUE(passed.ok()) << type << ": " << passed.status().message();
    EXPECT_EQ(graph->nodes.size(), 1u) << type;
  }
}

TEST(PassCheck, InputsOfTypesThatAreOnlyStoredAreMadeInTheirSize) {
  for (const char* type : {"f8e4m3fn", "f8e5m2fnuz", "f8e8m0", "i4", "u4", "i2"}) {
    auto graph = parse(str_cat("graph \"g\" { input %x : ", type, "[100000] %a : ", type,
                               "[100000] = identity(%x) %y : ", type, "[100000] = identity(%a) output \"y\" %y }"));
    ASSERT_TRUE(graph.ok() && update_types(*graph).ok()) << type;
    const auto passed = run_passes(*graph, {}, {.disabled = {}, .check = true});
    ASSERT_TRUE(passed.ok()) << type << ": " << passed.status().message();
    EXPECT_LT(graph->nodes.size(), 2u) << type;
  }
}

TEST(PassCheck, WeightsThatAreOnlyStoredCoarselyLoosenNothing) {
  const auto bound = [](std::string_view body) {
    auto graph =
        parse(str_cat("graph \"g\" { input %x : f32[2] const %c : bf16[2] = {1,2} ", body, " output \"y\" %y }"));
    EXPECT_TRUE(graph.ok() && update_types(*graph).ok());
    return bound_of(pass_of("fold_scale"), *graph);
  };
  EXPECT_EQ(bound("%w = cast(%c) {to=\"f32\"} %y = mul(%x, %w)"), pass_of("fold_scale").bound);
  EXPECT_GT(bound("%h = cast(%x) {to=\"bf16\"} %y = mul(%h, %c)"), pass_of("fold_scale").bound);
  auto exact = parse(scaled_product("bf16"));
  ASSERT_TRUE(exact.ok() && update_types(*exact).ok());
  EXPECT_EQ(bound_of(pass_of("merge_reshapes"), *exact), 0);
}

}  // namespace
}  // namespace pinnace::testing
