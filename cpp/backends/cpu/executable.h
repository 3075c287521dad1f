// Compiling a segment for the CPU: kernels chosen, constants packed, inner values placed in the workspace.
#pragma once

#include "backends/backend.h"
#include "backends/cpu/kernel.h"

namespace pinnace {

Result<std::unique_ptr<Executable>> compile_cpu(const Segment& segment, CpuMode mode);

}  // namespace pinnace
