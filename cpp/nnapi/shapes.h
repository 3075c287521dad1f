// What is asked of the ranks and dimensions of an operation before its values are known.
#pragma once

#include "nnapi/operations.h"

namespace pinnace::nnapi {

/// The part of validate_operation that looks at ranks and dimensions, for operands of the right number and types. It
/// refuses what Android's runtime refuses when an operation is added; that leaves the ranks of most operations to the
/// computation.
Status validate_shapes(const Model& model, const Operation& operation);

/// The ranks that NNAPI documents, those of operations.inc: narrower than validate_shapes(), and what a driver may rely
/// on. For who makes models.
Status check_documented_ranks(const Model& model, const Operation& operation);

}  // namespace pinnace::nnapi
