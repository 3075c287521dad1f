// Loops over integers, truth values and comparisons, compiled once per instruction set from plain C++ that the compiler
// makes registers of. Plain pointers and sizes only.
#pragma once

#include <cstdint>

namespace pinnace::cpu {

/// Comparisons give bytes of 0 or 1; kSizeEqual is |a| == b. Integers wrap. kDiv truncates, kFloorMod has the sign of
/// b, kTruncMod that of a; the smallest number by -1 gives itself and 0, and no b may be 0. Shifts by what is no number
/// of bits leave the fill.
enum class PlainKind : uint8_t {
  kEqual,
  kUnequal,
  kLess,
  kLessOrEqual,
  kSizeEqual,
  kAdd,
  kSub,
  kMul,
  kDiv,
  kFloorMod,
  kTruncMod,
  kMin,
  kMax,
  kShiftLeft,
  kShiftRight,
  kAnd,
  kOr,
  kXor
};
enum class PlainType : uint8_t { kU8, kF32, kI32, kI64 };

/// y[i] = a[i] op b[i]; y may be a or b where all have elements of one size.
using PlainLoop = void (*)(const void* a, const void* b, void* y, int64_t count);

struct ElementwiseLoops {
  /// Null where there is none: i32 and i64 have all but kUnequal, kSizeEqual and the last three; u8 has those three and
  /// kEqual; f32 the comparisons.
  PlainLoop (*find)(PlainKind kind, PlainType type);
};

extern const ElementwiseLoops elementwise_loops_generic;
#if defined(__x86_64__)
extern const ElementwiseLoops elementwise_loops_avx2, elementwise_loops_avx512;
#endif

}  // namespace pinnace::cpu
