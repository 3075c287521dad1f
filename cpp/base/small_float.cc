// Small floats by their formats: bits of exponent and mantissa, bias, and what the last codes stand for.
#include "base/small_float.h"

#include <cassert>
#include <cmath>
#include <limits>

namespace pinnace {
namespace {
struct Format {
  int exponent, mantissa, bias;
  uint8_t largest;    ///< code of the largest number
  int infinity = 0;   ///< its code; 0: none
  int nan = 0;        ///< code of NaN, the first of several; 0: none
  bool fnuz = false;  ///< one zero; -0 is NaN
};

// f8e8m0 has neither sign nor mantissa and is handled apart.
Format format_of(DType dtype) {
  switch (dtype) {
    case DType::kF8E4M3FN:
      return {4, 3, 7, 0x7e, 0, 0x7f};
    case DType::kF8E4M3FNUZ:
      return {4, 3, 8, 0x7f, 0, 0x80, true};
    case DType::kF8E5M2:
      return {5, 2, 15, 0x7b, 0x7c, 0x7e};
    case DType::kF8E5M2FNUZ:
      return {5, 2, 16, 0x7f, 0, 0x80, true};
    case DType::kF6E2M3:
      return {2, 3, 1, 0x1f};
    case DType::kF6E3M2:
      return {3, 2, 3, 0x1f};
    default:
      assert(dtype == DType::kF4E2M1);
      return {2, 1, 1, 0x07};
  }
}

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
constexpr uint8_t kE8M0Nan = 0xff, kE8M0Largest = 0xfe;

uint8_t e8m0_from_double(double x, bool saturate, RoundMode mode) {
  if (x != x) return kE8M0Nan;
  x = std::fabs(x);
  if (x < 0x1p-127) return saturate ? 0 : kE8M0Nan;
  if (std::isinf(x)) return saturate ? kE8M0Largest : kE8M0Nan;
  int exponent = 0;
  const double fraction = std::frexp(x, &exponent);  // [0.5, 1)
  --exponent;
  if ((mode == RoundMode::kUp && fraction > 0.5) || (mode == RoundMode::kNearest && fraction >= 0.75)) ++exponent;
  if (exponent > 127) return saturate ? kE8M0Largest : kE8M0Nan;
  return static_cast<uint8_t>(exponent + 127);
}
}  // namespace

bool is_small_float(DType dtype) {
  return dtype >= DType::kF8E4M3FN && dtype <= DType::kF4E2M1;
}

float small_to_float(DType dtype, uint8_t code) {
  if (dtype == DType::kF8E8M0) return code == kE8M0Nan ? kNan : std::ldexp(1.0f, code - 127);
  const Format f = format_of(dtype);
  const int sign = 1 << (f.exponent + f.mantissa), magnitude = code & (sign - 1);
  const bool negative = code & sign;
  if (f.fnuz && negative && magnitude == 0) return kNan;
  if (!f.fnuz && f.nan && magnitude >= f.nan - (f.infinity ? 1 : 0)) return negative ? -kNan : kNan;
  if (f.infinity && magnitude == f.infinity) {
    return negative ? -std::numeric_limits<float>::infinity() : std::numeric_limits<float>::infinity();
  }
  const int exponent = magnitude >> f.mantissa, low = magnitude & ((1 << f.mantissa) - 1);
  const int whole = exponent ? low + (1 << f.mantissa) : low;
  const float x = std::ldexp(static_cast<float>(whole), (exponent ? exponent : 1) - f.bias - f.mantissa);
  return negative ? -x : x;
}

bool round_mode_of(std::string_view name, RoundMode* mode) {
  if (name == "up") return *mode = RoundMode::kUp, true;
  if (name == "down") return *mode = RoundMode::kDown, true;
  return *mode = RoundMode::kNearest, name == "nearest";
}

uint8_t small_from_double(DType dtype, double x, bool saturate, RoundMode mode) {
  if (dtype == DType::kF8E8M0) return e8m0_from_double(x, saturate, mode);
  const Format f = format_of(dtype);
  const int sign = std::signbit(x) ? 1 << (f.exponent + f.mantissa) : 0;
  if (x != x) return static_cast<uint8_t>(f.fnuz ? f.nan : f.nan ? f.nan | sign : 1 << (f.exponent + f.mantissa));
  if (x == 0) return static_cast<uint8_t>(f.fnuz ? 0 : sign);
  // The distance of neighbours at x: that of the smallest numbers, or more.
  int exponent = 0;
  std::frexp(x, &exponent);
  const int least = 1 - f.bias - f.mantissa;
  const int unit = std::isinf(x) || exponent - 1 - f.mantissa < least ? least : exponent - 1 - f.mantissa;
  // Codes count the numbers upwards from 0: a whole number of units, plus what the exponent has passed by.
  const double whole = std::isinf(x) ? x : std::nearbyint(std::ldexp(std::fabs(x), -unit));
  const double code = std::fabs(whole) + static_cast<double>(unit - least) * (1 << f.mantissa);
  if (code > f.largest) {
    if (saturate || (!f.nan && !f.infinity)) return static_cast<uint8_t>(f.largest | sign);
    if (f.infinity) return static_cast<uint8_t>(f.infinity | sign);
    return static_cast<uint8_t>(f.fnuz ? f.nan : f.nan | sign);
  }
  const int bits = static_cast<int>(code);
  return static_cast<uint8_t>(f.fnuz && bits == 0 ? 0 : bits | sign);
}

}  // namespace pinnace
