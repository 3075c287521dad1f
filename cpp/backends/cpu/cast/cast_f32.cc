// cast between float32 and the 16-bit floats.
#include "backends/cpu/f32_isa.h"
#include "base/dtype_code.h"

namespace pinnace::cpu {
namespace {

bool takes(const KernelNode& node) {
  const auto to = dtype_from_code(node.attr_string("to"));
  const auto is_16_bits = [](DType t) { return t == DType::kF16 || t == DType::kBF16; };
  const DType from = node.input(0).dtype;
  return (is_16_bits(from) && *to == DType::kF32) || (from == DType::kF32 && is_16_bits(*to));
}

template <const F32Isa& isa>
Status run(const KernelNode&, const KernelContext& context, std::span<const TensorView> in,
           std::span<const TensorView> out) {
  constexpr int64_t kEach = 16384;
  const int64_t count = in[0].elements();
  const bool narrows = in[0].dtype() == DType::kF32;
  const HalfKind kind = (narrows ? out[0] : in[0]).dtype() == DType::kF16 ? HalfKind::kF16 : HalfKind::kBf16;
  context.in_parts(count, kEach, [&](int64_t first, int64_t some) {
    if (narrows) {
      isa.half->narrow(kind, in[0].data<float>() + first, some, out[0].data<uint16_t>() + first);
    } else {
      isa.half->widen(kind, in[0].data<uint16_t>() + first, some, out[0].data<float>() + first);
    }
  });
  return {};
}

template <const F32Isa& isa>
constexpr CpuKernel make_cast() {
  return {.takes = takes, .run = run<isa>};
}

}  // namespace

PINNACE_KERNELS_F32(cast_f32, make_cast)

}  // namespace pinnace::cpu
