// Functions of one variable in float32 that no other kernel fuses, powers by some constants among them, over dense
// tensors and over NHWC-packed tensors; powers and remainders of two dense tensors.
#include "backends/cpu/unary/unary_f32.h"

#include <algorithm>
#include <cmath>

#include "backends/cpu/binary/broadcast_runs.h"

namespace pinnace::cpu {
namespace {

constexpr std::pair<std::string_view, UnaryKind> kFunctions[] = {
    {"neg", UnaryKind::kNeg},           {"abs", UnaryKind::kAbs},
    {"sqrt", UnaryKind::kSqrt},         {"reciprocal", UnaryKind::kReciprocal},
    {"erf", UnaryKind::kErf},           {"log", UnaryKind::kLog},
    {"softplus", UnaryKind::kSoftplus}, {"softsign", UnaryKind::kSoftsign},
    {"mish", UnaryKind::kMish},         {"floor", UnaryKind::kFloor},
    {"ceil", UnaryKind::kCeil},         {"round", UnaryKind::kRound},
    {"sign", UnaryKind::kSign},         {"sin", UnaryKind::kSin},
    {"cos", UnaryKind::kCos},           {"tan", UnaryKind::kTan},
    {"sinh", UnaryKind::kSinh},         {"cosh", UnaryKind::kCosh},
    {"asin", UnaryKind::kAsin},         {"acos", UnaryKind::kAcos},
    {"atan", UnaryKind::kAtan},         {"asinh", UnaryKind::kAsinh},
    {"acosh", UnaryKind::kAcosh},       {"atanh", UnaryKind::kAtanh}};

/// False for a power that is left to power_and_mod_f32.
bool power_of(const NodeView& node, UnaryF32* m) {
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
                                                      {0.5, UnaryKind::kRoot},      {-0.5, UnaryKind::kRsqrt},
                                                      {-1, UnaryKind::kReciprocal}, {1, UnaryKind::kCopy}};
  for (const auto& [value, is] : kPowers) {
    if (power == value) {
      m->kind = is;
      return true;
    }
  }
  m->kind = UnaryKind::kWholePower;
  m->a = static_cast<float>(power);
  return std::fabs(power) <= 8 && power == std::floor(power);
}

/// False where only the reference has the function, or parameters that double has and single precision has not.
bool function_of(const NodeView& node, UnaryF32* m) {
  const std::string& op = node.node().op;
  if (op == "pow") return power_of(node, m);
  for (const auto& [name, kind] : kFunctions) {
    if (op == name) {
      m->kind = kind;
      return true;
    }
  }
  double a = 0, b = 0, c = 1;
  if (op == "thresholded_relu") {
    m->kind = UnaryKind::kThreshold;
    a = node.attr_float("alpha");
  } else if (op == "shrink") {
    m->kind = UnaryKind::kShrink;
    a = node.attr_float("bias");
    b = node.attr_float("lambd");
  } else {  // elu, selu, celu
    m->kind = UnaryKind::kElu;
    b = op == "selu" ? node.attr_float("gamma") : 1;
    a = node.attr_float("alpha") * b;
    if (op == "celu") {
      c = 1 / a;
      if (!(c > 1e-30 && c < 1e30)) return false;
    }
  }
  *m = {m->kind, static_cast<float>(a), static_cast<float>(b), static_cast<float>(c)};
  return std::fabs(a) < 1e30 && std::fabs(b) < 1e30;
}

bool takes(const NodeView& node) {
  UnaryF32 m;
  return function_of(node, &m);
}

bool nhwc_takes(const NodeView& node) {
  return takes(node) && has_nhwc_sizes(node.input(0)) && node.input(0).elements() > 0;
}

template <const UnaryLoopsF32& loops>
Status run(const NodeView& node, const KernelContext& context, std::span<const TensorView> in,
           std::span<const TensorView> out) {
  constexpr int64_t kChunk = 16384;
  UnaryF32 m;
  function_of(node, &m);
  const int64_t count = out[0].elements();
  context.parallel((count + kChunk - 1) / kChunk, [&](int64_t t) {
    loops.map(m, in[0].data<float>() + t * kChunk, out[0].data<float>() + t * kChunk,
              std::min(kChunk, count - t * kChunk));
  });
  return {};
}

template <const UnaryLoopsF32& loops>
Status nhwc_run(const NodeView& node, const KernelContext& context, std::span<const TensorView> in,
                std::span<const TensorView> out) {
  UnaryF32 m;
  function_of(node, &m);
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
  return {.takes = takes, .packs = 0b10, .run = run<loops>};
}
template <const UnaryLoopsF32& loops>
constexpr CpuKernel make_nhwc() {
  return {.takes = nhwc_takes, .packs = 0b10, .layouts = Layouts::kFollows, .nhwc_inputs = 0b1, .run = nhwc_run<loops>};
}

// ---------------------------------------------------------------------------------------------------------- pairs

bool pair_takes(const NodeView& node) {
  return node.input(1).dtype == DType::kF32 && pairs_fit(node);
}

template <const UnaryLoopsF32& loops>
Status pair_run(const NodeView& node, const KernelContext& context, std::span<const TensorView> in,
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
