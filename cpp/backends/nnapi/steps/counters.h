// What the counters of a loop can be: numbers that each iteration moves by a constant, while a condition bounds them.
#pragma once

#include <optional>

#include "backends/nnapi/lowering.h"

namespace pinnace::nnapi_client {

struct Int64Range {
  int64_t least, most;
};

/// What a value can be: the extremes of a small constant, or what is known of it.
Int64Range range_of(const LoweredValue& value);

/// What the number `before`, an input of the body, can be when an iteration begins. `after` is what the iteration makes
/// of it, `start` what the first one is given, `rounds` how many there are at most. Nothing if it is no counter:
/// `after` is `before` and a constant, one element, and the rounds or the body's condition, its output 0, bound it. The
/// condition is a comparison of `before` or `after`, or an `and` of several.
std::optional<Int64Range> counter_range(const Graph& body, Lowering& lowering, ValueId before, ValueId after,
                                        Int64Range start, int64_t rounds);

}  // namespace pinnace::nnapi_client
