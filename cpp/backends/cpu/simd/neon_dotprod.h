// ARMv8.2 with dot products of signed bytes, and fp16 arithmetic.
#pragma once

#define PINNACE_ISA neon_dotprod
#define PINNACE_LANES 4  // floats or int32 in the widest register
#define PINNACE_REGISTERS 32
#define PINNACE_SDOT 1
