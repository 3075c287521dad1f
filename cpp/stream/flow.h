// Flow: how a value of the whole graph comes in pieces. The value v has T * up / down + more elements along its axis
// once T elements of input are there; for each `down` elements of a chunk the stream brings `up` elements, and element
// i of the stream is v[i - delay].
#pragma once

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <optional>

#include "base/status.h"

namespace pinnace {

/// Rounds down, also of negative numbers.
constexpr int64_t floor_div(int64_t a, int64_t b) {
  return a / b - (a % b != 0 && (a % b < 0) != (b < 0));
}
constexpr int64_t ceil_div(int64_t a, int64_t b) {
  return -floor_div(-a, b);
}

struct Flow {
  int axis = 0;
  int64_t up = 1, down = 1;
  int64_t more = 0;
  /// Below 0: the value begins with -delay elements `fill`, which the stream leaves out; whoever keeps a tail of it
  /// begins with them.
  int64_t delay = 0;
  double fill = 0;
  /// What the stream holds before v[0] and behind v's last element, if it is one number; before v[0], where the delay
  /// is not above 0, what a delay line begins with, 0 if nothing is said. Like `fill` a number as it is stored, but of
  /// a quantised type what it stands for.
  std::optional<double> before, after;

  bool same_rate(const Flow& other) const { return up == other.up && down == other.down; }
  /// The rate times a / b.
  Flow scaled(int64_t a, int64_t b) const {
    Flow f = *this;
    f.up *= a;
    f.down *= b;
    const int64_t common = std::gcd(f.up, f.down);
    f.up /= common;
    f.down /= common;
    return f;
  }
  /// After a delay line up to delay `to`, which begins with zeros where nothing else is known.
  Flow delayed(int64_t to) const {
    Flow f = *this;
    if (to == delay) return f;
    if (delay <= 0) f.before = before.value_or(0);
    f.delay = to;
    return f;
  }
  /// The same late enough that its end is behind the input's, where a layer may put padding: which elements are the
  /// last is known when the input has ended, and not before.
  Flow ended(int64_t last_read, double padding) const {
    const bool masks = last_read > more && after != padding;
    return masks && more + delay < 0 ? delayed(-more) : *this;
  }
  /// What stands for element i < 0 of the stream in a tail of it, where `padding` stands for elements before v[0].
  double initial(int64_t i, double padding) const { return i - delay >= 0 ? fill : padding; }
};

/// Elements [first, T * up / down + last) of a value that somebody reads; negative ones are padding.
struct Needed {
  int64_t first = INT64_MAX, last = INT64_MIN;
  bool any() const { return first != INT64_MAX; }
  void add(const Needed& other) {
    first = std::min(first, other.first);
    last = std::max(last, other.last);
  }
};

/// T * up / down + plus: an element of a small tensor of sizes.
struct Length {
  int64_t up = 0, down = 1, plus = 0;
  bool fixed() const { return up == 0; }
};

}  // namespace pinnace
