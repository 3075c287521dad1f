// The driver of the passes: order, nested graphs, verification after each, and the comparison that check asks for.
#include "passes/pass.h"

#include <algorithm>
#include <chrono>
#include <functional>
#include <utility>
#include <vector>

#include "base/cancel.h"
#include "base/log.h"
#include "base/threads/thread.h"
#include "ops/work.h"
#include "passes/compare_runs.h"

namespace pinnace {

#define PASS(name) extern const PassDef name##_pass;
#include "passes/passes.inc"
#undef PASS

std::span<const PassDef* const> all_passes() {
  static constexpr const PassDef* kPasses[] = {
#define PASS(name) &name##_pass,
#include "passes/passes.inc"
#undef PASS
  };
  return kPasses;
}

bool PassContext::keeps(const Graph& graph, ValueId id) const {
  return std::find(keep.begin(), keep.end(), graph.value(id).name) != keep.end();
}

namespace {

/// The coarsest of f32, f16 and bf16 that a node of the graph, or of a body, gives.
DType coarsest_type(const Graph& graph) {
  DType coarsest = DType::kF32;
  const auto add = [&](DType dtype) {
    if (dtype == DType::kBF16 || (dtype == DType::kF16 && coarsest == DType::kF32)) coarsest = dtype;
  };
  for (const auto& node : graph.nodes) {
    for (ValueId id : node->outputs) add(graph.value(id).type.dtype);
    for (const auto& [name, attr] : node->attrs) {
      if (const auto* body = std::get_if<GraphPtr>(&attr)) add(coarsest_type(**body));
    }
  }
  return coarsest;
}

/// Runs a pass on the bodies of control flow, innermost first, then on the graph itself.
Result<int> run_nested(const PassDef& pass, Graph& graph, const PassContext& context) {
  int changes = 0;
  for (const auto& node : graph.nodes) {
    for (auto& [name, attr] : node->attrs) {
      auto* body = std::get_if<GraphPtr>(&attr);
      if (!body) continue;
      PINNACE_ASSIGN(const int inside, run_nested(pass, **body, context));
      changes += inside;
    }
  }
  PINNACE_ASSIGN(const int own, pass.run(graph, context));
  return changes + own;
}

/// A weight that is cast, scaled and transposed is made anew a few times before it is what stays.
constexpr int64_t kConstantGrowth = 6, kFreeConstantBytes = 8 << 20;

using Ranges = std::vector<std::pair<const std::byte*, size_t>>;

/// Where the constants of the graph and of its bodies lie.
void find_constants(const Graph& graph, Ranges& ranges) {
  for (const Value& v : graph.values) {
    if (v.constant) ranges.emplace_back(v.constant->data(), v.constant->bytes());
  }
  for (const auto& node : graph.nodes) {
    for (const auto& [name, attr] : node->attrs) {
      if (const auto* body = std::get_if<GraphPtr>(&attr)) find_constants(**body, ranges);
    }
  }
}

/// Bytes of all constants; those that several share, in whole or in part, count once.
int64_t constant_bytes(const Graph& graph) {
  Ranges ranges;
  find_constants(graph, ranges);
  std::sort(ranges.begin(), ranges.end(), [](const auto& a, const auto& b) {
    return std::less<>()(a.first, b.first) || (a.first == b.first && a.second < b.second);
  });
  int64_t bytes = 0;
  const std::byte* counted = nullptr;  // up to here
  for (const auto& [first, size] : ranges) {
    const std::byte* end = first + size;
    const std::byte* from = counted && std::less<>()(first, counted) ? counted : first;
    if (!std::less<>()(from, end)) continue;
    bytes += end - from;
    counted = end;
  }
  return bytes;
}

/// The loop over the list ends when a round changes nothing; rewrites that undo each other would not end by themselves.
constexpr int kRounds = 4;

}  // namespace

double bound_of(const PassDef& pass, const Graph& graph) {
  const DType type = pass.bound == 0 ? DType::kF32 : coarsest_type(graph);
  return std::max(pass.bound, type == DType::kBF16 ? 4e-2 : type == DType::kF16 ? 5e-3 : 0);
}

Result<std::vector<PassResult>> run_passes(Graph& graph, const PassContext& context, const PassOptions& options) {
  const DefaultFloats floats;
  std::vector<PassResult> results;
  const auto disabled = [&](std::string_view name) {
    return std::any_of(options.disabled.begin(), options.disabled.end(),
                       [&](const std::string& d) { return d == name || d == "all"; });
  };
  for (const PassDef* pass : all_passes()) results.push_back({pass, 0, 0, 0});
  const int64_t bytes = constant_bytes(graph);
  context.constant_budget = kConstantGrowth * bytes + kFreeConstantBytes;
  const AheadBudget budget;
  AheadBudget::allow_constants(bytes);
  CompareRuns compare(context.ops, options.seed, options.examples);
  if (options.check) PINNACE_TRY(compare.start(graph));
  for (int round = 0; round < kRounds; ++round) {
    int changed = 0;
    for (PassResult& result : results) {
      const PassDef& pass = *result.pass;
      if (disabled(pass.name)) continue;
      PINNACE_TRY(check_stopped(str_cat("pass ", pass.name)));
      const double bound = options.check ? bound_of(pass, graph) : 0;
      const auto start = std::chrono::steady_clock::now();
      auto changes = run_nested(pass, graph, context);
      if (!changes) return changes.status().with_prefix(str_cat("pass ", pass.name, ": "));
      const auto taken = std::chrono::steady_clock::now() - start;
      result.milliseconds += std::chrono::duration<double, std::milli>(taken).count();
      PINNACE_LOG_DEBUG("pass ", pass.name, ", round ", round + 1, ": ", *changes, " changes, in ",
                        LogTime::text_of(taken));
      if (*changes == 0) continue;
      result.changes += *changes;
      // Typing passes report a change only the first time, so they do not keep the rounds going.
      changed += *changes;
      if (const Status broken = verify(graph); !broken.ok()) {
        return Status(Code::kVerification, str_cat("pass ", pass.name, " broke the graph: ", broken.message()));
      }
      if (options.check) {
        PINNACE_ASSIGN(const double error, compare.error_of(graph));
        result.largest_error = std::max(result.largest_error, error);
        if (!(error <= bound)) {
          return Status(Code::kVerification, str_cat("pass ", pass.name, " changed the result by ", error,
                                                     " of its largest magnitude, its bound is ", bound));
        }
        PINNACE_TRY(compare.start(graph));
      }
    }
    if (changed == 0) break;
  }
  return results;
}

}  // namespace pinnace
