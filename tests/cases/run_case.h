// Running one case by reference code or by a kernel, in memory that shows what the code should not have touched.
#pragma once

#include <functional>

#include "cases/parse_case.h"

namespace pinnace::testing {

/// What computes a node's outputs: OpDef::reference, or a kernel of a back end behind the same signature.
using RunFn = std::function<Status(const NodeView&, std::span<const TensorView>, std::span<const TensorView>)>;

struct RunOptions {
  int in_place_input = -1;  ///< output 0 shares the memory of this input
  uint8_t poison = 0xAA;    ///< what outputs hold before the run
};

/// Runs `fn` once on a node, whose output types come from the shape rule, and gives the outputs. Every tensor lies
/// between guard bytes. kInvalidArgument also where a guard was touched or an input (but the one shared) was written;
/// such sentences begin with "memory:".
Result<std::vector<ReferenceOutput>> run_node_with(const RunFn& fn, const Node& node, const OpDef& op,
                                                   std::span<const TensorView> inputs,
                                                   std::span<const TensorType* const> declared,
                                                   const RunOptions& options = {});
/// The same for a case.
Result<std::vector<ReferenceOutput>> run_case_with(const RunFn& fn, const BuiltCase& built,
                                                   const RunOptions& options = {});
/// The operator's own reference code; for control flow the interpreter, which ignores `options`.
Result<std::vector<ReferenceOutput>> run_case(const BuiltCase& built, const RunOptions& options = {});

/// Types of the outputs by the shape rule, with all contents known.
Result<std::vector<TensorType>> infer_case(const BuiltCase& built);

/// Every case of every operator of ops.inc.
std::vector<CaseList> all_cases();
/// The seed of one case: of the run's seed, the operator and the place in its list.
uint64_t case_seed(const char* op, size_t index);

}  // namespace pinnace::testing
