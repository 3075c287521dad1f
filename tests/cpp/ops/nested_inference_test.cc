// Types of nested graphs: planning ends whatever a file nests in what, and what cannot be computed in a branch that is
// not taken is no fault of the model.
#include <gtest/gtest.h>

#include <pinnace/model.h>

#include "base/status.h"
#include "cpp/guarded.h"
#include "cpp/text_program.h"

namespace pinnace::testing {
namespace {

// Loops in loops of a few hundred bytes each. It takes a tenth of this on an idle machine.
const Allowance kPlanning{.memory = 64 << 20, .seconds = kSanitized ? 30 : 1.5};

/// Loops nested so deep, each of which begins with its own constant and doubles it. If `captured`, each also gets what
/// those around it carry, so that no two inferences of a body are of the same types.
std::string nest(int depth, bool captured) {
  std::string text, ends;
  for (int i = 0; i < depth; ++i) {
    std::string given, inputs;
    for (int k = 0; captured && k < i; ++k) {
      given += str_cat(", %a", k);
      inputs += str_cat(" input %a", k, " : f32[?]");
    }
    text += str_cat("const %n : i64[] = {1} const %x : f32[2] = {1,2} %y : f32[?] = loop(%n, none, %x", given,
                    R"() {carried=1, body=graph "b" { input %i : i64[] input %c : bool[] input %a)", i, " : f32[?]",
                    inputs, " ");
    ends = str_cat("%b : f32[?] = concat(%a", i, ", %a", i, R"() {axis=0} output "c" %c output "b" %b }} )",
                   i ? "" : R"(output "y" %y })") +
           ends;
  }
  // `ends` begins with the innermost: it was put together from the outermost on, each before the last.
  return "graph \"g\" { " + text + ends;
}

/// Ifs nested so deep in branches that do not fit what they are given: each is inferred with what it declares as well.
std::string branches(int depth) {
  std::string text = "graph \"g\" { input %c : bool[] ", ends;
  for (int i = 0; i < depth; ++i) {
    text += "const %z : f32[3] = {1,2,3} %y : f32[?] = if(%c, %c, %z) ";
    text += R"({then_branch=graph "t" { input %c : bool[] input %x : f32[2] )";
    ends += R"(const %k : f32[2] = {1,2} %q : f32[?] = add(%x, %k) output "q" %q }, )";
    ends += R"(else_branch=graph "e" { input %c : bool[] input %x : f32[2] output "x" %x }} )";
  }
  return text + ends + "output \"y\" %y }";
}

Result<Session> plan(const std::string& text, bool passes) {
  LoadOptions options;
  if (!passes) options.disabled_passes = {"all"};
  PINNACE_ASSIGN(const Model model, Model::parse(text, options));
  PINNACE_ASSIGN(const Program program, model.build());
  return Session::create(program, {.threads = 1});
}

TEST(HostileNests, ArePlannedOrRefusedSoon) {
  struct Nest {
    std::string text;
    bool planned;
  };
  const std::vector<Nest> nests = {{nest(3, false), true}, {nest(18, false), true}, {nest(60, false), true},
                                   {nest(3, true), true},  {nest(18, true), false}, {nest(40, true), false},
                                   {branches(3), true},    {branches(30), true},    {branches(90), true}};
  const auto seen = run_guarded(2 * nests.size(), kPlanning, [&](size_t i, const auto& accept) -> std::string {
    const auto session = plan(nests[i / 2].text, i % 2);
    if (session.ok() != nests[i / 2].planned) return session.ok() ? "is planned" : session.status().message();
    if (session.ok()) {
      accept();
      return "";
    }
    const std::string& says = session.status().message();
    return session.status().code() == Code::kUnsupported && says.find("steps to infer, the limit") != std::string::npos
               ? ""
               : says;
  });
  EXPECT_EQ(seen.failure, "");
  EXPECT_EQ(seen.accepted, 14u);
}

// 4,096 elements of which three operands make 2^36 combinations, and a chain of smaller ones.
TEST(HostileNests, WhatTakesLongIsNotComputedAhead) {
  const auto text = [](int size, int nodes) {
    std::string all = str_cat(R"(graph "g" { const %s : i64[1] = {)", size,
                              "} const %o : f32[1] = {1} %a : f32[?] = expand(%o, %s) ");
    for (int i = 0; i < nodes; ++i) {
      all += str_cat("%y", i, R"( : f32[] = einsum(%a, %a, %a) {equation="i,j,k->"} output "y)", i, "\" %y", i, " ");
    }
    return all + "}";
  };
  const auto seen = run_guarded(3, kPlanning, [&](size_t i, const auto& accept) -> std::string {
    const auto session = plan(i == 0 ? text(4096, 1) : i == 1 ? text(256, 40) : text(4, 1), false);
    if (session.ok()) accept();
    return session.ok() ? "" : session.status().message();
  });
  EXPECT_EQ(seen.failure, "");
  EXPECT_EQ(seen.accepted, 3u);
}

Tensor scalar(uint8_t& value) {
  Tensor t;
  t.type.dtype = DType::kBool;
  t.memory.host = &value;
  t.memory.bytes = 1;
  return t;
}

/// An `if` of c whose then_branch gathers `count` elements, the last one beyond the end of a constant.
std::string reaching_beyond(int count) {
  std::string places;
  for (int i = 1; i < count; ++i) places += "1,";
  return str_cat(R"(graph "g" {
    input %c : bool[]
    input %x : f32[1]
    %y : f32[?] = if(%c, %x) {then_branch=graph "t" {
      input %x : f32[1]
      const %d : f32[2] = {1,2}
      const %i : i64[)",
                 count, "] = {", places, R"(777}
      %r : f32[?] = gather(%d, %i)
      %q : f32[?] = add(%r, %x)
      output "q" %q
    }, else_branch=graph "e" {
      input %x : f32[1]
      %r : f32[1] = relu(%x)
      output "r" %r
    }}
    output "y" %y
  })");
}

TEST(NestedInference, WhatABranchCannotComputeIsAnErrorOnlyWhenItIsTaken) {
  for (const int count : {2, 5000}) {  // computed ahead; only folded
    for (const bool passes : {false, true}) {
      SCOPED_TRACE(str_cat(count, " elements, passes ", passes));
      auto session = plan(reaching_beyond(count), passes);
      ASSERT_TRUE(session.ok()) << session.status().message();
      float x = 2;
      Tensor in{{DType::kF32, {1}, nullptr}, {}};
      in.memory.host = &x, in.memory.bytes = sizeof x;
      uint8_t taken = 0;
      ASSERT_TRUE(session->run(std::vector{scalar(taken), in}).ok());
      EXPECT_EQ(static_cast<const float*>(session->output(0).memory.host)[0], 2.0f);
      taken = 1;
      const Status status = session->run(std::vector{scalar(taken), in});
      EXPECT_EQ(status.code(), Code::kInvalidArgument);
      EXPECT_NE(status.message().find("777"), std::string::npos) << status.message();
    }
  }
}

TEST(NestedInference, WhatTheGraphItselfCannotComputeIsAnErrorAtOnce) {
  const auto model = Model::parse(R"(graph "g" {
    const %d : f32[2] = {1,2}
    const %i : i64[2] = {5,6}
    %r : f32[2] = gather(%d, %i)
    output "r" %r
  })");
  ASSERT_FALSE(model.ok());
  EXPECT_EQ(model.status().code(), Code::kInvalidArgument);
}

// Items of an odd number of such elements end within a byte.
TEST(NestedInference, OnlyElementsOfWholeBytesAreStacked) {
  for (const char* type : {"i4", "u4", "i2", "u2", "f4e2m1", "f6e2m3"}) {
    const auto model =
        Model::parse(str_cat(R"(graph "g" { input %x : )", type, R"([3] const %n : i64[] = {3}
      %last : )",
                             type, "[3], %all : ", type, R"([3,3] = loop(%n, none, %x, %x) {carried=1, body=graph "b" {
        input %i : i64[] input %c : bool[] input %a : )",
                             type, "[3] input %x : ", type, R"([3]
        output "c" %c output "a" %a output "each" %x
      }}
      output "all" %all })"));
    ASSERT_FALSE(model.ok()) << type;
    EXPECT_EQ(model.status().code(), Code::kInvalidArgument);
    EXPECT_NE(model.status().message().find("whole bytes"), std::string::npos) << model.status().message();
  }
}

}  // namespace
}  // namespace pinnace::testing
