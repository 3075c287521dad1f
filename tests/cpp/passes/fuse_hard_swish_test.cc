// fuse_hard_swish: the ways the formula is written, and what must not match.
#include <gtest/gtest.h>

#include "base/text.h"
#include "cpp/passes/apply.h"

namespace pinnace::testing {
namespace {

std::string with(std::string_view body) {
  return str_cat(R"(graph "g" { input %x : f32[2,3]
      const %zero : f32[] = {0} const %three : f32[] = {3} const %six : f32[] = {6} const %sixth : f32[] = {0.16666667}
      )",
                 body, " output \"y\" %y }");
}

constexpr const char* kGate = "%s = add(%x, %three) %c = clip(%s, %zero, %six) ";

TEST(FuseHardSwish, Formulas) {
  for (const char* end : {"%m = mul(%x, %c) %y = div(%m, %six)", "%m = div(%c, %six) %y = mul(%m, %x)",
                          "%m = mul(%c, %sixth) %y = mul(%x, %m)", "%m = mul(%c, %x) %y = mul(%m, %sixth)"}) {
    // Where the gate is a product of its own it becomes hard_sigmoid first, and hard_swish with its reader.
    EXPECT_EQ(apply_pass("fuse_hard_swish", with(str_cat(kGate, end))).ops, "hard_swish") << end;
  }
}

TEST(FuseHardSwish, LimitsInTwoNodes) {
  for (const char* limits : {"%l = clip(%s, %zero) %c = clip(%l, none, %six) ", "%l = relu(%s) %c = min(%l, %six) ",
                             "%l = max(%zero, %s) %c = min(%l, %six) "}) {
    EXPECT_EQ(apply_pass("fuse_hard_swish",
                         with(str_cat("%s = add(%x, %three) ", limits, "%m = mul(%x, %c) %y = div(%m, %six)")))
                  .ops,
              "hard_swish")
        << limits;
  }
}

TEST(FuseHardSwish, HardSigmoid) {
  EXPECT_EQ(
      apply_pass("fuse_hard_swish", with("%h = hard_sigmoid(%x) {alpha=0.16666666666666666} %y = mul(%h, %x)")).ops,
      "hard_swish");
  EXPECT_EQ(apply_pass("fuse_hard_swish", with("%h = hard_sigmoid(%x) %y = mul(%h, %x)")).changes, 0) << "alpha is 0.2";
  EXPECT_EQ(apply_pass("fuse_hard_swish", with(str_cat(kGate, "%y = div(%c, %six)"))).ops, "hard_sigmoid");
}

TEST(FuseHardSwish, OtherConstants) {
  EXPECT_EQ(apply_pass("fuse_hard_swish",
                       with("%s = add(%x, %six) %c = clip(%s, %zero, %six) %m = mul(%x, %c) %y = div(%m, %six)"))
                .changes,
            0);
  EXPECT_EQ(apply_pass("fuse_hard_swish",
                       with("%s = add(%x, %three) %c = clip(%s, %zero, %three) %m = mul(%x, %c) %y = div(%m, %six)"))
                .changes,
            0);
  EXPECT_EQ(apply_pass("fuse_hard_swish", with(str_cat(kGate, "%m = mul(%x, %c) %y = div(%m, %three)"))).changes, 0);
}

TEST(FuseHardSwish, InnerValueIsNeeded) {
  EXPECT_EQ(apply_pass("fuse_hard_swish", with(str_cat(kGate, "%m = mul(%x, %c) %y = div(%m, %six) output \"c\" %c")))
                .changes,
            0);
  EXPECT_EQ(apply_pass("fuse_hard_swish", with(str_cat(kGate, "%m = mul(%x, %c) %y = div(%m, %six)")), {"s"}).changes,
            0);
}

}  // namespace
}  // namespace pinnace::testing
