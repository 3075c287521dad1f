// Elementwise operators in float32 and on halves: activations as maps over contiguous memory; add, sub, mul, div with
// broadcasting reduced to runs in which each operand is contiguous or one number; more operands than two by pairs.
#include <algorithm>

#include "backends/cpu/broadcast_runs.h"
#include "backends/cpu/elementwise_f32.h"

namespace pinnace {

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

bool clip_bounds_known(const NodeView& node) {
  for (int i : {1, 2}) {
    if (!node.has_input(i)) continue;
    const auto bound = node.input_floats(i);
    if (!bound || bound->size() != 1 || (*bound)[0] != (*bound)[0]) return false;
  }
  return true;
}

BinaryKind binary_kind(const std::string& op) {
  return op == "add" || op == "sum" ? BinaryKind::kAdd
         : op == "sub"              ? BinaryKind::kSub
         : op == "mul"              ? BinaryKind::kMul
         : op == "min"              ? BinaryKind::kMin
         : op == "max"              ? BinaryKind::kMax
         : op == "prelu"            ? BinaryKind::kPrelu
                                    : BinaryKind::kDiv;
}

namespace {

/// Elements that one task takes: small tensors stay on one thread.
constexpr int64_t kChunk = 16384;

template <const auto& level>
Status map_run(const NodeView& node, const KernelContext& context, std::span<const TensorView> in,
               std::span<const TensorView> out) {
  using T = ElementOf<level>;
  const MapF32 map = map_of_op(node);
  const T* x = in[0].data<T>();
  T* y = out[0].data<T>();
  const int64_t count = out[0].elements();
  context.parallel((count + kChunk - 1) / kChunk, [&](int64_t t) {
    level.loops->map(map, x + t * kChunk, y + t * kChunk, std::min(kChunk, count - t * kChunk));
  });
  return {};
}

template <const auto& level>
constexpr CpuKernel make_map() {
  return {.precision = level.precision, .run = map_run<level>};
}
template <const auto& level>
constexpr CpuKernel make_clip() {
  return {.takes = clip_bounds_known, .precision = level.precision, .run = map_run<level>};
}

// --------------------------------------------------------------------------------------------------------- binary

template <const auto& level>
Status binary_run(const NodeView& node, const KernelContext& context, std::span<const TensorView> in,
                  std::span<const TensorView> out) {
  using T = ElementOf<level>;
  const BinaryKind kind = binary_kind(node.node().op);
  const MapF32 map = node.node().op == "add" ? fused_map(node) : MapF32{};
  T* y = out[0].data<T>();
  const auto pair = [&](const TensorView& a, const TensorView& b) {
    PairLoops l;
    l.set({&a.type->shape, &b.type->shape, &out[0].type->shape});
    const int a_step = l.rank && l.step[0][0], b_step = l.rank && l.step[1][0];
    for_each_run(context, l, out[0].elements(), [&](int64_t at_a, int64_t at_b, int64_t at, int64_t count) {
      level.loops->binary(kind, a.data<T>() + at_a, a_step, b.data<T>() + at_b, b_step, y + at, count);
      if (map.kind != MapKind::kNone) level.loops->map(map, y + at, y + at, count);
    });
  };
  pair(in[0], in[1]);
  for (size_t k = 2; k < in.size(); ++k) pair(out[0], in[k]);
  return {};
}

bool binary_takes(const NodeView& node) {
  return node.input_count() > 1 && pairs_fit(node);
}

template <const auto& level>
constexpr CpuKernel make_binary() {
  return {.takes = binary_takes, .precision = level.precision, .run = binary_run<level>};
}

}  // namespace

PINNACE_F32_IMAGE_LEVELS(map_f32, make_map)
PINNACE_F32_IMAGE_LEVELS(clip_f32, make_clip)
PINNACE_F32_IMAGE_LEVELS(binary_f32, make_binary)
PINNACE_SVE_LEVEL(map_f32, make_map, map_sve)
PINNACE_SVE_LEVEL(clip_f32, make_clip, map_sve)
PINNACE_HALF_LEVELS(map, make_map)
PINNACE_HALF_LEVELS(clip, make_clip)
PINNACE_HALF_LEVELS(binary, make_binary)

}  // namespace pinnace
