// conv_transpose: the transpose of conv, y[n, m, i * stride + k * dilation - pad] += x[n, c, i] * w[c, m, k] over c, i
// and k, then plus bias[m], then activation.
//   x     [N, C, spatial...]           1 to 3 spatial dimensions; floats; quantised i8 | u8 per tensor
//   w     [C, M / group, kernel...]    as x; quantised i8 | u8 per tensor or per output channel of a group (axis 1)
//   bias  [M], optional                as x; quantised: i32, plain integers at scale s_x * s_w
//   auto_pad, pads, strides, dilations: see window.h; group int, default 1; kernel_shape ints, must be w's if given
//   output_padding ints, default 0: added to the end of each size of y
//   output_shape ints: sizes of y; pads then follow from them and `pads` is ignored. auto_pad same_*: in * stride.
//   activation, activation_params: see activation.h; floats any, quantised relu and clip
//   y     [N, M, out...]  out = (in - 1) * stride + output_padding + dilation * (kernel - 1) + 1 - pads
// Pads that follow from a wanted size: total = what the size lacks to the formula's without pads, at least 0;
// same_upper puts the odd one at the end, everything else at the begin. Arithmetic as in conv. NaN and infinities go
// through products and sums as IEEE 754 has them. Source: ONNX ConvTranspose, opset 22; quantised types and activation
// are additions.
#include "ops/convolution.h"

namespace pinnace {
Result<Window> check_conv_transpose(const NodeView& node) {
  const TensorType &x = node.input(0), &w = node.input(1);
  const std::span<const Dim> kernel(w.shape.data() + 2, w.shape.size() - 2);
  PINNACE_ASSIGN(Window window, window_attributes(node, kernel));
  const auto count = static_cast<size_t>(window.rank);
  const auto adds = node.attr_ints("output_padding"), wanted = node.attr_ints("output_shape");
  if (!adds.empty() && adds.size() != count)
    return node.error("output_padding ", list_text(adds), " must have ", count, " entries");
  if (!wanted.empty() && wanted.size() != count)
    return node.error("output_shape ", list_text(wanted), " must have ", count, " entries");
  const std::string_view auto_pad = node.attr_string("auto_pad");
  const bool same = auto_pad == "same_upper" || auto_pad == "same_lower";
  for (size_t i = 0; i < count; ++i) {
    const auto d = i + 3 - count;
    const int64_t in = x.shape[2 + i].size, add = adds.empty() ? 0 : adds[i];
    if (add < 0 || add > INT32_MAX)
      return node.error("output_padding ", list_text(adds), " has ", add, ", must be in [0, 2^31)");
    if (!wanted.empty() && (wanted[i] < 0 || wanted[i] > INT32_MAX)) {
      return node.error("output_shape ", list_text(wanted), " has ", wanted[i], ", must be in [0, 2^31)");
    }
    window.out[d] = in;
    window.in[d] = wanted.empty() ? Dim::kUnknown : wanted[i];
    if (in < 0) continue;
    if (in > INT32_MAX) return node.error("x ", x, " has size ", in, ", takes less than 2^31");
    if (wanted.empty() && same) window.in[d] = in * window.stride[d];
    if (window.kernel[d] < 0) continue;
    const int64_t full = (in - 1) * window.stride[d] + add + (window.kernel[d] - 1) * window.dilation[d] + 1;
    if (window.in[d] >= 0) {
      const int64_t pads = std::max<int64_t>(0, full - window.in[d]);
      window.before[d] = auto_pad == "same_upper" ? pads / 2 : pads - pads / 2;
      window.after[d] = pads - window.before[d];
    } else {
      window.in[d] = full - window.before[d] - window.after[d];
      if (window.in[d] < 0)
        return node.error("pads ", window.before[d], " and ", window.after[d], " take more than the size ", full);
    }
  }
  return window;
}

namespace {
Result<TensorType> conv_transpose_type(const NodeView& node) {
  const TensorType &x = node.input(0), &w = node.input(1);
  const int64_t group = node.attr_int("group");
  if (x.rank() < 3 || x.rank() > 5 || w.rank() != x.rank()) {
    return node.error("x is ", x, " and w ", w, "; both must have the same rank, 3 to 5");
  }
  if (group < 1 || group > INT32_MAX) return node.error("group ", group, " is outside [1, 2^31)");
  if (differ(x.shape[1], w.shape[0]))
    return node.error("x ", x, " has ", x.shape[1].size, " channels, w ", w, " takes ", w.shape[0].size);
  const Dim C = x.shape[1].known() ? x.shape[1] : w.shape[0];
  if (C.known() && C.size % group) return node.error(C.size, " channels do not divide into ", group, " groups");
  if (w.shape[1].known() && w.shape[1].size > (int64_t{1} << 40)) return node.error("w ", w, " has too many channels");
  const Dim M = w.shape[1].known() ? Dim(w.shape[1].size * group) : Dim();
  const auto stated = node.attr_ints("kernel_shape");
  bool agree = stated.empty() || stated.size() + 2 == w.shape.size();
  for (size_t i = 0; agree && i < stated.size(); ++i) agree = !differ(w.shape[2 + i], Dim(stated[i]));
  if (!agree) return node.error("kernel_shape ", list_text(stated), " is not that of w ", w);
  if (node.has_input(2)) {
    const TensorType& b = node.input(2);
    if (b.rank() != 1 || differ(b.shape[0], M))
      return node.error("bias ", b, " must have one element per output channel, ", M.size);
  }
  PINNACE_ASSIGN(const Window window, check_conv_transpose(node));
  Dim length = C.known() ? Dim(C.size / group) : Dim();
  TensorType y{x.dtype, {x.shape[0], M}, node.output_quantization(0)};
  for (int i = 0; i < window.rank; ++i) {
    const Dim k = w.shape[static_cast<size_t>(i) + 2];
    length = length.known() && k.known() ? Dim(length.size * k.size) : Dim();
    const int64_t size = window.in[static_cast<size_t>(i + 3 - window.rank)];
    y.shape.push_back(size >= 0 ? Dim(size) : Dim());
  }
  PINNACE_TRY(check_product(node, 0, 1, 2, 1, length));
  PINNACE_TRY(check_activation(node, y));
  return y;
}

/// sums[y's plane] += taps[k] * x[plane of one channel], taps ascending. left: multiplications until the next look.
template <class Acc>
void scatter_taps(const Window& w, const Acc* x, const Acc* tap, Acc* sums, int64_t& left) {
  for (int64_t kz = 0; kz < w.kernel[0]; ++kz) {
    const auto z = w.span(0, kz);
    for (int64_t ky = 0; ky < w.kernel[1]; ++ky) {
      const auto y = w.span(1, ky);
      for (int64_t kx = 0; kx < w.kernel[2]; ++kx, ++tap) {
        const auto span = w.span(2, kx);
        if ((left -= w.out_size()) < 0) {
          left = kBetweenConvolutionLooks;
          if (loop_stops()) return;
        }
        for (int64_t iz = z.first; iz < z.last; ++iz) {
          for (int64_t iy = y.first; iy < y.last; ++iy) {
            const Acc* from = x + (iz * w.out[1] + iy) * w.out[2];
            Acc* to = sums + ((iz * w.stride[0] + z.offset) * w.in[1] + iy * w.stride[1] + y.offset) * w.in[2];
            for (int64_t ix = span.first; ix < span.last; ++ix) to[ix * w.stride[2] + span.offset] += *tap * from[ix];
          }
        }
      }
    }
  }
}

/// Calls finish(n, m, sums of one plane of y) for all n, m, which may write over the sums. load_x(n, c, to) gives a
/// plane, load_w(c, i, to) the taps of channel c to output channel i of its group. Threads and scratch as in
/// convolve().
template <class Acc, class LoadX, class LoadW, class Finish>
Status scatter(const Threads& threads, const Window& w, int64_t batch, int64_t groups, int64_t group_in,
               int64_t group_out, LoadX load_x, LoadW load_w, Finish finish) {
  const int64_t x_size = w.out_size(), y_size = w.in_size();
  const double plane_cost = product_nanoseconds(x_size, group_in * w.taps());
  const double group_cost = plane_cost * static_cast<double>(group_out);
  const auto [by_group, by_channel] = threads.nest(batch * groups, group_cost, group_out);
  const auto channels = [&](int64_t n, int64_t g, const Acc* x, int64_t begin, int64_t end) -> Status {
    PINNACE_ASSIGN(auto taps, Scratch<Acc>::allocate(w.taps(), "conv_transpose's weights"));
    PINNACE_ASSIGN(auto sums, Scratch<Acc>::allocate(y_size, "conv_transpose's plane"));
    int64_t left = kBetweenConvolutionLooks;
    for (int64_t i = begin; i < end; ++i) {
      std::fill_n(sums.data(), y_size, Acc{});
      for (int64_t c = 0; c < group_in; ++c) {
        load_w(g * group_in + c, i, taps.data());
        scatter_taps(w, x + c * x_size, static_cast<const Acc*>(taps.data()), sums.data(), left);
      }
      finish(n, g * group_out + i, sums.data());
    }
    return {};
  };
  return by_group.ranges(batch * groups, group_cost, [&](int64_t begin, int64_t end) -> Status {
    PINNACE_ASSIGN(auto x, Scratch<Acc>::allocate(group_in * x_size, "conv_transpose's input"));
    for (int64_t k = begin; k < end; ++k) {
      const int64_t n = k / groups, g = k % groups;
      for (int64_t c = 0; c < group_in; ++c) load_x(n, g * group_in + c, x.data() + c * x_size);
      PINNACE_TRY(by_channel.ranges(
          group_out, plane_cost, [&](int64_t first, int64_t last) { return channels(n, g, x.data(), first, last); }));
    }
    return {};
  });
}

Status conv_transpose_reference(const NodeView& node, std::span<const TensorView> in, std::span<const TensorView> out) {
  const TensorView &x = in[0], &w = in[1], &y = out[0];
  PINNACE_ASSIGN(const Window window, check_conv_transpose(node));
  PINNACE_ASSIGN(const Activation activation, parse_activation(node));
  const int64_t N = x.dim(0), C = x.dim(1), M = y.dim(1), groups = node.attr_int("group"), group_out = w.dim(1);
  const int64_t x_size = window.out_size(), y_size = window.in_size(), taps = window.taps();
  const bool has_bias = in.size() > 2 && in[2].present();
  if (y.type->quantized()) {
    const Requantize requantize(*x.type, *w.type, *y.type, activation);
    return scatter<uint32_t>(
        node.threads(), window, N, groups, C / groups, group_out,
        [&](int64_t n, int64_t c, uint32_t* to) {
          load_centered(x, (n * C + c) * x_size, 1, x_size, requantize.x_zero, to);
        },
        [&](int64_t c, int64_t i, uint32_t* to) {
          load_centered(w, (c * group_out + i) * taps, 1, taps, requantize.w_zero(i), to);
        },
        [&](int64_t n, int64_t m, const uint32_t* sums) {
          const uint32_t bias = has_bias ? static_cast<uint32_t>(in[2].data<int32_t>()[m]) : 0;
          for (int64_t o = 0; o < y_size; ++o)
            store_int(y, (n * M + m) * y_size + o, requantize(sums[o] + bias, m % group_out));
        });
  }
  return scatter<double>(
      node.threads(), window, N, groups, C / groups, group_out,
      [&](int64_t n, int64_t c, double* to) { load_line(x, (n * C + c) * x_size, 1, x_size, to); },
      [&](int64_t c, int64_t i, double* to) { load_line(w, (c * group_out + i) * taps, 1, taps, to); },
      [&](int64_t n, int64_t m, double* sums) {
        double bias = 0;
        if (has_bias) load_line(in[2], m, 1, 1, &bias);
        for (int64_t o = 0; o < y_size; ++o) sums[o] = activation(sums[o] + bias);
        store_line(y, (n * M + m) * y_size, 1, y_size, sums);
      });
}

/// Every input meets every tap.
double conv_transpose_multiply_adds(std::span<const TensorType* const> inputs, const TensorType&) {
  const TensorType &x = *inputs[0], &w = *inputs[1];
  const double channels = x.rank() > 1 && x.shape[1].known() ? static_cast<double>(x.shape[1].size) : 1;
  return elements_if_known(x) * elements_if_known(w) / std::max(1.0, channels);
}
}  // namespace

PINNACE_OP(conv_transpose){
    .name = "conv_transpose",
    .inputs = {{"x", kProductTypes}, {"w", kProductTypes}, {"bias", kProductBias, 0, Arity::kOptional}},
    .attrs = {kAutoPadAttr, kDilationsAttr, int_attr("group", 1), ints_attr("kernel_shape"),
              ints_attr("output_padding"), ints_attr("output_shape"), kPadsAttr, kStridesAttr, kActivationAttr,
              kActivationParamsAttr},
    .type = conv_transpose_type,
    .reference = conv_transpose_reference,
    .traits = Trait::kProduct | Trait::kFoldsQuantization,
    .work = Work::kScattered,
    .multiply_adds = conv_transpose_multiply_adds,
};
}  // namespace pinnace
