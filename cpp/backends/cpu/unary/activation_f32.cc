// Activations in float32 and fp16, as maps over contiguous memory and over NHWC-packed tensors. Those over
// images are chosen where the operand is one already; otherwise the dense kernels are as fast.
#include <algorithm>
#include <new>

#include "backends/cpu/f32_isa.h"
#include "backends/cpu/nhwc_rows.h"

namespace pinnace::cpu {
namespace {

/// Elements that one task takes: small tensors stay on one thread.
constexpr int64_t kChunk = 16384;

/// The function and its parameters, for which the bounds of clip are read once.
int64_t map_plan_bytes(const KernelNode&) {
  return sizeof(UnaryF32);
}
void map_plan(const KernelNode& node, const Layout*, std::byte* to) {
  new (to) UnaryF32(unary_f32(*unary_of(node)));
}

template <const auto& isa>
Status map_run(const KernelNode&, const KernelContext& context, std::span<const TensorView> in,
               std::span<const TensorView> out) {
  using T = ElementOf<isa>;
  const auto& map = *reinterpret_cast<const UnaryF32*>(context.plan);
  const T* x = in[0].data<T>();
  T* y = out[0].data<T>();
  const int64_t count = out[0].elements();
  context.parallel((count + kChunk - 1) / kChunk, [&](int64_t t) {
    isa.activation->map(map, x + t * kChunk, y + t * kChunk, std::min(kChunk, count - t * kChunk));
  });
  return {};
}

/// Of clip: its bounds are constants and not NaN, which would make every result NaN.
bool map_takes(const KernelNode& node) {
  return unary_of(node).has_value();
}

template <const auto& isa>
constexpr CpuKernel make_map() {
  return {.takes = map_takes,
          .precision = isa.precision,
          .plan_bytes = map_plan_bytes,
          .plan = map_plan,
          .run = map_run<isa>};
}

template <const auto& isa>
Status nhwc_map_run(const KernelNode&, const KernelContext& context, std::span<const TensorView> in,
                    std::span<const TensorView> out) {
  using T = ElementOf<isa>;
  const auto& map = *reinterpret_cast<const UnaryF32*>(context.plan);
  const auto x = nhwc_of<T>(in[0], context.layouts[0]), y = nhwc_of<T>(out[0], context.layouts[in.size()]);
  for_rows(context, y, [&](int64_t n, int64_t row) {
    const T* from = x.at + n * x.step + row * x.row;
    T* to = y.at + n * y.step + row * y.row;
    if (x.pitch == y.pitch) return isa.activation->map(map, from, to, y.size.w * y.pitch);
    for (int64_t i = 0; i < y.size.w; ++i) isa.activation->map(map, from + i * x.pitch, to + i * y.pitch, y.size.c);
  });
  return {};
}

bool nhwc_map_takes(const KernelNode& node) {
  return is_nhwc_input(node, 0) && map_takes(node);
}

template <const auto& isa>
constexpr CpuKernel make_nhwc_map() {
  return {.takes = nhwc_map_takes,
          .layouts = Layouts::kFollows,
          .nhwc_inputs = 0b1,
          .precision = isa.precision,
          .plan_bytes = map_plan_bytes,
          .plan = map_plan,
          .run = nhwc_map_run<isa>};
}

}  // namespace

PINNACE_KERNELS_F32(activation_f32, make_map)
PINNACE_KERNELS_F32(activation_nhwc_f32, make_nhwc_map)
PINNACE_KERNELS_SVE(activation_f32, make_map, activation_sve)
PINNACE_KERNELS_SVE(activation_nhwc_f32, make_nhwc_map, activation_sve)
PINNACE_KERNELS_F16(activation_f16, make_map)
PINNACE_KERNELS_F16(activation_nhwc_f16, make_nhwc_map)

}  // namespace pinnace::cpu
