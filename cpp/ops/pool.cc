// Shape rules of pools and the arithmetic of means.
#include "ops/pool.h"

namespace pinnace {

Result<Window> check_pool(const NodeView& node, Shape& y) {
  const TensorType& x = node.input(0);
  PINNACE_ASSIGN(const Shape kernel, kernel_shape_of(node, x));
  PINNACE_ASSIGN(const Window w, window_of(node, x.shape, kernel, node.attr_int("ceil_mode") != 0));
  for (int d = 3 - w.rank; d < 3; ++d) {
    const int64_t extent = (w.kernel[d] - 1) * w.dilation[d] + 1;
    if (w.before[d] >= extent || w.after[d] >= extent) {
      return node.error("pads ", w.before[d], " and ", w.after[d], " must be smaller than the window's ", extent);
    }
  }
  y = {x.shape[0], x.shape[1]};
  for (int i = 0; i < w.rank; ++i) y.push_back(window_dim(w, node, x.shape, i));
  return w;
}

Result<Shape> global_pool_shape(const NodeView& node) {
  const TensorType& x = node.input(0);
  if (x.rank() < 2) return node.error("x is ", x, ", must be [N, C, ...]");
  Shape y(x.shape.size(), Dim(1));
  y[0] = x.shape[0];
  y[1] = x.shape[1];
  return y;
}

void load_summands(const TensorView& t, int64_t first, int64_t count, double* to) {
  if (!t.type->quantized()) return load_line(t, first, 1, count, to);
  const int32_t zero = scale_zero(*t.type).zero;
  for (int64_t i = 0; i < count; ++i) to[i] = load_int(t, first + i) - zero;
}

void store_mean(const TensorView& x, const TensorView& y, int64_t at, double sum, double count) {
  double mean = sum / count;
  if (x.type->quantized()) mean = static_cast<float>(sum) * scale_zero(*x.type).scale / static_cast<float>(count);
  store_line(y, at, 1, 1, &mean);
}

}  // namespace pinnace
