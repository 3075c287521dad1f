// Operators on 8-bit quantised types as tables of 256 entries, which the reference code fills: every function of one
// input is exact by construction.
#pragma once

#include "backends/cpu/i8_isa.h"
#include "backends/cpu/quantize/lookup_i8.h"

namespace pinnace::cpu {

/// True if the node maps one quantised operand element by element to a declared quantisation.
bool table_i8_takes(const KernelNode& node);

/// The node's table: entry i is the result for stored byte i; for NHWC-packed tensors both count as unsigned. Inputs
/// beside the first are constants.
Status fill_table_i8(const KernelNode& node, bool unsigned_bytes, uint8_t* table);
template <bool kUnsigned>
Status pack_table_i8(const KernelNode& node, std::byte* packed) {
  return fill_table_i8(node, kUnsigned, reinterpret_cast<uint8_t*>(packed));
}

/// From NHWC-packed tensors of one type to those of another: dequantised and quantised again.
void requantize_table_i8(const TensorType& from, const TensorType& to, uint8_t table[256]);

/// add, sub or mul of operands of these types, as unsigned bytes; places, steps and sizes are left to the caller.
BinaryRowsI8 binary_rows_i8(const KernelNode& node, const TensorType& a, const TensorType& b, const TensorType& y);

}  // namespace pinnace::cpu

// Defines name##_generic, and on x86-64 name##_avx2 and name##_avx512, from
// template <LookupI8& lookup> constexpr CpuKernel make().
#if defined(__x86_64__)
#define PINNACE_KERNELS_LOOKUP(name, make)                           \
  extern const CpuKernel name##_generic, name##_avx2, name##_avx512; \
  const CpuKernel name##_generic = make<lookup_i8_generic>();        \
  const CpuKernel name##_avx2 = make<lookup_i8_avx2>();              \
  const CpuKernel name##_avx512 = make<lookup_i8_avx512>();
#else
#define PINNACE_KERNELS_LOOKUP(name, make) \
  extern const CpuKernel name##_generic;   \
  const CpuKernel name##_generic = make<lookup_i8_generic>();
#endif
