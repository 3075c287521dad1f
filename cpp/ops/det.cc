// det: the determinants of square matrices.
//   x  [..., M, M]  floats
//   y  [...]  as x
// Gaussian elimination with the largest element of each column as pivot, in double, rounded once. An empty matrix has
// the determinant 1, a matrix with a NaN has NaN. Source: ONNX Det, opset 22.
#include <cmath>

#include "ops/lines.h"
#include "ops/move.h"

namespace pinnace {
namespace {
Result<TensorType> det_type(const NodeView& node) {
  const TensorType& x = node.input(0);
  if (x.rank() < 2) return node.error("x must be [..., M, M], is ", x);
  const Dim rows = x.shape[x.shape.size() - 2], columns = x.shape.back();
  if (differ(rows, columns)) return node.error("the matrices of x ", x, " are not square");
  return TensorType{x.dtype, Shape(x.shape.begin(), x.shape.end() - 2), nullptr};
}

/// Destroys a [size, size].
double determinant(double* a, int64_t size) {
  for (int64_t i = 0; i < size * size; ++i) {
    if (std::isnan(a[i])) return a[i];
  }
  double product = 1;
  for (int64_t k = 0; k < size && !loop_stops(); ++k) {
    int64_t pivot = k;
    for (int64_t r = k + 1; r < size; ++r) {
      if (std::abs(a[r * size + k]) > std::abs(a[pivot * size + k])) pivot = r;
    }
    if (pivot != k) {
      for (int64_t c = k; c < size; ++c) std::swap(a[pivot * size + c], a[k * size + c]);
      product = -product;
    }
    const double top = a[k * size + k];
    product *= top;
    if (top == 0) continue;  // the whole column is 0: nothing to eliminate
    for (int64_t r = k + 1; r < size; ++r) {
      const double factor = a[r * size + k] / top;
      if (factor == 0) continue;
      for (int64_t c = k + 1; c < size; ++c) a[r * size + c] -= factor * a[k * size + c];
    }
  }
  return product + 0.0;  // a change of rows makes no -0
}

Status det_reference(const NodeView& node, std::span<const TensorView> in, std::span<const TensorView> out) {
  const int64_t size = in[0].dim(-1), area = size * size;
  return node.threads().ranges(out[0].elements(), 0.5 * static_cast<double>(size * area + area),
                               [&](int64_t begin, int64_t end) -> Status {
                                 PINNACE_ASSIGN(auto matrix, Scratch<double>::allocate(area, node.label()));
                                 for (int64_t i = begin; i < end; ++i) {
                                   load_line(in[0], i * area, 1, area, matrix.data());
                                   const double y = determinant(matrix.data(), size);
                                   store_line(out[0], i, 1, 1, &y);
                                 }
                                 return {};
                               });
}
}  // namespace

PINNACE_OP(det){
    .name = "det",
    .inputs = {{"x", kFloats}},
    .type = det_type,
    .reference = det_reference,
    .work = Work::kSquare,
};
}  // namespace pinnace
