// Elements of fewer than 8 bits: packed without gaps, the first in the lowest bits of the first byte, as ONNX has them.
#pragma once

#include <cstddef>
#include <cstdint>

namespace pinnace {

/// Bits of element i of `bits` (1 to 8) each. An element of 6 bits may lie in two bytes.
inline uint8_t load_packed(const std::byte* from, int bits, int64_t i) {
  const int64_t at = i * bits / 8;
  const int shift = static_cast<int>(i * bits % 8);
  unsigned window = std::to_integer<unsigned>(from[at]);
  if (shift + bits > 8) window |= std::to_integer<unsigned>(from[at + 1]) << 8;
  return static_cast<uint8_t>(window >> shift & ((1u << bits) - 1));
}

/// Replaces the bits of element i of `count` and keeps its neighbours; what is left over behind the last one becomes 0.
inline void store_packed(std::byte* to, int bits, int64_t i, int64_t count, uint8_t element) {
  const int64_t at = i * bits / 8;
  const int shift = static_cast<int>(i * bits % 8);
  const bool two = shift + bits > 8;
  const unsigned ones = (1u << bits) - 1;
  unsigned window = std::to_integer<unsigned>(to[at]) | (two ? std::to_integer<unsigned>(to[at + 1]) << 8 : 0);
  window = (window & ~(ones << shift)) | (element & ones) << shift;
  if (i + 1 == count) window &= (1u << (shift + bits)) - 1;
  to[at] = static_cast<std::byte>(window & 255);
  if (two) to[at + 1] = static_cast<std::byte>(window >> 8);
}

}  // namespace pinnace
