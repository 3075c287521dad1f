// Random cases of families of operators: sizes are odd, sometimes 0 or 1; NaN and infinities occur.
#pragma once

#include <algorithm>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "cases/parse_case.h"

namespace pinnace::testing {

inline constexpr size_t kRandomCases = 1000;

/// A case with its own text.
struct RandomCase {
  std::string op, inputs, attributes;
  int outputs = 1;
  Tolerance tolerance = {};
  std::string quantization;  ///< that is declared for output 0
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

// Parts of a case's text.
using Sizes = std::vector<int64_t>;
std::string list_of(const Sizes& sizes);
std::string tensor(std::string_view dtype, const Sizes& sizes);
std::string ints(const Sizes& values);
/// float32 of these sizes; now and then all contents spelt out, with NaN, infinities and zeros among them.
std::string floats(Draw& d, const Sizes& sizes, int64_t special_once_in = 5);
/// kernel_shape, strides, dilations, pads of a window that fits x.
std::string window(Draw& d, const Sizes& x, bool dilates);
/// A type whose elements are moved without being looked at.
std::string moved_type(Draw& d);

using RandomFamily = std::pair<const char*, RandomCase (*)(Draw&)>;
std::span<const RandomFamily> random_families();
// Families with files of their own.
RandomCase indexing(Draw& d);
RandomCase arrangement(Draw& d);
RandomCase top_k(Draw& d);
RandomCase eight_bits(Draw& d);
RandomCase plain(Draw& d);
/// Casts; not among random_families(), whose float32 numbers are read as 16-bit floats too.
RandomCase conversions(Draw& d);

/// Inputs of a case with every float32 tensor of another type: "f16", which has no 1e30.
std::string in_type(const std::string& inputs, const std::string& dtype);

}  // namespace pinnace::testing
