// fuse_activation: every operator and activation, and each condition that forbids it.
#include <cmath>

#include <gtest/gtest.h>

#include "base/text.h"
#include "cpp/passes/apply.h"

namespace pinnace::testing {
namespace {

std::string with(std::string_view main, std::string_view activation) {
  return str_cat(R"(graph "g" {
      input %x : f32[2,3]
      const %w : f32[3,3] = {1,-2,0.5,0.25,1,-1,3,0.5,-0.75}
      const %low : f32[] = {-0.5}
      const %high : f32[1] = {1.5}
      %t = )",
                 main, R"( at "net.py":7
      %y = )",
                 activation, R"(
      output "y" %y })");
}

TEST(FuseActivation, EveryActivation) {
  for (const char* text :
       {"relu", "clip", "leaky_relu", "hard_swish", "hard_sigmoid", "sigmoid", "silu", "tanh", "gelu"}) {
    const std::string op = text;
    const auto r = apply_pass("fuse_activation",
                              with("mat_mul(%x, %w)", op + " \"last\" (%t" + (op == "clip" ? ", %low, %high)" : ")")));
    EXPECT_EQ(r.ops, "mat_mul");
    EXPECT_EQ(r.changes, 1);
    const Node& node = r.maker("y");
    EXPECT_EQ(node.name, "last");
    EXPECT_EQ(node.source.line, 7) << "the place of the product";
    ASSERT_NE(node.attr("activation"), nullptr);
    EXPECT_EQ(std::get<std::string>(*node.attr("activation")), op);
  }
}

TEST(FuseActivation, EveryMainOperator) {
  for (const char* text : {"gemm(%x, %w)", "add(%x, %x)", "mat_mul(%x, %w)"}) {
    EXPECT_EQ(apply_pass("fuse_activation", with(text, "relu(%t)")).ops,
              std::string(text).substr(0, std::string(text).find('(')));
  }
  for (const char* op : {"conv", "conv_transpose"}) {
    const auto r = apply_pass("fuse_activation", str_cat(R"(graph "g" { input %x : f32[1,2,4,4]
      const %w : f32[2,2,1,1] = {1,2,-3,4}
      %t = )",
                                                         op, R"((%x, %w) %y = relu(%t) output "y" %y })"));
    EXPECT_EQ(r.ops, op);
  }
}

TEST(FuseActivation, Parameters) {
  const auto clip = apply_pass("fuse_activation", with("mat_mul(%x, %w)", "clip(%t, none, %high)"));
  const auto params = std::get<std::vector<double>>(*clip.maker("y").attr("activation_params"));
  EXPECT_EQ(params, (std::vector<double>{-INFINITY, 1.5}));
  const auto leaky = apply_pass("fuse_activation", with("add(%x, %x)", "leaky_relu(%t) {alpha=0.3}"));
  EXPECT_EQ(std::get<std::vector<double>>(*leaky.maker("y").attr("activation_params")), std::vector<double>{0.3});
  const auto gelu = apply_pass("fuse_activation", with("add(%x, %x)", "gelu(%t) {approximate=\"tanh\"}"));
  EXPECT_EQ(std::get<std::string>(*gelu.maker("y").attr("activation")), "gelu_tanh");
}

TEST(FuseActivation, OneActivationOnly) {
  const auto r = apply_pass("fuse_activation", with("mat_mul(%x, %w) {activation=\"relu\"}", "tanh(%t)"));
  EXPECT_EQ(r.ops, "mat_mul tanh");
}

TEST(FuseActivation, IntermediateIsNeeded) {
  EXPECT_EQ(apply_pass("fuse_activation", with("add(%x, %x)", "relu(%t) output \"t\" %t")).changes, 0);
  EXPECT_EQ(apply_pass("fuse_activation", with("add(%x, %x)", "relu(%t) %z = neg(%t) output \"z\" %z")).changes, 0);
  EXPECT_EQ(apply_pass("fuse_activation", with("add(%x, %x)", "relu(%t)"), {"t"}).changes, 0);
}

TEST(FuseActivation, LimitsMustBeConstant) {
  const auto r = apply_pass("fuse_activation", R"(graph "g" { input %x : f32[2] input %m : f32[]
      %t = add(%x, %x) %y = clip(%t, %m) output "y" %y })");
  EXPECT_EQ(r.changes, 0);
}

TEST(FuseActivation, PlainIntegersTakeNone) {
  EXPECT_EQ(
      apply_pass("fuse_activation", R"(graph "g" { input %x : i32[2] %t = add(%x, %x) %y = relu(%t) output "y" %y })")
          .changes,
      0);
}

TEST(FuseActivation, QuantisedTypesMustBeEqual) {
  for (const char* scale : {"0.5", "0.25"}) {
    const auto r = apply_pass("fuse_activation", str_cat(R"(graph "g" { input %x : i8[2]{scale 0.5, zero 1}
      %t : i8[2]{scale )",
                                                         scale, R"(, zero 1} = add(%x, %x)
      %y : i8[2]{scale 0.5, zero 1} = relu(%t) output "y" %y })"));
    EXPECT_EQ(r.changes, scale == std::string("0.5") ? 1 : 0);
  }
}

TEST(FuseActivation, DefaultsAreTheOperators) {
  // The operators' alphas are float32's 0.2 and 0.01, which doubles tell from 0.2 and 0.01.
  for (const char* op : {"hard_sigmoid", "leaky_relu"}) {
    const auto r = apply_pass("fuse_activation", str_cat("graph \"g\" { input %x : f64[4] %a = add(%x, %x) %y = ", op,
                                                         "(%a) output \"y\" %y }"));
    EXPECT_EQ(r.ops, "add") << op;
    EXPECT_EQ(r.error, 0) << op;
  }
}

}  // namespace
}  // namespace pinnace::testing
