// Stored integers of weights to float32, compiled once per instruction set. Plain pointers and sizes only.
#pragma once

#include <cstddef>
#include <cstdint>

#include "backends/cpu/loops.h"

namespace pinnace::cpu {

/// y[k * width + j] = (q[k, j] - zero[j]) * scale[j] of signed integers of `bits`, 8 or 4. Number j of q holds column
/// j of 4 or 8 rows, the first in its lowest bits; rows that fill up the last one are written too. width is that of a
/// panel of matrix tiles: 4, 8, 12, 16, 24 or 32.
using UnpackWeights = void(const int32_t* q, int bits, const float* zero, const float* scale, int64_t rows,
                           int64_t width, float* y);

PINNACE_LOOPS(UnpackWeights, unpack_weights_f32)

}  // namespace pinnace::cpu
