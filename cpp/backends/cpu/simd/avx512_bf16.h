// AVX-512 with dot products of pairs of bfloat16.
#pragma once

#define PINNACE_ISA avx512_bf16
#define PINNACE_LANES 16  // floats or int32 in the widest register
#define PINNACE_REGISTERS 32
#define PINNACE_BF16_PAIRS 1
