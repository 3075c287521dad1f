// What x, w and bias of a convolution must satisfy.
#include "ops/convolution.h"

#include "ops/move.h"

namespace pinnace {

Dim convolution_length(const TensorType& w) {
  int64_t length = 1;
  for (size_t i = 1; i < w.shape.size(); ++i) {
    if (!w.shape[i].known()) return {};
    length = saturating_mul(length, w.shape[i].size);
  }
  return length;
}

Result<Window> check_convolution(const NodeView& node, int bias) {
  const TensorType &x = node.input(0), &w = node.input(1);
  const int64_t group = node.attr_int("group");
  if (x.rank() < 3 || x.rank() > 5 || w.rank() != x.rank()) {
    return node.error("x is ", x, " and w ", w, "; both must have the same rank, 3 to 5");
  }
  if (group < 1 || group > INT32_MAX) return node.error("group ", group, " is outside [1, 2^31)");
  const Dim C = x.shape[1], M = w.shape[0], group_in = w.shape[1];
  if (C.known() && group_in.known() && (C.size % group || C.size / group != group_in.size)) {
    return node.error("w ", w, " takes ", group_in.size, " channels of each of ", group, " groups, x ", x, " has ",
                      C.size, " channels");
  }
  if (M.known() && M.size % group) return node.error(M.size, " output channels do not divide into ", group, " groups");
  const auto stated = node.attr_ints("kernel_shape");
  const std::span<const Dim> kernel(w.shape.data() + 2, w.shape.size() - 2);
  bool agree = stated.empty() || stated.size() == kernel.size();
  for (size_t i = 0; agree && i < stated.size(); ++i) agree = !differ(kernel[i], Dim(stated[i]));
  if (!agree) return node.error("kernel_shape ", list_text(stated), " is not that of w ", w);
  if (bias >= 0 && node.has_input(bias)) {
    const TensorType& b = node.input(bias);
    if (b.rank() != 1 || differ(b.shape[0], M))
      return node.error("bias ", b, " must have one element per output channel of w ", w);
  }
  return window_of(node, x.shape, kernel, false);
}

Shape convolution_shape(const NodeView& node, const Window& window) {
  const Shape& x = node.input(0).shape;
  Shape y = {x[0], node.input(1).shape[0]};
  for (int i = 0; i < window.rank; ++i) y.push_back(window_dim(window, node, x, i));
  return y;
}

double convolution_multiply_adds(std::span<const TensorType* const> inputs, const TensorType& y) {
  const TensorType& w = *inputs[1];
  const double channels = w.rank() && w.shape[0].known() ? static_cast<double>(w.shape[0].size) : 1;
  return elements_if_known(y) * elements_if_known(w) / std::max(1.0, channels);
}

}  // namespace pinnace
