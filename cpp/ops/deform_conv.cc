// deform_conv: a convolution whose taps are moved by offsets that a tensor holds.
//   x       [N, C, H, W]  floats
//   w       [M, C / group, kH, kW]  as x
//   offset  [N, offset_group * kH * kW * 2, oH, oW]  as x: how far down and right each tap moves
//   bias    [M]  as x, optional
//   mask    [N, offset_group * kH * kW, oH, oW]  as x, optional: factors of the taps
//   y       [N, M, oH, oW]  as x
//   group         int, default 1: groups of channels of x and y
//   offset_group  int, default 1: groups of channels of x with their own offsets
//   kernel_shape  ints, kH and kW; strides, pads, dilations  see window.h
// A tap between elements is their linear mixture, where elements outside x are 0. Places and sums in double, rounded
// once. A NaN place is outside. Source: ONNX DeformConv, opset 22; two spatial dimensions only.
#include <cmath>

#include "ops/convolution.h"
#include "ops/move.h"

namespace pinnace {
namespace {
Result<TensorType> deform_conv_type(const NodeView& node) {
  const TensorType &x = node.input(0), &w = node.input(1);
  if (x.rank() != 4 || w.rank() != 4) {
    return node.error("x ", x, " and w ", w, " must have rank 4");
  }
  const Shape kernel(w.shape.begin() + 2, w.shape.end());
  if (const auto named = node.attr_ints("kernel_shape"); !named.empty()) {
    if (named.size() != 2 || differ(kernel[0], Dim(named[0])) || differ(kernel[1], Dim(named[1]))) {
      return node.error("kernel_shape differs from that of w ", w);
    }
  }
  const int64_t group = node.attr_int("group"), offsets = node.attr_int("offset_group");
  if (group < 1 || offsets < 1) return node.error("group ", group, " and offset_group ", offsets, " must be positive");
  const Dim channels = x.shape[1];
  if (channels.known() &&
      (channels.size % group != 0 || channels.size % offsets != 0 || differ(w.shape[1], Dim(channels.size / group)))) {
    return node.error("x ", x, " and w ", w, " do not fit ", group, " groups and ", offsets, " groups of offsets");
  }
  if (w.shape[0].known() && w.shape[0].size % group != 0) {
    return node.error("w ", w, " does not fit ", group, " groups");
  }
  PINNACE_ASSIGN(const Window window, window_of(node, x.shape, kernel, false));
  TensorType y{x.dtype, {x.shape[0], w.shape[0]}, nullptr};
  for (int i = 0; i < 2; ++i) y.shape.push_back(window_dim(window, node, x.shape, i));
  if (node.has_input(3)) PINNACE_TRY(check_per_channel(node, 3, w.shape[0]));
  const Dim taps = dim_product(kernel);
  for (const int i : {2, 4}) {
    if (!node.has_input(i)) continue;
    const TensorType& t = node.input(i);
    const Dim wanted = dim_mul(taps, Dim(saturating_mul(offsets, i == 2 ? 2 : 1)));
    bool fits = t.rank() == 4 && !differ(t.shape[1], wanted);
    for (const size_t d : {0, 2, 3}) fits = fits && !differ(t.shape[d], y.shape[d]);
    if (!fits) return node.error(node.input_name(i), " ", t, " does not fit x ", x, " and w ", w);
  }
  return y;
}

/// The mixture of the elements of a plane around (y, x).
template <class T>
double mixture(const T* plane, int64_t height, int64_t width, double y, double x) {
  if (!(y > -1 && y < static_cast<double>(height) && x > -1 && x < static_cast<double>(width))) return 0;
  const double top = std::floor(y), left = std::floor(x);
  double sum = 0;
  for (int i = 0; i < 2; ++i) {
    const int64_t row = static_cast<int64_t>(top) + i;
    const double down = i == 0 ? 1 - (y - top) : y - top;
    if (row < 0 || row >= height || down == 0) continue;
    for (int j = 0; j < 2; ++j) {
      const int64_t column = static_cast<int64_t>(left) + j;
      const double across = j == 0 ? 1 - (x - left) : x - left;
      if (column < 0 || column >= width || across == 0) continue;
      sum += down * across * widen(plane[row * width + column]);
    }
  }
  return sum;
}

template <class T>
Status convolve(const NodeView& node, const Window& w, std::span<const TensorView> in, const TensorView& y) {
  const int64_t group = node.attr_int("group"), offset_group = node.attr_int("offset_group");
  const TensorView x = in[0], weights = in[1];
  const bool biased = in.size() > 3 && in[3].present(), masked = in.size() > 4 && in[4].present();
  const int64_t channels = x.dim(1), outputs = y.dim(1), taps = w.taps(), places = w.out_size();
  const int64_t length = channels / group * taps;
  const double cost = static_cast<double>(channels * taps) * 20 + static_cast<double>(outputs * length);
  return node.threads().ranges(x.dim(0) * places, cost, [&](int64_t begin, int64_t end) -> Status {
    PINNACE_ASSIGN(auto column, Scratch<double>::allocate(saturating_mul(channels, taps), node.label()));
    for (int64_t place = begin; place < end; ++place) {
      const int64_t n = place / places, p = place % places;
      for (int64_t c = 0; c < channels; ++c) {
        const int64_t first = (n * offset_group + c / (channels / offset_group)) * taps;
        for (int64_t k = 0; k < taps; ++k) {
          const T* move = in[2].data<T>() + (first + k) * 2 * places + p;
          const int64_t row = p / w.out[2] * w.stride[1] + k / w.kernel[2] * w.dilation[1] - w.before[1];
          const int64_t at = p % w.out[2] * w.stride[2] + k % w.kernel[2] * w.dilation[2] - w.before[2];
          const double value =
              mixture(x.data<T>() + (n * channels + c) * w.in_size(), w.in[1], w.in[2],
                      static_cast<double>(row) + widen(move[0]), static_cast<double>(at) + widen(move[places]));
          column[c * taps + k] = masked ? value * widen(in[4].data<T>()[(first + k) * places + p]) : value;
        }
      }
      for (int64_t m = 0; m < outputs; ++m) {
        const double* from = column.data() + m / (outputs / group) * length;
        double sum = biased ? widen(in[3].data<T>()[m]) : 0;
        for (int64_t k = 0; k < length; ++k) sum += from[k] * widen(weights.data<T>()[m * length + k]);
        y.data<T>()[(n * outputs + m) * places + p] = narrow<T>(sum);
      }
    }
    return {};
  });
}

Status deform_conv_reference(const NodeView& node, std::span<const TensorView> in, std::span<const TensorView> out) {
  const Shape& w = in[1].type->shape;
  PINNACE_ASSIGN(const Window window, window_of(node, in[0].type->shape, Shape(w.begin() + 2, w.end()), false));
  if (out[0].elements() == 0) return {};
  return visit_float(in[0].dtype(), [&](auto zero) { return convolve<decltype(zero)>(node, window, in, out[0]); });
}
}  // namespace

PINNACE_OP(deform_conv){
    .name = "deform_conv",
    .inputs = {{"x", kFloats, 'T'},
               {"w", kFloats, 'T'},
               {"offset", kFloats, 'T'},
               {"bias", kFloats, 'T', Arity::kOptional},
               {"mask", kFloats, 'T', Arity::kOptional}},
    .attrs = {kDilationsAttr, int_attr("group", 1), ints_attr("kernel_shape"), int_attr("offset_group", 1), kPadsAttr,
              kStridesAttr},
    .type = deform_conv_type,
    .reference = deform_conv_reference,
    .work = Work::kPair,
    .multiply_adds = convolution_multiply_adds,
};
}  // namespace pinnace
