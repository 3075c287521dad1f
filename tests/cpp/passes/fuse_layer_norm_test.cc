// fuse_layer_norm: the ways exporters write the formula, and what must not match.
#include <gtest/gtest.h>

#include "base/text.h"
#include "cpp/passes/apply.h"

namespace pinnace::testing {
namespace {

std::string with(std::string_view body) {
  return str_cat(R"(graph "g" { input %x : f32[2,3,4]
      const %axes : i64[1] = {-1} const %two : f32[] = {2} const %eps : f32[] = {0.001} const %one : f32[] = {1}
      const %w : f32[4] = {1,2,-3,0.5} const %b : f32[4] = {0.25,0,1,-1} const %both : i64[2] = {1,2} const %middle : i64[1] = {1}
      )",
                 body, " output \"y\" %y }");
}

std::string statistics(std::string_view square, std::string_view axes = "%axes") {
  return str_cat("%m = reduce_mean(%x, ", axes, ") %d = sub(%x, %m) %q = ", square, " %v = reduce_mean(%q, ", axes,
                 ") %e = add(%v, %eps) %r = sqrt(%e) ");
}

TEST(FuseLayerNorm, Formulas) {
  const std::string pow = statistics("pow(%d, %two)"), mul = statistics("mul(%d, %d)");
  for (const std::string& text :
       {pow + "%n = div(%d, %r) %s = mul(%n, %w) %y = add(%s, %b)", mul + "%n = div(%d, %r) %y = mul(%w, %n)",
        mul + "%y = div(%d, %r)", mul + "%i = reciprocal(%r) %n = mul(%d, %i) %s = mul(%n, %w) %y = add(%b, %s)",
        mul + "%i = div(%one, %r) %y = mul(%i, %d)"}) {
    EXPECT_EQ(apply_pass("fuse_layer_norm", with(text)).ops, "layer_normalization") << text;
  }
}

TEST(FuseLayerNorm, SeveralDimensions) {
  const auto r = apply_pass("fuse_layer_norm", with(statistics("mul(%d, %d)", "%both") + "%y = div(%d, %r)"));
  EXPECT_EQ(r.ops, "layer_normalization");
  EXPECT_EQ(std::get<int64_t>(*r.maker("y").attr("axis")), -2);
}

TEST(FuseLayerNorm, NotTheLastDimension) {
  EXPECT_EQ(apply_pass("fuse_layer_norm", with(statistics("mul(%d, %d)", "%middle") + "%y = div(%d, %r)")).changes, 0);
}

TEST(FuseLayerNorm, OtherFormulas) {
  EXPECT_EQ(apply_pass("fuse_layer_norm", with(statistics("mul(%d, %x)") + "%y = div(%d, %r)")).changes, 0);
  EXPECT_EQ(apply_pass("fuse_layer_norm", with(statistics("pow(%d, %one)") + "%y = div(%d, %r)")).changes, 0);
  EXPECT_EQ(apply_pass("fuse_layer_norm", with(statistics("mul(%d, %d)") + "%y = div(%x, %r)")).changes, 0);
}

TEST(FuseLayerNorm, InnerValueIsNeeded) {
  EXPECT_EQ(apply_pass("fuse_layer_norm", with(statistics("mul(%d, %d)") + "%y = div(%d, %r) output \"m\" %m")).changes,
            0);
  EXPECT_EQ(apply_pass("fuse_layer_norm", with(statistics("mul(%d, %d)") + "%y = div(%d, %r)"), {"v"}).changes, 0);
}

TEST(FuseLayerNorm, ScaledValueIsNeeded) {
  const auto r = apply_pass("fuse_layer_norm",
                            with(statistics("mul(%d, %d)") + "%n = div(%d, %r) %y = mul(%n, %w) output \"n\" %n"));
  EXPECT_EQ(r.ops, "layer_normalization mul");
}

TEST(FuseLayerNorm, ScaleThatNoMemoryHolds) {
  auto graph = parse(R"(graph "g" { input %x : f32[1,1099511627776] const %axes : i64[1] = {-1}
      const %eps : f32[] = {0.001} %m = reduce_mean(%x, %axes) %d = sub(%x, %m) %q = mul(%d, %d)
      %v = reduce_mean(%q, %axes) %e = add(%v, %eps) %r = sqrt(%e) %y = div(%d, %r) output "y" %y })");
  ASSERT_TRUE(graph.ok() && update_types(*graph).ok());
  const auto passed = run_passes(*graph, {}, {});
  ASSERT_TRUE(passed.ok()) << passed.status().message();
  EXPECT_EQ(graph->nodes.size(), 7u);
}

}  // namespace
}  // namespace pinnace::testing
