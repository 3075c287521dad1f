// The range of the integers that tensors are quantised to: of stored values, and so of zero points.
#pragma once

#include <pinnace/tensor.h>

#include <cstdint>

namespace pinnace {

struct IntRange {
  int32_t min, max;
};

/// Smallest and largest value of an integer type of at most 32 bits (packed types included); min > max for others.
constexpr IntRange int_range(DType dtype) {
  switch (dtype) {
    case DType::kI2:
      return {-2, 1};
    case DType::kU2:
      return {0, 3};
    case DType::kI4:
      return {-8, 7};
    case DType::kU4:
      return {0, 15};
    case DType::kI8:
      return {-128, 127};
    case DType::kU8:
      return {0, 255};
    case DType::kI16:
      return {-32768, 32767};
    case DType::kU16:
      return {0, 65535};
    case DType::kI32:
      return {INT32_MIN, INT32_MAX};
    default:
      return {0, -1};
  }
}

}  // namespace pinnace
