// The float32 loops of each instruction set, which drivers of kernels take as a template parameter, and how the kernels
// of one operator are defined for every instruction set.
#pragma once

#include <type_traits>

#include "backends/cpu/binary/arithmetic_f32.h"
#include "backends/cpu/cast/half_f32.h"
#include "backends/cpu/conv/depthwise_f32.h"
#include "backends/cpu/kernel.h"
#include "backends/cpu/loops.h"
#include "backends/cpu/matmul/gemm_f32_tiles.h"
#include "backends/cpu/reduce/column_folds.h"
#include "backends/cpu/unary/activation_f32.h"
#include "ops/activation.h"

namespace pinnace::cpu {

inline UnaryF32 unary_f32(const Unary& f) {
  return {f.kind, static_cast<float>(f.p), static_cast<float>(f.q)};
}

/// The node's fused activation; its attributes were checked by the shape rule.
inline UnaryF32 fused_unary(const NodeView& node) {
  const auto activation = parse_activation(node);
  assert(activation.ok());
  return unary_f32(*activation);
}

/// The loops of one instruction set that several families use, and `loops`, by which families find their own (loops.h).
struct F32Isa {
  using Element = float;
  const GemmTilesF32* gemm;
  const ActivationLoops<float>* activation;
  const ArithmeticLoops<float>* arithmetic;
  const ColumnFolds<float>* columns;
  const DepthwiseLoops<float>* depthwise;
  const HalfF32Kernels* half;
  LoopsIsa loops;
  Precision precision = Precision::kFp32;
};
#define PINNACE_F32_ISA(isa, loops)                                                                                    \
  inline constexpr F32Isa f32_##isa{&gemm_f32_tiles_##isa,   &activation_loops_f32_##isa, &arithmetic_loops_f32_##isa, \
                                    &column_folds_f32_##isa, &depthwise_loops_f32_##isa,  &half_f32_kernels_##isa,     \
                                    LoopsIsa::loops};
PINNACE_F32_ISA(generic, kGeneric)
#if defined(__x86_64__)
PINNACE_F32_ISA(avx2, kAvx2)
PINNACE_F32_ISA(avx512, kAvx512)
#endif
#undef PINNACE_F32_ISA

/// The same with other products, mostly of weights of 16 bits.
constexpr F32Isa with_products(F32Isa isa, const GemmTilesF32* tiles, Precision precision) {
  isa.gemm = tiles;
  isa.precision = precision;
  return isa;
}
inline constexpr F32Isa f16_generic = with_products(f32_generic, &gemm_f32_tiles_f16_generic, Precision::kFp16);
inline constexpr F32Isa bf16_generic = with_products(f32_generic, &gemm_f32_tiles_bf16_generic, Precision::kBf16);
#if defined(__x86_64__)
inline constexpr F32Isa f16_avx2 = with_products(f32_avx2, &gemm_f32_tiles_f16_avx2, Precision::kFp16);
inline constexpr F32Isa bf16_avx2 = with_products(f32_avx2, &gemm_f32_tiles_bf16_avx2, Precision::kBf16);
inline constexpr F32Isa f16_avx512 = with_products(f32_avx512, &gemm_f32_tiles_f16_avx512, Precision::kFp16);
inline constexpr F32Isa bf16_avx512 = with_products(f32_avx512, &gemm_f32_tiles_bf16_avx512, Precision::kBf16);
inline constexpr F32Isa bf16_avx512_bf16 =
    with_products(f32_avx512, &gemm_f32_tiles_bf16_avx512_bf16, Precision::kBf16);
/// Products on tiles, and what rounds their rows.
constexpr F32Isa tiles_isa() {
  F32Isa isa = with_products(f32_avx512, &gemm_f32_tiles_bf16_amx_bf16, Precision::kBf16);
  isa.half = &half_f32_kernels_amx_bf16;
  return isa;
}
inline constexpr F32Isa bf16_amx_bf16 = tiles_isa();
#endif

#if defined(PINNACE_PACKS_ARM64)
/// ARM64's baseline, as far as weights are packed for it.
constexpr F32Isa packing_isa() {
  F32Isa isa = f32_generic;
  isa.gemm = &gemm_f32_tiles_neon;
  isa.depthwise = &depthwise_loops_f32_neon;
  return isa;
}
inline constexpr F32Isa f32_neon = packing_isa();
inline constexpr F32Isa f16_neon = with_products(f32_neon, &gemm_f32_tiles_f16_neon, Precision::kFp16);
inline constexpr F32Isa bf16_neon = with_products(f32_neon, &gemm_f32_tiles_bf16_neon, Precision::kBf16);
#elif defined(__aarch64__)
inline constexpr const F32Isa& f32_neon = f32_generic;
#endif
#if defined(__aarch64__) || defined(PINNACE_PACKS_ARM64)
/// Products by SVE; what they share with others is NEON's.
inline constexpr F32Isa f32_sve = with_products(f32_neon, &gemm_f32_tiles_sve, Precision::kFp32);
/// Activations alone.
struct ActivationIsa {
  using Element = float;
  const ActivationLoops<float>* activation;
  Precision precision = Precision::kFp32;
};
inline constexpr ActivationIsa activation_sve{&activation_loops_f32_sve};
#endif

/// The same for values in fp16, and fp16 arithmetic, for sessions of that precision.
struct F16Isa {
  using Element = uint16_t;
  const GemmTiles<uint16_t>* gemm;
  const ActivationLoops<uint16_t>* activation;
  const ArithmeticLoops<uint16_t>* arithmetic;
  const ColumnFolds<uint16_t>* columns;
  const DepthwiseLoops<uint16_t>* depthwise;
  Precision precision = Precision::kFp16;
};
#if defined(__aarch64__) || defined(PINNACE_PACKS_ARM64)
inline constexpr F16Isa f16_neon_dotprod{&gemm_f16_tiles_neon_dotprod, &activation_loops_f16_neon_dotprod,
                                         &arithmetic_loops_f16_neon_dotprod, &column_folds_f16_neon_dotprod,
                                         &depthwise_loops_f16_neon_dotprod};
#endif

/// What the values of a set's kernels are made of: float, or an fp16 value's bits.
template <const auto& isa>
using ElementOf = typename std::remove_cvref_t<decltype(isa)>::Element;

}  // namespace pinnace::cpu

// Defines name##_generic, and on x86-64 name##_avx2 and name##_avx512, from
// template <const F32Isa& isa> constexpr CpuKernel make().
#if defined(__x86_64__)
#define PINNACE_KERNELS_F32(name, make)                              \
  extern const CpuKernel name##_generic, name##_avx2, name##_avx512; \
  const CpuKernel name##_generic = make<f32_generic>();              \
  const CpuKernel name##_avx2 = make<f32_avx2>();                    \
  const CpuKernel name##_avx512 = make<f32_avx512>();
#else
#define PINNACE_KERNELS_F32(name, make)  \
  extern const CpuKernel name##_generic; \
  const CpuKernel name##_generic = make<f32_generic>();
#endif

// The same of kernels that pack weights: where that is done for ARM64 on x86-64, with what its baseline packs.
#if defined(PINNACE_PACKS_ARM64)
#define PINNACE_KERNELS_F32_PACKED(name, make)                                   \
  extern const CpuKernel name##_generic, name##_avx2, name##_avx512;             \
  static constexpr CpuKernel name##_neon = packing_only(make<f32_neon>());       \
  const CpuKernel name##_generic = with_neon(make<f32_generic>(), &name##_neon); \
  const CpuKernel name##_avx2 = make<f32_avx2>();                                \
  const CpuKernel name##_avx512 = make<f32_avx512>();
#else
#define PINNACE_KERNELS_F32_PACKED(name, make) PINNACE_KERNELS_F32(name, make)
#endif

// f16##_generic, bf16##_generic and so on: the same with weights of 16 bits, which are widened as they are
// read.
#if defined(PINNACE_PACKS_ARM64)
#define PINNACE_WEIGHTS_OF_THE_BASELINE(f16, bf16, make)                       \
  static constexpr CpuKernel f16##_neon = packing_only(make<f16_neon>());      \
  static constexpr CpuKernel bf16##_neon = packing_only(make<bf16_neon>());    \
  const CpuKernel f16##_generic = with_neon(make<f16_generic>(), &f16##_neon); \
  const CpuKernel bf16##_generic = with_neon(make<bf16_generic>(), &bf16##_neon);
#else
#define PINNACE_WEIGHTS_OF_THE_BASELINE(f16, bf16, make) \
  const CpuKernel f16##_generic = make<f16_generic>(), bf16##_generic = make<bf16_generic>();
#endif
#if defined(__x86_64__)
#define PINNACE_KERNELS_16_BIT_WEIGHTS(f16, bf16, make)                           \
  extern const CpuKernel f16##_generic, f16##_avx2, f16##_avx512;                 \
  extern const CpuKernel bf16##_generic, bf16##_avx2, bf16##_avx512;              \
  PINNACE_WEIGHTS_OF_THE_BASELINE(f16, bf16, make)                                \
  const CpuKernel f16##_avx2 = make<f16_avx2>(), bf16##_avx2 = make<bf16_avx2>(); \
  const CpuKernel f16##_avx512 = make<f16_avx512>(), bf16##_avx512 = make<bf16_avx512>();
#else
#define PINNACE_KERNELS_16_BIT_WEIGHTS(f16, bf16, make) \
  extern const CpuKernel f16##_generic, bf16##_generic; \
  PINNACE_WEIGHTS_OF_THE_BASELINE(f16, bf16, make)
#endif

// name##_avx512_bf16 and name##_amx_bf16, where rows are rounded too and pairs multiplied.
#if defined(__x86_64__)
#define PINNACE_KERNELS_BF16_PAIRS(name, make)                   \
  extern const CpuKernel name##_avx512_bf16, name##_amx_bf16;    \
  const CpuKernel name##_avx512_bf16 = make<bf16_avx512_bf16>(); \
  const CpuKernel name##_amx_bf16 = make<bf16_amx_bf16>();
#else
#define PINNACE_KERNELS_BF16_PAIRS(name, make)
#endif

// name##_neon_dotprod: the same in fp16, from template <const auto& isa> constexpr CpuKernel make().
#if defined(__aarch64__)
#define PINNACE_KERNELS_F16(name, make)       \
  extern const CpuKernel name##_neon_dotprod; \
  const CpuKernel name##_neon_dotprod = make<f16_neon_dotprod>();
#elif defined(PINNACE_PACKS_ARM64)
#define PINNACE_KERNELS_F16(name, make)       \
  extern const CpuKernel name##_neon_dotprod; \
  const CpuKernel name##_neon_dotprod = packing_only(make<f16_neon_dotprod>());
#else
#define PINNACE_KERNELS_F16(name, make)
#endif

// name##_sve, from the same, over `isa`: f32_sve or activation_sve.
#if defined(__aarch64__)
#define PINNACE_KERNELS_SVE(name, make, isa) \
  extern const CpuKernel name##_sve;         \
  const CpuKernel name##_sve = make<isa>();
#elif defined(PINNACE_PACKS_ARM64)
#define PINNACE_KERNELS_SVE(name, make, isa) \
  extern const CpuKernel name##_sve;         \
  const CpuKernel name##_sve = packing_only(make<isa>());
#else
#define PINNACE_KERNELS_SVE(name, make, isa)
#endif
