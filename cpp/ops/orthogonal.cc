// Householder reflections: made so that nothing cancels, applied row by row.
#include "ops/orthogonal.h"

#include <algorithm>
#include <cmath>

#include "base/cancel.h"
#include "ops/lines.h"

namespace pinnace {

double norm_of(const double* x, int64_t count, int64_t step) {
  double sum = 0;
  for (int64_t i = 0; i < count; ++i) sum += x[i * step] * x[i * step];
  if ((sum > 1e-250 && sum < 1e300) || std::isnan(sum)) return std::sqrt(sum);
  double largest = 0;
  for (int64_t i = 0; i < count; ++i) largest = std::max(largest, std::abs(x[i * step]));
  if (largest == 0 || std::isinf(largest)) return largest;
  sum = 0;
  for (int64_t i = 0; i < count; ++i) sum += (x[i * step] / largest) * (x[i * step] / largest);
  return largest * std::sqrt(sum);
}

double dot(const double* a, const double* b, int64_t count) {
  double sums[8] = {};  // independent ones, so that additions need not wait for each other
  int64_t i = 0;
  for (; i + 8 <= count; i += 8) {
    for (int64_t k = 0; k < 8; ++k) sums[k] += a[i + k] * b[i + k];
  }
  for (; i < count; ++i) sums[0] += a[i] * b[i];
  return ((sums[0] + sums[4]) + (sums[1] + sums[5])) + ((sums[2] + sums[6]) + (sums[3] + sums[7]));
}

double make_reflection(double* x, int64_t step, int64_t count) {
  const double rest = norm_of(x + step, count - 1, step);
  if (rest == 0) return 0;
  const double norm = std::hypot(x[0], rest), beta = x[0] < 0 ? norm : -norm;
  const double tau = (beta - x[0]) / beta, first = x[0] - beta;
  for (int64_t i = 1; i < count; ++i) x[i * step] /= first;
  x[0] = beta;
  return tau;
}

void reflect(const double* v, int64_t step, double tau, double* block, int64_t stride, int64_t rows, int64_t columns,
             double* work) {
  if (tau == 0) return;
  std::copy_n(block, columns, work);
  for (int64_t r = 1; r < rows; ++r) {
    if (r % kRowsBetweenLooks == 0 && loop_stops()) return;
    const double factor = v[r * step];
    const double* row = block + r * stride;
    for (int64_t c = 0; c < columns; ++c) work[c] += factor * row[c];
  }
  for (int64_t c = 0; c < columns; ++c) work[c] *= tau;
  for (int64_t c = 0; c < columns; ++c) block[c] -= work[c];
  for (int64_t r = 1; r < rows; ++r) {
    if (r % kRowsBetweenLooks == 0 && loop_stops()) return;
    const double factor = v[r * step];
    double* row = block + r * stride;
    for (int64_t c = 0; c < columns; ++c) row[c] -= factor * work[c];
  }
}

void factor_qr(double* a, int64_t m, int64_t n, double* tau, double* work) {
  for (int64_t k = 0; k < std::min(m, n) && !loop_stops(); ++k) {
    double* corner = a + k * n + k;
    tau[k] = make_reflection(corner, n, m - k);
    reflect(corner, n, tau[k], corner + 1, n, m - k, n - k - 1, work);
  }
}

void apply_q(const double* a, int64_t m, int64_t n, const double* tau, double* x, int64_t stride, int64_t columns,
             double* work) {
  for (int64_t k = std::min(m, n); k-- > 0 && !loop_stops();) {
    reflect(a + k * n + k, n, tau[k], x + k * stride, stride, m - k, columns, work);
  }
}

void make_identity(double* x, int64_t rows, int64_t columns) {
  std::fill_n(x, rows * columns, 0.0);
  for (int64_t i = 0; i < std::min(rows, columns); ++i) x[i * columns + i] = 1;
}

double leading_sign(const double* x, int64_t count, int64_t step) {
  double largest = 0;
  for (int64_t i = 0; i < count; ++i) largest = std::max(largest, std::abs(x[i * step]));
  for (int64_t i = 0; i < count; ++i) {
    if (std::abs(x[i * step]) >= 0.9 * largest) return x[i * step] < 0 ? -1 : 1;
  }
  return 1;
}

double scale_of(const double* x, int64_t count) {
  double largest = 0;
  for (int64_t i = 0; i < count; ++i) largest = std::max(largest, std::abs(x[i]));
  int exponent = 0;
  std::frexp(largest, &exponent);
  return std::ldexp(1.0, std::min(exponent, 1023));
}

int64_t matrix_count(const TensorView& t) {
  int64_t count = 1;
  for (int i = 0; i < t.rank() - 2; ++i) count *= t.dim(i);
  return count;
}

Dim dim_least(const Dim& a, const Dim& b) {
  if (a == b) return a;
  const int64_t most = std::min(dim_bound(a), dim_bound(b));
  return (a.known() && b.known()) || most == 0 ? Dim(most) : Dim::unknown(most);
}

}  // namespace pinnace
