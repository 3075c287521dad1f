// Shape and bins of the adaptive pools.
#include "ops/adaptive_pool.h"

namespace pinnace {

Result<Shape> adaptive_pool_shape(const NodeView& node) {
  const TensorType& x = node.input(0);
  const auto sizes = node.attr_ints("output_size");
  if (x.rank() < 3 || x.rank() > 5) return node.error("x is ", x, ", must have rank 3 to 5");
  if (sizes.size() + 2 != x.shape.size()) {
    return node.error("output_size ", list_text(sizes), " must have ", x.rank() - 2, " entries for x ", x);
  }
  Shape shape = {x.shape[0], x.shape[1]};
  for (size_t i = 0; i < sizes.size(); ++i) {
    if (sizes[i] < 0 || sizes[i] > INT32_MAX || x.shape[2 + i].size > INT32_MAX) {
      return node.error("output_size ", list_text(sizes), " or a size of x ", x, " is outside [0, 2^31)");
    }
    shape.push_back(sizes[i]);
  }
  return shape;
}

AdaptiveBins::AdaptiveBins(const TensorView& x, const TensorView& y) {
  for (int i = 2; i < x.rank(); ++i) {
    from[static_cast<size_t>(i + 3 - x.rank())] = x.dim(i);
    to[static_cast<size_t>(i + 3 - x.rank())] = y.dim(i);
  }
  in_size = from[0] * from[1] * from[2];
  out_size = to[0] * to[1] * to[2];
  if (in_size == 0) from = {};  // bins of nothing: no loop over the other sizes
}

}  // namespace pinnace
