// The list of kernels in the library, which the build writes from the names of the translated files.
#pragma once

#include "backends/softmetal/execution/engine.h"

namespace softmetal {

extern const Kernel* const kernel_table[];  ///< ascending by name
extern const uint32_t kernel_count;

}  // namespace softmetal
