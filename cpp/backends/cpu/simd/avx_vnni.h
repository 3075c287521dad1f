// AVX2 with dot products of bytes in registers of 256 bits.
#pragma once

#define PINNACE_ISA avx_vnni
#define PINNACE_LANES 8  // floats or int32 in the widest register
#define PINNACE_REGISTERS 16
#define PINNACE_VNNI 1
