// Householder reflections and the QR factorisation of one matrix in double, and the rule for signs of vectors: for qr,
// eigh and svd.
#pragma once

#include "ops/move.h"

namespace pinnace {

/// sqrt of the sum of squares, which may overflow or underflow where the result does not. NaN where x has one.
double norm_of(const double* x, int64_t count, int64_t step = 1);
/// The sum of a[i] * b[i].
double dot(const double* a, const double* b, int64_t count);

/// The reflection I - tau v v' that takes x [count >= 1] to a multiple beta of the first unit vector. x[0] becomes
/// beta = -sign(x[0]) * norm (the sign of 0 is 1), the others become v, whose first element is 1. Returns tau, which is
/// 0 where the others are 0 already: x stays. Source: LAPACK dlarfg; Golub and Van Loan, Matrix Computations, 4th
/// edition, 5.1.3.
double make_reflection(double* x, int64_t step, int64_t count);

/// block [rows, columns] = (I - tau v v') block. `stride`: from one row to the next; v [rows], whose first element
/// counts as 1; work [columns].
void reflect(const double* v, int64_t step, double tau, double* block, int64_t stride, int64_t rows, int64_t columns,
             double* work);

/// In place of a [m, n]: r on and above the diagonal, below it the vectors of min(m, n) reflections whose product is q.
/// tau [min(m, n)], work [n]. Source: LAPACK dgeqr2; Golub and Van Loan, 5.2.2.
void factor_qr(double* a, int64_t m, int64_t n, double* tau, double* work);
/// x [m, columns] = q x, for what factor_qr left of an [m, n]. `stride`: from one row of x to the next; work [columns].
void apply_q(const double* a, int64_t m, int64_t n, const double* tau, double* x, int64_t stride, int64_t columns,
             double* work);
/// x [rows, columns] = 1 on the diagonal, else 0.
void make_identity(double* x, int64_t rows, int64_t columns);

/// -1 or 1: the sign of the first element whose magnitude is at least 0.9 of the largest. A vector that two programs
/// compute up to its sign is the same in both after a multiplication by it. Not the largest element itself: two of one
/// magnitude and opposite signs, as in (1, -1), would leave the choice to the last bit.
double leading_sign(const double* x, int64_t count, int64_t step);

/// How many matrices [..., m, n] has.
int64_t matrix_count(const TensorView& t);
/// The smaller of two sizes; where that is not known, an unknown size of at most the smaller bound.
Dim dim_least(const Dim& a, const Dim& b);

/// For matrices that may hold no NaN or infinity: the error that names the matrix and the place, row and column. Only
/// elements for which in(row, column) is true count.
template <class In>
Status check_finite(const NodeView& node, int64_t index, const double* a, int64_t rows, int64_t columns, In in) {
  for (int64_t r = 0; r < rows; ++r) {
    for (int64_t c = 0; c < columns; ++c) {
      const double x = a[r * columns + c];
      if (in(r, c) && !(x - x == 0)) return node.error("matrix ", index, " of a has ", x, " at [", r, ", ", c, "]");
    }
  }
  return {};
}

/// A power of two by which the largest magnitude of x, all finite, is divided to lie in [0.5, 1): squares of what is
/// left then neither overflow nor vanish. 1 where all are 0.
double scale_of(const double* x, int64_t count);

}  // namespace pinnace
