// The baseline of each architecture: SSE2 on x86-64, NEON on ARM64; registers of 16 bytes elsewhere.
#pragma once

#define PINNACE_ISA generic
#define PINNACE_LANES 4  // floats or int32 in the widest register
#if defined(__aarch64__)
#define PINNACE_REGISTERS 32
#else
#define PINNACE_REGISTERS 16
#endif
