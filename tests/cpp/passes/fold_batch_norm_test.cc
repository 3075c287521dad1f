// fold_batch_norm: each operator and layout of the weights, and each condition that forbids it.
#include <gtest/gtest.h>

#include "base/text.h"
#include "cpp/passes/apply.h"

namespace pinnace::testing {
namespace {

/// `statements` make %t from %x; the norm has 2 channels.
std::string with(std::string_view input, std::string_view statements, std::string_view rest = "",
                 std::string_view var = "2,0.5") {
  return str_cat("graph \"g\" { input %x : ", input, R"(
      const %scale : f32[2] = {1.5,-2} const %b : f32[2] = {0.25,1}
      const %mean : f32[2] = {-1,0.5} const %var : f32[2] = {)",
                 var, "}\n", statements, R"(
      %y = batch_normalization "norm" (%t, %scale, %b, %mean, %var) {epsilon=0.001} output "y" %y )",
                 rest, "}");
}

constexpr const char* kW = "const %w : f32[2,2] = {1,2,-3,4} ";
constexpr const char* kConv = "const %w : f32[2,2,1,2] = {1,2,-3,4,5,6,7,8} %t = conv(%x, %w) at \"net.py\":3";
constexpr const char* kImage = "f32[1,2,3,3]";

TEST(FoldBatchNorm, Conv) {
  const auto r = apply_pass("fold_batch_norm", with(kImage, kConv));
  EXPECT_EQ(r.ops, "conv");
  EXPECT_EQ(r.maker("y").name, "norm");
  EXPECT_EQ(r.maker("y").source.line, 3);
  EXPECT_EQ(r.maker("y").inputs.size(), 3u) << "a bias appears";
  EXPECT_EQ(r.maker("y").attr("epsilon"), nullptr);
}

TEST(FoldBatchNorm, ConvWithBiasAndGroups) {
  EXPECT_EQ(apply_pass("fold_batch_norm", with("f32[1,4,3]",
                                               "const %w : f32[2,2,1] = {1,2,-3,4} const %c : f32[2] = {3,-4} "
                                               "%t = conv(%x, %w, %c) {group=2}"))
                .ops,
            "conv");
}

TEST(FoldBatchNorm, ConvTranspose) {
  EXPECT_EQ(apply_pass("fold_batch_norm", with("f32[1,3,4]",
                                               "const %w : f32[3,2,2] = {1,2,3,4,5,6,7,8,9,-1,-2,-3} "
                                               "%t = conv_transpose(%x, %w)"))
                .ops,
            "conv_transpose");
  EXPECT_EQ(apply_pass("fold_batch_norm", with("f32[1,4,4]",
                                               "const %w : f32[4,1,2] = {1,2,3,4,5,6,7,8} "
                                               "%t = conv_transpose(%x, %w) {group=2}"))
                .ops,
            "conv_transpose");
}

TEST(FoldBatchNorm, Products) {
  for (const char* text : {"%t = mat_mul(%x, %w)", "%t = gemm(%x, %w) {alpha=0.5}", "%t = gemm(%x, %w) {trans_b=1}",
                           "const %c : f32[1,2] = {5,6} %t = gemm(%x, %w, %c) {beta=2.0}",
                           "const %c : f32[1] = {5} %t = mat_mul(%x, %w, %c)"}) {
    const auto r = apply_pass("fold_batch_norm", with("f32[3,2]", str_cat(kW, text)));
    EXPECT_EQ(r.changes, 1) << text;
    EXPECT_EQ(r.maker("y").attr("beta"), nullptr);
  }
}

TEST(FoldBatchNorm, ChannelsOfABatchOfMatricesAreRows) {
  EXPECT_EQ(apply_pass("fold_batch_norm", with("f32[3,2,2]", str_cat(kW, "%t = mat_mul(%x, %w)"))).changes, 0);
}

TEST(FoldBatchNorm, BiasPerRow) {
  EXPECT_EQ(
      apply_pass("fold_batch_norm", with("f32[2,2]", str_cat(kW, "const %c : f32[2,1] = {5,6} %t = gemm(%x, %w, %c)")))
          .changes,
      0);
}

TEST(FoldBatchNorm, ProductIsNeeded) {
  EXPECT_EQ(apply_pass("fold_batch_norm", with(kImage, kConv, "output \"t\" %t")).changes, 0);
  EXPECT_EQ(apply_pass("fold_batch_norm", with(kImage, kConv, "%n = neg(%t) output \"n\" %n")).changes, 0);
  EXPECT_EQ(apply_pass("fold_batch_norm", with(kImage, kConv), {"t"}).changes, 0);
}

TEST(FoldBatchNorm, ActivationStandsBetween) {
  EXPECT_EQ(apply_pass("fold_batch_norm", with(kImage,
                                               "const %w : f32[2,2,1,1] = {1,2,3,4} "
                                               "%t = conv(%x, %w) {activation=\"relu\"}"))
                .changes,
            0);
}

TEST(FoldBatchNorm, WeightsAreNotConstant) {
  EXPECT_EQ(apply_pass("fold_batch_norm", with("f32[2,2]", "%t = mat_mul(%x, %x)")).changes, 0);
}

TEST(FoldBatchNorm, VarianceGivesNoFiniteFactor) {
  EXPECT_EQ(apply_pass("fold_batch_norm", with(kImage, kConv, "", "-1,1")).changes, 0);
}

}  // namespace
}  // namespace pinnace::testing
