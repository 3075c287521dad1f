// fuse_silu: both formulas, and each condition that forbids it.
#include <gtest/gtest.h>

#include "base/text.h"
#include "cpp/passes/apply.h"

namespace pinnace::testing {
namespace {

std::string with(std::string_view body, std::string_view input = "f32[2,3]") {
  return str_cat("graph \"g\" { input %x : ", input, " const %one : f32[] = {1} ", body, " output \"y\" %y }");
}

TEST(FuseSilu, Formulas) {
  EXPECT_EQ(apply_pass("fuse_silu", with("%s = sigmoid(%x) %y = mul \"last\" (%x, %s)")).ops, "silu");
  EXPECT_EQ(apply_pass("fuse_silu", with("%s = sigmoid(%x) %y = mul(%s, %x)")).ops, "silu");
  EXPECT_EQ(apply_pass("fuse_silu", with("%n = neg(%x) %e = exp(%n) %d = add(%e, %one) %y = div(%x, %d)")).ops, "silu");
}

TEST(FuseSilu, GateIsNeeded) {
  EXPECT_EQ(apply_pass("fuse_silu", with("%s = sigmoid(%x) %y = mul(%x, %s) output \"s\" %s")).changes, 0);
  EXPECT_EQ(apply_pass("fuse_silu", with("%s = sigmoid(%x) %y = mul(%x, %s)"), {"s"}).changes, 0);
}

TEST(FuseSilu, OtherOperand) {
  EXPECT_EQ(apply_pass("fuse_silu", with("input %z : f32[2,3] %s = sigmoid(%z) %y = mul(%x, %s)")).changes, 0);
}

TEST(FuseSilu, OneOfADoubleIsOne) {
  // Nearer to 1 than float32's rounding, not than double's.
  EXPECT_EQ(apply_pass("fuse_silu",
                       "graph \"g\" { input %x : f64[4] const %one : f64[] = {1.0000001} %n = neg(%x) "
                       "%e = exp(%n) %s = add(%one, %e) %y = div(%x, %s) output \"y\" %y }")
                .changes,
            0);
}

}  // namespace
}  // namespace pinnace::testing
