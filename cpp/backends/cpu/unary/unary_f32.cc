// Functions of one variable in float32 that no other kernel fuses, powers by some constants among them, over dense
// tensors and over NHWC-packed tensors; powers and remainders of two dense tensors.
#include "backends/cpu/unary/unary_f32.h"

#include <algorithm>
#include <cmath>
#include <new>

#include "backends/cpu/f32_isa.h"
#include "backends/cpu/move/broadcast_runs.h"

namespace pinnace::cpu {
namespace {

/// False for a power that is left to power_and_mod_f32.
bool power_of(const KernelNode& node, UnaryF32* m) {
  if (node.input(1).elements() != 1 || node.input(1).rank() > node.input(0).rank()) return false;
  double power;
  if (const auto real = node.input_floats(1)) {
    power = (*real)[0];
  } else if (const auto whole = node.input_ints(1)) {
    power = static_cast<double>((*whole)[0]);
  } else {
    return false;
  }
  constexpr std::pair<double, UnaryKind> kPowers[] = {{2, UnaryKind::kSquare},      {3, UnaryKind::kCube},
                                                      {0.5, UnaryKind::kRoot},      {-0.5, UnaryKind::kInverseRoot},
                                                      {-1, UnaryKind::kReciprocal}, {1, UnaryKind::kNone}};
  for (const auto& [value, is] : kPowers) {
    if (power == value) {
      m->kind = is;
      return true;
    }
  }
  m->kind = UnaryKind::kWholePower;
  m->p = static_cast<float>(power);
  return std::fabs(power) <= 8 && power == std::floor(power);
}

/// False for parameters that double has and single precision has not.
bool function_of(const KernelNode& node, UnaryF32* m) {
  const auto f = unary_of(node);
  if (!f) return power_of(node, m);
  *m = unary_f32(*f);
  if (f->kind == UnaryKind::kCelu && !(f->p > 1e-30)) return false;
  return std::fabs(f->p) < 1e30 && std::fabs(f->q) < 1e30 && std::fabs(f->p * f->q) < 1e30;
}

bool takes(const KernelNode& node) {
  UnaryF32 m;
  return function_of(node, &m);
}

/// The function and its parameters, for which a power's exponent is read once.
int64_t plan_bytes(const KernelNode&) {
  return sizeof(UnaryF32);
}
void plan(const KernelNode& node, const Layout*, std::byte* to) {
  function_of(node, new (to) UnaryF32);
}

bool nhwc_takes(const KernelNode& node) {
  return takes(node) && has_nhwc_sizes(node.input(0)) && node.input(0).elements() > 0;
}

template <const UnaryLoopsF32& loops>
Status run(const KernelNode&, const KernelContext& context, std::span<const TensorView> in,
           std::span<const TensorView> out) {
  constexpr int64_t kChunk = 16384;
  const auto& m = *reinterpret_cast<const UnaryF32*>(context.plan);
  const int64_t count = out[0].elements();
  context.parallel((count + kChunk - 1) / kChunk, [&](int64_t t) {
    loops.map(m, in[0].data<float>() + t * kChunk, out[0].data<float>() + t * kChunk,
              std::min(kChunk, count - t * kChunk));
  });
  return {};
}

template <const UnaryLoopsF32& loops>
Status nhwc_run(const KernelNode&, const KernelContext& context, std::span<const TensorView> in,
                std::span<const TensorView> out) {
  const auto& m = *reinterpret_cast<const UnaryF32*>(context.plan);
  const NhwcF32 x = nhwc_of(in[0], context.layouts[0]), y = nhwc_of(out[0], context.layouts[in.size()]);
  const int64_t rows = y.size.n * y.size.h, each = std::max<int64_t>(1, 16384 / (y.size.w * y.pitch));
  context.parallel((rows + each - 1) / each, [&](int64_t t) {
    for (int64_t u = t * each; u < std::min(rows, (t + 1) * each); ++u) {
      const float* from = x.at + u / y.size.h * x.step + u % y.size.h * x.row;
      float* to = y.at + u / y.size.h * y.step + u % y.size.h * y.row;
      if (x.pitch == y.pitch) {
        loops.map(m, from, to, y.size.w * y.pitch);
        continue;
      }
      for (int64_t i = 0; i < y.size.w; ++i) loops.map(m, from + i * x.pitch, to + i * y.pitch, y.size.c);
    }
  });
  return {};
}

template <const UnaryLoopsF32& loops>
constexpr CpuKernel make() {
  return {.takes = takes, .packs = 0b10, .plan_bytes = plan_bytes, .plan = plan, .run = run<loops>};
}
template <const UnaryLoopsF32& loops>
constexpr CpuKernel make_nhwc() {
  return {.takes = nhwc_takes,
          .packs = 0b10,
          .layouts = Layouts::kFollows,
          .nhwc_inputs = 0b1,
          .plan_bytes = plan_bytes,
          .plan = plan,
          .run = nhwc_run<loops>};
}

// ---------------------------------------------------------------------------------------------------------- pairs

bool pair_takes(const KernelNode& node) {
  return node.input(1).dtype == DType::kF32 && pairs_fit(node);
}

template <const UnaryLoopsF32& loops>
Status pair_run(const KernelNode& node, const KernelContext& context, std::span<const TensorView> in,
                std::span<const TensorView> out) {
  const PowerOrModKind kind = node.node().op == "pow"      ? PowerOrModKind::kPower
                              : node.attr_int("fmod") == 1 ? PowerOrModKind::kTruncMod
                                                           : PowerOrModKind::kFloorMod;
  PairLoops l;
  l.set({&in[0].type->shape, &in[1].type->shape, &out[0].type->shape});
  const int x_step = l.rank && l.step[0][0], y_step = l.rank && l.step[1][0];
  for_each_run(context, l, out[0].elements(), [&](int64_t x, int64_t y, int64_t z, int64_t count) {
    loops.pair(kind, in[0].data<float>() + x, x_step, in[1].data<float>() + y, y_step, out[0].data<float>() + z, count);
  });
  return {};
}

template <const UnaryLoopsF32& loops>
constexpr CpuKernel make_pair() {
  return {.takes = pair_takes, .run = pair_run<loops>};
}

}  // namespace

extern const CpuKernel unary_f32_generic, unary_nhwc_f32_generic, power_and_mod_f32_generic;
const CpuKernel unary_f32_generic = make<unary_loops_f32_generic>();
const CpuKernel unary_nhwc_f32_generic = make_nhwc<unary_loops_f32_generic>();
const CpuKernel power_and_mod_f32_generic = make_pair<unary_loops_f32_generic>();
#if defined(__x86_64__)
extern const CpuKernel unary_f32_avx2, unary_nhwc_f32_avx2, power_and_mod_f32_avx2;
extern const CpuKernel unary_f32_avx512, unary_nhwc_f32_avx512, power_and_mod_f32_avx512;
const CpuKernel unary_f32_avx2 = make<unary_loops_f32_avx2>();
const CpuKernel unary_nhwc_f32_avx2 = make_nhwc<unary_loops_f32_avx2>();
const CpuKernel unary_f32_avx512 = make<unary_loops_f32_avx512>();
const CpuKernel unary_nhwc_f32_avx512 = make_nhwc<unary_loops_f32_avx512>();
const CpuKernel power_and_mod_f32_avx2 = make_pair<unary_loops_f32_avx2>();
const CpuKernel power_and_mod_f32_avx512 = make_pair<unary_loops_f32_avx512>();
#endif

}  // namespace pinnace::cpu
