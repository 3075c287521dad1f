// From a node's types to the 8-bit loops: how quantised parameters look beside unsigned NHWC-packed tensors, and how
// kernels of one operator are defined for every instruction set.
#pragma once

#include "backends/cpu/binary/arithmetic_i8.h"
#include "backends/cpu/conv/depthwise_i8.h"
#include "backends/cpu/kernel.h"
#include "backends/cpu/matmul/gemm_i8_tiles.h"
#include "backends/cpu/pool/pool_i8.h"
#include "backends/cpu/quantize/quantize_i8.h"
#include "ops/product.h"

namespace pinnace::cpu {

/// The loops of one instruction set, by family.
struct I8Isa {
  const GemmTilesI8* gemm;
  const DepthwiseI8Kernels* depthwise;
  BinaryRowsLoopI8* binary_rows;
  const PoolLoopsI8* pool;
  const QuantizeLoopsI8* quantize;
};
/// ARM64's sets share the loops that have no products; sets of x86-64 those of a lower one.
#define PINNACE_I8_ISA(isa, products, others)                                                                      \
  inline constexpr I8Isa i8_##isa{&gemm_i8_tiles_##isa, &depthwise_i8_kernels_##products, binary_rows_i8_##others, \
                                  &pool_loops_i8_##others, &quantize_loops_i8_##others};
PINNACE_I8_ISA(generic, generic, generic)
#if defined(__x86_64__)
PINNACE_I8_ISA(avx2, avx2, avx2)
PINNACE_I8_ISA(avx_vnni, avx_vnni, avx2)
PINNACE_I8_ISA(avx512_vnni, avx512_vnni, avx512_vnni)
PINNACE_I8_ISA(amx_int8, avx512_vnni, avx512_vnni)
#endif
#if defined(__aarch64__) || defined(PINNACE_PACKS_ARM64)
PINNACE_I8_ISA(neon_dotprod, neon_dotprod, generic)
PINNACE_I8_ISA(neon_i8mm, neon_i8mm, generic)
#endif
#if defined(PINNACE_PACKS_ARM64)
PINNACE_I8_ISA(neon, generic, generic)
#endif
#undef PINNACE_I8_ISA

/// The clamp of a result of type y, NHWC-packed. A range with min > max is max alone.
inline StoreI8 store_i8(const TensorType& y, IntRange range) {
  const int32_t offset = nhwc_offset(y.dtype);
  return {scale_zero(y).zero + offset, static_cast<uint8_t>(std::min(range.min, range.max) + offset),
          static_cast<uint8_t>(range.max + offset)};
}

/// Scale and unsigned zero point.
inline RealI8 real_i8(const TensorType& type) {
  return {scale_zero(type).scale, scale_zero(type).zero + nhwc_offset(type.dtype)};
}

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

// Defines name##_generic, on x86-64 name##_avx2 and name##_avx512_vnni, and on ARM64 name##_neon_dotprod and
// name##_neon_i8mm, from template <const I8Isa& isa> constexpr CpuKernel make(). Where weights are packed for ARM64
// on x86-64 all of them.
#if defined(PINNACE_PACKS_ARM64)
#define PINNACE_KERNELS_I8(name, make)                                          \
  extern const CpuKernel name##_generic, name##_avx2, name##_avx512_vnni;       \
  extern const CpuKernel name##_neon_dotprod, name##_neon_i8mm;                 \
  static constexpr CpuKernel name##_neon = packing_only(make<i8_neon>());       \
  const CpuKernel name##_generic = with_neon(make<i8_generic>(), &name##_neon); \
  const CpuKernel name##_avx2 = make<i8_avx2>();                                \
  const CpuKernel name##_avx512_vnni = make<i8_avx512_vnni>();                  \
  const CpuKernel name##_neon_dotprod = packing_only(make<i8_neon_dotprod>());  \
  const CpuKernel name##_neon_i8mm = packing_only(make<i8_neon_i8mm>());
#elif defined(__x86_64__)
#define PINNACE_KERNELS_I8(name, make)                                    \
  extern const CpuKernel name##_generic, name##_avx2, name##_avx512_vnni; \
  const CpuKernel name##_generic = make<i8_generic>();                    \
  const CpuKernel name##_avx2 = make<i8_avx2>();                          \
  const CpuKernel name##_avx512_vnni = make<i8_avx512_vnni>();
#elif defined(__aarch64__)
#define PINNACE_KERNELS_I8(name, make)                                          \
  extern const CpuKernel name##_generic, name##_neon_dotprod, name##_neon_i8mm; \
  const CpuKernel name##_generic = make<i8_generic>();                          \
  const CpuKernel name##_neon_dotprod = make<i8_neon_dotprod>();                \
  const CpuKernel name##_neon_i8mm = make<i8_neon_i8mm>();
#else
#define PINNACE_KERNELS_I8(name, make)   \
  extern const CpuKernel name##_generic; \
  const CpuKernel name##_generic = make<i8_generic>();
#endif

// name##_avx_vnni, of kernels that are sums of products.
#if defined(__x86_64__)
#define PINNACE_KERNELS_AVX_VNNI(name, make) \
  extern const CpuKernel name##_avx_vnni;    \
  const CpuKernel name##_avx_vnni = make<i8_avx_vnni>();
#else
#define PINNACE_KERNELS_AVX_VNNI(name, make)
#endif

// name##_amx_int8, of kernels that are matrix products and use no other loops.
#if defined(__x86_64__)
#define PINNACE_KERNELS_AMX_INT8(name, make) \
  extern const CpuKernel name##_amx_int8;    \
  const CpuKernel name##_amx_int8 = make<i8_amx_int8>();
#else
#define PINNACE_KERNELS_AMX_INT8(name, make)
#endif
