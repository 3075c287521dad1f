// qr: the factors q, with orthonormal columns, and r, 0 below its diagonal, for which q r = a.
//   a     [..., M, N]  floats
//   mode  "reduced" (default), "complete" or "r"
//   q     [..., M, K] with K = min(M, N); complete: [..., M, M]; r: [0], as a
//   r     [..., K, N]; complete: [..., M, N], as a
// By Householder reflections in double, rounded once. Signs are LAPACK's: an element of r's diagonal has the opposite
// sign of the element that its reflection found there, and keeps that element where all below it is 0. Where columns
// depend on those before them, rounding decides on columns of q. NaN and infinities pass. Source: LAPACK dgeqrf and
// dorgqr; Golub and Van Loan, Matrix Computations, 4th edition, 5.2.2. ONNX has no such operator; PyTorch's linalg.qr.
#include <algorithm>

#include "ops/lines.h"
#include "ops/move.h"
#include "ops/orthogonal.h"

namespace pinnace {
namespace {
Status qr_types(const NodeView& node, std::span<TensorType> outputs) {
  const TensorType& a = node.input(0);
  const std::string_view mode = node.attr_string("mode");
  if (mode != "reduced" && mode != "complete" && mode != "r") return node.error("no mode is called ", mode);
  if (a.rank() < 2) return node.error("a must be [..., M, N], is ", a);
  Shape q(a.shape.begin(), a.shape.end() - 1), r = a.shape;
  const Dim m = q.back(), k = mode == "complete" ? m : dim_least(m, a.shape.back());
  q.push_back(k);
  r[r.size() - 2] = k;
  outputs[0] = {a.dtype, mode == "r" ? Shape{Dim(0)} : std::move(q), nullptr};
  outputs[1] = {a.dtype, std::move(r), nullptr};
  return {};
}

Status qr_reference(const NodeView& node, std::span<const TensorView> in, std::span<const TensorView> out) {
  const int64_t m = in[0].dim(-2), n = in[0].dim(-1), least = std::min(m, n), rows = out[1].dim(-2);
  const bool wants_q = node.attr_string("mode") != "r";
  const int64_t matrices = matrix_count(in[0]);
  const double cost = 4 * static_cast<double>(m) * static_cast<double>(std::max(m, n)) * static_cast<double>(least);
  return node.threads().ranges(matrices, cost, [&](int64_t begin, int64_t end) -> Status {
    PINNACE_ASSIGN(auto a, Scratch<double>::allocate(m * n, node.label()));
    PINNACE_ASSIGN(auto q, Scratch<double>::allocate(wants_q ? m * rows : 0, node.label()));
    PINNACE_ASSIGN(auto tau, Scratch<double>::allocate(least, node.label()));
    PINNACE_ASSIGN(auto work, Scratch<double>::allocate(std::max(n, rows), node.label()));
    for (int64_t i = begin; i < end; ++i) {
      load_line(in[0], i * m * n, 1, m * n, a.data());
      factor_qr(a.data(), m, n, tau.data(), work.data());
      if (loop_stops()) return {};
      if (wants_q) {
        make_identity(q.data(), m, rows);
        apply_q(a.data(), m, n, tau.data(), q.data(), rows, rows, work.data());
        if (loop_stops()) return {};
        store_line(out[0], i * m * rows, 1, m * rows, q.data());
      }
      for (int64_t r = 1; r < rows; ++r) std::fill_n(a.data() + r * n, std::min(r, n), 0.0);
      store_line(out[1], i * rows * n, 1, rows * n, a.data());
    }
    return {};
  });
}
}  // namespace

PINNACE_OP(qr){
    .name = "qr",
    .inputs = {{"a", kFloats}},
    .attrs = {string_attr("mode", "reduced")},
    .min_outputs = 2,
    .max_outputs = 2,
    .types = qr_types,
    .reference = qr_reference,
    .work = Work::kSquare,
};
}  // namespace pinnace
