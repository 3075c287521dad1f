// mat_mul and gemm of float32 by stored integers: fused weights of 8 or 4 bits (IntegerWeightsOf) with scales per
// tensor, column or block of rows. They are kept as integers; a chunk of a panel becomes floats in the first-level
// cache, once for all rows of a.
#include <cstring>

#include "backends/cpu/matmul/gemm_f32.h"
#include "backends/cpu/matmul/unpack_weights_f32.h"
#include "ops/element.h"

namespace pinnace::cpu {
namespace {

/// Sizes of the product, and how its weights, [K, N] or, turned, [N, K], are stored. Scales are given for `block`
/// elements along K, of every column or, where there is one number, of all.
struct StoredWeights {
  int64_t M = 1, N, K;
  int64_t block;  ///< rows that share their scales
  int bits;       ///< 8 or 4
  bool turned, single;
  int64_t blocks() const { return (K + block - 1) / block; }
  /// How many rows of a column stand in one 32-bit number.
  int64_t together() const { return 32 / bits; }
  /// Bytes of a panel: bias [width], for each block zero points [width] and scales [width], numbers [width] for every 4
  /// or 8 rows.
  int64_t bytes(int64_t width) const { return 4 * width * (1 + 2 * blocks() + (K + together() - 1) / together()); }
};

StoredWeights weights_of(const KernelNode& node) {
  const auto& weights = *node.fusion().weights;
  const Shape &a = node.input(0).shape, &w = weights.integers.view.type->shape;
  StoredWeights s{};
  s.turned = weights.transposed != (node.node().op == "gemm" && node.attr_int("trans_b") != 0);
  s.K = w[s.turned ? 1 : 0].size;
  s.N = w[s.turned ? 0 : 1].size;
  for (size_t i = 0; i + 1 < a.size(); ++i) s.M *= a[i].size;
  s.block = weights.block_size > 0 ? std::min(weights.block_size, s.K) : s.K;
  s.bits = dtype_bits(weights.integers.view.dtype());
  s.single = weights.scales.view.elements() == 1;
  return s;
}

bool takes(const KernelNode& node) {
  const auto& weights = node.fusion().weights;
  if (!weights) return false;
  const TensorType &a = node.input(0), &w = *weights->integers.view.type, &scale = *weights->scales.view.type;
  if (a.rank() < 1 || w.rank() != 2 || a.elements() == 0 || w.elements() == 0 || scale.dtype != DType::kF32)
    return false;
  if (!(dtypes(w.dtype) & dtypes(DType::kI8, DType::kU8, DType::kI4, DType::kU4))) return false;
  if (node.node().op == "gemm" &&
      (node.attr_int("trans_a") || node.attr_float("alpha") != 1 || node.attr_float("beta") != 1)) {
    return false;
  }
  const StoredWeights s = weights_of(node);
  if (node.has_input(2)) {  // a row that is added to every row of the product
    const Shape& bias = node.input(2).shape;
    if (bias.empty() || bias.back().size != s.N || node.input(2).elements() != s.N) return false;
  }
  const bool along_k = weights->axis == (s.turned ? 1 : 0);
  return s.single || ((weights->block_size > 0) == along_k && (s.block == s.K || s.block % 8 == 0));
}

template <const F32Isa& isa>
int64_t packed_bytes(const KernelNode& node) {
  const StoredWeights s = weights_of(node);
  return s.bytes(padded_columns(*isa.gemm, s.N));
}

template <const F32Isa& isa>
Status pack(const KernelNode& node, std::byte* packed) {
  const StoredWeights s = weights_of(node);
  const auto& weights = *node.fusion().weights;
  const TensorView w = weights.integers.view, zeros = weights.zero_points ? weights.zero_points->view : TensorView{};
  const auto* scales = weights.scales.view.data<float>();
  const auto* bias = node.has_input(2) ? static_cast<const float*>(node.input_data(2)) : nullptr;
  const bool is_unsigned = w.dtype() == DType::kU8 || w.dtype() == DType::kU4;
  const int32_t offset = is_unsigned ? 1 << (s.bits - 1) : 0;  // integers are kept signed
  const int64_t nr = isa.gemm->nr;
  for (int64_t n = 0; n < s.N; n += nr) {
    const int64_t width = panel_width(*isa.gemm, n, s.N), columns = std::min(nr, s.N - n);
    std::memset(packed, 0, static_cast<size_t>(s.bytes(width)));
    auto* floats = reinterpret_cast<float*>(packed);
    if (bias) std::memcpy(floats, bias + n, sizeof(float) * static_cast<size_t>(columns));
    floats += width;
    for (int64_t b = 0; b < s.blocks(); ++b, floats += 2 * width) {
      for (int64_t j = 0; j < columns; ++j) {
        const int64_t at = s.single ? 0 : s.turned ? (n + j) * s.blocks() + b : b * s.N + n + j;
        floats[j] = static_cast<float>((zeros.present() ? load_int(zeros, at) : 0) - offset);
        floats[width + j] = scales[at];
      }
    }
    auto* numbers = reinterpret_cast<uint32_t*>(floats);
    const uint32_t ones = (uint32_t{1} << s.bits) - 1;
    for (int64_t k = 0; k < s.K; ++k) {
      for (int64_t j = 0; j < columns; ++j) {
        const int32_t q = load_int(w, s.turned ? (n + j) * s.K + k : k * s.N + n + j) - offset;
        const auto shift = static_cast<uint32_t>(k % s.together() * s.bits);
        numbers[k / s.together() * width + j] |= (static_cast<uint32_t>(q) & ones) << shift;
      }
    }
    packed += s.bytes(width);
  }
  return {};
}

/// Rows of a chunk: with 32 columns of floats half of a first-level cache. In front of them stands the bias.
constexpr int64_t kChunk = 120, kChunkRows = 1 + kChunk + 7;

template <const F32Isa& isa>
int64_t scratch_bytes(const KernelNode&, int threads) {
  return threads * kChunkRows * isa.gemm->nr * static_cast<int64_t>(sizeof(float));
}

template <const F32Isa& isa>
Status run(const KernelNode& node, const KernelContext& context, std::span<const TensorView> in,
           std::span<const TensorView> out) {
  static constexpr ptrdiff_t kNone[] = {0};
  const StoredWeights s = weights_of(node);
  const UnaryF32 map = fused_unary(node);
  const int64_t panels = (s.N + isa.gemm->nr - 1) / isa.gemm->nr, tasks = std::min<int64_t>(context.threads, panels);
  context.parallel(tasks, [&](int64_t t) {
    const GemmTilesF32& tiles = *isa.gemm;
    float* const chunk = reinterpret_cast<float*>(context.scratch) + t * kChunkRows * tiles.nr;
    for (int64_t p = panels * t / tasks; p < panels * (t + 1) / tasks && !loop_stops(); ++p) {
      const int64_t n = p * tiles.nr, width = panel_width(tiles, n, s.N);
      const auto* bias = reinterpret_cast<const float*>(context.packed + s.bytes(n));
      const float* scales = bias + width;
      const auto* numbers = reinterpret_cast<const int32_t*>(scales + 2 * width * s.blocks());
      GemmRowsF32 g{};
      g.a_row = s.K;
      g.blocks = kNone;
      g.block_count = 1;
      g.b = chunk;
      g.c = out[0].data<float>() + n;
      g.c_row = s.N;
      g.residual_row = s.N;
      g.M = s.M;
      g.columns = static_cast<int32_t>(std::min<int64_t>(tiles.nr, s.N - n));
      for (int64_t first = 0; first < s.K; first += kChunk) {
        const int64_t last = std::min(s.K, first + kChunk);
        for (int64_t j = 0; j < width; ++j) chunk[j] = first == 0 ? bias[j] : 0.0f;
        for (int64_t k = first, next = 0; k < last; k = next) {
          next = std::min(last, (k / s.block + 1) * s.block);
          const float* own = scales + k / s.block * 2 * width;
          unpack_weights_f32<isa.loops>(numbers + k / s.together() * width, s.bits, own, own + width, next - k, width,
                                        chunk + (1 + k - first) * width);
        }
        g.a = in[0].data<float>() + first;
        g.k = last - first;
        g.residual = first > 0 ? g.c : nullptr;  // what the chunks before have summed
        g.map = last == s.K ? map : UnaryF32{};
        tiles.rows(g, static_cast<int32_t>(width));
      }
    }
  });
  return {};
}

template <const F32Isa& isa>
constexpr CpuKernel make() {
  return {.takes = takes,
          .packed_bytes = packed_bytes<isa>,
          .pack = pack<isa>,
          .packs = 0b100,
          .stores = true,
          .fuses = kFusesIntegerWeights,
          .scratch_bytes = scratch_bytes<isa>,
          .run = run<isa>};
}

}  // namespace

PINNACE_KERNELS_F32_PACKED(mat_mul_weights_f32, make)

}  // namespace pinnace::cpu
