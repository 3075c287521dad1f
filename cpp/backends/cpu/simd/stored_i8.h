// How 8-bit quantised values and real numbers become each other. Plain numbers only.
#pragma once

#include <cstddef>
#include <cstdint>

namespace pinnace::cpu {

/// How sums become stored bytes: q = min(max(round_half_even(float32(sum) * m) + zero, low), high), all unsigned.
struct StoreI8 {
  int32_t zero = 0;
  uint8_t low = 0, high = 255;  ///< low <= high
};

/// float32(q - zero) * scale of an operand.
struct RealI8 {
  float scale;
  int32_t zero;
};

}  // namespace pinnace::cpu
