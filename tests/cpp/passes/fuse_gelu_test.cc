// fuse_gelu: the ways exporters write both formulas, and what must not match.
#include <gtest/gtest.h>

#include "base/text.h"
#include "cpp/passes/apply.h"

namespace pinnace::testing {
namespace {

std::string with(std::string_view body) {
  return str_cat(R"(graph "g" { input %x : f32[2,3]
      const %half : f32[] = {0.5} const %one : f32[] = {1} const %two : f32[] = {2} const %three : f32[] = {3}
      const %root2 : f32[] = {1.4142135} const %inverse : f32[] = {0.70710677} const %k : f32[] = {0.7978846}
      const %c : f32[] = {0.044715}
      )",
                 body, " output \"y\" %y }");
}

constexpr const char* kErf = "%u = div(%x, %root2) %e = erf(%u) %g = add(%e, %one) ";

TEST(FuseGelu, Erf) {
  for (const char* end : {"%h = mul(%x, %g) %y = mul(%h, %half)", "%h = mul(%x, %half) %y = mul(%h, %g)",
                          "%h = mul(%g, %half) %y = mul(%h, %x)", "%h = mul(%x, %g) %y = div(%h, %two)"}) {
    const auto r = apply_pass("fuse_gelu", with(str_cat(kErf, end)));
    EXPECT_EQ(r.ops, "gelu") << end;
    EXPECT_EQ(r.maker("y").attr("approximate"), nullptr);
  }
  EXPECT_EQ(apply_pass("fuse_gelu", with("%u = mul(%x, %inverse) %e = erf(%u) %g = add(%one, %e) %h = mul(%x, %half) "
                                         "%y = mul(%h, %g)"))
                .ops,
            "gelu");
}

TEST(FuseGelu, Tanh) {
  for (const char* argument :
       {"%p = pow(%x, %three) %q = mul(%p, %c) %r = add(%x, %q) %u = mul(%r, %k) ",
        "%p = mul(%x, %x) %o = mul(%p, %x) %q = mul(%o, %c) %r = add(%x, %q) %u = mul(%k, %r) ",
        "%p = pow(%x, %two) %q = mul(%c, %p) %r = add(%one, %q) %s = mul(%x, %k) %u = mul(%s, %r) "}) {
    const auto r = apply_pass("fuse_gelu", with(str_cat(argument,
                                                        "%t = tanh(%u) %g = add(%t, %one) %h = mul(%x, %half) "
                                                        "%y = mul(%h, %g)")));
    EXPECT_EQ(r.ops, "gelu") << argument;
    ASSERT_NE(r.maker("y").attr("approximate"), nullptr);
  }
}

TEST(FuseGelu, OtherConstants) {
  EXPECT_EQ(apply_pass("fuse_gelu", with(str_cat(kErf, "%y = mul(%x, %g)"))).changes, 0);
  EXPECT_EQ(apply_pass("fuse_gelu", with("%u = div(%x, %two) %e = erf(%u) %g = add(%e, %one) %h = mul(%x, %half) "
                                         "%y = mul(%h, %g)"))
                .changes,
            0);
  EXPECT_EQ(apply_pass("fuse_gelu", with("%u = div(%x, %root2) %e = erf(%u) %g = add(%e, %two) %h = mul(%x, %half) "
                                         "%y = mul(%h, %g)"))
                .changes,
            0);
}

TEST(FuseGelu, InnerValueIsNeeded) {
  EXPECT_EQ(
      apply_pass("fuse_gelu", with(str_cat(kErf, "%h = mul(%x, %half) %y = mul(%h, %g) output \"e\" %e"))).changes, 0);
  EXPECT_EQ(apply_pass("fuse_gelu", with(str_cat(kErf, "%h = mul(%x, %half) %y = mul(%h, %g)")), {"g"}).changes, 0);
}

}  // namespace
}  // namespace pinnace::testing
