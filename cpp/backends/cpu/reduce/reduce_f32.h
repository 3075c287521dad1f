// Reductions in float32 over rows of columns, for the reduce_* operators and for what is divided by a sum. Numbers are
// added in single precision 64 at a time, those sums in double.
#pragma once

#include "backends/cpu/f32_isa.h"

namespace pinnace::cpu {

enum class Reduction : uint8_t { kSum, kMean, kMax, kMin, kProd, kL1, kL2, kSumSquare, kLogSum, kLogSumExp };

/// Columns that are reduced at a time, and how many rows are added in float before the sum goes to double.
inline constexpr int64_t kReducedColumns = 64, kReducedRows = 64;

/// Reduces `rows` rows, `step` apart, of `count` columns, which are kReducedColumns or fewer. What comes once, at the
/// end, is left to finished().
void reduce_columns(const F32Isa& isa, Reduction kind, const float* x, ptrdiff_t step, int64_t rows, int64_t count,
                    double* result);

/// The same of one row of neighbours, one or more.
double reduce_row(const F32Isa& isa, Reduction kind, const float* x, int64_t size);

/// Two results of parts as one; not of kLogSumExp.
double joined(Reduction kind, double a, double b);

/// What becomes of the result of `size` numbers: the quotient of a mean, the root of L2, the logarithm of kLogSum.
double finished(Reduction kind, double result, int64_t size);

/// sums[c] = the sum of exp(x[row, c] - most[c]) over rows, of kReducedColumns columns or fewer.
void exp_sums(const F32Isa& isa, const float* x, ptrdiff_t step, int64_t rows, int64_t count, const float* most,
              double* sums);
/// The same of one row of neighbours.
double exp_sum(const F32Isa& isa, const float* x, int64_t size, float most);

}  // namespace pinnace::cpu
