// From a segment to models in the hands of the library.
#pragma once

#include "backends/nnapi/driver_model.h"

namespace pinnace::nnapi_client {

/// The answer of supports(): the node is lowered by itself, without weights.
Verdict lower_alone(const NodeView& node, int level);

/// What the device says of each node of a segment: rule N-17 for those with an operation that it refuses. Empty if it
/// takes all, or cannot be asked.
std::vector<Verdict> ask_device(const Segment& segment, const std::shared_ptr<const Library>& library,
                                const DeviceInfo& device, const DriverOptions& options);

/// Lowers, builds and compiles a segment.
Result<std::unique_ptr<Executable>> compile_segment(const Segment& segment,
                                                    const std::shared_ptr<const Library>& library,
                                                    const DeviceInfo& device, const DriverOptions& options);

/// Lowers a segment and leaves its weights, as options.feature_level wants them, in Segment::packed. No library is
/// needed, and what is returned does not run.
Result<std::unique_ptr<Executable>> store_segment(const Segment& segment, const DriverOptions& options);

}  // namespace pinnace::nnapi_client
