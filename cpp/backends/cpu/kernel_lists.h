// What a line of the families' kernels.inc stands for. Who reads the lists includes this, and defines
// KERNEL(operator, dtype, isa, rank, symbol), for instruction sets of both architectures, and KERNEL_X86 and
// KERNEL_ARM64, for those of one: the same as KERNEL, or nothing.
//
//   KERNELS((relu, tanh), (f32), (avx2, generic), activation_f32)
//
// is a kernel for each operator, element type and instruction set:
//
//   KERNEL_X86(relu, f32, avx2, avx2, activation_f32_avx2)
//
//   KERNEL(relu, f32, generic, generic, activation_f32_generic)
//
//   KERNEL_X86(tanh, f32, avx2, avx2, activation_f32_avx2)
//
//   KERNEL(tanh, f32, generic, generic, activation_f32_generic)
//
// A node tries kernels of the highest rank first, which is their instruction set, and those of one rank in the order of
// the lists. KERNELS_AMONG(generic, operators, dtypes, isas, symbol) is the same with the rank `generic` for all sets;
// products on tiles have the rank of the set whose depthwise convolutions are tried before them.
// A line has at most 64 operators, 3 element types and 6 instruction sets.
#pragma once

#define KERNELS(operators, dtypes, isas, symbol) \
  PINNACE_RESCAN(PINNACE_OPERATORS(OWN, dtypes, isas, symbol, PINNACE_UNWRAP operators))
#define KERNELS_AMONG(rank, operators, dtypes, isas, symbol) \
  PINNACE_RESCAN(PINNACE_OPERATORS(rank, dtypes, isas, symbol, PINNACE_UNWRAP operators))

// PINNACE_KERNEL_avx2(...) and its like, KERNEL_X86(...), for each line of cmake/isa.cmake, of which it is made.
#include "backends/cpu/instruction_set_kernels.h"

#define PINNACE_RANK_OWN(isa) isa
#define PINNACE_RANK_generic(isa) generic
#define PINNACE_RANK_avx512_vnni(isa) avx512_vnni
#define PINNACE_RANK_avx512_bf16(isa) avx512_bf16

// The first operator, then the others. A macro is not expanded within itself: PINNACE_NEXT_OPERATORS and its
// parentheses meet in the next scan, of which PINNACE_RESCAN makes 64 and more.
#define PINNACE_UNWRAP(...) __VA_ARGS__
#define PINNACE_PARENTHESES ()
#define PINNACE_OPERATORS(...) PINNACE_OPERATOR(__VA_ARGS__)
#define PINNACE_OPERATOR(rank, dtypes, isas, symbol, op, ...)   \
  PINNACE_DTYPES(rank, isas, symbol, op, PINNACE_UNWRAP dtypes) \
  __VA_OPT__(PINNACE_NEXT_OPERATORS PINNACE_PARENTHESES(rank, dtypes, isas, symbol, __VA_ARGS__))
#define PINNACE_NEXT_OPERATORS() PINNACE_OPERATOR
#define PINNACE_RESCAN(...) PINNACE_RESCAN_16(PINNACE_RESCAN_16(PINNACE_RESCAN_16(PINNACE_RESCAN_16(__VA_ARGS__))))
#define PINNACE_RESCAN_16(...) PINNACE_RESCAN_4(PINNACE_RESCAN_4(PINNACE_RESCAN_4(PINNACE_RESCAN_4(__VA_ARGS__))))
#define PINNACE_RESCAN_4(...) PINNACE_RESCAN_1(PINNACE_RESCAN_1(PINNACE_RESCAN_1(PINNACE_RESCAN_1(__VA_ARGS__))))
#define PINNACE_RESCAN_1(...) __VA_ARGS__

#define PINNACE_DTYPES(...) PINNACE_DTYPE_1(__VA_ARGS__)
#define PINNACE_DTYPE_1(rank, isas, symbol, op, dtype, ...)  \
  PINNACE_ISAS(rank, symbol, op, dtype, PINNACE_UNWRAP isas) \
  __VA_OPT__(PINNACE_DTYPE_2(rank, isas, symbol, op, __VA_ARGS__))
#define PINNACE_DTYPE_2(rank, isas, symbol, op, dtype, ...)  \
  PINNACE_ISAS(rank, symbol, op, dtype, PINNACE_UNWRAP isas) \
  __VA_OPT__(PINNACE_DTYPE_3(rank, isas, symbol, op, __VA_ARGS__))
#define PINNACE_DTYPE_3(rank, isas, symbol, op, dtype) PINNACE_ISAS(rank, symbol, op, dtype, PINNACE_UNWRAP isas)

#define PINNACE_ISAS(...) PINNACE_ISA_1(__VA_ARGS__)
#define PINNACE_ISA_1(rank, symbol, op, dtype, isa, ...) \
  PINNACE_ONE(rank, symbol, op, dtype, isa) __VA_OPT__(PINNACE_ISA_2(rank, symbol, op, dtype, __VA_ARGS__))
#define PINNACE_ISA_2(rank, symbol, op, dtype, isa, ...) \
  PINNACE_ONE(rank, symbol, op, dtype, isa) __VA_OPT__(PINNACE_ISA_3(rank, symbol, op, dtype, __VA_ARGS__))
#define PINNACE_ISA_3(rank, symbol, op, dtype, isa, ...) \
  PINNACE_ONE(rank, symbol, op, dtype, isa) __VA_OPT__(PINNACE_ISA_4(rank, symbol, op, dtype, __VA_ARGS__))
#define PINNACE_ISA_4(rank, symbol, op, dtype, isa, ...) \
  PINNACE_ONE(rank, symbol, op, dtype, isa) __VA_OPT__(PINNACE_ISA_5(rank, symbol, op, dtype, __VA_ARGS__))
#define PINNACE_ISA_5(rank, symbol, op, dtype, isa, ...) \
  PINNACE_ONE(rank, symbol, op, dtype, isa) __VA_OPT__(PINNACE_ISA_6(rank, symbol, op, dtype, __VA_ARGS__))
#define PINNACE_ISA_6(rank, symbol, op, dtype, isa) PINNACE_ONE(rank, symbol, op, dtype, isa)
#define PINNACE_ONE(rank, symbol, op, dtype, isa) \
  PINNACE_KERNEL_##isa(op, dtype, isa, PINNACE_RANK_##rank(isa), symbol##_##isa)
