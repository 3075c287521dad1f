// cholesky: the lower triangle l with a positive diagonal for which l transposed(l) = a.
//   a  [..., M, M]  floats: symmetric and positive definite; only its lower triangle is read
//   l  as a; 0 above the diagonal
// In double, rounded once. A matrix that is not positive definite (or holds NaN) is an error that names it. ONNX has no
// such operator; PyTorch's linalg.cholesky.
#include <cmath>

#include "ops/lines.h"
#include "ops/move.h"

namespace pinnace {
namespace {
Result<TensorType> cholesky_type(const NodeView& node) {
  const TensorType& a = node.input(0);
  if (a.rank() < 2) return node.error("a must be [..., M, M], is ", a);
  if (differ(a.shape[a.shape.size() - 2], a.shape.back()))
    return node.error("the matrices of a ", a, " are not square");
  return a;
}

/// In place. False if a is not positive definite.
bool factor(double* a, int64_t m) {
  for (int64_t c = 0; c < m && !loop_stops(); ++c) {
    double rest = a[c * m + c];
    for (int64_t k = 0; k < c; ++k) rest -= a[c * m + k] * a[c * m + k];
    if (!(rest > 0)) return false;
    const double root = std::sqrt(rest);
    a[c * m + c] = root;
    for (int64_t r = c + 1; r < m; ++r) {
      double sum = a[r * m + c];
      for (int64_t k = 0; k < c; ++k) sum -= a[r * m + k] * a[c * m + k];
      a[r * m + c] = sum / root;
      a[c * m + r] = 0;
    }
  }
  return true;
}

Status cholesky_reference(const NodeView& node, std::span<const TensorView> in, std::span<const TensorView> out) {
  const int64_t m = in[0].dim(-1), area = m * m;
  if (out[0].elements() == 0) return {};
  return node.threads().ranges(out[0].elements() / area, 0.5 * static_cast<double>(m * area),
                               [&](int64_t begin, int64_t end) -> Status {
                                 PINNACE_ASSIGN(auto matrix, Scratch<double>::allocate(area, node.label()));
                                 for (int64_t i = begin; i < end; ++i) {
                                   load_line(in[0], i * area, 1, area, matrix.data());
                                   if (!factor(matrix.data(), m))
                                     return node.error("matrix ", i, " of a is not positive definite");
                                   store_line(out[0], i * area, 1, area, matrix.data());
                                 }
                                 return {};
                               });
}
}  // namespace

PINNACE_OP(cholesky){
    .name = "cholesky",
    .inputs = {{"a", kFloats}},
    .type = cholesky_type,
    .reference = cholesky_reference,
    .in_place = 1,
    .work = Work::kSquare,
};
}  // namespace pinnace
