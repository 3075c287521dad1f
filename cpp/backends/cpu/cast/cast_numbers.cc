// cast between float32, booleans and integers of 8, 32 and 64 bits. Others, and 16-bit floats, have kernels or
// reference code of their own.
#include <algorithm>
#include <optional>

#include "backends/cpu/cast/cast_loops.h"
#include "backends/cpu/kernel.h"
#include "base/dtype_code.h"

namespace pinnace::cpu {
namespace {

std::optional<CastFrom> from_of(DType dtype) {
  switch (dtype) {
    case DType::kF32:
      return CastFrom::kF32;
    case DType::kI8:
      return CastFrom::kI8;
    case DType::kU8:
    case DType::kBool:
      return CastFrom::kU8;
    case DType::kI32:
      return CastFrom::kI32;
    case DType::kI64:
      return CastFrom::kI64;
    default:
      return std::nullopt;
  }
}

std::optional<CastTo> to_of(DType dtype) {
  switch (dtype) {
    case DType::kF32:
      return CastTo::kF32;
    case DType::kI8:
    case DType::kU8:
      return CastTo::kByte;
    case DType::kI32:
      return CastTo::kI32;
    case DType::kI64:
      return CastTo::kI64;
    case DType::kBool:
      return CastTo::kBool;
    default:
      return std::nullopt;
  }
}

CastLoop* loop_of(const CastLoops& loops, DType from, DType to) {
  const auto x = from_of(from);
  const auto y = to_of(to);
  return x && y && from != to ? loops.of[static_cast<int>(*x)][static_cast<int>(*y)] : nullptr;
}

bool takes(const KernelNode& node) {
  const auto to = dtype_from_code(node.attr_string("to"));
  return to && loop_of(cast_loops_generic, node.input(0).dtype, *to);
}

template <const CastLoops& loops>
Status run(const KernelNode&, const KernelContext& context, std::span<const TensorView> in,
           std::span<const TensorView> out) {
  constexpr int64_t kEach = 32768;
  CastLoop* const loop = loop_of(loops, in[0].dtype(), out[0].dtype());
  const int64_t count = in[0].elements(), x_bytes = dtype_bits(in[0].dtype()) / 8,
                y_bytes = dtype_bits(out[0].dtype()) / 8;
  context.in_parts(count, kEach, [&](int64_t first, int64_t some) {
    loop(in[0].bytes + first * x_bytes, out[0].bytes + first * y_bytes, some);
  });
  return {};
}

template <const CastLoops& loops>
constexpr CpuKernel make_cast() {
  return {.takes = takes, .run = run<loops>};
}

}  // namespace

extern const CpuKernel cast_numbers_generic;
const CpuKernel cast_numbers_generic = make_cast<cast_loops_generic>();
#if defined(__x86_64__)
extern const CpuKernel cast_numbers_avx2, cast_numbers_avx512;
const CpuKernel cast_numbers_avx2 = make_cast<cast_loops_avx2>();
const CpuKernel cast_numbers_avx512 = make_cast<cast_loops_avx512>();
#endif

}  // namespace pinnace::cpu
