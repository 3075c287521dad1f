// fuse_attention: the ways exporters write the formula, and what must not match.
#include <gtest/gtest.h>

#include "base/text.h"
#include "cpp/passes/apply.h"

namespace pinnace::testing {
namespace {

std::string with(std::string_view body) {
  return str_cat(R"(graph "g" { input %q : f32[2,3,4,5] input %k : f32[2,3,6,5] input %v : f32[2,3,6,7]
      input %mask : f32[4,6] input %flags : bool[2,1,1,6] input %kbsh : f32[2,6,3,5] input %column : f32[4,1]
      const %half : f32[] = {0.5} const %two : f32[] = {2} const %minus : f32[] = {-inf} const %zero : f32[] = {0}
      const %last : i64[1] = {-1}
      )",
                 body, " output \"y\" %y }");
}

constexpr const char* kKeys = "%kt = transpose(%k) {perm=[0,1,3,2]} ";

TEST(FuseAttention, Formulas) {
  for (const char* text :
       {"%s = mat_mul(%q, %kt) %p = softmax(%s) %y = mat_mul(%p, %v)",
        "%s = mat_mul(%q, %kt) %t = mul(%s, %half) %p = softmax(%t) {axis=3} %y = mat_mul(%p, %v)",
        "%s = mat_mul(%q, %kt) %t = div(%s, %two) %u = add(%t, %mask) %p = softmax(%u) %y = mat_mul(%p, %v)",
        "%r = mul(%q, %half) %l = mul(%half, %kt) %s = mat_mul(%r, %l) %u = add(%mask, %s) %p = softmax(%u) "
        "%y = mat_mul(%p, %v)"}) {
    const auto r = apply_pass("fuse_attention", with(str_cat(kKeys, text)));
    EXPECT_EQ(r.ops, "attention") << text;
  }
}

TEST(FuseAttention, KeysAreTransposedOnce) {
  const auto r = apply_pass("fuse_attention",
                            with("%kt = transpose(%kbsh) {perm=[0,2,3,1]} %s = mat_mul(%q, %kt) %p = softmax(%s) "
                                 "%y = mat_mul(%p, %v)"));
  EXPECT_EQ(r.ops, "transpose attention");
  EXPECT_EQ(std::get<std::vector<int64_t>>(*r.graph.nodes[0]->attr("perm")), (std::vector<int64_t>{0, 2, 1, 3}));
}

TEST(FuseAttention, BoolMask) {
  const auto r =
      apply_pass("fuse_attention", with(str_cat(kKeys,
                                                "%s = mat_mul(%q, %kt) %u = where(%flags, %s, %minus) %p = softmax(%u) "
                                                "%y = mat_mul(%p, %v)")));
  EXPECT_EQ(r.graph.nodes.back()->op, "attention");
}

TEST(FuseAttention, MaskOfOneColumn) {
  EXPECT_EQ(apply_pass("fuse_attention", with(str_cat(kKeys,
                                                      "%s = mat_mul(%q, %kt) %u = add(%s, %column) %p = softmax(%u) "
                                                      "%y = mat_mul(%p, %v)")))
                .changes,
            0);
}

TEST(FuseAttention, InnerValueIsNeeded) {
  const std::string text = str_cat(kKeys, "%s = mat_mul(%q, %kt) %p = softmax(%s) %y = mat_mul(%p, %v)");
  EXPECT_EQ(apply_pass("fuse_attention", with(text + " output \"p\" %p")).changes, 0);
  EXPECT_EQ(apply_pass("fuse_attention", with(text), {"s"}).changes, 0);
}

TEST(FuseAttention, SoftmaxOverAnotherDimension) {
  EXPECT_EQ(apply_pass("fuse_attention",
                       with(str_cat(kKeys, "%s = mat_mul(%q, %kt) %p = softmax(%s) {axis=2} %y = mat_mul(%p, %v)")))
                .changes,
            0);
}

/// where(`condition`, 0, softmax(masked scores)) v, where the condition is made of %e = (masked scores == -inf).
int safe_changes(std::string_view condition) {
  return apply_pass("fuse_attention",
                    with(str_cat(kKeys,
                                 "const %i0 : i32[] = {0} const %third : i64[1] = {2} %s = mat_mul(%q, %kt) "
                                 "%u = where(%flags, %s, %minus) %p = softmax(%u) %e = equal(%u, %minus) ",
                                 condition, " %pp = where(%c, %zero, %p) %y = mat_mul(%pp, %v)")))
      .changes;
}

constexpr const char *kMasked = "%ei = cast(%e) {to=\"i32\"} ", *kOpen = "%n = not(%e) %ni = cast(%n) {to=\"i32\"} ";

TEST(FuseAttention, RowsThatAreAllMasked) {
  for (const std::string& text :
       {str_cat(kMasked, "%r = reduce_min(%ei, %last) %c = cast(%r) {to=\"bool\"}"),
        std::string("%c = reduce_min(%e, %last)"),
        str_cat(kOpen, "%r = reduce_max(%ni, %last) %b = cast(%r) {to=\"bool\"} %c = not(%b)"),
        str_cat(kOpen, "%r = reduce_sum(%ni, %last) %b = greater(%r, %i0) %c = not(%b)"),
        std::string("%n = not(%e) %nn = not(%n) %r = reduce_min(%nn, %last) %rr = not(%r) %c = not(%rr)")}) {
    EXPECT_EQ(safe_changes(text), 1) << text;
  }
}

TEST(FuseAttention, RowsThatAreMaskedOtherwise) {
  for (const std::string& text :
       {str_cat(kMasked, "%r = reduce_max(%ei, %last) %c = cast(%r) {to=\"bool\"}"), std::string("%c = not(%e)"),
        std::string("%c = identity(%e)"), str_cat(kMasked, "%r = reduce_min(%ei, %third) %c = cast(%r) {to=\"bool\"}"),
        str_cat(kMasked, "%r = reduce_min(%ei) %c = cast(%r) {to=\"bool\"}"),
        str_cat(kOpen, "%r = reduce_min(%ni, %last) %b = cast(%r) {to=\"bool\"} %c = not(%b)"),
        str_cat(kOpen, "%r = reduce_max(%ni, %last) %c = cast(%r) {to=\"bool\"}"),
        std::string("%r = reduce_min(%e, %last) %c = not(%r)"),
        str_cat(kMasked, "%r = reduce_sum(%ei, %last) %c = greater(%r, %i0)"),
        std::string("%a = reduce_min(%e, %last) %c = reduce_max(%a, %third)"),
        std::string("%a = reduce_min(%e, %third) %c = reduce_min(%a, %last)")}) {
    EXPECT_EQ(safe_changes(text), 0) << text;
  }
}

TEST(FuseAttention, ScaleThatFloatsDoNotHold) {
  EXPECT_EQ(apply_pass("fuse_attention",
                       with(str_cat(kKeys,
                                    "const %tiny : f32[] = {1e-25} %a = mul(%q, %tiny) %b = mul(%kt, %tiny) "
                                    "%s = mat_mul(%a, %b) %p = softmax(%s) %y = mat_mul(%p, %v)")))
                .changes,
            0);
}

}  // namespace
}  // namespace pinnace::testing
