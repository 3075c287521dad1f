// Graphs of one family of kernels each, larger than cases, as segments of their own: what tests of drivers and of plans
// run again and again.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "backends/backend.h"

namespace pinnace::testing {

/// Texts of graphs without their first and last line. Inputs whose names begin with k_ are constants.
std::span<const char* const> family_graphs();

/// Outputs of a graph of inputs that are the same each time, made by one executable that runs so often; an error if the
/// runs do not all give the same bits.
Result<std::vector<std::vector<std::byte>>> graph_answers(const Backend& backend, const std::string& text,
                                                          const char* precision, int runs);

}  // namespace pinnace::testing
