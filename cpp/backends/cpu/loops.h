// How a family's loops in float32, which are compiled once per instruction set, are named: name_generic, name_avx2 and
// name_avx512, and name<isa> for drivers that are templates of the set.
#pragma once

#include <cstdint>

namespace pinnace::cpu {

/// The sets that have float32 loops of every family. Others add products of their own (f32_isa.h).
enum class LoopsIsa : uint8_t { kGeneric, kAvx2, kAvx512 };

}  // namespace pinnace::cpu

// Declares them; `Type` is that of a table of loops, or of one.
#if defined(__x86_64__)
#define PINNACE_LOOPS(Type, name)                                              \
  extern const Type name##_generic, name##_avx2, name##_avx512;                \
  template <LoopsIsa isa>                                                      \
  inline constexpr const Type& name = isa == LoopsIsa::kAvx512 ? name##_avx512 \
                                      : isa == LoopsIsa::kAvx2 ? name##_avx2   \
                                                               : name##_generic;
#else
#define PINNACE_LOOPS(Type, name)   \
  extern const Type name##_generic; \
  template <LoopsIsa isa>           \
  inline constexpr const Type& name = name##_generic;
#endif
