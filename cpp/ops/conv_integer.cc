// conv_integer: y[n, m, o] = sum over c, k of (x[n, c, ...] - x_zero_point) * (w[m, c, k] - w_zero_point[m]).
//   x             [N, C, spatial...]         i8 | u8, 1 to 3 spatial dimensions
//   w             [M, C / group, kernel...]  i8 | u8
//   x_zero_point  [] or [1], optional        as x; 0 if left out
//   w_zero_point  [], [1] or [M], optional   as w; 0 if left out
//   auto_pad, pads, strides, dilations: see window.h; group int, default 1; kernel_shape ints, must be w's if given
//   y             [N, M, out...]             i32, modulo 2^32
// Outside x is x_zero_point. Scales play no part. Source: ONNX ConvInteger, opset 10.
#include "ops/convolution.h"

namespace pinnace {
namespace {
Result<TensorType> conv_integer_type(const NodeView& node) {
  PINNACE_TRY(refuse_quantized(node));
  PINNACE_ASSIGN(const Window window, check_convolution(node, -1));
  Shape shape = convolution_shape(node, window);
  for (int i = 2; i < 4; ++i) {
    if (!node.has_input(i)) continue;
    const TensorType& zero = node.input(i);
    const Dim size = zero.rank() == 0 ? Dim(1) : zero.shape[0];
    if (zero.rank() > 1 || (size.known() && size.size != 1 && (i == 2 || differ(size, shape[1])))) {
      return node.error(i == 2 ? "x_zero_point " : "w_zero_point ", zero, " must have one element",
                        i == 2 ? "" : ", or one per output channel");
    }
  }
  return TensorType{DType::kI32, std::move(shape), nullptr};
}

Status conv_integer_reference(const NodeView& node, std::span<const TensorView> in, std::span<const TensorView> out) {
  const TensorView &x = in[0], &w = in[1], &y = out[0];
  PINNACE_ASSIGN(const Window window, check_convolution(node, -1));
  const int64_t C = x.dim(1), M = w.dim(0), groups = node.attr_int("group"), group_in = w.dim(1);
  const int64_t in_size = window.in_size(), out_size = window.out_size(), row = group_in * window.taps();
  const int32_t x_zero = in.size() > 2 && in[2].present() ? load_int(in[2], 0) : 0;
  const auto w_zero = [&](int64_t m) {
    return in.size() > 3 && in[3].present() ? load_int(in[3], in[3].elements() == 1 ? 0 : m) : 0;
  };
  return convolve<uint32_t>(
      node.threads(), window, x.dim(0), groups, group_in, M / groups,
      [&](int64_t n, int64_t c, uint32_t* to) { load_centered(x, (n * C + c) * in_size, 1, in_size, x_zero, to); },
      [&](int64_t m, uint32_t* to) { load_centered(w, m * row, 1, row, w_zero(m), to); },
      [&](int64_t n, int64_t m, const uint32_t* sums) {
        int32_t* to = y.data<int32_t>() + (n * M + m) * out_size;
        for (int64_t o = 0; o < out_size; ++o) to[o] = static_cast<int32_t>(sums[o]);
      });
}
}  // namespace

PINNACE_OP(conv_integer){
    .name = "conv_integer",
    .inputs = {{"x", kI8 | kU8, 'X'},
               {"w", kI8 | kU8, 'W'},
               {"x_zero_point", kI8 | kU8, 'X', Arity::kOptional},
               {"w_zero_point", kI8 | kU8, 'W', Arity::kOptional}},
    .attrs = {kAutoPadAttr, kDilationsAttr, int_attr("group", 1), ints_attr("kernel_shape"), kPadsAttr, kStridesAttr},
    .type = conv_integer_type,
    .reference = conv_integer_reference,
    .work = Work::kWindow,
    .multiply_adds = convolution_multiply_adds,
};
}  // namespace pinnace
