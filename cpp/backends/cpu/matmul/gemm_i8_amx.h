// The loops of 8-bit products on tile registers: on the processor's, and on their model.
#pragma once

#include "backends/cpu/matmul/gemm_i8_tiles.h"

namespace pinnace::cpu {

using GemmRowsLoopI8 = void(const GemmRowsI8& g, int32_t width);
extern GemmRowsLoopI8* const gemm_i8_amx_generic;
extern GemmRowsLoopI8* const gemm_i8_amx_amx_int8;

}  // namespace pinnace::cpu
