// cholesky: the lower triangle l with a positive diagonal for which l transposed(l) = a.
//   a     [..., M, M]  floats: symmetric and positive definite; only its lower triangle is read
//   l     as a; 0 above the diagonal
//   info  [...]  i32, may be left out: 0, or which column has no positive diagonal (or NaN there), counted from 1
// In double, rounded once. A matrix that is not positive definite is an error that names it; where info is an output,
// columns of l before that one are computed, it has what was to be the square of its diagonal, and all else is as in a.
// ONNX has no such operator; PyTorch's linalg.cholesky_ex.
#include <algorithm>
#include <cmath>

#include "ops/lines.h"
#include "ops/move.h"
#include "ops/orthogonal.h"

namespace pinnace {
namespace {
Status cholesky_types(const NodeView& node, std::span<TensorType> outputs) {
  const TensorType& a = node.input(0);
  if (a.rank() < 2) return node.error("a must be [..., M, M], is ", a);
  if (differ(a.shape[a.shape.size() - 2], a.shape.back()))
    return node.error("the matrices of a ", a, " are not square");
  outputs[0] = a;
  if (outputs.size() > 1) outputs[1] = {DType::kI32, Shape(a.shape.begin(), a.shape.end() - 2), nullptr};
  return {};
}

/// In place; returns info.
int64_t factor(double* a, int64_t m) {
  for (int64_t r = 0; r < m; ++r) std::fill(a + r * m + r + 1, a + (r + 1) * m, 0.0);
  for (int64_t c = 0; c < m && !loop_stops(); ++c) {
    double rest = a[c * m + c];
    for (int64_t k = 0; k < c; ++k) rest -= a[c * m + k] * a[c * m + k];
    a[c * m + c] = rest;
    if (!(rest > 0)) return c + 1;
    const double root = std::sqrt(rest);
    a[c * m + c] = root;
    for (int64_t r = c + 1; r < m; ++r) {
      if (r % kRowsBetweenLooks == 0 && loop_stops()) break;
      double sum = a[r * m + c];
      for (int64_t k = 0; k < c; ++k) sum -= a[r * m + k] * a[c * m + k];
      a[r * m + c] = sum / root;
    }
  }
  return 0;
}

Status cholesky_reference(const NodeView& node, std::span<const TensorView> in, std::span<const TensorView> out) {
  const int64_t m = in[0].dim(-1), area = m * m;
  const bool says = out.size() > 1;
  return node.threads().ranges(matrix_count(out[0]), 0.5 * static_cast<double>(m * area),
                               [&](int64_t begin, int64_t end) -> Status {
                                 PINNACE_ASSIGN(auto matrix, Scratch<double>::allocate(area, node.label()));
                                 for (int64_t i = begin; i < end; ++i) {
                                   load_line(in[0], i * area, 1, area, matrix.data());
                                   const int64_t info = factor(matrix.data(), m);
                                   if (says)
                                     out[1].data<int32_t>()[i] = static_cast<int32_t>(info);
                                   else if (info)
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
    .max_outputs = 2,
    .types = cholesky_types,
    .reference = cholesky_reference,
    .in_place = 1,
    .work = Work::kSquare,
};
}  // namespace pinnace
