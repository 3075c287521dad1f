// Matrix products on tile registers (AMX): what their two element types share, and how they are tested. Their bodies
// are compiled for the set itself and, over a model of the tiles in memory, for the baseline, so that every processor
// can check what they compute.
#pragma once

#include <cstdint>

#include "backends/cpu/matmul/gemm_f32_tiles.h"
#include "backends/cpu/matmul/gemm_i8_tiles.h"

namespace pinnace::cpu {

/// Elements of a step: the most, up to 16, of which a block of `elements`, at least 1, has a whole number.
static constexpr int64_t tile_depth(int64_t elements) {
  int64_t depth = elements < 16 ? elements : 16;
  while (elements % depth != 0) --depth;
  return depth;
}

/// The loops of 8-bit products and of products of pairs of bfloat16: on the model, and on the processor's tiles.
using GemmRowsLoopI8 = void(const GemmRowsI8& g, int32_t width);
using GemmRowsLoopBf16 = void(const GemmRowsF32& g, int32_t width);
extern GemmRowsLoopI8* const gemm_i8_amx_generic;
extern GemmRowsLoopI8* const gemm_i8_amx_amx_int8;
extern GemmRowsLoopBf16* const gemm_bf16_amx_generic;
extern GemmRowsLoopBf16* const gemm_bf16_amx_amx_bf16;

/// For tests: from now on products run on the model, on any processor; or on tiles again.
void model_tiles(bool modelled);
bool tiles_modelled();
/// What a body calls where tiles turned out to be lost: a virtual machine may fail to save them. The log says so once.
void note_lost_tiles();
/// How often that was, in this process.
int64_t lost_tiles();

}  // namespace pinnace::cpu
