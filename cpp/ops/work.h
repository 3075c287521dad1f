// Work that is done before a run: how long reference code takes for a node, and the one budget from which everything
// that is computed ahead is paid, in type inference, in passes and in importers. What the budget does not cover stays
// in the graph and is computed when it runs.
#pragma once

#include <span>

#include "ops/op.h"

namespace pinnace {

/// About how many nanoseconds reference code takes for a node on one core, at most: the estimate is made from types
/// alone, so operators that may stop early are charged for all they could do. `outputs` are the types that the shape
/// rule gave. 0 where nothing is computed (ops/empty.h).
double reference_work(const NodeView& node, std::span<const TensorType> outputs);

/// The same for the shape rule, which for some operators runs the operator to count what it gives (unique, non_zero,
/// non_max_suppression): what it takes when the contents of the inputs are known.
double rule_work(const NodeView& node);

/// What may be computed ahead during one load, one preparation of a session or for one target of a build, or one plan.
/// The outermost that a thread has made and that still lives counts; those made inside it join it. Importers, passes,
/// build and plan each make one, so that a call of any depth, with any number of nested graphs, is bounded once.
///
/// spend() is the one place where work ahead of a run is counted.
class AheadBudget {
 public:
  AheadBudget();
  ~AheadBudget();
  AheadBudget(const AheadBudget&) = delete;
  AheadBudget& operator=(const AheadBudget&) = delete;

  /// Takes `nanoseconds` from this thread's budget. False, and nothing is taken, if that is more than the largest share
  /// of what is left: one node cannot use up what the arithmetic on sizes behind it needs.
  static bool spend(double nanoseconds);
  /// Adds what reading so many bytes of constants justifies: transposing and casting weights takes time in proportion
  /// to a file. Nothing outside of a budget.
  static void allow_constants(int64_t bytes);

  /// Half a second: sizes and their arithmetic take microseconds.
  static constexpr double kNanoseconds = 0.5e9;
  static constexpr double kShare = 0.125;
  /// A weight of 4 bytes passes through about ten operators that read and write it once.
  static constexpr double kPerConstantByte = 100;

 private:
  double left_ = kNanoseconds;
  bool outermost_;
};

}  // namespace pinnace
