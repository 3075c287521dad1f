// eigh: eigenvalues w, ascending, and orthonormal eigenvectors v of symmetric matrices: a = v diag(w) transposed(v).
//   a      [..., M, M]  floats: symmetric; only one triangle is read
//   upper  int, default 0: the lower triangle is read; 1: the upper one
//   w      [..., M], as a
//   v      optional  [..., M, M], as a: eigenvectors are its columns
// In double, rounded once: Householder reflections make a matrix tridiagonal, the QL algorithm with implicit shifts
// makes that diagonal. Of each column of v the first element with at least 0.9 of the largest magnitude is positive:
// eigenvectors are determined but for their sign. Those of equal eigenvalues span a space, in which rounding decides.
// NaN or an infinity in the triangle is an error that names matrix and place; so is a matrix whose eigenvalues are not
// found in 30 iterations for each. Source: Golub and Van Loan, Matrix Computations, 4th edition, 8.3.1 and 8.3.5;
// EISPACK tred2 and imtql2. ONNX has no such operator; PyTorch's linalg.eigh and linalg.eigvalsh.
#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "ops/lines.h"
#include "ops/move.h"
#include "ops/orthogonal.h"

namespace pinnace {
namespace {
constexpr int kMostIterations = 30;  // for one eigenvalue; it takes less than two on average
constexpr double kEpsilon = std::numeric_limits<double>::epsilon();

Status eigh_types(const NodeView& node, std::span<TensorType> outputs) {
  const TensorType& a = node.input(0);
  if (a.rank() < 2) return node.error("a must be [..., M, M], is ", a);
  if (differ(a.shape[a.shape.size() - 2], a.shape.back()))
    return node.error("the matrices of a ", a, " are not square");
  outputs[0] = {a.dtype, Shape(a.shape.begin(), a.shape.end() - 1), nullptr};
  if (outputs.size() > 1) outputs[1] = {a.dtype, a.shape, nullptr};
  return {};
}

/// One matrix and what its decomposition needs. All [m] but a and z.
struct Work64 {
  double *a, *z;  ///< [m, m]; z null: values alone
  double *d, *e;  ///< the diagonal, and the one below it: e[i] is between i and i + 1
  double *tau, *v, *w;
};

/// d and e of a tridiagonal matrix q' a q. Row k of a then holds, right of the diagonal, the vector of reflection k.
void make_tridiagonal(const Work64& x, int64_t m) {
  for (int64_t k = 0; k < m && !loop_stops(); ++k) {
    double* row = x.a + k * m;
    x.d[k] = row[k];
    const int64_t rest = m - k - 1;
    if (rest == 0) break;
    double* v = row + k + 1;  // which is column k too: a is symmetric
    x.tau[k] = make_reflection(v, 1, rest);
    x.e[k] = v[0];
    v[0] = 1;
    if (x.tau[k] == 0) continue;
    double* block = x.a + (k + 1) * m + k + 1;
    double* w = x.w;
    std::fill_n(w, rest, 0.0);
    for (int64_t r = 0; r < rest; ++r) {
      for (int64_t c = 0; c < rest; ++c) w[c] += v[r] * block[r * m + c];
    }
    for (int64_t c = 0; c < rest; ++c) w[c] *= x.tau[k];
    const double half = -0.5 * x.tau[k] * dot(w, v, rest);
    for (int64_t c = 0; c < rest; ++c) w[c] += half * v[c];
    for (int64_t r = 0; r < rest; ++r) {
      const double vr = v[r], wr = w[r];
      for (int64_t c = 0; c < rest; ++c) block[r * m + c] -= vr * w[c] + wr * v[c];
    }
  }
}

/// z = the transposed product of make_tridiagonal's reflections.
void make_q_transposed(const Work64& x, int64_t m) {
  make_identity(x.z, m, m);
  for (int64_t k = m - 1; k-- > 0 && !loop_stops();) {
    const int64_t rest = m - k - 1, corner = (k + 1) * m + k + 1;
    reflect(x.a + k * m + k + 1, 1, x.tau[k], x.z + corner, m, rest, rest, x.w);
  }
  for (int64_t r = 0; r < m; ++r) {
    for (int64_t c = 0; c < r; ++c) std::swap(x.z[r * m + c], x.z[c * m + r]);
  }
}

/// d becomes the eigenvalues, the rows of z the eigenvectors. False if they are not found.
bool diagonalize(const Work64& x, int64_t m) {
  double *d = x.d, *e = x.e;
  const auto negligible = [&](int64_t i) {
    // The matrix has elements up to 1, and was made tridiagonal with errors of epsilon.
    return std::abs(e[i]) <= kEpsilon * std::max(std::abs(d[i]) + std::abs(d[i + 1]), kEpsilon);
  };
  for (int64_t l = 0; l < m; ++l) {
    for (int iteration = 0;; ++iteration) {
      int64_t end = l;  // of the block [l, end] that does not fall apart
      while (end + 1 < m && !negligible(end)) ++end;
      if (end == l || loop_stops()) break;
      if (iteration == kMostIterations) return false;
      // The shift is the eigenvalue of the first two rows that is nearer to d[l].
      const double half = (d[l + 1] - d[l]) / (2 * e[l]);
      double g = d[end] - d[l] + e[l] / (half + std::copysign(std::hypot(half, 1), half));
      double s = 1, c = 1, shifted = 0;
      int64_t i = end;
      while (i-- > l) {
        const double f = s * e[i], b = c * e[i], r = std::hypot(f, g);
        e[i + 1] = r;
        if (r == 0) break;
        s = f / r;
        c = g / r;
        g = d[i + 1] - shifted;
        const double step = (d[i] - g) * s + 2 * c * b;
        shifted = s * step;
        d[i + 1] = g + shifted;
        g = c * step - b;
        if (x.z == nullptr) continue;
        double *low = x.z + i * m, *high = low + m;
        for (int64_t k = 0; k < m; ++k) {
          const double a = low[k], other = high[k];
          high[k] = s * a + c * other;
          low[k] = c * a - s * other;
        }
      }
      if (i >= l) {  // the block falls apart at i + 1
        d[i + 1] -= shifted;
      } else {
        d[l] -= shifted;
        e[l] = g;
      }
      e[end] = 0;
    }
  }
  return true;
}

Status eigh_reference(const NodeView& node, std::span<const TensorView> in, std::span<const TensorView> out) {
  const int64_t m = in[0].dim(-1), area = m * m;
  if (in[0].elements() == 0) return {};
  const bool vectors = out.size() > 1, upper = node.attr_int("upper") != 0;
  return node.threads().ranges(
      in[0].elements() / area, (vectors ? 10.0 : 2.0) * static_cast<double>(m * area),
      [&](int64_t begin, int64_t end) -> Status {
        PINNACE_ASSIGN(auto a, Scratch<double>::allocate(area, node.label()));
        PINNACE_ASSIGN(auto z, Scratch<double>::allocate(vectors ? area : 0, node.label()));
        PINNACE_ASSIGN(auto lines, Scratch<double>::allocate(5 * m, node.label()));
        PINNACE_ASSIGN(auto order, Scratch<int64_t>::allocate(m, node.label()));
        double* line = lines.data();
        const Work64 x{a.data(),    vectors ? z.data() : nullptr, line, line + m, line + 2 * m, line + 3 * m,
                       line + 4 * m};
        for (int64_t i = begin; i < end; ++i) {
          load_line(in[0], i * area, 1, area, x.a);
          const auto read = [upper](int64_t r, int64_t c) { return upper ? c >= r : c <= r; };
          PINNACE_TRY(check_finite(node, i, x.a, m, m, read));
          for (int64_t r = 0; r < m; ++r) {
            for (int64_t c = 0; c < r; ++c) (upper ? x.a[r * m + c] = x.a[c * m + r] : x.a[c * m + r] = x.a[r * m + c]);
          }
          const double scale = scale_of(x.a, area);
          for (double& value : a.span()) value /= scale;
          make_tridiagonal(x, m);
          if (vectors) make_q_transposed(x, m);
          if (!diagonalize(x, m)) return node.error("the eigenvalues of matrix ", i, " of a were not found");
          if (loop_stops()) return {};
          std::iota(order.data(), order.data() + m, 0);
          std::sort(order.data(), order.data() + m,
                    [&](int64_t p, int64_t q) { return x.d[p] != x.d[q] ? x.d[p] < x.d[q] : p < q; });
          for (int64_t c = 0; c < m; ++c) {
            const int64_t from = order[c];
            x.v[c] = x.d[from] * scale;
            if (!vectors) continue;
            double* vector = x.z + from * m;
            const double sign = leading_sign(vector, m, 1);
            for (int64_t r = 0; r < m; ++r) vector[r] *= sign;
            store_line(out[1], i * area + c, m, m, vector);
          }
          store_line(out[0], i * m, 1, m, x.v);
        }
        return {};
      });
}
}  // namespace

PINNACE_OP(eigh){
    .name = "eigh",
    .inputs = {{"a", kFloats}},
    .attrs = {int_attr("upper", 0)},
    .min_outputs = 1,
    .max_outputs = 2,
    .types = eigh_types,
    .reference = eigh_reference,
    .work = Work::kSquare,
};
}  // namespace pinnace
