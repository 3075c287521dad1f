// fuse_bias and fold_scale: constants after products, and each condition that forbids it.
#include <gtest/gtest.h>

#include "base/text.h"
#include "cpp/passes/apply.h"

namespace pinnace::testing {
namespace {

std::string with(std::string_view input, std::string_view body) {
  return str_cat("graph \"g\" { input %x : ", input, R"(
      const %w : f32[2,2] = {1,2,-3,4} const %k : f32[2,2,1,1] = {1,2,-3,4} const %n : f32[2] = {0.5,-2}
      const %c : f32[2,1,1] = {0.5,-2} const %one : f32[1] = {3} const %row : f32[3,1] = {1,2,3}
      )",
                 body, " output \"y\" %y }");
}

TEST(FuseBias, Products) {
  for (const char* text : {"%t = mat_mul(%x, %w) %y = add(%t, %n)", "%t = mat_mul(%x, %w, %n) %y = add(%one, %t)",
                           "%t = gemm(%x, %w, %n) {beta=2.0} %y = sub(%t, %n)",
                           "%t = mat_mul(%x, %w) %y = add(%t, %n) {activation=\"relu\"}"}) {
    const auto r = apply_pass("fuse_bias", with("f32[3,2]", text));
    EXPECT_EQ(r.changes, 1) << text;
    EXPECT_EQ(r.maker("y").inputs.size(), 3u);
  }
}

TEST(FuseBias, Convolutions) {
  EXPECT_EQ(apply_pass("fuse_bias", with("f32[1,2,3,3]", "%t = conv(%x, %k) %y = add(%t, %c)")).ops, "conv");
  EXPECT_EQ(apply_pass("fuse_bias", with("f32[1,2,3,3]", "%t = conv_transpose(%x, %k, %n) %y = add(%c, %t)")).ops,
            "conv_transpose");
}

TEST(FuseBias, WeightsNeedNotBeConstant) {
  EXPECT_EQ(apply_pass("fuse_bias", with("f32[2,2]", "%t = mat_mul(%x, %x) %y = add(%t, %n)")).ops, "mat_mul");
}

TEST(FuseBias, DiffersAlongAnotherDimension) {
  EXPECT_EQ(apply_pass("fuse_bias", with("f32[3,2]", "%t = mat_mul(%x, %w) %y = add(%t, %row)")).changes, 0);
  EXPECT_EQ(apply_pass("fuse_bias", with("f32[1,2,2,2]", "%t = conv(%x, %k) %y = add(%t, %n)")).changes, 0);
}

TEST(FuseBias, EnlargesTheResult) {
  EXPECT_EQ(apply_pass("fuse_bias", with("f32[1,2]", "%t = mat_mul(%x, %w) %y = add(%t, %row)")).changes, 0);
  EXPECT_EQ(apply_pass("fuse_bias", with("f32[3,2]", "%t = mat_mul(%x, %w) %y = add(%t, %c)")).changes, 0);
}

TEST(FuseBias, ProductIsNeeded) {
  EXPECT_EQ(apply_pass("fuse_bias", with("f32[3,2]", "%t = mat_mul(%x, %w) %y = add(%t, %n) output \"t\" %t")).changes,
            0);
  EXPECT_EQ(
      apply_pass("fuse_bias", with("f32[3,2]", "%t = mat_mul(%x, %w) {activation=\"relu\"} %y = add(%t, %n)")).changes,
      0);
}

TEST(FuseBias, NotConstant) {
  EXPECT_EQ(apply_pass("fuse_bias", with("f32[2,2]", "%t = mat_mul(%x, %w) %y = add(%t, %x)")).changes, 0);
}

TEST(FoldScale, Products) {
  for (const char* text :
       {"%t = mat_mul(%x, %w, %n) %y = mul(%t, %n)", "%t = gemm(%x, %w) {trans_b=1} %y = mul(%one, %t)",
        "%t = gemm(%x, %w, %n) {beta=2.0} %y = div(%t, %n)"}) {
    EXPECT_EQ(apply_pass("fold_scale", with("f32[3,2]", text)).changes, 1) << text;
  }
  EXPECT_EQ(apply_pass("fold_scale", with("f32[1,2,3,3]", "%t = conv(%x, %k, %n) %y = mul(%t, %c)")).ops, "conv");
}

TEST(FoldScale, Conditions) {
  EXPECT_EQ(apply_pass("fold_scale", with("f32[2,2]", "%t = mat_mul(%x, %x) %y = mul(%t, %n)")).changes, 0)
      << "weights vary";
  EXPECT_EQ(apply_pass("fold_scale", with("f32[3,2]", "%t = mat_mul(%x, %w) %y = div(%n, %t)")).changes, 0)
      << "the divisor";
  EXPECT_EQ(apply_pass("fold_scale", with("f32[3,2]", "%t = mat_mul(%x, %w) %y = mul(%t, %row)")).changes, 0)
      << "per row";
  EXPECT_EQ(apply_pass("fold_scale", with("f32[3,2]", "const %z : f32[] = {0} %t = mat_mul(%x, %w) %y = div(%t, %z)"))
                .changes,
            0);
  EXPECT_EQ(apply_pass("fold_scale", with("f32[3,2]", "%t = mat_mul(%x, %w) %y = mul(%t, %n)"), {"t"}).changes, 0);
}

TEST(FoldScale, WeightsThatWouldUnderflow) {
  const auto changes = [](std::string_view type, std::string_view weights, std::string_view scale) {
    return apply_pass("fold_scale", str_cat("graph \"g\" { input %x : ", type, "[1,2] const %w : ", type, "[2,2] = {",
                                            weights, "} const %s : ", type, "[2] = {", scale,
                                            "} %t = mat_mul(%x, %w) %y = mul(%t, %s) output \"y\" %y }"))
        .changes;
  };
  EXPECT_EQ(changes("f16", "1e-4,1e-4,1e-4,1e-4", "1e-4,1e-4"), 0);
  EXPECT_EQ(changes("f16", "0.5,1e-4,0.5,1e-4", "0.5,1e-4"), 0) << "one channel is enough";
  EXPECT_EQ(changes("f32", "1e-25,1e-25,1e-25,1e-25", "1e-25,1e-25"), 0);
  EXPECT_EQ(changes("bf16", "1e-25,1e-25,1e-25,1e-25", "1e-25,1e-25"), 0);
  EXPECT_EQ(changes("f64", "1e-200,1e-200,1e-200,1e-200", "1e-200,1e-200"), 0) << "0 in double too";
  EXPECT_EQ(changes("f64", "1e-25,1e-25,1e-25,1e-25", "1e-25,1e-25"), 1);
  EXPECT_EQ(changes("f16", "0.5,0.25,1e-4,2e-4", "0.5,0.125"), 1) << "rounded as the largest of their channel is";
  EXPECT_EQ(changes("f32", "0.5,0.25,0,0", "0.5,0"), 1) << "0 is exact";
  EXPECT_EQ(changes("f32", "0.5,1e-30,0.25,1e-31", "0.5,1e-12"), 1) << "a dead channel";
}

TEST(FoldScale, SizesThatNoMemoryHolds) {
  // The budget of apply_pass has no end; what is not constant must not be taken for as long as its shape.
  const std::string text =
      "graph \"g\" { input %x : f32[1,2] input %w : f32[2,1099511627776] const %s : f32[] = {2} "
      "%a = mat_mul(%x, %w) %y = ";
  for (const char* op : {"mul(%a, %s)", "add(%a, %s)"}) {
    auto graph = parse(str_cat(text, op, " output \"y\" %y }"));
    ASSERT_TRUE(graph.ok() && update_types(*graph).ok());
    const auto passed = run_passes(*graph, {}, {});
    ASSERT_TRUE(passed.ok()) << passed.status().message();
    EXPECT_EQ(graph->nodes.size(), 2u) << op;
  }
}

TEST(FoldScale, SharedWeightsAreNotMultipliedWithoutEnd) {
  // 200 products with one weight of 256 KiB, each with a factor of its own.
  std::string weights = "1";
  for (int i = 1; i < 256 * 256; ++i) weights += ",1";
  std::string text = str_cat("graph \"g\" { input %x : f32[1,256] const %w : f32[256,256] = {", weights, "} ");
  for (int i = 0; i < 200; ++i) {
    text += str_cat("const %s", i, " : f32[] = {0.", 100 + i, "} %t", i, " = mat_mul(%x, %w) %y", i, " = mul(%t", i,
                    ", %s", i, ") output \"y", i, "\" %y", i, " ");
  }
  auto graph = parse(text + "}");
  ASSERT_TRUE(graph.ok() && update_types(*graph).ok());
  const auto passed = run_passes(*graph, {}, {{"common_subexpressions"}});
  ASSERT_TRUE(passed.ok()) << passed.status().message();
  size_t bytes = 0;
  for (const Value& v : graph->values) bytes += v.constant ? v.constant->bytes() : 0;
  constexpr size_t kWeight = 256 * 256 * 4;
  EXPECT_LT(bytes, 8 * kWeight + (8 << 20));
  EXPECT_GT(bytes, 6 * kWeight) << "some are folded";
}

}  // namespace
}  // namespace pinnace::testing
