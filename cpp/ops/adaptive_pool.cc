// Shape and bins of the adaptive pools.
#include "ops/adaptive_pool.h"

#include "ops/move.h"

namespace pinnace {

namespace {

/// From the elements of input 1, as far as they are known.
Result<Shape> computed_shape(const NodeView& node) {
  const TensorType& x = node.input(0);
  PINNACE_ASSIGN(const Dim length, vector_length(node, 1, false));
  if (length.known() && length.size + 2 != x.rank()) {
    return node.error("sizes has ", length.size, " elements, must have ", x.rank() - 2, " for x ", x);
  }
  Shape shape = {x.shape[0], x.shape[1]};
  const auto sizes = node.input_known(1);
  for (size_t i = 2; i < x.shape.size(); ++i) {
    const KnownInt size = sizes ? (*sizes)[i - 2] : KnownInt{};
    if (size.known && (size.value < 0 || size.value > INT32_MAX)) {
      return node.error("size ", size.value, " is outside [0, 2^31)");
    }
    shape.push_back(size.dim());
  }
  return shape;
}

}  // namespace

Result<Shape> adaptive_pool_shape(const NodeView& node) {
  const TensorType& x = node.input(0);
  const auto sizes = node.attr_ints("output_size");
  if (x.rank() < 3 || x.rank() > 5) return node.error("x is ", x, ", must have rank 3 to 5");
  for (size_t i = 2; i < x.shape.size(); ++i) {
    if (x.shape[i].size > INT32_MAX) return node.error("a size of x ", x, " is outside [0, 2^31)");
  }
  if (node.has_input(1)) {
    if (!sizes.empty()) return node.error("takes output_size or sizes, is given both");
    return computed_shape(node);
  }
  if (sizes.size() + 2 != x.shape.size()) {
    return node.error("output_size ", list_text(sizes), " must have ", x.rank() - 2, " entries for x ", x);
  }
  Shape shape = {x.shape[0], x.shape[1]};
  for (int64_t size : sizes) {
    if (size < 0 || size > INT32_MAX) return node.error("output_size ", list_text(sizes), " is outside [0, 2^31)");
    shape.push_back(size);
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
