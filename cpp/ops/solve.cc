// solve: the x for which a x = b, for square matrices; with b the identity, the inverse.
//   a  [..., M, M]  floats
//   b  [..., M, K]  as a; the leading dimensions of both broadcast
//   x  [..., M, K]  as a
// Gaussian elimination with the largest element of each column as pivot, in double, rounded once. A matrix whose pivot
// is 0 or NaN is an error that names the matrix. ONNX has no such operator; PyTorch's linalg.solve and linalg.inv.
#include <cmath>

#include "ops/lines.h"
#include "ops/move.h"

namespace pinnace {
namespace {
Result<TensorType> solve_type(const NodeView& node) {
  const TensorType &a = node.input(0), &b = node.input(1);
  if (a.rank() < 2 || b.rank() < 2) return node.error("a and b must be matrices, are ", a, " and ", b);
  const Dim rows = a.shape[a.shape.size() - 2], columns = a.shape.back(), given = b.shape[b.shape.size() - 2];
  if (differ(rows, columns)) return node.error("the matrices of a ", a, " are not square");
  if (differ(rows, given)) return node.error("a ", a, " and b ", b, " have other rows");
  PINNACE_ASSIGN(Shape shape, broadcast_shapes(node, Shape(a.shape.begin(), a.shape.end() - 2),
                                               Shape(b.shape.begin(), b.shape.end() - 2)));
  shape.push_back(rows.known() ? rows : given);
  shape.push_back(b.shape.back());
  return TensorType{a.dtype, std::move(shape), nullptr};
}

/// Solves in place: a [m, m] is destroyed, b [m, k] becomes x. False if a is singular.
bool eliminate(double* a, double* b, int64_t m, int64_t k) {
  for (int64_t c = 0; c < m && !loop_stops(); ++c) {
    int64_t pivot = c;
    for (int64_t r = c + 1; r < m; ++r) {
      if (std::abs(a[r * m + c]) > std::abs(a[pivot * m + c])) pivot = r;
    }
    if (!(std::abs(a[pivot * m + c]) > 0)) return false;
    if (pivot != c) {
      for (int64_t i = 0; i < m; ++i) std::swap(a[pivot * m + i], a[c * m + i]);
      for (int64_t i = 0; i < k; ++i) std::swap(b[pivot * k + i], b[c * k + i]);
    }
    for (int64_t r = c + 1; r < m; ++r) {
      const double factor = a[r * m + c] / a[c * m + c];
      if (factor == 0) continue;
      for (int64_t i = c + 1; i < m; ++i) a[r * m + i] -= factor * a[c * m + i];
      for (int64_t i = 0; i < k; ++i) b[r * k + i] -= factor * b[c * k + i];
    }
  }
  for (int64_t r = m; r-- > 0 && !loop_stops();) {
    for (int64_t i = 0; i < k; ++i) {
      double rest = b[r * k + i];
      for (int64_t c = r + 1; c < m; ++c) rest -= a[r * m + c] * b[c * k + i];
      b[r * k + i] = rest / a[r * m + r];
    }
  }
  return true;
}

/// Which matrix of `shape` [..., r, c] belongs to matrix `at` of `whole`, with dimensions of 1 repeated.
int64_t matrix_of(const Shape& shape, const Shape& whole, int64_t at) {
  int64_t index = 0, step = 1;
  for (size_t i = 2; i < whole.size(); ++i) {
    const int64_t size = whole[whole.size() - 1 - i].size, place = at % size;
    at /= size;
    if (i >= shape.size()) continue;
    const int64_t own = shape[shape.size() - 1 - i].size;
    if (own != 1) index += place * step;
    step *= own;
  }
  return index;
}

Status solve_reference(const NodeView& node, std::span<const TensorView> in, std::span<const TensorView> out) {
  const int64_t m = in[0].dim(-1), k = in[1].dim(-1);
  const int64_t elements = out[0].elements();
  if (elements == 0) return {};
  return node.threads().ranges(
      elements / (m * k), 0.5 * static_cast<double>(m * m * (m + k)), [&](int64_t begin, int64_t end) -> Status {
        PINNACE_ASSIGN(auto a, Scratch<double>::allocate(m * m, node.label()));
        PINNACE_ASSIGN(auto b, Scratch<double>::allocate(m * k, node.label()));
        for (int64_t i = begin; i < end; ++i) {
          load_line(in[0], matrix_of(in[0].type->shape, out[0].type->shape, i) * m * m, 1, m * m, a.data());
          load_line(in[1], matrix_of(in[1].type->shape, out[0].type->shape, i) * m * k, 1, m * k, b.data());
          if (!eliminate(a.data(), b.data(), m, k)) return node.error("matrix ", i, " of a is singular");
          store_line(out[0], i * m * k, 1, m * k, b.data());
        }
        return {};
      });
}
}  // namespace

PINNACE_OP(solve){
    .name = "solve",
    .inputs = {{"a", kFloats}, {"b", kFloats}},
    .type = solve_type,
    .reference = solve_reference,
    .work = Work::kSquare,
};
}  // namespace pinnace
