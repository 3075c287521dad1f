// AVX2 with FMA and F16C.
#pragma once

#define PINNACE_ISA avx2
#define PINNACE_LANES 8  // floats or int32 in the widest register
#define PINNACE_REGISTERS 16
