// The loops of products of pairs of bfloat16 on tile registers: on the processor's, and on their model.
#pragma once

#include "backends/cpu/matmul/gemm_f32_tiles.h"

namespace pinnace::cpu {

using GemmRowsLoopF32 = void(const GemmRowsF32& g, int32_t width);
extern GemmRowsLoopF32* const gemm_bf16_amx_generic;
extern GemmRowsLoopF32* const gemm_bf16_amx_amx_bf16;

}  // namespace pinnace::cpu
