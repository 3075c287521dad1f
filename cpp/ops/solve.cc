// solve: the x for which a x = b, for square matrices; with b the identity, the inverse.
//   a     [..., M, M]  floats
//   b     [..., M, K]  as a; the leading dimensions of both broadcast
//   form  "general" (default), "lower" or "upper": only that triangle of a is read, by substitution
//   unit  int, default 0; 1: the diagonal of a triangle counts as 1 and is not read
//   x     [..., M, K]  as a
//   info  [...]  i32, may be left out: 0, or which pivot is 0, counted from 1; of a triangle 0
// General: Gaussian elimination with the largest element of each column as pivot. In double, rounded once. A pivot of 0
// is an error that names the matrix; where info is an output, and on the diagonal of a triangle, x is divided by it.
// NaN and infinities pass. ONNX has no such operator; PyTorch's linalg.solve_ex, linalg.inv_ex and
// linalg.solve_triangular.
#include <algorithm>
#include <cmath>

#include "ops/lines.h"
#include "ops/move.h"
#include "ops/orthogonal.h"

namespace pinnace {
namespace {
Status solve_types(const NodeView& node, std::span<TensorType> outputs) {
  const std::string_view form = node.attr_string("form");
  if (form != "general" && form != "lower" && form != "upper") return node.error("no form is called ", form);
  const TensorType &a = node.input(0), &b = node.input(1);
  if (a.rank() < 2 || b.rank() < 2) return node.error("a and b must be matrices, are ", a, " and ", b);
  const Dim rows = a.shape[a.shape.size() - 2], columns = a.shape.back(), given = b.shape[b.shape.size() - 2];
  if (differ(rows, columns)) return node.error("the matrices of a ", a, " are not square");
  if (differ(rows, given)) return node.error("a ", a, " and b ", b, " have other rows");
  PINNACE_ASSIGN(Shape shape, broadcast_shapes(node, Shape(a.shape.begin(), a.shape.end() - 2),
                                               Shape(b.shape.begin(), b.shape.end() - 2)));
  if (outputs.size() > 1) outputs[1] = {DType::kI32, shape, nullptr};
  shape.push_back(rows.known() ? rows : given);
  shape.push_back(b.shape.back());
  outputs[0] = {a.dtype, std::move(shape), nullptr};
  return {};
}

/// Makes a [m, m] an upper triangle, and does to b [m, k] the same. Returns the first column without a pivot, counted
/// from 1, or 0.
int64_t eliminate(double* a, double* b, int64_t m, int64_t k) {
  int64_t info = 0;
  for (int64_t c = 0; c < m && !loop_stops(); ++c) {
    int64_t pivot = c;
    for (int64_t r = c + 1; r < m; ++r) {
      if (std::abs(a[r * m + c]) > std::abs(a[pivot * m + c])) pivot = r;
    }
    if (a[pivot * m + c] == 0) {
      if (info == 0) info = c + 1;
      continue;
    }
    if (pivot != c) {
      std::swap_ranges(a + pivot * m, a + (pivot + 1) * m, a + c * m);
      std::swap_ranges(b + pivot * k, b + (pivot + 1) * k, b + c * k);
    }
    for (int64_t r = c + 1; r < m; ++r) {
      if (r % kRowsBetweenLooks == 0 && loop_stops()) break;
      const double factor = a[r * m + c] / a[c * m + c];
      if (factor == 0) continue;
      for (int64_t i = c + 1; i < m; ++i) a[r * m + i] -= factor * a[c * m + i];
      for (int64_t i = 0; i < k; ++i) b[r * k + i] -= factor * b[c * k + i];
    }
  }
  return info;
}

/// b [m, k] becomes x, for a triangle a [m, m].
void substitute(const double* a, double* b, int64_t m, int64_t k, bool upper, bool unit) {
  for (int64_t step = 0; step < m && !loop_stops(); ++step) {
    const int64_t r = upper ? m - 1 - step : step, end = upper ? m : r;
    double* row = b + r * k;
    for (int64_t c = upper ? r + 1 : 0; c < end; ++c) {
      if (c % kRowsBetweenLooks == 0 && loop_stops()) break;
      const double factor = a[r * m + c];
      for (int64_t i = 0; i < k; ++i) row[i] -= factor * b[c * k + i];
    }
    for (int64_t i = 0; i < k && !unit; ++i) row[i] /= a[r * m + r];
  }
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
  const bool general = node.attr_string("form") == "general", says = out.size() > 1;
  const bool upper = node.attr_string("form") != "lower", unit = !general && node.attr_int("unit") != 0;
  if (out[0].elements() == 0 && !says) return {};
  return node.threads().ranges(
      matrix_count(out[0]), 0.5 * static_cast<double>(m * m * (m + k)), [&](int64_t begin, int64_t end) -> Status {
        PINNACE_ASSIGN(auto a, Scratch<double>::allocate(m * m, node.label()));
        PINNACE_ASSIGN(auto b, Scratch<double>::allocate(m * k, node.label()));
        for (int64_t i = begin; i < end; ++i) {
          load_line(in[0], matrix_of(in[0].type->shape, out[0].type->shape, i) * m * m, 1, m * m, a.data());
          load_line(in[1], matrix_of(in[1].type->shape, out[0].type->shape, i) * m * k, 1, m * k, b.data());
          const int64_t info = general ? eliminate(a.data(), b.data(), m, k) : 0;
          if (says)
            out[1].data<int32_t>()[i] = static_cast<int32_t>(info);
          else if (info)
            return node.error("matrix ", i, " of a is singular");
          substitute(a.data(), b.data(), m, k, upper, unit);
          store_line(out[0], i * m * k, 1, m * k, b.data());
        }
        return {};
      });
}
}  // namespace

PINNACE_OP(solve){
    .name = "solve",
    .inputs = {{"a", kFloats}, {"b", kFloats}},
    .attrs = {string_attr("form", "general"), int_attr("unit", 0)},
    .max_outputs = 2,
    .types = solve_types,
    .reference = solve_reference,
    .work = Work::kSquare,
};
}  // namespace pinnace
