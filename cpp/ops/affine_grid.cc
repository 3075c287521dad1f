// affine_grid: where an affine map takes the elements of an image, as grid_sample reads it.
//   theta  [N, k, k + 1]  floats, k = 2 or 3: one map per image; it takes (x, y, 1) or (x, y, z, 1)
//   size   [k + 2]  i64: N, C and the sizes of the image; C is not used
//   grid   [N, size[2], ..., k]  as theta: place along the last dimension first
//   align_corners  int, default 0: -1 and 1 are the outer edges of the image; 1: the centres of its outer elements
// Places and sums in double, rounded once. With align_corners a dimension of size 1 is at 0. NaN and infinities go
// through products and sums as IEEE 754 has them. Source: ONNX AffineGrid, opset 20.
#include <numeric>

#include "ops/affine_grid.h"

#include "ops/lines.h"
#include "ops/move.h"

namespace pinnace {
namespace {
Result<TensorType> affine_grid_type(const NodeView& node) {
  const TensorType& theta = node.input(0);
  PINNACE_ASSIGN(const Dim length, vector_length(node, 1, false));
  const Dim rows = theta.rank() == 3 ? theta.shape[1] : Dim(), columns = theta.rank() == 3 ? theta.shape[2] : Dim();
  const int64_t k = rows.known()      ? rows.size
                    : columns.known() ? columns.size - 1
                    : length.known()  ? length.size - 2
                                      : Dim::kUnknown;
  if (theta.rank() == 3 && k == Dim::kUnknown) {
    return node.error("the sizes of theta or the length of size must be known, theta is ", theta);
  }
  if (theta.rank() != 3 || k < 2 || k > 3 || differ(rows, Dim(k)) || differ(columns, Dim(k + 1))) {
    return node.error("theta must be [N,2,3] or [N,3,4], is ", theta);
  }
  if (differ(length, Dim(k + 2))) {
    return node.error("size ", node.input(1), " must have ", k + 2, " entries for theta ", theta);
  }
  TensorType grid{theta.dtype, Shape(static_cast<size_t>(k + 2)), nullptr};
  grid.shape[0] = theta.shape[0];
  grid.shape.back() = k;
  if (const auto sizes = node.input_known(1)) {
    for (size_t i = 0; i < sizes->size(); ++i) {
      const KnownInt& size = (*sizes)[i];
      if (size.known && size.value < 0) return node.error("size has ", size.value, ", which is negative");
      if (i == 0) {
        const auto batch = dim_merge(theta.shape[0], size.dim());
        if (!batch) return node.error("size has ", size.value, " images, theta is ", theta);
        grid.shape[0] = *batch;
      } else if (i > 1) {
        grid.shape[i - 1] = size.dim();
      }
    }
  }
  return grid;
}

Status affine_grid_reference(const NodeView& node, std::span<const TensorView> in, std::span<const TensorView> out) {
  const TensorView theta = in[0], grid = out[0];
  const bool align = node.attr_int("align_corners") != 0;
  const int k = grid.dim(-1) == 3 ? 3 : 2;
  const auto place = [&](int64_t i, int64_t size) { return affine_grid_place(i, size, align); };
  const int64_t depth = k == 3 ? grid.dim(1) : 1, height = grid.dim(k - 1), width = grid.dim(k);
  if (grid.elements() == 0) return {};  // one of its sizes may still be huge
  const double cost = 60 * static_cast<double>(width);
  node.threads().ranges(grid.dim(0) * depth * height, cost, [&](int64_t begin, int64_t end) {
    for (int64_t row = begin; row < end; ++row) {
      const int64_t y = row % height, z = row / height % depth, n = row / height / depth;
      double map[12] = {};
      load_line(theta, n * k * (k + 1), 1, k * (k + 1), map);
      for (int64_t x = 0; x < width; ++x) {
        const double from[3] = {place(x, width), place(y, height), place(z, depth)};
        double to[3];
        for (int r = 0; r < k; ++r) {
          const double* line = map + r * (k + 1);
          to[r] = std::inner_product(line, line + k, from, line[k]);
        }
        store_line(grid, (row * width + x) * k, 1, k, to);
      }
    }
  });
  return {};
}
}  // namespace

PINNACE_OP(affine_grid){
    .name = "affine_grid",
    .inputs = {{"theta", kFloats}, {"size", kI64}},
    .attrs = {int_attr("align_corners", 0)},
    .type = affine_grid_type,
    .reference = affine_grid_reference,
};
}  // namespace pinnace
