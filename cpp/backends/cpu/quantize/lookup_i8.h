// y[i] = table[x[i]] of bytes, once per instruction set: what every function of one 8-bit operand comes down to. Plain
// pointers and sizes only.
#pragma once

#include <cstdint>

namespace pinnace::cpu {

/// table has 256 entries. y may be x; no other overlap. Touches n bytes.
using LookupI8 = void(const uint8_t* table, const uint8_t* x, uint8_t* y, int64_t n);

LookupI8 lookup_i8_generic;
#if defined(__x86_64__)
LookupI8 lookup_i8_avx2, lookup_i8_avx512;
#endif

}  // namespace pinnace::cpu
