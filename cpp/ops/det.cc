// det: the determinants of square matrices.
//   x     [..., M, M]  floats
//   y     [...]  as x
//   sign  as y: -1, 0 or 1; 0 of NaN
//   log   as y: the logarithm of the determinant's magnitude, finite where y leaves the range of its type; -inf of 0
// Gaussian elimination with the largest element of each column as pivot, in double, rounded once. An empty matrix has
// the determinant 1, a matrix with a NaN has NaN. Outputs may be left out from the end; ONNX has y alone. Source: ONNX
// Det, opset 22.
#include <algorithm>
#include <cmath>
#include <numbers>

#include "ops/lines.h"
#include "ops/move.h"

namespace pinnace {
namespace {
Status det_types(const NodeView& node, std::span<TensorType> outputs) {
  const TensorType& x = node.input(0);
  if (x.rank() < 2) return node.error("x must be [..., M, M], is ", x);
  const Dim rows = x.shape[x.shape.size() - 2], columns = x.shape.back();
  if (differ(rows, columns)) return node.error("the matrices of x ", x, " are not square");
  for (TensorType& y : outputs) y = {x.dtype, Shape(x.shape.begin(), x.shape.end() - 2), nullptr};
  return {};
}

/// value * 2^exponent: a product that leaves the range of double is scaled.
struct Determinant {
  double value = 1;
  int64_t exponent = 0;

  void multiply(double by) {
    if (in_range(value * by)) {
      value *= by;
      return;
    }
    int of_value = 0, of_by = 0;  // what is not finite has any
    value = std::frexp(value, &of_value) * std::frexp(by, &of_by);
    if (std::isfinite(value)) exponent += of_value + of_by;
  }
  /// y, or y, sign and log.
  void store(double* to, bool all) const {
    const double y = std::ldexp(value, static_cast<int>(std::clamp<int64_t>(exponent, -5000, 5000)));
    to[0] = y + 0.0;  // no -0
    if (!all) return;
    to[1] = static_cast<double>(int{value > 0} - int{value < 0});
    to[2] = in_range(y) ? std::log(std::abs(y))
                        : std::log(std::abs(value)) + static_cast<double>(exponent) * std::numbers::ln2;
  }
  static bool in_range(double x) { return std::abs(x) > 1e-290 && std::abs(x) < 1e290; }
};

/// Destroys a [size, size].
Determinant determinant(double* a, int64_t size) {
  Determinant product;
  for (int64_t i = 0; i < size * size; ++i) {
    if (std::isnan(a[i])) return {a[i], 0};
  }
  for (int64_t k = 0; k < size && !loop_stops(); ++k) {
    int64_t pivot = k;
    for (int64_t r = k + 1; r < size; ++r) {
      if (std::abs(a[r * size + k]) > std::abs(a[pivot * size + k])) pivot = r;
    }
    if (pivot != k) {
      for (int64_t c = k; c < size; ++c) std::swap(a[pivot * size + c], a[k * size + c]);
      product.multiply(-1);
    }
    const double top = a[k * size + k];
    product.multiply(top);
    if (top == 0) continue;  // the whole column is 0: nothing to eliminate
    for (int64_t r = k + 1; r < size; ++r) {
      if (r % kRowsBetweenLooks == 0 && loop_stops()) break;
      const double factor = a[r * size + k] / top;
      if (factor == 0) continue;
      for (int64_t c = k + 1; c < size; ++c) a[r * size + c] -= factor * a[k * size + c];
    }
  }
  return product;
}

Status det_reference(const NodeView& node, std::span<const TensorView> in, std::span<const TensorView> out) {
  const int64_t size = in[0].dim(-1), area = size * size;
  return node.threads().ranges(out[0].elements(), 0.5 * static_cast<double>(size * area + area),
                               [&](int64_t begin, int64_t end) -> Status {
                                 PINNACE_ASSIGN(auto matrix, Scratch<double>::allocate(area, node.label()));
                                 for (int64_t i = begin; i < end; ++i) {
                                   load_line(in[0], i * area, 1, area, matrix.data());
                                   double results[3];
                                   determinant(matrix.data(), size).store(results, out.size() > 1);
                                   for (size_t o = 0; o < out.size(); ++o) store_line(out[o], i, 1, 1, results + o);
                                 }
                                 return {};
                               });
}
}  // namespace

PINNACE_OP(det){
    .name = "det",
    .inputs = {{"x", kFloats}},
    .max_outputs = 3,
    .types = det_types,
    .reference = det_reference,
    .work = Work::kSquare,
};
}  // namespace pinnace
