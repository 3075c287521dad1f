// AVX-512 with dot products of bytes (VNNI).
#pragma once

#define PINNACE_ISA avx512_vnni
#define PINNACE_LANES 16  // floats or int32 in the widest register
#define PINNACE_REGISTERS 32
#define PINNACE_VNNI 1
