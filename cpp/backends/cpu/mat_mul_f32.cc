// mat_mul and gemm in float32: rows of a against packed columns of b; constant b is packed once.
#include <algorithm>

#include "backends/cpu/f32_levels.h"

namespace pinnace {

void pack_columns(const float* b, int64_t K, int64_t N, ptrdiff_t k_step, ptrdiff_t n_step, int nr, float* packed) {
  for (int64_t n = 0; n < N; n += nr) {
    const int64_t columns = std::min<int64_t>(nr, N - n);
    float* panel = packed + n * K;
    if (n_step == 1 || columns < 4) {
      for (int64_t k = 0; k < K; ++k) {
        const float* from = b + k * k_step + n * n_step;
        for (int64_t j = 0; j < columns; ++j) panel[k * nr + j] = from[j * n_step];
        for (int64_t j = columns; j < nr; ++j) panel[k * nr + j] = 0;
      }
      continue;
    }
    for (int64_t j = 0; j < nr; ++j) {  // column by column: the source is contiguous along k
      const float* from = b + (n + j) * n_step;
      for (int64_t k = 0; k < K; ++k) panel[k * nr + j] = j < columns ? from[k * k_step] : 0;
    }
  }
}

namespace {

/// a [batches, M, K] times b [batches or 1, K, N]; steps of 0 repeat an operand.
struct Product {
  int64_t batches = 1, M = 1, N = 1, K = 0;
  bool b_shared = true;  ///< one b for all batches
  ptrdiff_t k_step = 0, n_step = 1;
  std::vector<int64_t> a_at, b_at;  ///< element offset of each batch's matrix
};

Product mat_mul_product(const NodeView& node) {
  const Shape &a = node.input(0).shape, &b = node.input(1).shape;
  Product p;
  p.K = a.back().size;
  p.M = a.size() > 1 ? a[a.size() - 2].size : 1;
  p.N = b.size() > 1 ? b.back().size : 1;
  p.k_step = p.N;
  int64_t b_batches = 1, a_batches = 1;
  for (size_t i = 0; i + 2 < b.size(); ++i) b_batches *= b[i].size;
  for (size_t i = 0; i + 2 < a.size(); ++i) a_batches *= a[i].size;
  p.b_shared = b_batches == 1;
  if (p.b_shared) {  // one tall matrix: rows of all batches share b
    p.M *= a_batches;
    p.a_at = p.b_at = {0};
    return p;
  }
  // Row-major walk over the broadcast batch dimensions.
  const size_t rank = std::max(a.size(), b.size()) - 2;
  const auto size = [&](const Shape& s, size_t d) {
    const size_t own = s.size() >= 2 ? s.size() - 2 : 0;
    return d + own < rank ? int64_t{1} : s[d + own - rank].size;
  };
  for (size_t d = 0; d < rank; ++d)
    p.batches *= std::max(size(a, d), size(b, d)) ? std::max(size(a, d), size(b, d)) : 0;
  for (int64_t i = 0; i < p.batches; ++i) {
    int64_t left = i, a_index = 0, b_index = 0, a_step = 1, b_step = 1;
    for (size_t d = rank; d-- > 0;) {
      const int64_t n = std::max(size(a, d), size(b, d)), at = left % n;
      left /= n;
      if (size(a, d) > 1) a_index += at * a_step;
      if (size(b, d) > 1) b_index += at * b_step;
      a_step *= size(a, d);
      b_step *= size(b, d);
    }
    p.a_at.push_back(a_index * p.M * p.K);
    p.b_at.push_back(b_index * p.K * p.N);
  }
  return p;
}

Product gemm_product(const NodeView& node) {
  const Shape &a = node.input(0).shape, &b = node.input(1).shape;
  const bool trans_b = node.attr_int("trans_b") != 0;
  Product p;
  p.M = a[0].size;
  p.K = a[1].size;
  p.N = b[trans_b ? 0 : 1].size;
  p.k_step = trans_b ? 1 : p.N;
  p.n_step = trans_b ? p.K : 1;
  p.a_at = p.b_at = {0};
  return p;
}

template <Product (*product)(const NodeView&), const F32Kernels& kernels>
int64_t packed_bytes(const NodeView& node) {
  if (!node.input_data(1)) return 0;
  const Product p = product(node);
  return p.b_shared ? packed_columns(p.K, p.N, kernels.nr) * 4 : 0;
}

template <Product (*product)(const NodeView&), const F32Kernels& kernels>
Status pack(const NodeView& node, std::byte* packed) {
  const Product p = product(node);
  pack_columns(static_cast<const float*>(node.input_data(1)), p.K, p.N, p.k_step, p.n_step, kernels.nr,
               reinterpret_cast<float*>(packed));
  return {};
}

template <Product (*product)(const NodeView&), const F32Kernels& kernels>
int64_t scratch_bytes(const NodeView& node, int threads) {
  const Product p = product(node);
  return packed_columns(p.K, p.N, kernels.nr) * 4 * (p.b_shared ? 1 : threads);
}

template <const F32Kernels& kernels>
void multiply(const Product& p, const KernelContext& context, const float* a, const float* b, const float* bias,
              float* y, const MapF32& map) {
  const int nr = kernels.nr, mr = kernels.mr;
  auto* scratch = reinterpret_cast<float*>(context.scratch);
  const int64_t packed = packed_columns(p.K, p.N, nr);
  if (!p.b_shared) {
    const int64_t tasks = std::min<int64_t>(context.threads, p.batches);
    context.parallel(tasks, [&](int64_t t) {
      float* own = scratch + t * packed;
      for (int64_t i = p.batches * t / tasks; i < p.batches * (t + 1) / tasks; ++i) {
        pack_columns(b + p.b_at[static_cast<size_t>(i)], p.K, p.N, p.k_step, p.n_step, nr, own);
        kernels.gemm({a + p.a_at[static_cast<size_t>(i)], mr * p.K, p.K, 1, own, p.M, p.N, p.K, y + i * p.M * p.N, p.N,
                      nullptr, bias, map});
      }
    });
    return;
  }
  const float* columns = reinterpret_cast<const float*>(context.packed);
  const int64_t panels = (p.N + nr - 1) / nr;
  if (!columns) {
    context.parallel(panels, [&](int64_t t) {
      const int64_t n = t * nr;
      pack_columns(b + n * p.n_step, p.K, std::min<int64_t>(nr, p.N - n), p.k_step, p.n_step, nr, scratch + n * p.K);
    });
    columns = scratch;
  }
  // Blocks of rows and columns: about 64 x 256 outputs a task, so that a's rows and b's panels stay in cache.
  const int64_t row_block = std::max<int64_t>(mr, 64 / mr * mr), column_block = std::max<int64_t>(1, 256 / nr) * nr;
  const int64_t row_blocks = (p.M + row_block - 1) / row_block, column_blocks = (p.N + column_block - 1) / column_block;
  context.parallel(row_blocks * column_blocks, [&](int64_t t) {
    const int64_t m = t % row_blocks * row_block, n = t / row_blocks * column_block;
    kernels.gemm({a + m * p.K, mr * p.K, p.K, 1, columns + n * p.K, std::min(p.M - m, row_block),
                  std::min(p.N - n, column_block), p.K, y + m * p.N + n, p.N, nullptr, bias ? bias + n : nullptr, map});
  });
}

template <const F32Kernels& kernels>
Status mat_mul_run(const NodeView& node, const KernelContext& context, std::span<const TensorView> in,
                   std::span<const TensorView> out) {
  const Product p = mat_mul_product(node);
  const float* bias = in.size() > 2 && in[2].present() ? in[2].data<float>() : nullptr;
  multiply<kernels>(p, context, in[0].data<float>(), in[1].data<float>(), bias, out[0].data<float>(), fused_map(node));
  return {};
}

bool mat_mul_takes(const NodeView& node) {
  const Shape &a = node.input(0).shape, &b = node.input(1).shape;
  if (b.size() < 2 || a.empty() || node.input(0).elements() == 0 || node.input(1).elements() == 0) return false;
  return !node.has_input(2) || node.input(2).elements() == b.back().size;
}

template <const F32Kernels& kernels>
Status gemm_run(const NodeView& node, const KernelContext& context, std::span<const TensorView> in,
                std::span<const TensorView> out) {
  const Product p = gemm_product(node);
  const float* bias = in.size() > 2 && in[2].present() ? in[2].data<float>() : nullptr;
  multiply<kernels>(p, context, in[0].data<float>(), in[1].data<float>(), bias, out[0].data<float>(), fused_map(node));
  return {};
}

bool gemm_takes(const NodeView& node) {
  if (node.attr_int("trans_a") || node.attr_float("alpha") != 1 || node.input(0).elements() == 0) return false;
  if (node.input(1).elements() == 0) return false;
  if (!node.has_input(2)) return true;
  const int64_t N = node.input(1).shape[node.attr_int("trans_b") ? 0 : 1].size;
  const Shape& c = node.input(2).shape;  // a row that is added to every row of the product
  return node.attr_float("beta") == 1 && !c.empty() && c.back().size == N && node.input(2).elements() == N;
}

template <const F32Kernels& kernels>
constexpr CpuKernel make_mat_mul() {
  return {.takes = mat_mul_takes,
          .packed_bytes = packed_bytes<mat_mul_product, kernels>,
          .pack = pack<mat_mul_product, kernels>,
          .scratch_bytes = scratch_bytes<mat_mul_product, kernels>,
          .run = mat_mul_run<kernels>};
}

template <const F32Kernels& kernels>
constexpr CpuKernel make_gemm() {
  return {.takes = gemm_takes,
          .packed_bytes = packed_bytes<gemm_product, kernels>,
          .pack = pack<gemm_product, kernels>,
          .scratch_bytes = scratch_bytes<gemm_product, kernels>,
          .run = gemm_run<kernels>};
}

}  // namespace

PINNACE_F32_LEVELS(mat_mul_f32, make_mat_mul)
PINNACE_F32_LEVELS(gemm_f32, make_gemm)

}  // namespace pinnace
