// AVX-512 with tiles of bytes and of bfloat16 (AMX).
#pragma once

#define PINNACE_ISA amx_bf16
#define PINNACE_LANES 16  // floats or int32 in the widest register
#define PINNACE_REGISTERS 32
#define PINNACE_TILES 1
