// What operators that sum products share (conv, conv_transpose, gemm, mat_mul and their integer forms): element types,
// the arithmetic of quantised sums, and the plain matrix product.
#pragma once

#include <algorithm>

#include "ops/activation.h"
#include "ops/lines.h"

namespace pinnace {

/// Element types of the operands: one float type for all, or quantised i8 | u8 with an i32 bias.
inline constexpr DTypes kProductTypes = kFloats | kI8 | kU8;
inline constexpr DTypes kProductBias = kFloats | kI32;

/// For shape rules: types of inputs x, w and (if present) bias agree. Floats: one type. Quantised: x per tensor, w per
/// tensor or along w_axis, bias i32 (plain integers at scale s_x * s_w), output 0 declared per tensor. `length` is the
/// number of products in one sum; sums that could leave int32 are refused.
Status check_product(const NodeView& node, int x, int w, int bias, int w_axis, Dim length);

/// For shape rules: products of i8 | u8, given with zero points inside the types, stay within int32.
Status check_sum_length(const NodeView& node, int64_t length, int64_t largest_x, int64_t largest_w);

/// From int32 sums to stored results: q = clamp(round_half_even(float32(sum) * m) + zero), m = float32(s_x * s_w / s_y)
/// with the quotient taken in double. Bounds of the clamp include a fused relu or clip (activation_range).
struct Requantize {
  std::vector<float> m;          ///< one, or one per channel
  std::vector<int32_t> w_zeros;  ///< likewise
  int32_t x_zero = 0;
  int32_t y_zero = 0;
  IntRange range{};

  Requantize(const TensorType& x, const TensorType& w, const TensorType& y, const Activation& activation);
  int32_t w_zero(int64_t channel) const { return w_zeros[w_zeros.size() > 1 ? static_cast<size_t>(channel) : 0]; }
  int32_t operator()(uint32_t sum, int64_t channel) const;
};

/// sums[M, N] = a[M, K] b[K, N] with K ascending in every sum. load_a(row, to) gives K elements. load_b(line, to) gives
/// row `line` of b (N elements), or column `line` (K elements) where b_by_column, whichever is contiguous in memory.
/// finish(row, sums) gets N sums. Scratch grows with 32 * (N + K).
template <class Acc, class LoadA, class LoadB, class Finish>
Status matrix_product(int64_t M, int64_t N, int64_t K, bool b_by_column, LoadA load_a, LoadB load_b, Finish finish) {
  constexpr int64_t kRows = 32;  // rows that share one pass over b, which is what is converted
  const int64_t block = std::min(M, kRows);
  PINNACE_ASSIGN(auto a, Scratch<Acc>::allocate(block * K, "a matrix product"));
  PINNACE_ASSIGN(auto line, Scratch<Acc>::allocate(b_by_column ? K : N, "a matrix product"));
  PINNACE_ASSIGN(auto sums, Scratch<Acc>::allocate(block * N, "a matrix product"));
  for (int64_t first = 0; first < M; first += block) {
    const int64_t rows = std::min(block, M - first);
    for (int64_t r = 0; r < rows; ++r) load_a(first + r, a.data() + r * K);
    std::fill_n(sums.data(), rows * N, Acc{});
    for (int64_t l = 0; l < (b_by_column ? N : K); ++l) {
      load_b(l, line.data());
      const Acc* b = line.data();
      for (int64_t r = 0; r < rows; ++r) {
        Acc* sum = sums.data() + r * N;
        if (b_by_column) {
          const Acc* x = a.data() + r * K;
          Acc total{};
          for (int64_t k = 0; k < K; ++k) total += x[k] * b[k];
          sum[l] = total;
        } else {
          const Acc x = a[r * K + l];
          for (int64_t n = 0; n < N; ++n) sum[n] += x * b[n];
        }
      }
    }
    for (int64_t r = 0; r < rows; ++r) finish(first + r, sums.data() + r * N);
  }
  return {};
}

/// The operands of numpy's matmul as batches of matrices: a [a_batch..., M, K] and b [b_batch..., b_rows, N]; a vector
/// a has M = 1, a vector b has N = 1. Neither is a scalar.
struct Matrices {
  Shape a_batch, b_batch;
  Dim M = 1, K, N = 1, b_rows;
};
Matrices matrices_of(const TensorType& a, const TensorType& b);
/// For shape rules: no scalars, K agrees, batches broadcast; the shape of the product.
Result<Shape> product_shape(const NodeView& node, const TensorType& a, const TensorType& b);

/// Calls run(first element of a's, b's and y's matrix) for every matrix of the batch until one fails.
/// Concrete.
template <class Run>
Status for_each_matrix(const Matrices& s, const Shape& y, bool a_vector, bool b_vector, Run run) {
  const Shape batch(y.begin(), y.end() - (a_vector ? 0 : 1) - (b_vector ? 0 : 1));
  StridedLoop loop(batch);
  loop.add_broadcast(s.a_batch);
  loop.add_broadcast(s.b_batch);
  const int64_t M = s.M.size, N = s.N.size, K = s.K.size;
  Status status;
  loop.run([&](int64_t i, const int64_t* at) {
    if (status.ok()) status = run(at[0] * M * K, at[1] * K * N, i * M * N);
  });
  return status;
}

}  // namespace pinnace
