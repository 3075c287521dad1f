// ARMv8.6: dot products of unsigned by signed bytes, and matrix products of eight.
#pragma once

#define PINNACE_ISA neon_i8mm
#define PINNACE_LANES 4  // floats or int32 in the widest register
#define PINNACE_REGISTERS 32
#define PINNACE_USDOT 1
