// Dispatches of any size on devices of limited ones: steps that bind more bytes, have more groups or take longer than a
// device can are split into sub-dispatches, which together do the same work.
#pragma once

#include "backends/gpu/segment.h"

namespace pinnace::gpu {

/// Splits what is beyond the device's limits, or is so much work that one dispatch of it would hold the device up. A
/// step that cannot be split stays as it is; within_limits says what it lacks.
void split_dispatches(LoweredSegment& lowered, const DeviceCaps& caps);

/// What a step asks for beyond the device's limits; supported if nothing.
Verdict within_limits(const LoweredSegment& lowered, const Step& step, const DeviceCaps& caps);

}  // namespace pinnace::gpu
