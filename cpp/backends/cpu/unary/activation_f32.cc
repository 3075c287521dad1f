// Activations in float32 and on halves, as maps over contiguous memory and over NHWC-packed tensors. Those over
// images are chosen where the operand is one already; otherwise the dense kernels are as fast.
#include <algorithm>

#include "backends/cpu/f32_isa.h"
#include "backends/cpu/plan/nhwc_rows.h"

namespace pinnace::cpu {
namespace {

/// The map that a unary node is: relu, clip, sigmoid, …
MapF32 map_of_op(const NodeView& node) {
  const std::string& op = node.node().op;
  if (op == "relu") return {MapKind::kRelu, 0, 0};
  if (op == "leaky_relu") return {MapKind::kLeakyRelu, static_cast<float>(node.attr_float("alpha")), 0};
  if (op == "hard_swish") return {MapKind::kHardSwish, 0, 0};
  if (op == "hard_sigmoid") {
    return {MapKind::kHardSigmoid, static_cast<float>(node.attr_float("alpha")),
            static_cast<float>(node.attr_float("beta"))};
  }
  if (op == "sigmoid") return {MapKind::kSigmoid, 0, 0};
  if (op == "silu") return {MapKind::kSilu, 0, 0};
  if (op == "tanh") return {MapKind::kTanh, 0, 0};
  if (op == "exp") return {MapKind::kExp, 0, 0};
  if (op == "gelu") return {node.attr_string("approximate") == "tanh" ? MapKind::kGeluTanh : MapKind::kGelu, 0, 0};
  if (op == "clip") {
    // clip_bounds_known() made sure that the bounds are constants.
    const auto low = node.has_input(1) ? node.input_floats(1) : std::nullopt;
    const auto high = node.has_input(2) ? node.input_floats(2) : std::nullopt;
    return {MapKind::kClip, low ? static_cast<float>((*low)[0]) : -__builtin_inff(),
            high ? static_cast<float>((*high)[0]) : __builtin_inff()};
  }
  return {};
}

/// A clip whose bounds are constants and not NaN, which would make every result NaN.
bool clip_bounds_known(const NodeView& node) {
  for (int i : {1, 2}) {
    if (!node.has_input(i)) continue;
    const auto bound = node.input_floats(i);
    if (!bound || bound->size() != 1 || (*bound)[0] != (*bound)[0]) return false;
  }
  return true;
}

/// Elements that one task takes: small tensors stay on one thread.
constexpr int64_t kChunk = 16384;

template <const auto& isa>
Status map_run(const NodeView& node, const KernelContext& context, std::span<const TensorView> in,
               std::span<const TensorView> out) {
  using T = ElementOf<isa>;
  const MapF32 map = map_of_op(node);
  const T* x = in[0].data<T>();
  T* y = out[0].data<T>();
  const int64_t count = out[0].elements();
  context.parallel((count + kChunk - 1) / kChunk, [&](int64_t t) {
    isa.activation->map(map, x + t * kChunk, y + t * kChunk, std::min(kChunk, count - t * kChunk));
  });
  return {};
}

template <const auto& isa>
constexpr CpuKernel make_map() {
  return {.precision = isa.precision, .run = map_run<isa>};
}
template <const auto& isa>
constexpr CpuKernel make_clip() {
  return {.takes = clip_bounds_known, .precision = isa.precision, .run = map_run<isa>};
}

template <const auto& isa>
Status nhwc_map_run(const NodeView& node, const KernelContext& context, std::span<const TensorView> in,
                    std::span<const TensorView> out) {
  using T = ElementOf<isa>;
  const MapF32 map = map_of_op(node);
  const auto x = nhwc_of<T>(in[0], context.layouts[0]), y = nhwc_of<T>(out[0], context.layouts[in.size()]);
  for_rows(context, y, [&](int64_t n, int64_t row) {
    const T* from = x.at + n * x.step + row * x.row;
    T* to = y.at + n * y.step + row * y.row;
    if (x.pitch == y.pitch) return isa.activation->map(map, from, to, y.size.w * y.pitch);
    for (int64_t i = 0; i < y.size.w; ++i) isa.activation->map(map, from + i * x.pitch, to + i * y.pitch, y.size.c);
  });
  return {};
}

bool nhwc_map_takes(const NodeView& node) {
  return is_nhwc_input(node, 0) && (node.node().op != "clip" || clip_bounds_known(node));
}

template <const auto& isa>
constexpr CpuKernel make_nhwc_map() {
  return {.takes = nhwc_map_takes,
          .layouts = Layouts::kFollows,
          .nhwc_inputs = 0b1,
          .precision = isa.precision,
          .run = nhwc_map_run<isa>};
}

}  // namespace

PINNACE_KERNELS_F32(activation_f32, make_map)
PINNACE_KERNELS_F32(clip_f32, make_clip)
PINNACE_KERNELS_F32(activation_nhwc_f32, make_nhwc_map)
PINNACE_KERNELS_SVE(activation_f32, make_map, activation_sve)
PINNACE_KERNELS_SVE(clip_f32, make_clip, activation_sve)
PINNACE_KERNELS_SVE(activation_nhwc_f32, make_nhwc_map, activation_sve)
PINNACE_KERNELS_F16(activation_f16, make_map)
PINNACE_KERNELS_F16(clip_f16, make_clip)
PINNACE_KERNELS_F16(activation_nhwc_f16, make_nhwc_map)

}  // namespace pinnace::cpu
