// Checks of scales' shapes, and the arithmetic from elements to their scales.
#include "ops/linear_quantization.h"

namespace pinnace {
namespace {
/// True if `scale` stands for one value of the whole tensor; `blocks`: block_size is set, so that [1] may be a block.
bool per_tensor(const TensorType& scale, bool blocks) {
  return scale.rank() == 0 || (!blocks && scale.rank() == 1 && scale.shape[0] == Dim(1));
}
bool differ(Dim a, Dim b) {
  return a.known() && b.known() && a != b;
}
}  // namespace

double load_scale(const TensorView& scale, int64_t k) {
  if (scale.dtype() == DType::kI32) return scale.data<int32_t>()[k];
  if (is_small_float(scale.dtype())) return static_cast<double>(load_small(scale, k));
  return visit_float(scale.dtype(), [&](auto zero) { return widen(scale.data<decltype(zero)>()[k]); });
}

Status check_scale(const NodeView& node) {
  const TensorType &x = node.input(0), &scale = node.input(1);
  const int64_t block = node.attr_int("block_size");
  if (block < 0) return node.error("block_size ", block, " is negative");
  if (node.has_input(2)) {
    const TensorType& zero = node.input(2);
    bool other = zero.rank() != scale.rank();
    for (size_t d = 0; !other && d < scale.shape.size(); ++d) other = differ(zero.shape[d], scale.shape[d]);
    if (other) return node.error("zero point ", zero, " differs in shape from scale ", scale);
  }
  if (per_tensor(scale, block > 0)) return {};
  if (block == 0 && scale.rank() == 1 && !scale.shape[0].known()) return {};  // may be 1, when the axis does not count
  PINNACE_ASSIGN(const int axis, node.axis(node.attr_int("axis"), x.rank()));
  const Dim size = x.shape[static_cast<size_t>(axis)];
  if (block == 0) {
    if (scale.rank() != 1 || differ(scale.shape[0], size)) {
      return node.error("scale ", scale, " does not fit axis ", axis, " of ", x);
    }
    return {};
  }
  bool fits = scale.rank() == x.rank();
  for (int d = 0; fits && d < x.rank(); ++d) {
    const Dim own = x.shape[static_cast<size_t>(d)];
    const Dim want = d != axis ? own : own.known() ? Dim(own.size / block + (own.size % block != 0)) : Dim();
    fits = !differ(scale.shape[static_cast<size_t>(d)], want);
  }
  if (!fits) {
    return node.error("scale ", scale, " does not fit blocks of ", block, " along axis ", axis, " of ", x);
  }
  return {};
}

ScaleIndex::ScaleIndex(const NodeView& node) {
  const TensorType &x = node.input(0), &scale = node.input(1);
  const int64_t block = node.attr_int("block_size");
  if (per_tensor(scale, block > 0)) return;
  const int64_t axis = node.attr_int("axis");
  const auto d = static_cast<size_t>(axis < 0 ? axis + x.rank() : axis);
  inner_ = row_major_strides(x.shape)[d];
  size_ = x.shape[d].size;
  block_ = block;
  if (block) blocks_ = scale.shape[d].size;
}

}  // namespace pinnace
