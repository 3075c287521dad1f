// The 8-bit loops of each instruction set, which drivers of kernels take as a template parameter, how quantised
// parameters look beside unsigned NHWC-packed tensors, and how the kernels of one operator are defined for every
// instruction set.
#pragma once

#include "backends/cpu/binary/arithmetic_i8.h"
#include "backends/cpu/conv/depthwise_i8.h"
#include "backends/cpu/kernel.h"
#include "backends/cpu/matmul/gemm_i8_tiles.h"
#include "backends/cpu/pool/pool_i8.h"
#include "backends/cpu/quantize/quantize_i8.h"
#include "ops/element.h"

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
