// Placement of nodes inside of control flow, before a run and after it.
#include <gtest/gtest.h>

#include "base/text.h"
#include "cpp/text_program.h"
#include "fakes/null_backend.h"

namespace pinnace {
namespace {

using testing::program_of;

constexpr char kText[] = R"(graph "g" {
    input %n : i64[] input %x : f32[SIZE]
    const %yes : bool[] = {1}
    %last : f32[SIZE] = loop(%n, %yes, %x) {carried=1, body=graph "body" {
      input %i : i64[] input %c : bool[] input %a : f32[SIZE]
      %odd : bool[] = cast(%i) {to="bool"}
      %b : f32[SIZE] = if(%odd, %a) {then_branch=graph "then" {
        input %p : f32[SIZE]
        %q : f32[SIZE] = neg(%p)
        output "q" %q
      }, else_branch=graph "else" {
        input %p : f32[SIZE]
        %q : f32[SIZE] = abs(%p)
        %r : f32[SIZE] = exp(%q)
        output "r" %r
      }}
      output "c" %c output "b" %b
    }}
    %y : f32[SIZE] = relu(%last)
    output "y" %y })";

TEST(Placement, HasTheNodesOfBodiesBehindTheControlFlowThatHoldsThem) {
  const auto text_of_size = [](const std::string& size) {
    std::string text = size == "s" ? std::string(kText).insert(11, "symbol s 1..8 ") : kText;
    for (size_t at; (at = text.find("SIZE")) != std::string::npos;) text.replace(at, 4, size);
    return text;
  };
  const auto rows_of = [](const Session& session) {
    std::vector<std::string> rows;
    for (const Placement& p : session.placement()) rows.push_back(str_cat(p.path, " ", p.op, " ", p.backend));
    return rows;
  };
  using Rows = std::vector<std::string>;
  const Rows planned = {" loop runtime",
                        "loop_0.body cast cpu",
                        "loop_0.body if runtime",
                        "loop_0.body/if_0.else_branch abs cpu",
                        "loop_0.body/if_0.else_branch exp cpu",
                        "loop_0.body/if_0.then_branch neg cpu",
                        " relu cpu"};
  auto fixed = Session::create(program_of(text_of_size("3").c_str()), {.target = "cpu", .threads = 1});
  ASSERT_TRUE(fixed.ok()) << fixed.status().message();
  EXPECT_EQ(rows_of(*fixed), planned);
  EXPECT_NE(fixed->placement()[3].kernel, "");

  // Which sizes the bodies have is known when a run has had them.
  auto open = Session::create(program_of(text_of_size("s").c_str()), {.target = "cpu", .threads = 1});
  ASSERT_TRUE(open.ok()) << open.status().message();
  Rows waiting = planned;
  for (size_t i = 1; i < 6; ++i) waiting[i] = waiting[i].substr(0, waiting[i].rfind(' ')) + " runtime";
  EXPECT_EQ(rows_of(*open), waiting);
  EXPECT_EQ(open->placement()[3].kernel, "placed when sizes are known");
  int64_t trips = 2;
  float x[2] = {1, -1};
  Tensor inputs[2];
  inputs[0].type.dtype = DType::kI64;
  inputs[0].memory = {.host = &trips, .bytes = sizeof trips};
  inputs[1].type.shape.push_back(Dim(2));
  inputs[1].memory = {.host = x, .bytes = sizeof x};
  ASSERT_TRUE(open->run(inputs).ok());
  EXPECT_EQ(rows_of(*open), planned);

  // What a back end takes with all that it holds runs there.
  auto whole = Session::create(program_of(text_of_size("3").c_str()), {.target = "nnapi:31", .threads = 1});
  if (!whole.ok()) return;  // no library of NNAPI here
  Rows taken = planned;
  if (whole->placement()[0].backend != "nnapi") GTEST_FAIL() << str_cat(whole->placement()[0].why[0]);
  for (std::string& row : taken) row = row.substr(0, row.rfind(' ')) + " nnapi";
  EXPECT_EQ(rows_of(*whole), taken);
}

TEST(Placement, SaysThatControlFlowWhichABackendLacksIsRunByTheRuntime) {
  constexpr char kChoice[] = R"(graph "g" {
    input %c : bool[]
    input %x : f32[2]
    %y : f32[2] = if "choice" (%c, %x) {
      then_branch=graph "t" { input %x : f32[2] %y = neg(%x) output "y" %y },
      else_branch=graph "e" { input %x : f32[2] %y = relu(%x) output "y" %y } }
    output "y" %y
  })";
  const auto placement_of_choice = [](const Session& session) {
    for (const Placement& p : session.placement()) {
      if (p.op == "if") return p;
    }
    return Placement();
  };
  const fakes::NullBackend null;
  for (const bool fallback : {true, false}) {
    Options options = {.target = "null", .threads = 1};
    options.backends = {&null};
    options.fallback = fallback;
    auto session = Session::create(program_of(kChoice), options);
    ASSERT_TRUE(session.ok()) << session.status().message();
    const Placement choice = placement_of_choice(*session);
    EXPECT_EQ(choice.backend, "runtime");
    ASSERT_EQ(choice.why.size(), 1u);
    EXPECT_EQ(choice.why[0],
              "null does not take if 'choice': it has no control flow, which the runtime runs instead (rule P-3)");
  }
  // The runtime is on the CPU, which thus was not passed over.
  auto session = Session::create(program_of(kChoice), {.target = "cpu", .threads = 1});
  ASSERT_TRUE(session.ok()) << session.status().message();
  EXPECT_EQ(placement_of_choice(*session).backend, "runtime");
  EXPECT_TRUE(placement_of_choice(*session).why.empty());
}

}  // namespace
}  // namespace pinnace
