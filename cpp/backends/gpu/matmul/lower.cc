// Matrix products of rows: gemm and batched mat_mul.
#include "backends/gpu/matmul/params.h"
#include "backends/gpu/matmul/product.h"
#include "backends/gpu/unary/chain.h"
#include "ops/product.h"

namespace pinnace::gpu {
namespace {

/// Columns of a constant matrix by fours: [ceil(N / 4)][K][4].
TensorId packed_columns(NodeLowering& n, const Product& p) {
  const NodeView view = n.view();
  return n.weights("columns", std::max<int64_t>(1, (p.N + 3) / 4 * p.K) * 4, [view, p](std::span<float> to) -> Status {
    const auto b = view.input_floats(1);
    if (!b) return unsupported("weights are not known");
    std::fill(to.begin(), to.end(), 0.0f);
    for (int64_t k = 0; k < p.K; ++k) {
      for (int64_t j = 0; j < p.N; ++j) {
        to[static_cast<size_t>((j / 4 * p.K + k) * 4 + j % 4)] =
            static_cast<float>((*b)[static_cast<size_t>(k * p.b_row + j * p.b_col)]);
      }
    }
    return {};
  });
}

/// Results, four by four, below which the sums are divided: a phone's GPU of the middle class holds some 4,000
/// invocations at once.
constexpr int64_t kFewBlocks = 4096;
/// Fewer rows or columns leave a part of every matrix of a simdgroup empty.
constexpr int64_t kMatrix = 8;

GemmParams gemm_params(const Product& p, const Epilogue& e) {
  return {.M = p.M,
          .N = p.N,
          .K = p.K,
          .a_row = p.a_row,
          .a_col = p.a_col,
          .b_row = p.b_row,
          .b_col = p.b_col,
          .c_row = p.c_row,
          .c_col = p.c_col,
          .inner = p.inner,
          .a_outer = p.a_outer,
          .a_inner = p.a_inner,
          .b_outer = p.b_outer,
          .b_inner = p.b_inner,
          .alpha = p.alpha,
          .beta = p.beta,
          .p = e.a,
          .q = e.b};
}

Status multiply(NodeLowering& n, const Product& p, const Activation& activation) {
  const Epilogue e = in_epilogue(activation) ? epilogue_of(activation) : Epilogue();
  const bool columns = n.constant(1) && p.b_outer == 0 && p.b_inner == 0;
  const int64_t batch = p.outer * p.inner;
  const bool few = p.K >= 64 && (p.N + 3) / 4 * ((p.M + 3) / 4) * batch < kFewBlocks;
  const bool by_matrices = columns && n.simdgroup_matrices() && n.trusts(KernelId::gemm_matrices) && !few &&
                           p.M >= kMatrix && p.N >= kMatrix;
  const bool packed = by_matrices || (columns && n.trusts(KernelId::gemm_packed));
  const bool split = packed && !by_matrices && few && n.trusts(KernelId::gemm_split);
  const KernelId kernel = by_matrices ? KernelId::gemm_matrices
                          : split     ? KernelId::gemm_split
                          : packed    ? KernelId::gemm_packed
                                      : KernelId::gemm;
  const TensorId a = n.dense(0), b = packed ? packed_columns(n, p) : n.dense(1);
  const TensorId c = p.bias ? n.dense(2) : a, y = n.make_dense();
  const auto [rows, across] = product_tile(kernel);
  std::array<uint32_t, 3> groups = {groups_of(p.N, across), groups_of(p.M, rows), static_cast<uint32_t>(batch)};
  if (split) std::swap(groups[0], groups[1]);
  n.loops(loop_turns(split ? (p.K + 7) / 8 : p.K));
  n.step(kernel, GemmConstants{.ACT = static_cast<int32_t>(e.function), .BIAS = p.bias ? 1 : 0}, gemm_params(p, e),
         {a, b, c, y}, groups, static_cast<double>(batch * p.M * p.N) * static_cast<double>(p.K));
  if (!in_epilogue(activation)) apply_after(n, activation, false);
  return {};
}

Status lower_product(NodeLowering& n, Status (*describe)(NodeLowering&, Product&)) {
  for (int i = 0; i < 3; ++i) PINNACE_TRY(n.require_float(i));
  PINNACE_ASSIGN(const Activation activation, parse_activation(n.view()));
  Product p;
  PINNACE_TRY(describe(n, p));
  return multiply(n, p, activation);
}

}  // namespace

Status gemm_product(NodeLowering& n, Product& p) {
  const bool ta = n.view().attr_int("trans_a") != 0, tb = n.view().attr_int("trans_b") != 0;
  p.M = n.out().shape[0].size;
  p.N = n.out().shape[1].size;
  p.K = n.in(0).shape[ta ? 0 : 1].size;
  p.a_row = ta ? 1 : p.K;
  p.a_col = ta ? p.M : 1;
  p.b_row = tb ? 1 : p.N;
  p.b_col = tb ? p.K : 1;
  p.alpha = n.view().attr_float("alpha");
  p.beta = n.view().attr_float("beta");
  p.bias = n.has(2);
  if (p.bias) {
    const TensorType& c = n.in(2);
    const int64_t columns = c.rank() > 0 ? c.shape.back().size : 1, rows = c.rank() > 1 ? c.shape[0].size : 1;
    p.c_row = rows > 1 ? columns : 0;
    p.c_col = columns > 1 ? 1 : 0;
  }
  return {};
}

Status mat_mul_product(NodeLowering& n, Product& p) {
  const Matrices m = matrices_of(n.in(0), n.in(1));
  p.M = m.M.size;
  p.N = m.N.size;
  p.K = m.K.size;
  p.a_row = p.K;
  p.b_row = p.N;
  p.bias = n.has(2);
  if (p.bias) p.c_col = n.in(2).elements() > 1 ? 1 : 0;
  // Dimensions of the batch, neighbours joined where both operands walk on evenly; a stride of 0 repeats.
  struct Batch {
    int64_t size, a, b;
  };
  std::vector<Batch> batch;
  const size_t rank = std::max(m.a_batch.size(), m.b_batch.size());
  int64_t a_stride = p.M * p.K, b_stride = p.K * p.N;
  for (size_t i = 0; i < rank; ++i) {  // from the innermost
    const int64_t a = i < m.a_batch.size() ? m.a_batch[m.a_batch.size() - 1 - i].size : 1;
    const int64_t b = i < m.b_batch.size() ? m.b_batch[m.b_batch.size() - 1 - i].size : 1;
    const Batch own{std::max(a, b), a == 1 ? 0 : a_stride, b == 1 ? 0 : b_stride};
    a_stride *= a;
    b_stride *= b;
    if (own.size == 1) continue;
    if (!batch.empty() && own.a == batch.back().a * batch.back().size && own.b == batch.back().b * batch.back().size) {
      batch.back().size *= own.size;
    } else {
      batch.push_back(own);
    }
  }
  if (batch.size() == 1 && batch[0].b == 0 && batch[0].a == p.M * p.K) {  // one matrix b: rows of all are rows of one
    p.M *= batch[0].size;
    batch.clear();
  }
  if (batch.size() > 2) return n.refuse(Rule::kAttribute, str_cat(to_string(n.in(0)), " by ", to_string(n.in(1))));
  if (!batch.empty()) {
    p.inner = batch[0].size;
    p.a_inner = batch[0].a;
    p.b_inner = batch[0].b;
  }
  if (batch.size() > 1) {
    p.outer = batch[1].size;
    p.a_outer = batch[1].a;
    p.b_outer = batch[1].b;
  }
  return {};
}

Status lower_gemm(NodeLowering& n) {
  return lower_product(n, gemm_product);
}
Status lower_mat_mul(NodeLowering& n) {
  return lower_product(n, mat_mul_product);
}

}  // namespace pinnace::gpu
