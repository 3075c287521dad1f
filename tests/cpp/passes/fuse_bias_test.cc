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

}  // namespace
}  // namespace pinnace::testing
