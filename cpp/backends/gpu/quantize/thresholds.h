// Tables of 64-bit floats that kernels on quantised tensors read (shaders/double.glsl): what bytes stand for, and the
// numbers at which the reference stores another byte.
#pragma once

#include "backends/gpu/quantize/int8.h"

namespace pinnace::gpu {

/// Of so many summands of 33 bits every sum has at most 53.
inline constexpr int64_t kMostSummands = int64_t{1} << 20;

/// Loop turns of a division, or of a square root, of 64-bit floats by integers (shaders/double.glsl).
inline constexpr int64_t kDivisionTurns = loop_turns(56);

/// Binary digits that products may have before or behind the point: of 64-bit floats less than all.
inline constexpr double kMostDigits = 990;

/// Refuses scales of input 0 and output 0 that take a kernel's arithmetic near to where 64-bit floats end.
Status check_scales(NodeLowering& n);

/// By how many binary digits a factor of this type makes a product longer or shorter, at most.
double digits_of(const TensorType& type);

/// Entry `at` of a table of numbers is these bits, or this number, of which there is no -0.
void put(std::span<float> to, size_t at, uint64_t bits);

void put(std::span<float> to, size_t at, double value);

/// Entries [at, at + 255): the places of the numbers from which on `stored` gives bytes 1, 2, ...; it rises. No number
/// is asked about but those from `first` to `last`.
void put_thresholds(std::span<float> to, size_t at, const TensorType& y, const std::function<float(double)>& stored,
                    double first = -1e300, double last = 1e300);

/// The real number of unsigned byte i.
inline double real_of(const TensorType& type, int64_t i) {
  return static_cast<double>(dequantize(static_cast<int32_t>(i) - byte_offset(type.dtype), scale_zero(type)));
}

/// Refuses scales of input 0 whose differences of elements exp() takes to numbers that are not normal.
Status check_exponents(NodeLowering& n);

/// [256][256]: exp(x - m) by the bytes of m, the largest of a row, and x.
void put_exponents(std::span<float> to, const TensorType& x);

}  // namespace pinnace::gpu
