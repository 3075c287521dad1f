// Floats of 8, 6 and 4 bits as storage: what a code stands for, and rounding to a code. No arithmetic is done in them.
#pragma once

#include <cstdint>
#include <string_view>

#include <pinnace/tensor.h>

namespace pinnace {

/// True for f8e4m3fn, f8e4m3fnuz, f8e5m2, f8e5m2fnuz, f8e8m0, f6e2m3, f6e3m2, f4e2m1.
bool is_small_float(DType dtype);

/// What the low bits of `code` stand for; every value is exact in float.
float small_to_float(DType dtype, uint8_t code);

/// How f8e8m0, which has powers of two only, is rounded: away from zero, towards it, or to the nearest with ties up.
enum class RoundMode : uint8_t { kUp, kDown, kNearest };
/// "up", "down", "nearest"; false if the name is another.
bool round_mode_of(std::string_view name, RoundMode* mode);

/// x rounded once, half to even; f8e8m0 by `mode`, of the magnitude.
///
/// Saturating, what is too large, infinity too, becomes the largest number; else infinity where the type has it, else
/// NaN. f8e8m0: what is below 2^-127, 0 too, becomes that number, or NaN. The types of 6 and 4 bits have neither
/// infinity nor NaN: they always saturate, and NaN becomes -0. The fnuz types have no -0: it becomes 0.
uint8_t small_from_double(DType dtype, double x, bool saturate = true, RoundMode mode = RoundMode::kUp);

}  // namespace pinnace
