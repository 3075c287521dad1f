// conv: y[n, m, o] = activation(bias[m] + sum over c, k of x[n, c, o * stride + k * dilation - pad] * w[m, c, k]).
//   x     [N, C, spatial...]           1 to 3 spatial dimensions; floats; quantised i8 | u8 per tensor
//   w     [M, C / group, kernel...]    as x; quantised i8 | u8 per tensor or per output channel (axis 0)
//   bias  [M], optional                as x; quantised: i32, plain integers at scale s_x * s_w
//   auto_pad, pads, strides, dilations: see window.h; group int, default 1; kernel_shape ints, must be w's if given
//   activation, activation_params: see activation.h; floats any, quantised relu and clip
//   y     [N, M, out...]               quantised: declared scale and zero point
// Outside x is the real number 0 (quantised: the zero point). Floats: sums in double over ascending c and k, plus
// bias, activation, one rounding. Quantised: int32 sum of (x - zero_x) (w - zero_w), plus bias modulo 2^32, then q =
// clamp(round_half_even(float32(sum) * m) + zero_y), m = float32(s_x * s_w / s_y) with the quotient in double; relu
// and clip only narrow the clamp: relu to [zero_y, max], clip to [quantize(min), quantize(max)]. An empty x gives an
// empty y, or an error where the window does not fit. NaN and infinities go through products and sums as IEEE 754
// has them; whether an infinite weight makes NaN beside padding (0 times infinity) is left open. Source: ONNX Conv,
// opset 22; quantised types and activation are additions.
#include "ops/convolution.h"

namespace pinnace {
namespace {
Result<TensorType> conv_type(const NodeView& node) {
  PINNACE_ASSIGN(const Window window, check_convolution(node, 2));
  PINNACE_TRY(check_product(node, 0, 1, 2, 0, convolution_length(node.input(1))));
  TensorType y{node.input(0).dtype, convolution_shape(node, window), node.output_quantization(0)};
  PINNACE_TRY(check_activation(node, y));
  return y;
}

Status conv_reference(const NodeView& node, std::span<const TensorView> in, std::span<const TensorView> out) {
  const TensorView &x = in[0], &w = in[1], &y = out[0];
  PINNACE_ASSIGN(const Window window, check_convolution(node, 2));
  PINNACE_ASSIGN(const Activation activation, parse_activation(node));
  const int64_t N = x.dim(0), C = x.dim(1), M = w.dim(0), groups = node.attr_int("group"), group_in = w.dim(1);
  const int64_t in_size = window.in_size(), out_size = window.out_size(), row = group_in * window.taps();
  const bool has_bias = in.size() > 2 && in[2].present();
  if (y.type->quantized()) {
    const Requantize requantize(*x.type, *w.type, *y.type, activation);
    return convolve<uint32_t>(
        node.threads(), window, N, groups, group_in, M / groups,
        [&](int64_t n, int64_t c, uint32_t* to) {
          load_centered(x, (n * C + c) * in_size, 1, in_size, requantize.x_zero, to);
        },
        [&](int64_t m, uint32_t* to) { load_centered(w, m * row, 1, row, requantize.w_zero(m), to); },
        [&](int64_t n, int64_t m, const uint32_t* sums) {
          const uint32_t bias = has_bias ? static_cast<uint32_t>(in[2].data<int32_t>()[m]) : 0;
          const int64_t first = (n * M + m) * out_size;
          for (int64_t o = 0; o < out_size; ++o) store_int(y, first + o, requantize(sums[o] + bias, m));
        });
  }
  return convolve<double>(
      node.threads(), window, N, groups, group_in, M / groups,
      [&](int64_t n, int64_t c, double* to) { load_line(x, (n * C + c) * in_size, 1, in_size, to); },
      [&](int64_t m, double* to) { load_line(w, m * row, 1, row, to); },
      [&](int64_t n, int64_t m, double* sums) {
        double bias = 0;
        if (has_bias) load_line(in[2], m, 1, 1, &bias);
        for (int64_t o = 0; o < out_size; ++o) sums[o] = activation(sums[o] + bias);
        store_line(y, (n * M + m) * out_size, 1, out_size, sums);
      });
}
}  // namespace

PINNACE_OP(conv){
    .name = "conv",
    .inputs = {{"x", kProductTypes}, {"w", kProductTypes}, {"bias", kProductBias, 0, Arity::kOptional}},
    .attrs = {kAutoPadAttr, kDilationsAttr, int_attr("group", 1), ints_attr("kernel_shape"), kPadsAttr, kStridesAttr,
              kActivationAttr, kActivationParamsAttr},
    .type = conv_type,
    .reference = conv_reference,
    .traits = Trait::kProduct | Trait::kFoldsQuantization,
    .work = Work::kWindow,
    .multiply_adds = convolution_multiply_adds,
};
}  // namespace pinnace
