// share_weights: products with a transposed constant that is read as it is too, and each condition that forbids it.
#include <gtest/gtest.h>

#include "base/text.h"
#include "cpp/passes/apply.h"

namespace pinnace::testing {
namespace {

/// 130 x 128 floats, which is more than 64 KiB.
std::string weights(std::string_view name, std::string_view type = "f32[130,128]") {
  std::string text = str_cat("const %", name, " : ", type, " = {");
  for (int i = 0; i < 130 * 128; ++i) text += str_cat(i ? "," : "", i % 7 - 3);
  return text + "} ";
}

/// `body` makes %y of %x; the embedding %e of %ids reads the same %w.
std::string tied(std::string_view input, std::string_view body, std::string_view symbols = "") {
  return str_cat(
      "graph \"g\" { ", symbols, " const %ids : i64[2] = {3,129} input %x : ", input, " ", weights("w"),
      "const %n : f32[130] = {",
      [] {
        std::string list;
        for (int i = 0; i < 130; ++i) list += str_cat(i ? "," : "", i % 5);
        return list;
      }(),
      "} %e = gather(%w, %ids) {axis=0} ", body, " output \"e\" %e output \"y\" %y }");
}

constexpr std::string_view kProduct = "%t = transpose(%w) {perm=[1,0]} %y = mat_mul(%x, %t)";

TEST(ShareWeights, ProductsOfTiedWeights) {
  const Applied three = apply_pass("share_weights", tied("f32[2,3,128]", kProduct));
  EXPECT_EQ(three.changes, 1);
  EXPECT_EQ(three.ops, "gather reshape gemm reshape");
  const Applied two = apply_pass("share_weights", tied("f32[3,128]", kProduct));
  EXPECT_EQ(two.ops, "gather gemm");
  const Applied whole = apply_pass(
      "share_weights", tied("f32[1,3,128]", "%t = transpose(%w) %y = mat_mul(%x, %t, %n) {activation=\"relu\"}"));
  EXPECT_EQ(whole.ops, "gather reshape gemm reshape") << "the default permutation turns a matrix";
}

TEST(ShareWeights, OpenSizes) {
  const Applied both = apply_pass("share_weights", tied("f32[n,m,128]", kProduct, "symbol n 1..4 symbol m 1..8"));
  EXPECT_EQ(both.changes, 1);
  EXPECT_EQ(both.ops, "gather shape concat reshape gemm reshape");
}

TEST(ShareWeights, WeightsOfTheirOwn) {
  const std::string alone =
      str_cat("graph \"g\" { input %x : f32[2,3,128] ", weights("w"), kProduct, " output \"y\" %y }");
  EXPECT_EQ(apply_pass("share_weights", alone).changes, 0);
}

TEST(ShareWeights, TheTransposeIsNeeded) {
  EXPECT_EQ(apply_pass("share_weights", tied("f32[2,3,128]", str_cat(kProduct, " output \"t\" %t"))).changes, 0);
  EXPECT_EQ(
      apply_pass("share_weights", tied("f32[2,3,128]", str_cat(kProduct, " %r = relu(%t) output \"r\" %r"))).changes,
      0);
}

TEST(ShareWeights, Vectors) {
  EXPECT_EQ(apply_pass("share_weights", tied("f32[128]", kProduct)).changes, 0);
}

TEST(ShareWeights, SmallOnes) {
  const char* text =
      "graph \"g\" { const %ids : i64[2] = {1,0} input %x : f32[1,3,2] const %w : f32[2,2] = {1,2,3,4} "
      "%e = gather(%w, %ids) {axis=0} %t = transpose(%w) {perm=[1,0]} %y = mat_mul(%x, %t) output \"e\" %e "
      "output \"y\" %y }";
  EXPECT_EQ(apply_pass("share_weights", text).changes, 0);
}

}  // namespace
}  // namespace pinnace::testing
