// svd: singular values s, descending, and orthonormal singular vectors: a = u diag(s) vt.
//   a              [..., M, N]  floats
//   full_matrices  int, default 0; 1: u and vt are square
//   s              [..., K] with K = min(M, N), as a
//   u              optional  [..., M, K], full [..., M, M], as a: left singular vectors are its columns
//   vt             optional  [..., K, N], full [..., N, N], as a: right singular vectors are its rows
// In double, rounded once: QR, then Jacobi rotations of r's rows until all are orthogonal, which finds small values as
// exactly as large ones. Of each column of u the first element with at least 0.9 of the largest magnitude is positive:
// pairs of vectors are determined but for their sign. Those of equal values, and of the value 0, are determined up to
// rotations, in which rounding decides. What full_matrices adds to u are the last columns of qr's complete q of the
// others; to vt likewise, its rows taken for columns. NaN or an infinity is an error that names matrix and place; so is
// a matrix that 60 sweeps do not suffice for. Source: Golub and Van Loan, Matrix Computations, 4th edition, 8.6.3;
// Drmac and Veselic, New fast and accurate Jacobi SVD algorithm, 2008; LAPACK dgesvj. ONNX has no such operator;
// PyTorch's linalg.svd and linalg.svdvals.
#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "ops/lines.h"
#include "ops/move.h"
#include "ops/orthogonal.h"

namespace pinnace {
namespace {
constexpr int kMostSweeps = 60;  // it takes about ten

Status svd_types(const NodeView& node, std::span<TensorType> outputs) {
  const TensorType& a = node.input(0);
  if (a.rank() < 2) return node.error("a must be [..., M, N], is ", a);
  if (outputs.size() == 2) return node.error("u comes with vt");
  const bool full = node.attr_int("full_matrices") != 0;
  const Dim m = a.shape[a.shape.size() - 2], n = a.shape.back(), k = dim_least(m, n);
  Shape s(a.shape.begin(), a.shape.end() - 2);
  const auto with = [&](Dim rows, Dim columns) {
    Shape shape = s;
    shape.push_back(rows);
    shape.push_back(columns);
    return shape;
  };
  if (outputs.size() > 1) {
    outputs[1] = {a.dtype, with(m, full ? m : k), nullptr};
    outputs[2] = {a.dtype, with(full ? n : k, n), nullptr};
  }
  s.push_back(k);
  outputs[0] = {a.dtype, std::move(s), nullptr};
  return {};
}

/// Rotates pairs of rows of r [n, n], and with them those of j (null: not wanted), until each pair is orthogonal but
/// for rounding. squares [n]: work. False if they do not become so.
bool orthogonalize_rows(double* r, double* j, double* squares, int64_t n) {
  const double bound = std::numeric_limits<double>::epsilon() * std::sqrt(static_cast<double>(std::max<int64_t>(n, 4)));
  // Squares of rows that count as 0 beside the others, whose largest element is about 1: their products underflow.
  constexpr double kNothing = 1e-280;
  for (int64_t p = 0; p < n; ++p) squares[p] = dot(r + p * n, r + p * n, n);
  for (int sweep = 0; sweep < kMostSweeps; ++sweep) {
    bool rotated = false;
    for (int64_t p = 0; p + 1 < n; ++p) {
      if (loop_stops()) return true;
      for (int64_t q = p + 1; q < n; ++q) {
        double *a = r + p * n, *b = r + q * n;
        const double aa = squares[p], bb = squares[q];
        if (std::min(aa, bb) < kNothing) continue;
        const double ab = dot(a, b, n);
        if (std::abs(ab) <= bound * std::sqrt(aa) * std::sqrt(bb)) continue;
        rotated = true;
        const double zeta = (bb - aa) / (2 * ab);
        const double t = std::copysign(1 / (std::abs(zeta) + std::hypot(1, zeta)), zeta);
        const double c = 1 / std::sqrt(1 + t * t), s = c * t;
        const auto rotate = [&](double* x, double* y) {
          for (int64_t k = 0; k < n; ++k) {
            const double first = x[k], second = y[k];
            x[k] = c * first - s * second;
            y[k] = s * first + c * second;
          }
        };
        rotate(a, b);
        squares[p] = dot(a, a, n);
        squares[q] = dot(b, b, n);
        if (j != nullptr) rotate(j + p * n, j + q * n);
      }
    }
    if (!rotated) return true;
  }
  return false;
}

/// Decomposes [m, n] matrices with m >= n; transposed ones of [n, m].
class Decomposition {
 public:
  static Result<Decomposition> make(int64_t m, int64_t n, bool vectors, bool full, std::string_view what) {
    const int64_t columns = full ? m : n;
    PINNACE_ASSIGN(auto a, Scratch<double>::allocate(m * n, what));
    PINNACE_ASSIGN(auto squares, Scratch<double>::allocate((vectors ? 3 : 1) * n * n, what));
    PINNACE_ASSIGN(auto u, Scratch<double>::allocate(vectors ? m * columns : 0, what));
    PINNACE_ASSIGN(auto lines, Scratch<double>::allocate(3 * n + std::max(columns, n), what));
    PINNACE_ASSIGN(auto order, Scratch<int64_t>::allocate(n, what));
    return Decomposition(m, n, columns, vectors, std::move(a), std::move(squares), std::move(u), std::move(lines),
                         std::move(order));
  }

  double* a() { return a_.data(); }                      ///< [m, n], to be filled; destroyed
  const double* s() { return lines_.data(); }            ///< [n]
  double* u() { return u_.data(); }                      ///< [m, columns]
  double* v() { return squares_.data() + 2 * n_ * n_; }  ///< [n, n]: right singular vectors are its columns

  /// False if it is not found.
  bool run() {
    double *r = squares_.data(), *j = vectors_ ? r + n_ * n_ : nullptr;
    double *s = lines_.data(), *norms = s + n_, *tau = norms + n_, *work = tau + n_;
    const double scale = scale_of(a(), m_ * n_);
    for (double& x : a_.span()) x /= scale;
    factor_qr(a(), m_, n_, tau, work);
    for (int64_t p = 0; p < n_; ++p) {
      std::fill_n(r + p * n_, p, 0.0);
      std::copy_n(a() + p * n_ + p, n_ - p, r + p * n_ + p);
    }
    if (j != nullptr) make_identity(j, n_, n_);
    if (!orthogonalize_rows(r, j, norms, n_)) return false;
    for (int64_t p = 0; p < n_; ++p) norms[p] = norm_of(r + p * n_, n_);
    std::iota(order_.data(), order_.data() + n_, 0);
    std::sort(order_.data(), order_.data() + n_,
              [&](int64_t p, int64_t q) { return norms[p] != norms[q] ? norms[p] > norms[q] : p < q; });
    for (int64_t c = 0; c < n_; ++c) s[c] = norms[order_[c]] * scale;
    if (!vectors_) return true;
    // u = q transposed(j): the columns of q that a full u has beside these are replaced in complete().
    std::fill_n(u(), m_ * columns_, 0.0);
    for (int64_t c = 0; c < n_; ++c) {
      for (int64_t k = 0; k < n_; ++k) u()[k * columns_ + c] = j[order_[c] * n_ + k];
    }
    apply_q(a(), m_, n_, tau, u(), columns_, n_, work);
    // Rows of r are orthogonal, of lengths s. QR makes vectors of length 1 of them even where they are 0.
    for (int64_t c = 0; c < n_; ++c) {
      for (int64_t k = 0; k < n_; ++k) j[k * n_ + c] = r[order_[c] * n_ + k];
    }
    factor_qr(j, n_, n_, tau, work);
    make_identity(v(), n_, n_);
    apply_q(j, n_, n_, tau, v(), n_, n_, work);
    for (int64_t c = 0; c < n_; ++c) {
      if (j[c * n_ + c] < 0) flip(v() + c, n_, n_);
    }
    return true;
  }

  /// Turns pairs of vectors so that those of u (of v where `by_v`) have the sign that is the rule; then fills the
  /// columns of a full u.
  void finish(bool by_v) {
    for (int64_t c = 0; c < n_; ++c) {
      if (by_v ? leading_sign(v() + c, n_, n_) > 0 : leading_sign(u() + c, m_, columns_) > 0) continue;
      flip(u() + c, m_, columns_);
      flip(v() + c, n_, n_);
    }
    if (columns_ == n_) return;
    double *tau = lines_.data() + 2 * n_, *work = tau + n_;
    for (int64_t r = 0; r < m_; ++r) std::copy_n(u() + r * columns_, n_, a() + r * n_);
    factor_qr(a(), m_, n_, tau, work);
    for (int64_t r = 0; r < m_; ++r) {
      for (int64_t c = n_; c < columns_; ++c) u()[r * columns_ + c] = r == c ? 1 : 0;
    }
    apply_q(a(), m_, n_, tau, u() + n_, columns_, columns_ - n_, work);
  }

 private:
  Decomposition(int64_t m, int64_t n, int64_t columns, bool vectors, Scratch<double> a, Scratch<double> squares,
                Scratch<double> u, Scratch<double> lines, Scratch<int64_t> order)
      : m_(m),
        n_(n),
        columns_(columns),
        vectors_(vectors),
        a_(std::move(a)),
        squares_(std::move(squares)),
        u_(std::move(u)),
        lines_(std::move(lines)),
        order_(std::move(order)) {}

  static void flip(double* x, int64_t count, int64_t step) {
    for (int64_t i = 0; i < count; ++i) x[i * step] = -x[i * step];
  }

  int64_t m_, n_, columns_;
  bool vectors_;
  Scratch<double> a_, squares_, u_, lines_;
  Scratch<int64_t> order_;
};

/// Matrix `at` of t, [rows, columns], from or to x [columns, rows].
void load_transposed(const TensorView& t, int64_t at, int64_t rows, int64_t columns, double* x) {
  for (int64_t c = 0; c < columns; ++c) load_line(t, at * rows * columns + c, columns, rows, x + c * rows);
}
void store_transposed(const TensorView& t, int64_t at, int64_t rows, int64_t columns, const double* x) {
  for (int64_t c = 0; c < columns; ++c) store_line(t, at * rows * columns + c, columns, rows, x + c * rows);
}

Status svd_reference(const NodeView& node, std::span<const TensorView> in, std::span<const TensorView> out) {
  const int64_t m = in[0].dim(-2), n = in[0].dim(-1), tall = std::max(m, n), least = std::min(m, n);
  const bool vectors = out.size() > 1, full = node.attr_int("full_matrices") != 0, wide = n > m;
  const double cost =
      40 * static_cast<double>(tall) * static_cast<double>(least) * static_cast<double>(full ? tall : least);
  return node.threads().ranges(matrix_count(in[0]), cost, [&](int64_t begin, int64_t end) -> Status {
    PINNACE_ASSIGN(auto x, Decomposition::make(tall, least, vectors, full, node.label()));
    const int64_t columns = full ? tall : least;
    for (int64_t i = begin; i < end; ++i) {
      load_line(in[0], i * m * n, 1, m * n, x.a());
      PINNACE_TRY(check_finite(node, i, x.a(), m, n, [](int64_t, int64_t) { return true; }));
      if (wide) load_transposed(in[0], i, m, n, x.a());
      if (!x.run()) return node.error("the singular values of matrix ", i, " of a were not found");
      store_line(out[0], i * least, 1, least, x.s());
      if (!vectors) continue;
      x.finish(wide);
      if (loop_stops()) return {};
      if (wide) {  // of the transposed matrix the two change places
        store_line(out[1], i * m * m, 1, m * m, x.v());
        store_transposed(out[2], i, columns, n, x.u());
      } else {
        store_line(out[1], i * m * columns, 1, m * columns, x.u());
        store_transposed(out[2], i, n, n, x.v());
      }
    }
    return {};
  });
}
}  // namespace

PINNACE_OP(svd){
    .name = "svd",
    .inputs = {{"a", kFloats}},
    .attrs = {int_attr("full_matrices", 0)},
    .min_outputs = 1,
    .max_outputs = 3,
    .types = svd_types,
    .reference = svd_reference,
    .work = Work::kSquare,
};
}  // namespace pinnace
