// What a run of nodes is worth to NNAPI.
#pragma once

#include "backends/nnapi/rules.h"

namespace pinnace::nnapi_client {

/// What was estimated, in nanoseconds.
struct Cost {
  double work = 0;    ///< of the nodes on the CPU
  double call = 0;    ///< of one call with its copies
  int64_t bytes = 0;  ///< that enter and leave
};
Cost cost_of(const Segment& segment);

/// Refusals by rule N-18 for every node where the call costs more than the device can save; empty if it pays.
std::vector<Verdict> too_little_work(const Segment& segment);

}  // namespace pinnace::nnapi_client
