// One pass on one graph, with the checks that hold for all.
#include "cpp/passes/apply.h"

#include <gtest/gtest.h>

#include "passes/compare_runs.h"

namespace pinnace::testing {
namespace {

int run_pass(std::string_view name, Graph& graph, const PassContext& context, double& bound) {
  for (const PassDef* pass : all_passes()) {
    if (pass->name != name) continue;
    bound = bound_of(*pass, graph);
    const auto changes = pass->run(graph, context);
    EXPECT_TRUE(changes.ok()) << changes.status().message();
    const Status valid = verify(graph);
    EXPECT_TRUE(valid.ok()) << name << ": " << valid.message() << "\n" << print(graph);
    const Status typed = update_types(graph);
    EXPECT_TRUE(typed.ok()) << name << ": " << typed.message() << "\n" << print(graph);
    return changes.ok() ? *changes : -1;
  }
  ADD_FAILURE() << "no pass " << name;
  return -1;
}

}  // namespace

const Node& Applied::maker(std::string_view value) const {
  static const Node kNone{.op = "(none)"};
  for (const auto& node : graph.nodes) {
    for (ValueId id : node->outputs) {
      if (graph.value(id).name == value) return *node;
    }
  }
  ADD_FAILURE() << "nothing makes " << value;
  return kNone;
}

Applied apply_pass(std::string_view pass, std::string_view text, std::vector<std::string> keep) {
  Applied result;
  auto parsed = parse(text);
  EXPECT_TRUE(parsed.ok()) << parsed.status().message();
  if (!parsed.ok()) return result;
  result.graph = std::move(*parsed);
  const Status valid = verify(result.graph), typed = update_types(result.graph);
  EXPECT_TRUE(valid.ok()) << valid.message();
  EXPECT_TRUE(typed.ok()) << typed.message();
  const Graph before = result.graph.clone();
  PassContext context;
  context.keep = std::move(keep);
  double bound = 0, exact = 0;
  result.changes = run_pass(pass, result.graph, context, bound);
  run_pass("dead_code", result.graph, context, exact);
  CompareRuns compare(context.ops, 1);
  const Status started = compare.start(before);
  EXPECT_TRUE(started.ok()) << started.message();
  const auto error = compare.error_of(result.graph);
  EXPECT_TRUE(error.ok()) << error.status().message();
  if (error.ok()) result.error = *error;
  EXPECT_LE(result.error, bound) << print(result.graph);
  for (size_t i = 0; i < before.outputs.size(); ++i) {
    EXPECT_EQ(result.graph.value(result.graph.outputs[i]).type, before.value(before.outputs[i]).type);
  }
  for (const auto& node : result.graph.nodes) result.ops += (result.ops.empty() ? "" : " ") + node->op;
  return result;
}

}  // namespace pinnace::testing
