// Activations of fp16 values for ARMv8.2.
#include "backends/cpu/unary/activation_f16_neon.h"

namespace pinnace::cpu {

const ActivationLoops<uint16_t> activation_loops_f16_neon_dotprod = {neon_dotprod::map};

}  // namespace pinnace::cpu
