// AVX-512 with tiles of bytes (AMX).
#pragma once

#define PINNACE_ISA amx_int8
#define PINNACE_LANES 16  // floats or int32 in the widest register
#define PINNACE_REGISTERS 32
#define PINNACE_VNNI 1
#define PINNACE_TILES 1
