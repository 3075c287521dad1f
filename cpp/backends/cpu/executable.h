// Compiling a segment for the CPU: kernels chosen, constants packed, inner values placed in the workspace.
#pragma once

#include "backends/backend.h"
#include "base/cpu_features.h"

namespace pinnace {

Result<std::unique_ptr<Executable>> compile_cpu(const Segment& segment, Cpu level);

}  // namespace pinnace
