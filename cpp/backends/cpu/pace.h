// Looking whether a run is to end, in loops of steps that are too short for a look each.
#pragma once

#include <algorithm>
#include <cstdint>

#include "base/cancel.h"

namespace pinnace::cpu {

/// Of one loop on one thread: `for (...; i < last && !pace.stops(); ++i)`.
class Pace {
 public:
  /// elements: about how many one step reads or writes, as often as it does so.
  explicit Pace(int64_t elements) : step_(std::max<int64_t>(1, elements)) {}
  /// loop_stops(), asked once for every kEvery elements, which take microseconds: whether to leave out the rest.
  bool stops() {
    if ((left_ -= step_) > 0) return false;
    left_ = kEvery;
    return loop_stops();
  }

 private:
  static constexpr int64_t kEvery = 16384;
  int64_t step_, left_ = kEvery;
};

}  // namespace pinnace::cpu
