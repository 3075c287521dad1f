// Elementwise operators in float32 and on halves: activations as maps over contiguous memory; add, sub, mul, div with
// broadcasting reduced to runs in which each operand is contiguous or one number.
#include <algorithm>

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
  return op == "add"     ? BinaryKind::kAdd
         : op == "sub"   ? BinaryKind::kSub
         : op == "mul"   ? BinaryKind::kMul
         : op == "min"   ? BinaryKind::kMin
         : op == "max"   ? BinaryKind::kMax
         : op == "prelu" ? BinaryKind::kPrelu
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

/// Broadcasting as nested loops: neighbouring dimensions in which both operands behave alike are merged.
struct Loops {
  static constexpr int kMost = 8;
  int rank = 0;
  int64_t size[kMost], a_step[kMost], b_step[kMost];
};

/// False if more than Loops::kMost dimensions remain.
bool loops_of(const Shape& a, const Shape& b, const Shape& y, Loops* loops) {
  int64_t a_stride = 1, b_stride = 1;
  for (size_t i = 0; i < y.size(); ++i) {  // from the last dimension
    const int64_t n = y[y.size() - 1 - i].size;
    const int64_t an = i < a.size() ? a[a.size() - 1 - i].size : 1, bn = i < b.size() ? b[b.size() - 1 - i].size : 1;
    if (n == 1) continue;
    const int64_t as = an == 1 ? 0 : a_stride, bs = bn == 1 ? 0 : b_stride;
    a_stride *= an;
    b_stride *= bn;
    if (loops->rank > 0) {
      const int last = loops->rank - 1;
      if (as == loops->a_step[last] * loops->size[last] && bs == loops->b_step[last] * loops->size[last] &&
          (as != 0) == (loops->a_step[last] != 0) && (bs != 0) == (loops->b_step[last] != 0)) {
        loops->size[last] *= n;
        continue;
      }
    }
    if (loops->rank == Loops::kMost) return false;
    loops->size[loops->rank] = n;
    loops->a_step[loops->rank] = as;
    loops->b_step[loops->rank++] = bs;
  }
  return true;
}

template <const auto& level>
Status binary_run(const NodeView& node, const KernelContext& context, std::span<const TensorView> in,
                  std::span<const TensorView> out) {
  using T = ElementOf<level>;
  Loops l;
  loops_of(in[0].type->shape, in[1].type->shape, out[0].type->shape, &l);
  const BinaryKind kind = binary_kind(node.node().op);
  const MapF32 map = node.node().op == "add" ? fused_map(node) : MapF32{};
  const T *a = in[0].data<T>(), *b = in[1].data<T>();
  T* y = out[0].data<T>();
  const int64_t run = l.rank ? l.size[0] : 1;
  const int a_step = l.rank && l.a_step[0], b_step = l.rank && l.b_step[0];
  const int64_t runs = out[0].elements() / std::max<int64_t>(run, 1);
  const int64_t pieces = (run + kChunk - 1) / kChunk;                                 // a long run is split,
  const int64_t together = std::max<int64_t>(1, kChunk / std::max<int64_t>(run, 1));  // short ones are taken together
  const int64_t groups = (runs + together - 1) / together;
  context.parallel(groups * pieces, [&](int64_t t) {
    const int64_t first = t % pieces * kChunk, count = std::min(kChunk, run - first);
    for (int64_t r = t / pieces * together; r < std::min(runs, (t / pieces + 1) * together); ++r) {
      int64_t left = r, a_at = first * a_step, b_at = first * b_step;
      for (int d = 1; d < l.rank; ++d) {
        a_at += left % l.size[d] * l.a_step[d];
        b_at += left % l.size[d] * l.b_step[d];
        left /= l.size[d];
      }
      T* to = y + r * run + first;
      level.loops->binary(kind, a + a_at, a_step, b + b_at, b_step, to, count);
      if (map.kind != MapKind::kNone) level.loops->map(map, to, to, count);
    }
  });
  return {};
}

bool binary_takes(const NodeView& node) {
  if (node.input_count() != 2) return false;  // min and max take any number
  Loops l;
  const auto y = broadcast_shapes(node, node.input(0).shape, node.input(1).shape);
  if (!y || !loops_of(node.input(0).shape, node.input(1).shape, *y, &l)) return false;
  for (const Dim& d : *y) {
    if (d.size == 0) return false;
  }
  return true;
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
