// Half (IEEE binary16) and BFloat16 as storage types: converted to float for arithmetic, rounded half to even back.
// NaN stays NaN (quiet); float values beyond the range become infinity.
#pragma once

#include <bit>
#include <cstdint>

namespace pinnace {

inline float half_to_float(uint16_t h) {
  const uint32_t sign = uint32_t(h & 0x8000) << 16;
  const uint32_t exponent = (h >> 10) & 31;
  uint32_t mantissa = h & 1023;
  if (exponent == 31) return std::bit_cast<float>(sign | 0x7f800000u | (mantissa << 13));
  if (exponent == 0) {  // zero or denormal: mantissa * 2^-24 is exact in float
    const float magnitude = static_cast<float>(mantissa) * 0x1p-24f;
    return std::bit_cast<float>(std::bit_cast<uint32_t>(magnitude) | sign);
  }
  return std::bit_cast<float>(sign | ((exponent + 112) << 23) | (mantissa << 13));
}

inline uint16_t float_to_half(float f) {
  const uint32_t bits = std::bit_cast<uint32_t>(f);
  const auto sign = static_cast<uint16_t>((bits >> 16) & 0x8000);
  const uint32_t magnitude = bits & 0x7fffffffu;
  if (magnitude > 0x7f800000u) return static_cast<uint16_t>(sign | 0x7e00 | ((magnitude >> 13) & 0x1ff));
  if (magnitude >= 0x477ff000u) return static_cast<uint16_t>(sign | 0x7c00);  // rounds to 65536 or beyond
  if (magnitude < 0x38800000u) {                                              // below 2^-14: denormal or zero
    // Adding 0.5 puts the units of 2^-24 at the last mantissa bit, and the addition rounds half to even.
    const float aligned = std::bit_cast<float>(magnitude) + 0.5f;
    return static_cast<uint16_t>(sign | (std::bit_cast<uint32_t>(aligned) - 0x3f000000u));
  }
  const uint32_t rounded = magnitude + 0xfff + ((magnitude >> 13) & 1);
  return static_cast<uint16_t>(sign | ((rounded - 0x38000000u) >> 13));
}

inline float bfloat_to_float(uint16_t b) {
  return std::bit_cast<float>(uint32_t(b) << 16);
}

inline uint16_t float_to_bfloat(float f) {
  const uint32_t bits = std::bit_cast<uint32_t>(f);
  if ((bits & 0x7fffffffu) > 0x7f800000u) return static_cast<uint16_t>((bits >> 16) | 0x40);
  return static_cast<uint16_t>((bits + 0x7fff + ((bits >> 16) & 1)) >> 16);
}

/// From double without rounding twice: the float between is rounded to odd, which keeps the direction for the second
/// step.
inline float double_to_float_odd(double d) {
  const auto f = static_cast<float>(d);
  if (!(static_cast<double>(f) != d) || d != d) return f;
  const uint32_t bits = std::bit_cast<uint32_t>(f);
  if (bits & 1) return f;
  const bool above = (f < 0 ? -static_cast<double>(f) : static_cast<double>(f)) > (d < 0 ? -d : d);
  return std::bit_cast<float>(above ? bits - 1 : bits + 1);
}

struct Half {
  uint16_t bits = 0;
  Half() = default;
  explicit Half(float f) : bits(float_to_half(f)) {}
  explicit Half(double d) : bits(float_to_half(double_to_float_odd(d))) {}
  operator float() const { return half_to_float(bits); }  // NOLINT: implicit on purpose, arithmetic is in float
};

struct BFloat16 {
  uint16_t bits = 0;
  BFloat16() = default;
  explicit BFloat16(float f) : bits(float_to_bfloat(f)) {}
  explicit BFloat16(double d) : bits(float_to_bfloat(double_to_float_odd(d))) {}
  operator float() const { return bfloat_to_float(bits); }  // NOLINT: implicit on purpose, arithmetic is in float
};

}  // namespace pinnace
