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

/// OpDef::multiply_adds of a [..., K] times b [..., K, N].
double matrix_product_multiply_adds(std::span<const TensorType* const> inputs, const TensorType& y);

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

/// About how long `sums` sums of `length` products take in reference code.
inline double product_nanoseconds(int64_t sums, int64_t length) {
  return 0.5 * static_cast<double>(sums) * static_cast<double>(length + 4);
}

/// sums[M, N] = a[M, K] b[K, N] with K ascending in every sum. load_a(row, to) gives K elements. load_b(line, first,
/// count, to) gives elements [first, first + count) of row `line` of b, or all K of column `line` where b_by_column,
/// whichever is contiguous in memory. finish(row, first, count, sums) gets the sums of columns [first, first + count)
/// and may write over them. They are called by several threads at once. Scratch of a thread grows with 32 * (N + K).
template <class Acc, class LoadA, class LoadB, class Finish>
Status matrix_product(const Threads& threads, int64_t M, int64_t N, int64_t K, bool b_by_column, LoadA load_a,
                      LoadB load_b, Finish finish) {
  constexpr int64_t kRows = 32;  // rows that share one pass over b, which is what is converted
  constexpr int64_t kLeastColumns = 16;
  if (M == 0 || N == 0) return {};
  const int64_t block = std::min(M, kRows), blocks = (M - 1) / block + 1;
  // Where there are few blocks of rows for the threads, each is cut into ranges of columns too.
  const int64_t wanted = threads.count() == 1 ? 1 : (4 * threads.count() - 1) / blocks + 1;
  const int64_t columns = (N - 1) / std::clamp<int64_t>(N / kLeastColumns, 1, wanted) + 1;
  const int64_t cuts = (N - 1) / columns + 1;
  const auto tile = [&](int64_t row, int64_t rows, int64_t column, int64_t count, Acc* a, Acc* line, Acc* sums) {
    for (int64_t r = 0; r < rows; ++r) load_a(row + r, a + r * K);
    std::fill_n(sums, rows * count, Acc{});
    for (int64_t l = 0; l < (b_by_column ? count : K); ++l) {
      if (l % 16 == 15 && loop_stops()) return;  // a tile may take seconds
      b_by_column ? load_b(column + l, 0, K, line) : load_b(l, column, count, line);
      const Acc* b = line;
      for (int64_t r = 0; r < rows; ++r) {
        Acc* sum = sums + r * count;
        if (b_by_column) {
          const Acc* x = a + r * K;
          Acc total{};
          for (int64_t k = 0; k < K; ++k) total += x[k] * b[k];
          sum[l] = total;
        } else {
          const Acc x = a[r * K + l];
          for (int64_t n = 0; n < count; ++n) sum[n] += x * b[n];
        }
      }
    }
    for (int64_t r = 0; r < rows; ++r) finish(row + r, column, count, sums + r * count);
  };
  const double cost = product_nanoseconds(block * columns, K) + kMapNanoseconds * static_cast<double>(columns * K);
  return threads.ranges(blocks * cuts, cost, [&](int64_t first, int64_t last) -> Status {
    PINNACE_ASSIGN(auto a, Scratch<Acc>::allocate(block * K, "a matrix product"));
    PINNACE_ASSIGN(auto line, Scratch<Acc>::allocate(b_by_column ? K : columns, "a matrix product"));
    PINNACE_ASSIGN(auto sums, Scratch<Acc>::allocate(block * columns, "a matrix product"));
    for (int64_t t = first; t < last; ++t) {
      const int64_t row = t / cuts * block, column = t % cuts * columns;
      tile(row, std::min(block, M - row), column, std::min(columns, N - column), a.data(), line.data(), sums.data());
    }
    return {};
  });
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

/// Calls run(threads, first element of a's, b's and y's matrix) for every matrix of the batch; run gives a Status and
/// divides its own work by the threads it is given. Concrete.
template <class Run>
Status for_each_matrix(const Threads& threads, const Matrices& s, const Shape& y, bool a_vector, bool b_vector,
                       Run run) {
  const Shape batch(y.begin(), y.end() - (a_vector ? 0 : 1) - (b_vector ? 0 : 1));
  StridedLoop loop(batch);
  loop.add_broadcast(s.a_batch);
  loop.add_broadcast(s.b_batch);
  const int64_t M = s.M.size, N = s.N.size, K = s.K.size;
  const double cost = product_nanoseconds(M * N, K);
  const auto [outer, inner] = threads.nest(loop.size(), cost, M * N);
  return outer.ranges(loop.size(), cost, [&](int64_t first, int64_t last) {
    Status status;
    loop.run(first, last, [&](int64_t i, const int64_t* at) {
      if (status.ok()) status = run(inner, at[0] * M * K, at[1] * K * N, i * M * N);
    });
    return status;
  });
}

}  // namespace pinnace
