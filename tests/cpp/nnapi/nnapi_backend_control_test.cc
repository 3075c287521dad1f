// if and loop on NNAPI as a whole: sessions that may not fall back, at each level that has IF and WHILE, against the
// interpreter; and what leaves such a node to the runtime, with its reason.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>

#include <pinnace/model.h>

#include "base/files/mapped_file.h"
#include "cpp/text_program.h"
#include "ops/type_inference.h"

namespace pinnace {
namespace {

using testing::program_of;

/// Bytes of an input.
struct Input {
  TensorType type;
  std::vector<std::byte> bytes;
};
template <class T>
Input input(DType dtype, const std::vector<int64_t>& shape, const std::vector<T>& values) {
  Input made{{dtype, {}, nullptr}, std::vector<std::byte>(values.size() * sizeof(T))};
  for (int64_t n : shape) made.type.shape.push_back(Dim(n));
  std::memcpy(made.bytes.data(), values.data(), made.bytes.size());
  return made;
}

std::vector<Tensor> tensors(std::vector<Input>& inputs) {
  std::vector<Tensor> made;
  for (Input& i : inputs) {
    Tensor t;
    t.type = i.type;
    t.memory.host = i.bytes.data();
    t.memory.bytes = i.bytes.size();
    made.push_back(t);
  }
  return made;
}

Options target(int level, bool fallback = false) {
  Options options;
  options.target = str_cat("nnapi:fl", level);
  options.fallback = fallback;
  return options;
}

/// Runs on NNAPI and on the CPU, and compares; the row of the first node of `op`.
Placement compare(const std::string& text, std::vector<Input> inputs, const Options& options, std::string_view op) {
  const Program program = program_of(text);
  Options plain;
  plain.target = "cpu";
  auto reference = Session::create(program, plain);
  auto session = Session::create(program, options);
  EXPECT_TRUE(session.ok()) << session.status().message();
  if (!session.ok() || !reference.ok()) return {};
  const std::vector<Tensor> in = tensors(inputs);
  EXPECT_TRUE(reference->run(in).ok());
  for (int round = 0; round < 2; ++round) {
    const Status status = session->run(in);
    EXPECT_TRUE(status.ok()) << status.message();
    if (!status.ok()) return {};
    for (size_t i = 0; i < session->outputs().size(); ++i) {
      const Tensor want = reference->output(static_cast<int>(i)), got = session->output(static_cast<int>(i));
      EXPECT_EQ(want.type, got.type);
      if (want.type.dtype != DType::kF32) {
        EXPECT_EQ(std::memcmp(want.memory.host, got.memory.host, static_cast<size_t>(want.type.bytes())), 0) << i;
        continue;
      }
      for (int64_t k = 0; k < want.type.elements(); ++k) {
        const float w = static_cast<const float*>(want.memory.host)[k],
                    g = static_cast<const float*>(got.memory.host)[k];
        EXPECT_NEAR(g, w, 1e-5 * (1 + std::fabs(w))) << "output " << i << ", element " << k;
      }
    }
  }
  for (const Placement& row : session->placement()) {
    if (row.op == op) return row;
  }
  ADD_FAILURE() << "no " << op;
  return {};
}

constexpr int kLevels[] = {4, 5, 6, 8};

// A branch with weights of its own, captured ones, and what it hands through as it is.
constexpr char kIf[] = R"(graph "g" {
  input %c : bool[]
  input %x : f32[2,3]
  const %w : f32[3,3] = {1,2,3,4,5,6,7,8,9}
  %h : f32[2,3] = relu(%x)
  %y, %z : f32[2,3] = if(%c, %h, %w, %x) {
    then_branch=graph "t" { input %a : f32[2,3] input %w : f32[3,3] input %b : f32[2,3] %p = mat_mul(%a, %w)
      output "y" %p output "z" %b },
    else_branch=graph "e" { input %a : f32[2,3] input %w : f32[3,3] input %b : f32[2,3]
      const %k : f32[2,3] = {6,5,4,3,2,1} %s = sub(%b, %k) output "y" %s output "z" %s }
  }
  %last = neg(%y)
  output "last" %last
  output "z" %z
})";

TEST(NnapiBackendControlFlow, IfIsAnOperation) {
  for (int level : kLevels) {
    for (uint8_t condition : {0, 1}) {
      const Placement row = compare(
          kIf,
          {input<uint8_t>(DType::kBool, {}, {condition}), input<float>(DType::kF32, {2, 3}, {1, -2, 3, -4, 5, -6})},
          target(level), "if");
      EXPECT_EQ(row.backend, "nnapi");
      EXPECT_NE(row.kernel.find("IF"), std::string::npos) << row.kernel;
    }
  }
}

// while i < n: i += STEP, with a second counter that goes down, as PyTorch's while_loop has them in int64.
constexpr char kCounters[] = R"(graph "g" {
  input %n : i64[]
  input %x : f32[2]
  const %yes : bool[] = {1}
  const %zero : i64[] = {0}
  const %ten : i64[] = {10}
  %i, %d, %y = loop(none, %yes, %zero, %ten, %x, %n) {carried=3,
    body=graph "b" { input %t : i64[] input %c : bool[] input %i : i64[] input %d : i64[] input %x : f32[2] input %n : i64[]
      const %up : i64[] = {STEP} const %down : i64[] = {3} const %end : i64[] = {-2147483640} const %half : f32[] = {0.5}
      %j = add(%up, %i) %e = sub(%d, %down) %z = mul(%x, %half)
      %first = COMPARE(%j, %n) %second = greater_or_equal(%e, %end) %on = and(%first, %second)
      output "c" %on output "i" %j output "d" %e output "x" %z }
  }
  output "i" %i
  output "d" %d
  output "y" %y
})";

std::string counters(std::string_view step, std::string_view compare) {
  std::string text = kCounters;
  text.replace(text.find("STEP"), 4, step);
  text.replace(text.find("COMPARE"), 7, compare);
  return text;
}

TEST(NnapiBackendControlFlow, CountersAreBoundedByTheConditionThatEndsThem) {
  for (const int64_t n : {-5, 1, 7}) {
    const std::vector<Input> inputs = {input<int64_t>(DType::kI64, {}, {n}), input<float>(DType::kF32, {2}, {1, -8})};
    EXPECT_EQ(compare(counters("1", "less"), inputs, target(4), "loop").backend, "nnapi");
  }
  // 2^31 - 2 may be below n, and 2 more is beyond 32 bits.
  const std::string beyond =
      "add 'add_0', 64-bit integers that may need more than 32, is a result between 2 and 2147483648";
  for (const auto& [step, how] : {std::pair("2", "less"), {"1", "less_or_equal"}, {"1", "equal"}}) {
    auto session = Session::create(program_of(counters(step, how).c_str()), target(4, true));
    ASSERT_TRUE(session.ok()) << session.status().message();
    const Placement row = session->placement()[0];
    EXPECT_EQ(row.backend, "runtime") << step << " " << how;
    ASSERT_EQ(row.why.size(), 1u);
    EXPECT_NE(row.why[0].find("N-15"), std::string::npos) << row.why[0];
    if (how == std::string_view("less") && step == std::string_view("2"))
      EXPECT_NE(row.why[0].find(beyond), std::string::npos) << row.why[0];
  }
}

// A recurrence with a captured row per iteration, a weight, a scan of float32 and one of int32.
constexpr char kLoop[] = R"(graph "g" {
  input %rows : f32[4,3]
  input %h : f32[3]
  const %n : i64[] = {4}
  const %w : f32[3,3] = {0.5,0,0.25,0,0.5,0,0.25,0,0.5}
  %last, %all, %count = loop(%n, none, %h, %rows, %w) {carried=1,
    body=graph "b" { input %i : i64[] input %c : bool[] input %h : f32[3] input %rows : f32[4,3] input %w : f32[3,3]
      const %flat : i64[1] = {3} const %one : i64[2] = {1,3} const %two : i64[] = {2}
      %row = gather(%rows, %i) {axis=0}
      %wide = reshape(%h, %one) %turned = mat_mul(%wide, %w) %back = reshape(%turned, %flat)
      %next = add(%back, %row) %twice = mul(%i, %two)
      output "c" %c output "h" %next output "all" %next output "count" %twice }
  }
  output "last" %last
  output "all" %all
  output "count" %count
})";

TEST(NnapiBackendControlFlow, LoopIsAnOperation) {
  for (int level : kLevels) {
    const Placement row = compare(kLoop,
                                  {input<float>(DType::kF32, {4, 3}, {1, 2, 3, 4, 5, 6, 7, 8, 9, -1, -2, -3}),
                                   input<float>(DType::kF32, {3}, {1, 0, -1})},
                                  target(level), "loop");
    EXPECT_EQ(row.backend, "nnapi");
    EXPECT_NE(row.kernel.find("WHILE"), std::string::npos) << row.kernel;
  }
}

// How often it goes round depends on data; inside is a branch.
constexpr char kNested[] = R"(graph "g" {
  input %limit : f32[1]
  input %x : f32[1]
  const %most : i64[] = {9223372036854775807}
  const %zero : i32[1] = {0}
  %starts = less(%x, %limit)
  %y, %n = loop(%most, %starts, %x, %zero, %limit) {carried=2,
    body=graph "b" { input %i : i64[] input %c : bool[] input %x : f32[1] input %n : i32[1] input %limit : f32[1]
      const %one : i32[1] = {1} const %three : f32[1] = {3}
      %small = less(%x, %three)
      %y = if(%small, %x) {
        then_branch=graph "t" { input %x : f32[1] %y = add(%x, %x) output "y" %y },
        else_branch=graph "e" { input %x : f32[1] const %f : f32[1] = {1.5} %y = mul(%x, %f) output "y" %y } }
      %m = add(%n, %one)
      %goes = less(%y, %limit)
      output "c" %goes output "x" %y output "n" %m }
  }
  output "y" %y
  output "n" %n
})";

TEST(NnapiBackendControlFlow, LoopsEndWhenTheirBodySaysSo) {
  for (int level : kLevels) {
    for (float limit : {0.5f, 2.0f, 1000.0f}) {
      const Placement row =
          compare(kNested, {input<float>(DType::kF32, {1}, {limit}), input<float>(DType::kF32, {1}, {1})},
                  target(level), "loop");
      EXPECT_EQ(row.backend, "nnapi");
    }
  }
}

// Both hand on a constant that the library does not copy (above 128 bytes), of one type and place: they share no bytes.
TEST(NnapiBackendControlFlow, BranchesThatReturnConstantsReturnTheirOwn) {
  std::string a, b;
  for (int i = 0; i < 40; ++i) {
    a += str_cat(i ? "," : "", i);
    b += str_cat(i ? "," : "", -i);
  }
  const std::string text = str_cat(R"(graph "g" {
    input %c : bool[]
    input %x : f32[40]
    %y, %z : f32[40] = if(%c, %x) {
      then_branch=graph "t" { input %x : f32[40] const %k : f32[40] = {)",
                                   a, R"(} output "y" %k output "z" %x },
      else_branch=graph "e" { input %x : f32[40] const %k : f32[40] = {)",
                                   b, R"(} output "y" %k output "z" %x } }
    output "y" %y
    output "z" %z
  })");
  const std::vector<float> x(40, 1.5f);
  for (uint8_t condition : {0, 1}) {
    const Placement row =
        compare(text.c_str(), {input<uint8_t>(DType::kBool, {}, {condition}), input<float>(DType::kF32, {40}, x)},
                target(8), "if");
    EXPECT_EQ(row.backend, "nnapi");
  }
}

// What a body computes of a size is another constant for other sizes: plans of one session share no bytes of it.
TEST(NnapiBackendControlFlow, ConstantsOfASizeAreTheirSizes) {
  constexpr char kText[] = R"(graph "g" {
    symbol n 1..1000
    input %c : bool[]
    input %x : f32[n,4]
    %y : f32[48] = if(%c, %x) {
      then_branch=graph "t" { input %x : f32[n,4]
        const %first : i64[1] = {0} const %wide : i64[1] = {48}
        %sizes = shape(%x) %rows = gather(%sizes, %first) {axis=0}
        %numbers = cast(%rows) {to="f32"} %all = expand(%numbers, %wide) %y = neg(%all) output "y" %y },
      else_branch=graph "e" { input %x : f32[n,4] const %k : f32[48] = {0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0} output "y" %k } }
    output "y" %y
  })";
  const Program program = program_of(kText);
  auto session = Session::create(program, target(8));
  ASSERT_TRUE(session.ok()) << session.status().message();
  for (int64_t rows : {3, 7, 3}) {
    const std::vector<float> x(static_cast<size_t>(rows) * 4, 1.0f);
    std::vector<Input> inputs = {input<uint8_t>(DType::kBool, {}, {1}), input<float>(DType::kF32, {rows, 4}, x)};
    const Status status = session->run(tensors(inputs));
    ASSERT_TRUE(status.ok()) << status.message();
    EXPECT_EQ(static_cast<const float*>(session->output(0).memory.host)[47], -static_cast<float>(rows));
  }
}

TEST(NnapiBackendControlFlow, BelowLevel4TheRuntimeRunsItAndItsBodiesAreOnNnapi) {
  const Placement row =
      compare(kIf, {input<uint8_t>(DType::kBool, {}, {1}), input<float>(DType::kF32, {2, 3}, {1, -2, 3, -4, 5, -6})},
              target(3), "if");
  EXPECT_EQ(row.backend, "runtime");
  ASSERT_EQ(row.why.size(), 1u);
  EXPECT_NE(row.why[0].find("IF needs feature level 4, here are 3 (rule N-2)"), std::string::npos) << row.why[0];
}

TEST(NnapiBackendControlFlow, WhatABodyHoldsLeavesItToTheRuntime) {
  constexpr char kText[] = R"(graph "g" {
    input %c : bool[]
    input %x : f32[2]
    %y : f32[2] = if(%c, %x) {
      then_branch=graph "t" { input %x : f32[2] %y = acos "far" (%x) output "y" %y },
      else_branch=graph "e" { input %x : f32[2] %y = relu(%x) output "y" %y } }
    output "y" %y
  })";
  const Placement row =
      compare(kText, {input<uint8_t>(DType::kBool, {}, {0}), input<float>(DType::kF32, {2}, {0.5f, -0.5f})},
              target(8, true), "if");
  EXPECT_EQ(row.backend, "runtime");
  ASSERT_FALSE(row.why.empty());
  EXPECT_NE(row.why[0].find("acos 'far'"), std::string::npos) << row.why[0];
  EXPECT_NE(row.why[0].find("N-20"), std::string::npos) << row.why[0];
}

/// Sizes that come with a run may not fit, even where the result could only have one: NNAPI has nobody to ask again.
TEST(NnapiBackendControlFlow, ABodyWhoseSizesComeWithTheRunIsTheRuntimes) {
  constexpr char kText[] = R"(graph "g" {
    input %c : bool[]
    input %x : f32[2,3]
    input %n : i64[2]
    %y : f32[2,3] = if(%c, %x, %n) {
      then_branch=graph "t" { input %x : f32[2,3] input %n : i64[2] %y = expand "wide" (%x, %n) output "y" %y },
      else_branch=graph "e" { input %x : f32[2,3] input %n : i64[2] %y = relu(%x) output "y" %y } }
    output "y" %y
  })";
  const Placement row =
      compare(kText,
              {input<uint8_t>(DType::kBool, {}, {1}), input<float>(DType::kF32, {2, 3}, {1, 2, 3, 4, 5, 6}),
               input<int64_t>(DType::kI64, {2}, {2, 3})},
              target(8, true), "if");
  EXPECT_EQ(row.backend, "runtime");
  ASSERT_FALSE(row.why.empty());
  EXPECT_NE(row.why[0].find("expand 'wide'"), std::string::npos) << row.why[0];
}

// 64-bit numbers enter as 32-bit ones where they fit; where one does not, the run is made again elsewhere.
constexpr char kWide[] = R"(graph "g" {
  input %x : i64[2,1]
  const %flat : i64[1] = {2}
  const %seven : i64[2] = {7,7}
  %row = reshape(%x, %flat)
  %less = less(%row, %seven)
  %f : f32[2] = cast(%row) {to="f32"}
  output "less" %less
  output "f" %f
})";

TEST(NnapiBackendControlFlow, WideNumbersThatFitAreComputedWith) {
  const Placement row = compare(kWide, {input<int64_t>(DType::kI64, {2, 1}, {-5, 2147483647})}, target(8), "cast");
  EXPECT_EQ(row.backend, "nnapi");
}

TEST(NnapiBackendControlFlow, WideNumbersThatDoNotFitLeaveTheRunToTheCpu) {
  const Program program = program_of(kWide);
  std::vector<Input> inputs;
  inputs.push_back(input<int64_t>(DType::kI64, {2, 1}, {3, int64_t{1} << 40}));
  const std::vector<Tensor> in = tensors(inputs);
  auto strict = Session::create(program, target(8));
  ASSERT_TRUE(strict.ok()) << strict.status().message();
  const Status refused = strict->run(in);
  EXPECT_EQ(refused.code(), Code::kDeviceLost);
  EXPECT_NE(refused.message().find("1099511627776"), std::string::npos) << refused.message();
}

}  // namespace
}  // namespace pinnace
