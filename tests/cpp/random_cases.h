// Random cases of families of operators: sizes are odd, sometimes 0 or 1; NaN and infinities occur.
#pragma once

#include <algorithm>
#include <span>
#include <string>
#include <utility>

#include "cases/parse_case.h"

namespace pinnace::testing {

inline constexpr size_t kRandomCases = 1000;

/// A case with its own text.
struct RandomCase {
  std::string op, inputs, attributes;
  int outputs = 1;
  Tolerance tolerance = {};
};

/// What generators are made of.
struct Draw {
  Random& random;
  int64_t integer(int64_t low, int64_t high) { return random.integer(low, high); }
  bool once_in(int64_t n) { return integer(1, n) == 1; }
  template <class T, size_t N>
  T of(const T (&list)[N]) {
    return list[integer(0, N - 1)];
  }
  /// Mostly small and odd, at times more than the widest register.
  int64_t size(int64_t most = 40) {
    return once_in(8) ? 1 : once_in(4) ? integer(1, most) : integer(1, std::min<int64_t>(most, 9));
  }
};

using RandomFamily = std::pair<const char*, RandomCase (*)(Draw&)>;
std::span<const RandomFamily> random_families();

/// Inputs of a case with every float32 tensor of another type: "f16", which has no 1e30.
std::string in_type(const std::string& inputs, const std::string& dtype);

}  // namespace pinnace::testing
