// AVX-512 F, BW, DQ, VL and CD.
#pragma once

#define PINNACE_ISA avx512
#define PINNACE_LANES 16  // floats or int32 in the widest register
#define PINNACE_REGISTERS 32
