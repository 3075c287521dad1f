// capture_constants: constants that loops and branches capture, and what stays an input.
#include <gtest/gtest.h>

#include "cpp/passes/apply.h"

namespace pinnace::testing {
namespace {

/// The inputs of the first node of control flow, and of its first body.
std::pair<size_t, size_t> inputs_of(const Applied& applied) {
  for (const auto& node : applied.graph.nodes) {
    for (const auto& [name, attr] : node->attrs) {
      if (const auto* body = std::get_if<GraphPtr>(&attr)) return {node->inputs.size(), (*body)->inputs.size()};
    }
  }
  ADD_FAILURE() << "no control flow";
  return {};
}

TEST(CaptureConstants, OfALoop) {
  const Applied a = apply_pass("capture_constants", R"(graph "g" {
    input %x : f32[2]
    input %s : f32[2]
    const %n : i64[] = {3}
    const %w : f32[2] = {2, 3}
    const %v : f32[2] = {1, -1}
    %y : f32[2] = loop(%n, none, %x, %w, %s, %v) {carried=1, body=graph "b" {
      input %i : i64[]
      input %c : bool[]
      input %h : f32[2]
      input %a : f32[2]
      input %t : f32[2]
      input %b : f32[2]
      %p : f32[2] = mul(%h, %a)
      %q : f32[2] = add(%p, %b)
      %r : f32[2] = add(%q, %t)
      output "c" %c
      output "h" %r
    }}
    output "y" %y
  })");
  EXPECT_EQ(a.changes, 2);
  EXPECT_EQ(inputs_of(a), std::pair(size_t{4}, size_t{4})) << "the count, the value and what is no constant";
}

TEST(CaptureConstants, OfBothBranches) {
  const Applied a = apply_pass("capture_constants", R"(graph "g" {
    input %c : bool[]
    input %x : f32[2]
    const %w : f32[2] = {2, 3}
    %y : f32[2] = if(%c, %w, %x) {
      else_branch=graph "e" { input %a : f32[2] input %b : f32[2] %s : f32[2] = sub(%b, %a) output "s" %s },
      then_branch=graph "t" { input %a : f32[2] input %b : f32[2] output "a" %a }
    }
    output "y" %y
  })");
  EXPECT_EQ(a.changes, 1);
  EXPECT_EQ(inputs_of(a), std::pair(size_t{2}, size_t{1}));
}

TEST(CaptureConstants, CarriedValuesAndCountsStay) {
  const Applied a = apply_pass("capture_constants", R"(graph "g" {
    input %x : f32[2]
    const %n : i64[] = {3}
    const %start : f32[2] = {2, 3}
    %y : f32[2] = loop(%n, none, %start, %x) {carried=1, body=graph "b" {
      input %i : i64[] input %c : bool[] input %h : f32[2] input %t : f32[2]
      %r : f32[2] = add(%h, %t)
      output "c" %c
      output "h" %r
    }}
    output "y" %y
  })");
  EXPECT_EQ(a.changes, 0);
  EXPECT_EQ(inputs_of(a), std::pair(size_t{4}, size_t{4}));
}

TEST(CaptureConstants, NotWhatABranchIsNotFor) {
  const std::string text = R"(graph "g" {
    const %c : bool[] = {1}
    input %x : f32[?]
    const %w : f32[3] = {1, 2, 3}
    %y : f32[?] = if(%c, %w, %x) {
      else_branch=graph "e" {
        input %a : f32[?] input %b : f32[?]
        const %k : f32[2] = {1, 2}
        %s : f32[?] = add(%a, %k)
        output "s" %s
      },
      then_branch=graph "t" { input %a : f32[?] input %b : f32[?] %s : f32[?] = add(%a, %a) output "s" %s }
    }
    output "y" %y
  })";
  const Applied a = apply_pass("capture_constants", text);
  EXPECT_EQ(a.changes, 0);
  auto graph = parse(text);
  ASSERT_TRUE(graph.ok());
  const auto passed = run_passes(*graph, PassContext(), {});
  EXPECT_TRUE(passed.ok()) << passed.status().message();
}

TEST(CaptureConstants, WhatIsFoldedInABodyLeavesNothingBehind) {
  Applied a = apply_pass("capture_constants", R"(graph "g" {
    input %c : bool[]
    input %x : f32[2,3]
    const %w : f32[3,2] = {1, 2, 3, 4, 5, 6}
    %y : f32[2,3] = if(%c, %w, %x) {
      else_branch=graph "e" {
        input %a : f32[3,2] input %b : f32[2,3]
        %t : f32[2,3] = transpose(%a) {perm=[1,0]}
        %s : f32[2,3] = add(%b, %t)
        output "s" %s
      },
      then_branch=graph "t" { input %a : f32[3,2] input %b : f32[2,3] output "b" %b }
    }
    output "y" %y
  })");
  PassContext context;
  ASSERT_TRUE(run_passes(a.graph, context, {}).ok());
  a.graph.compact();
  const std::string text = print(a.graph);
  EXPECT_EQ(text.find("f32[3,2]"), std::string::npos) << text;
  EXPECT_EQ(text.find("transpose"), std::string::npos) << text;
}

}  // namespace
}  // namespace pinnace::testing
