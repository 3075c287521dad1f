// Weights of 8-bit products: which a kernel takes, their zero points, and the panels that they are packed into.
#pragma once

#include <algorithm>

#include "backends/cpu/kernel.h"
#include "backends/cpu/matmul/gemm_i8_tiles.h"
#include "ops/product.h"

namespace pinnace::cpu {

/// True if products read the weights as signed bytes with zero point 0: i8 with zero points 0, u8 with 128.
inline bool signed_weights(const TensorType& w) {
  if (!w.quantized() || (w.dtype != DType::kI8 && w.dtype != DType::kU8)) return false;
  for (int32_t zero : w.quantization->zero_points) {
    if (zero != 128 - nhwc_offset(w.dtype)) return false;
  }
  return true;
}

/// The zero point of a channel's weights once they are signed bytes.
inline int32_t signed_zero(const TensorType& w, int64_t channel) {
  const auto& zeros = w.quantization->zero_points;
  return zeros[zeros.size() > 1 ? static_cast<size_t>(channel) : 0] + nhwc_offset(w.dtype) - 128;
}

/// True if weights have zero points as signed bytes. On ARM64 no kernel takes such weights, for the library's size.
inline bool has_zeros([[maybe_unused]] const TensorType& w) {
#if defined(__aarch64__)
  return false;
#else
  return !signed_weights(w);
#endif
}

/// True if products take such weights: signed_weights(), or any zero points where rows() makes up for them.
inline bool weights_fit(const GemmTilesI8& gemm, const TensorType& w) {
  const bool quantized = w.quantized() && (w.dtype == DType::kI8 || w.dtype == DType::kU8);
  return signed_weights(w) || (quantized && gemm.weight_zeros);
}

/// Writes the panel of `columns` columns (padded to `width`) from n: biases less the input's zero point times the sum
/// of the weights, multipliers, weights. weight(column, k) gives the signed weight of element k of `blocks` blocks of
/// `block_quads` quads. Returns the byte behind it.
template <class Weight>
std::byte* pack_panel_i8(const GemmTilesI8& gemm, const Requantize& requantize, const int32_t* bias, int32_t x_zero,
                         int64_t n, int64_t columns, int64_t width, int64_t blocks, int64_t block_quads, Weight weight,
                         std::byte* to) {
  const int64_t quads = blocks * block_quads;
  const int32_t zero = x_zero - gemm.activation_offset;
  auto* start = reinterpret_cast<int32_t*>(to);
  auto* m = reinterpret_cast<float*>(to) + width;
  auto* quad = reinterpret_cast<int8_t*>(to) + 8 * width;
  for (int64_t j = 0; j < width; ++j) {
    int32_t sum = 0;
    for (int64_t k = 0; k < 4 * quads; ++k) {
      const int8_t w = j < columns ? weight(n + j, k) : int8_t{0};
      quad[weight_at(gemm, block_quads, width, j, k)] = w;
      sum += w;
    }
    const uint32_t less = static_cast<uint32_t>(sum) * static_cast<uint32_t>(zero);  // modulo 2^32
    start[j] = static_cast<int32_t>((bias && j < columns ? static_cast<uint32_t>(bias[n + j]) : 0u) - less);
    m[j] = j < columns ? requantize.m[requantize.m.size() > 1 ? static_cast<size_t>(n + j) : 0] : 0.0f;
  }
  return to + panel_bytes(width, quads);
}

/// The same for sums that are results themselves: no bias, and sums of columns in the place of multipliers.
template <class Weight>
std::byte* pack_integer_panel(const GemmTilesI8& gemm, int64_t n, int64_t columns, int64_t width, int64_t blocks,
                              int64_t block_quads, Weight weight, std::byte* to) {
  const int64_t quads = blocks * block_quads;
  auto* numbers = reinterpret_cast<int32_t*>(to);
  auto* quad = reinterpret_cast<int8_t*>(to) + 8 * width;
  std::fill_n(to, panel_bytes(width, quads), std::byte{0});
  for (int64_t j = 0; j < columns; ++j) {
    for (int64_t k = 0; k < 4 * quads; ++k) {
      const int8_t w = weight(n + j, k);
      quad[weight_at(gemm, block_quads, width, j, k)] = w;
      numbers[width + j] += w;
    }
  }
  return to + panel_bytes(width, quads);
}

/// Zero points of the weights of mat_mul_integer and conv_integer, which are input 3: those of u8 less 128, as its
/// signed bytes are; 0 without.
struct IntegerZeros {
  const uint8_t* at;
  int64_t count;
  DType dtype;
  explicit IntegerZeros(const KernelNode& node)
      : at(node.has_input(3) ? static_cast<const uint8_t*>(node.input_data(3)) : nullptr),
        count(node.has_input(3) ? node.input(3).elements() : 0),
        dtype(node.input(1).dtype) {}
  int32_t operator[](int64_t n) const {
    const uint8_t zero = at ? at[count > 1 ? n : 0] : uint8_t{0};
    return dtype == DType::kU8 ? zero - 128 : static_cast<int8_t>(zero);
  }
  bool any() const {
    for (int64_t i = 0; i < std::max<int64_t>(1, count); ++i) {
      if ((*this)[i] != 0) return true;
    }
    return false;
  }
};

}  // namespace pinnace::cpu
