// mat_mul of float32 rows, each rounded to unsigned bytes by itself, by signed bytes with a scale for each column
// (IntegerWeightsOf::rounds_rows), on x86-64. Sums are of integers; the result has the bits of the chain of operators
// that stands for it (plan/rounded_rows.cc).
#include <cmath>
#include <cstring>
#include <vector>

#include "backends/cpu/f32_isa.h"
#include "backends/cpu/i8_isa.h"
#include "backends/cpu/matmul/amx.h"
#include "backends/cpu/matmul/weights_i8.h"
#include "backends/cpu/quantize/rounded_rows.h"

#if defined(__x86_64__)
namespace pinnace::cpu {
namespace {

struct Sizes {
  int64_t M = 1, N, K;
  explicit Sizes(const KernelNode& node) {
    const Shape &a = node.input(0).shape, &w = node.fusion().weights->integers.view.type->shape;
    K = w[0].size;
    N = w[1].size;
    for (size_t i = 0; i + 1 < a.size(); ++i) M *= a[i].size;
  }
  int64_t quads() const { return (K + 3) / 4; }
  int64_t row() const { return quads() * 4; }
};

/// Rows of a task, whose sums stand beside those of 32 columns in the first-level cache.
constexpr int64_t kRows = 64;
/// Columns of a task: their weights stay in the second-level cache while rows change.
constexpr int64_t kColumns = 256;

bool takes(const KernelNode& node) {
  const auto& weights = node.fusion().weights;
  return weights && node.input(0).elements() > 0 && weights->integers.view.elements() > 0;
}

/// RoundedRowsLoops::scale reads whole registers: behind a last panel of 8 columns half of one.
constexpr int64_t kReadBehind = 32;

/// Panels of integers, with the columns' scales in place of multipliers; sums of the columns; the bias.
template <const I8Isa& isa>
int64_t packed_bytes(const KernelNode& node) {
  const Sizes s(node);
  return panel_bytes(padded_columns(*isa.gemm, s.N), s.quads()) + 8 * padded_columns(*isa.gemm, s.N) + kReadBehind;
}

template <const I8Isa& isa>
Status pack(const KernelNode& node, std::byte* packed) {
  const Sizes s(node);
  const auto& weights = *node.fusion().weights;
  const auto* b = weights.integers.view.data<int8_t>();
  const auto* scales = weights.scales.view.data<float>();
  const auto weight = [&](int64_t n, int64_t k) { return k < s.K ? b[k * s.N + n] : int8_t{0}; };
  std::vector<int32_t> column_sums;
  for (int64_t n = 0; n < s.N; n += isa.gemm->nr) {
    const int64_t width = panel_width(*isa.gemm, n, s.N), columns = std::min(width, s.N - n);
    std::byte* const next = pack_integer_panel(*isa.gemm, n, columns, width, 1, s.quads(), weight, packed);
    auto* multipliers = reinterpret_cast<float*>(packed) + width;
    for (int64_t j = 0; j < width; ++j) {
      std::memcpy(&column_sums.emplace_back(), multipliers + j, sizeof(int32_t));
      multipliers[j] = j < columns ? scales[n + j] : 0.0f;
    }
    packed = next;
  }
  std::copy(column_sums.begin(), column_sums.end(), reinterpret_cast<int32_t*>(packed));
  auto* bias = reinterpret_cast<float*>(packed) + padded_columns(*isa.gemm, s.N);
  std::fill_n(bias, padded_columns(*isa.gemm, s.N) + kReadBehind / int64_t{sizeof(float)}, 0.0f);
  if (node.has_input(2)) std::copy_n(static_cast<const float*>(node.input_data(2)), s.N, bias);
  return {};
}

int64_t in_lines(int64_t bytes) {
  return (bytes + 63) / 64 * 64;
}

/// Rows as bytes, their scales and zero points, and for each thread sums of a panel.
template <const I8Isa& isa>
int64_t scratch_bytes(const KernelNode& node, int threads) {
  const Sizes s(node);
  return in_lines(s.M * s.row()) + 2 * in_lines(4 * s.M) + threads * kRows * isa.gemm->nr * 4;
}

struct Scratch {
  uint8_t* rows;
  float* scales;
  int32_t *zeros, *sums;
  Scratch(const KernelContext& context, const Sizes& s) {
    std::byte* at = context.scratch;
    rows = reinterpret_cast<uint8_t*>(at);
    scales = reinterpret_cast<float*>(at += in_lines(s.M * s.row()));
    zeros = reinterpret_cast<int32_t*>(at += in_lines(4 * s.M));
    sums = reinterpret_cast<int32_t*>(at + in_lines(4 * s.M));
  }
};

/// A row's 256 steps cover its numbers and 0. As relu has it, NaN stays NaN.
RealI8 real_of(float least, float largest) {
  const float above = largest < 0 ? 0.0f : largest, below = -least < 0 ? 0.0f : -least;
  const float scale = (above + below) * (1.0f / 255.0f), zero = below / scale;
  return {scale, zero == zero ? static_cast<int32_t>(std::nearbyint(std::min(zero, 255.0f))) : 0};
}

void round_rows(const KernelContext& context, const QuantizeLoopsI8& quantize, const RoundedRowsLoops& loops,
                const Sizes& s, int32_t offset, const float* x, const Scratch& to) {
  const int64_t tasks = std::min(s.M, (s.M * s.K + 32767) / 32768);
  context.parallel(tasks, [&](int64_t t) {
    for (int64_t m = s.M * t / tasks; m < s.M * (t + 1) / tasks; ++m) {
      float least, largest;
      loops.range(x + m * s.K, s.K, &least, &largest);
      const RealI8 real = real_of(least, largest);
      to.scales[m] = real.scale;
      to.zeros[m] = real.zero - offset;
      quantize.quantize(x + m * s.K, real, 0, to.rows + m * s.row(), s.K);
      std::memset(to.rows + m * s.row() + s.K, 0, static_cast<size_t>(s.row() - s.K));
    }
  });
}

/// Tasks of kRows x kColumns results.
void multiply(const KernelNode& node, const KernelContext& context, const GemmTilesI8& gemm,
              const RoundedRowsLoops& loops, const Sizes& s, const Scratch& scratch, float* y) {
  static constexpr ptrdiff_t kNone[] = {0};
  const UnaryF32 map = fused_unary(node);
  const auto* column_sums =
      reinterpret_cast<const int32_t*>(context.packed + panel_bytes(padded_columns(gemm, s.N), s.quads()));
  const auto* bias = reinterpret_cast<const float*>(column_sums + padded_columns(gemm, s.N));
  const int64_t panels = (s.N + gemm.nr - 1) / gemm.nr, row_tasks = (s.M + kRows - 1) / kRows;
  const int64_t together = std::max<int64_t>(1, kColumns / gemm.nr), tasks = (panels + together - 1) / together;
  const int64_t all = row_tasks * tasks, threads = std::min<int64_t>(context.threads, all);
  context.parallel(threads, [&](int64_t thread) {
    int32_t* const sums = scratch.sums + thread * kRows * gemm.nr;
    for (int64_t t = all * thread / threads; t < all * (thread + 1) / threads && !loop_stops(); ++t) {
      const int64_t m = t % row_tasks * kRows, first = t / row_tasks * together;
      for (int64_t i = first; i < std::min(panels, first + together); ++i) {
        const int64_t n = i * gemm.nr, width = panel_width(gemm, n, s.N);
        GemmRowsI8 g{};
        g.a = scratch.rows + m * s.row();
        g.a_row = s.row();
        g.blocks = kNone;
        g.block_count = 1;
        g.quads = s.quads();
        g.b = context.packed + panel_bytes(n, s.quads());
        g.sums = sums;
        g.c_row = width;
        g.M = std::min(kRows, s.M - m);
        g.columns = static_cast<int32_t>(width);
        gemm.rows(g, static_cast<int32_t>(width));
        loops.scale({.sums = sums,
                     .sums_row = width,
                     .zeros = scratch.zeros + m,
                     .column_sums = column_sums + n,
                     .rows = scratch.scales + m,
                     .columns = reinterpret_cast<const float*>(g.b) + width,
                     .bias = node.has_input(2) ? bias + n : nullptr,
                     .low = map.kind == UnaryKind::kClip   ? map.p
                            : map.kind == UnaryKind::kRelu ? 0.0f
                                                           : -INFINITY,
                     .high = map.kind == UnaryKind::kClip ? map.q : INFINITY,
                     .y = y + m * s.N + n,
                     .y_row = s.N,
                     .M = g.M,
                     .N = std::min(width, s.N - n)});
      }
    }
  });
}

template <const I8Isa& isa, const RoundedRowsLoops& loops>
Status run(const KernelNode& node, const KernelContext& context, std::span<const TensorView> in,
           std::span<const TensorView> out) {
  const Sizes s(node);
  const Scratch scratch(context, s);
  // Beside modelled tiles the processor may have no AVX-512.
  const bool beside_model = isa.gemm == &gemm_i8_tiles_amx_int8 && tiles_modelled() && !cpu_runs(Cpu::avx512_vnni);
  const RoundedRowsLoops& here = beside_model ? rounded_rows_loops_avx2 : loops;
  const QuantizeLoopsI8& quantize = beside_model ? *i8_avx2.quantize : *isa.quantize;
  round_rows(context, quantize, here, s, isa.gemm->activation_offset, in[0].data<float>(), scratch);
  multiply(node, context, *isa.gemm, here, s, scratch, out[0].data<float>());
  return {};
}

template <const I8Isa& isa, const RoundedRowsLoops& loops>
constexpr CpuKernel make() {
  return {.takes = takes,
          .packed_bytes = packed_bytes<isa>,
          .pack = pack<isa>,
          .packs = 0b100,
          .stores = true,
          .fuses = kFusesRoundedRows,
          .scratch_bytes = scratch_bytes<isa>,
          .run = run<isa, loops>};
}

}  // namespace

extern const CpuKernel mat_mul_rounded_rows_avx2, mat_mul_rounded_rows_avx_vnni, mat_mul_rounded_rows_avx512_vnni,
    mat_mul_rounded_rows_amx_int8;
const CpuKernel mat_mul_rounded_rows_avx2 = make<i8_avx2, rounded_rows_loops_avx2>();
const CpuKernel mat_mul_rounded_rows_avx_vnni = make<i8_avx_vnni, rounded_rows_loops_avx2>();
const CpuKernel mat_mul_rounded_rows_avx512_vnni = make<i8_avx512_vnni, rounded_rows_loops_avx512_vnni>();
const CpuKernel mat_mul_rounded_rows_amx_int8 = make<i8_amx_int8, rounded_rows_loops_avx512_vnni>();

}  // namespace pinnace::cpu
#endif
