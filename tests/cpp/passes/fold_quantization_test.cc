// fold_quantization: chains of dequantised operators, and each condition that forbids it.
#include <gtest/gtest.h>

#include "base/text.h"
#include "cpp/passes/apply.h"

namespace pinnace::testing {
namespace {

std::string with(std::string_view body, std::string_view input = "f32[1,2,3,3]") {
  return str_cat("graph \"g\" { input %x : ", input, R"(
      const %s : f32[] = {0.05} const %t : f32[] = {0.0137} const %z : i8[] = {3}
      const %k : i8[2,2,1,1] = {1,-20,33,44} const %w : i8[2,2] = {10,-20,30,40} const %ws : f32[2] = {0.05,0.025} const %wz : i8[2] = {0,0}
      const %b : i32[2] = {100,-200} const %bz : i32[2] = {0,0} const %b1 : i32[2] = {0,1} const %bs : f32[2] = {0.0025,0.00125} const %fb : f32[2] = {0.3,-0.2}
      const %low : f32[] = {0} const %high : f32[] = {2} const %flat : i64[2] = {1,-1}
      %q = quantize_linear(%x, %s, %z) %d = dequantize_linear(%q, %s, %z)
      )",
                 body, " output \"y\" %y }");
}

constexpr const char* kKernel = "%dk = dequantize_linear(%k, %ws, %wz) {axis=0} ";
constexpr const char* kMatrix = "%dw = dequantize_linear(%w, %ws, %wz) {axis=1} ";
constexpr const char* kEnd = " %o = quantize_linear(%r, %t, %z) %y = dequantize_linear(%o, %t, %z)";

TEST(FoldQuantization, Conv) {
  for (const char* text :
       {"%r = conv(%d, %dk)", "%db = dequantize_linear(%b, %bs) {axis=0} %r = conv(%d, %dk, %db)",
        "%db = dequantize_linear(%b, %bs, %bz) {axis=0} %r = conv(%d, %dk, %db)", "%r = conv(%d, %dk, %fb)",
        "%c = conv(%d, %dk) %r = relu(%c)", "%c = conv(%d, %dk) %r = clip(%c, %low, %high)"}) {
    const auto r = apply_pass("fold_quantization", with(str_cat(kKernel, text, kEnd)));
    EXPECT_EQ(r.ops, "quantize_linear cast conv cast dequantize_linear") << text;
  }
}

TEST(FoldQuantization, BiasWithAZeroPoint) {
  const auto r = apply_pass(
      "fold_quantization",
      with(str_cat(kKernel, "%db = dequantize_linear(%b, %bs, %b1) {axis=0} %r = conv(%d, %dk, %db)", kEnd)));
  EXPECT_EQ(r.changes, 0);
}

TEST(FoldQuantization, Products) {
  for (const char* text : {"%r = mat_mul(%d, %dw)", "%r = mat_mul(%d, %dw, %fb)", "%r = gemm(%d, %dw, %fb)"}) {
    EXPECT_EQ(apply_pass("fold_quantization", with(str_cat(kMatrix, text, kEnd), "f32[3,2]")).changes, 1) << text;
  }
  const auto r = apply_pass("fold_quantization",
                            with("%dw = dequantize_linear(%w, %ws, %wz) {axis=0} %tw = transpose(%dw) {perm=[1,0]} "
                                 "%r = mat_mul(%d, %tw) %o = quantize_linear(%r, %t, %z) %y = identity(%o)",
                                 "f32[3,2]"));
  EXPECT_EQ(r.changes, 1);
}

TEST(FoldQuantization, BiasOfAProductInOtherShapes) {
  // As many rows as columns: what differs by row must not take the scales of columns.
  const auto changes = [](std::string_view weights, std::string_view bias, std::string_view scale = "") {
    return apply_pass("fold_quantization",
                      with(str_cat(weights, bias, scale, "%r = gemm(%d, %dw, %c)", kEnd), "f32[2,2]"))
        .changes;
  };
  constexpr const char *kColumn = "const %c : f32[2,1] = {1,2} ", *kRow = "const %c : f32[1,2] = {1,2} ",
                       *kAll = "const %c : f32[2,2] = {1,2,3,4} ", *kNumber = "const %c : f32[] = {1} ";
  EXPECT_EQ(changes(kMatrix, kColumn), 0);
  EXPECT_EQ(changes(kMatrix, "const %i : i32[2,1] = {100,-200} ", "%c = dequantize_linear(%i, %bs) {axis=0} "), 0);
  EXPECT_EQ(changes(kMatrix, kAll), 0);
  EXPECT_EQ(changes(kMatrix, kNumber), 0);
  EXPECT_EQ(changes(kMatrix, kRow), 1);
  EXPECT_EQ(changes(kMatrix, "const %i : i32[1,2] = {100,-200} ", "%c = dequantize_linear(%i, %bs) {axis=1} "), 1);
  for (const char* bias : {kColumn, kAll, kNumber, kRow}) {
    EXPECT_EQ(changes("const %wz0 : i8[] = {0} %dw = dequantize_linear(%w, %t, %wz0) ", bias), 1) << bias;
  }
}

TEST(FoldQuantization, Others) {
  for (const char* text : {"%r = add(%d, %d)", "%r = mul(%d, %d)", "%r = sigmoid(%d)",
                           "%r = average_pool(%d) {kernel_shape=[2,2]}", "%r = global_average_pool(%d)"}) {
    EXPECT_EQ(apply_pass("fold_quantization", with(str_cat(text, kEnd))).changes, 1) << text;
  }
  for (const char* text : {"%r = max_pool(%d) {kernel_shape=[2,2]}", "%r = reshape(%d, %flat)", "%r = transpose(%d)"}) {
    const std::string end = " %o = quantize_linear(%r, %s, %z) %y = dequantize_linear(%o, %s, %z)";
    EXPECT_EQ(apply_pass("fold_quantization", with(str_cat(text, end))).changes, 1) << text;
  }
}

TEST(FoldQuantization, ChangesOfShapeBehind) {
  const auto r = apply_pass(
      "fold_quantization",
      with(str_cat(kKernel, "%c = conv(%d, %dk) %a = relu(%c) %r = reshape(%a, %flat) {allowzero=1}", kEnd)));
  EXPECT_EQ(r.ops, "quantize_linear cast conv reshape cast dequantize_linear");
  EXPECT_EQ(apply_pass("fold_quantization", with(str_cat("%c = log_softmax(%d) %r = flatten(%c)", kEnd))).changes, 0);
}

TEST(FoldQuantization, Resize) {
  EXPECT_EQ(apply_pass("fold_quantization", with(str_cat("const %sc : f32[4] = {1,1,2,2} ",
                                                         "%r = resize(%d, none, %sc) {mode=\"linear\"}", kEnd)))
                .ops,
            "quantize_linear cast resize cast dequantize_linear");
}

TEST(FoldQuantization, Softmax) {
  EXPECT_EQ(apply_pass("fold_quantization", with(str_cat("%r = softmax(%d) {axis=1}", kEnd))).ops,
            "quantize_linear cast softmax cast dequantize_linear");
}

TEST(FoldQuantization, ChangesOfScale) {
  EXPECT_EQ(
      apply_pass("fold_quantization", with("%o = quantize_linear(%d, %t, %z) %y = dequantize_linear(%o, %t, %z)")).ops,
      "quantize_linear cast clip cast dequantize_linear");
}

TEST(FoldQuantization, MeansOfPlanes) {
  const auto ops = [](std::string_view axes, std::string_view text) {
    return apply_pass("fold_quantization", with(str_cat("const %axes : i64", axes, text, kEnd))).ops;
  };
  EXPECT_EQ(ops("[2] = {-1,2} ", "%r = reduce_mean(%d, %axes)"),
            "quantize_linear cast global_average_pool cast dequantize_linear");
  EXPECT_EQ(ops("[2] = {2,3} ", "%m = reduce_mean(%d, %axes) %r = reshape(%m, %flat)"),
            "quantize_linear cast global_average_pool reshape cast dequantize_linear");
  EXPECT_EQ(ops("[2] = {3,2} ", "%r = reduce_mean(%d, %axes) {keepdims=0}"),
            "quantize_linear cast global_average_pool squeeze cast dequantize_linear");
  for (const char* axes : {"[1] = {3} ", "[2] = {1,3} ", "[3] = {1,2,3} "}) {
    EXPECT_EQ(ops(axes, "%r = reduce_mean(%d, %axes)"),
              "quantize_linear dequantize_linear reduce_mean quantize_linear dequantize_linear")
        << axes;
  }
}

TEST(FoldQuantization, ZeroPointsStatedAsACast) {
  // As importers state those of channels: 64-bit numbers, all of which the integers' type must hold.
  const auto folded = [](std::string_view numbers) {
    return apply_pass("fold_quantization",
                      with(str_cat("const %wide : i64[2] = ", numbers, " %cz = cast(%wide) {to=\"i8\"} ",
                                   "%dk = dequantize_linear(%k, %ws, %cz) {axis=0} %r = conv(%d, %dk)", kEnd)));
  };
  const auto r = folded("{1,-2}");
  ASSERT_EQ(r.changes, 1);
  const Node& conv = r.maker("o.quantized");
  ASSERT_EQ(conv.op, "conv");
  EXPECT_EQ(r.graph.value(conv.inputs[1]).type.quantization->zero_points, (std::vector<int32_t>{1, -2}));
  EXPECT_EQ(folded("{1,128}").changes, 0);
}

TEST(FoldQuantization, NoCastsInside) {
  const auto r = apply_pass("fold_quantization", with(str_cat(kKernel,
                                                              "%c = conv(%d, %dk) %m = quantize_linear(%c, %t, %z) "
                                                              "%e = dequantize_linear(%m, %t, %z) %r = add(%e, %d)",
                                                              kEnd)));
  EXPECT_EQ(r.changes, 2);
  // The second cast is that of the input, which both read; common_subexpressions merges the two.
  EXPECT_EQ(r.ops, "quantize_linear cast conv cast add cast dequantize_linear");
}

TEST(FoldQuantization, InnerValueIsNeeded) {
  EXPECT_EQ(
      apply_pass("fold_quantization", with(str_cat(kKernel, "%r = conv(%d, %dk)", kEnd, " output \"r\" %r"))).changes,
      0);
  EXPECT_EQ(apply_pass("fold_quantization", with(str_cat(kKernel, "%r = conv(%d, %dk)", kEnd)), {"r"}).changes, 0);
}

TEST(FoldQuantization, FloatOperands) {
  EXPECT_EQ(apply_pass("fold_quantization", with(str_cat(kKernel, "%r = conv(%x, %dk)", kEnd))).changes, 0);
  EXPECT_EQ(apply_pass("fold_quantization", with(str_cat("%r = add(%d, %x)", kEnd))).changes, 0);
}

TEST(FoldQuantization, ScaleVaries) {
  EXPECT_EQ(apply_pass("fold_quantization",
                       with("input %v : f32[] %a = abs(%v) %r = sigmoid(%d) %o = quantize_linear(%r, %a, %z) "
                            "%y = identity(%o)"))
                .changes,
            0);
}

TEST(FoldQuantization, ResultPerChannel) {
  EXPECT_EQ(
      apply_pass("fold_quantization",
                 with(str_cat(kKernel, "%r = conv(%d, %dk) %o = quantize_linear(%r, %ws, %wz) %y = identity(%o)")))
          .changes,
      0);
}

TEST(FoldQuantization, PoolWithAnotherScale) {
  EXPECT_EQ(apply_pass("fold_quantization", with(str_cat("%r = max_pool(%d) {kernel_shape=[2,2]}", kEnd))).changes, 0);
}

}  // namespace
}  // namespace pinnace::testing
