// The API boundary of a run: a caller's tensors checked against the program's specs and symbols, once, before anything
// is touched.
#pragma once

#include <span>
#include <vector>

#include <pinnace/session.h>

#include "ops/op.h"

namespace pinnace {

/// Checks count, memory, element types, ranks, sizes, symbols; fills `views`. `symbol_sizes` is room for one size per
/// symbol. Allocates only for errors. The sentence names input, dimension, value and rule.
Status bind_inputs(std::span<const TensorSpec> specs, std::span<const Symbol> symbols, std::span<const Tensor> inputs,
                   std::span<int64_t> symbol_sizes, std::span<TensorView> views);

/// Checks count, element types, known sizes, room, and that no output overlaps an input or another output; fills
/// `views`, with null bytes where the session is to own them.
Status bind_outputs(std::span<const TensorSpec> specs, std::span<const Symbol> symbols, std::span<const Tensor> inputs,
                    std::span<const Tensor> outputs, std::span<const int64_t> symbol_sizes,
                    std::span<TensorView> views);

/// Whether an output is what the program says. An operator of the application may give another type than it gave when
/// the program was made: memory of the caller would be filled with that.
Status check_declared(const TensorSpec& spec, std::span<const Symbol> symbols, std::span<const int64_t> symbol_sizes,
                      const TensorType& made);

}  // namespace pinnace
