// lower_affine_grid: images of two and three dimensions, and what stays an affine_grid.
#include <gtest/gtest.h>

#include "base/text.h"
#include "cpp/passes/apply.h"

namespace pinnace::testing {
namespace {

std::string graph(std::string_view theta, std::string_view size, int align) {
  return str_cat("graph \"g\" { symbol n 1..8 input %theta : ", theta, " ", size,
                 " %y = affine_grid(%theta, %size) {align_corners=", align, "} output \"y\" %y }");
}

TEST(LowerAffineGrid, OfKnownSizes) {
  const char* two = "const %size : i64[4] = {2,3,5,7}";
  const char* three = "const %size : i64[5] = {2,3,4,5,6}";
  for (const int align : {0, 1}) {
    for (const char* type : {"f32", "f64"}) {
      const Applied image = apply_pass("lower_affine_grid", graph(str_cat(type, "[2,2,3]"), two, align));
      EXPECT_EQ(image.changes, 1);
      EXPECT_EQ(image.ops, "gather unsqueeze gather unsqueeze mul add gather unsqueeze mul add");
      EXPECT_EQ(apply_pass("lower_affine_grid", graph(str_cat(type, "[2,3,4]"), three, align)).changes, 1);
    }
    // A dimension of size 1 is at 0 if corners are aligned.
    const char* flat = "const %size : i64[4] = {2,3,1,4}";
    EXPECT_EQ(apply_pass("lower_affine_grid", graph("f32[2,2,3]", flat, align)).changes, 1);
  }
}

TEST(LowerAffineGrid, AnyNumberOfImages) {
  const char* sizes =
      "const %one : i64[1] = {0} const %rest : i64[3] = {3,5,7} const %images : i64[1] = {1} %shape : "
      "i64[3] = shape(%theta) %n : i64[1] = gather(%shape, %one) %size : i64[4] = concat(%n, %rest) {axis=0}";
  EXPECT_EQ(apply_pass("lower_affine_grid", graph("f32[n,2,3]", sizes, 0)).changes, 1);
}

TEST(LowerAffineGrid, StaysOtherwise) {
  // It rounds once, and 16 bits would round each product and sum.
  EXPECT_EQ(apply_pass("lower_affine_grid", graph("f16[2,2,3]", "const %size : i64[4] = {2,3,5,7}", 0)).changes, 0);
  EXPECT_EQ(apply_pass("lower_affine_grid", graph("f32[2,2,3]", "const %size : i64[4] = {2,3,0,7}", 0)).changes, 0);
}

}  // namespace
}  // namespace pinnace::testing
