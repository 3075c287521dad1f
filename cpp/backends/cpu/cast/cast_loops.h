// Element types from one to another, once per instruction set. Plain pointers and sizes only.
#pragma once

#include <cstdint>

namespace pinnace::cpu {

/// y[i] = x[i] converted; no overlap.
using CastLoop = void(const void* x, void* y, int64_t n);

/// As numbers are read, and as they are written: bytes are the low ones of any integer. Booleans are read as bytes.
enum class CastFrom : uint8_t { kF32, kI8, kU8, kI32, kI64 };
enum class CastTo : uint8_t { kF32, kByte, kI32, kI64, kBool };

/// of[from][to], null from a type to itself; converts as ops/element.h's convert() does.
struct CastLoops {
  CastLoop* of[5][5];
};

extern const CastLoops cast_loops_generic;
#if defined(__x86_64__)
extern const CastLoops cast_loops_avx2, cast_loops_avx512;
#endif

}  // namespace pinnace::cpu
