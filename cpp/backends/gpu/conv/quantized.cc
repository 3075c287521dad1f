// Convolutions of quantised tensors: sums of integers, requantised as ops/product.h defines it.
#include "backends/gpu/conv/convolution.h"
#include "backends/gpu/quantize/int8.h"
#include "backends/gpu/quantize/requantize.h"

namespace pinnace::gpu {
namespace {

struct ByteConvolution {
  Window window;
  int64_t N, C, M, group;
  Requantize requantize;
  double work() const {
    const int64_t per_result = C / group * window.taps();
    return static_cast<double>(N * M * window.out_size()) * static_cast<double>(per_result);
  }
  /// Channels of w that have scales of their own: all, but of a transpose those of a group.
  int64_t scaled(int64_t m, bool transposed) const { return transposed ? m % (M / group) : m; }
};

/// [ceil(M / 4)][3] vectors of four channels: bias (0 where a run brings it), bits of the multipliers, zero points of
/// the weights (of unsigned bytes where they are packed).
TensorId channels(NodeLowering& n, const ByteConvolution& c, bool transposed) {
  const NodeView view = n.view();
  const bool has_bias = n.has(2) && n.constant(2), packed = n.constant(1);
  const int32_t flip = packed ? byte_offset(n.in(1).dtype) : 0;
  return n.wide_weights(packed ? "channels" : "channels of rows", (c.M + 3) / 4 * 12,
                        [=](std::span<float> to) -> Status {
                          std::fill(to.begin(), to.end(), 0.0f);
                          const auto* bias = has_bias ? static_cast<const int32_t*>(view.input_data(2)) : nullptr;
                          for (int64_t m = 0; m < c.M; ++m) {
                            const int64_t row = m / 4 * 3, k = c.scaled(m, transposed);
                            write_channel(to, row, m % 4, bias ? bias[m] : 0);
                            write_channel(to, row + 1, m % 4, multiplier_bits(c.requantize, k));
                            write_channel(to, row + 2, m % 4, c.requantize.w_zero(k) + flip);
                          }
                          return {};
                        });
}

/// [M4][taps][C4 of a group][4 lanes of input][4 channels]; lanes beyond the group's inputs hold the zero point.
TensorId image_weights(NodeLowering& n, const ByteConvolution& c) {
  const NodeView view = n.view();
  const int64_t taps = c.window.taps(), group_c = c.C / c.group, C4 = (group_c + 3) / 4, M4 = (c.M + 3) / 4;
  const int32_t flip = byte_offset(n.in(1).dtype);
  return byte_constant(n, "image", M4 * taps * C4 * 16, [=](std::span<uint8_t> to) -> Status {
    const TensorType& type = view.input(1);
    const void* w = view.input_data(1);
    for (int64_t m = 0; m < c.M; ++m) {
      for (int64_t k = 0; k < C4 * 4; ++k) {
        for (int64_t t = 0; t < taps; ++t) {
          const int64_t at = (((m / 4 * taps + t) * C4 + k / 4) * 4 + k % 4) * 4 + m % 4;
          to[static_cast<size_t>(at)] = k < group_c ? unsigned_byte(type, w, (m * group_c + k) * taps + t)
                                                    : static_cast<uint8_t>(c.requantize.w_zero(m) + flip);
        }
      }
    }
    return {};
  });
}

void on_images(NodeLowering& n, const ByteConvolution& c) {
  const Window& w = c.window;
  const int64_t C4 = (c.C + 3) / 4, M4 = (c.M + 3) / 4;
  const int64_t group_c4 = c.group == 1 ? C4 : C4 / c.group, group_m4 = c.group == 1 ? M4 : M4 / c.group;
  const int64_t blocks = c.group == 1 || group_m4 % 2 == 0 ? 2 : 1;
  std::array<int64_t, 3> in = w.in, out = w.out;
  if (w.taps() == 1 && w.stride[1] == 1 && w.stride[2] == 1 && w.in == w.out && w.out_size() < 1'000'000) {
    in = out = {1, 1, w.out_size()};  // a product: the image is one row of pixels
  }
  const Requantize& r = c.requantize;
  const int32_t offset = byte_offset(n.in(0).dtype);
  const Int8ConvParams params{.H = in[1],
                              .W = in[2],
                              .OH = out[1],
                              .OW = out[2],
                              .C4 = C4,
                              .M4 = M4,
                              .group_c4 = group_c4,
                              .group_m4 = group_m4,
                              .pad_y = w.before[1],
                              .pad_x = w.before[2],
                              .dil_y = w.dilation[1],
                              .dil_x = w.dilation[2],
                              .x_zero = r.x_zero + offset,
                              .y_zero = r.y_zero + offset,
                              .low = r.range.min + offset,
                              .high = r.range.max + offset};
  const TensorId x = n.nc4hw4(0), weights = image_weights(n, c), numbers = channels(n, c, false), y = n.make_nc4hw4();
  n.loops(window_turns(w, group_c4));
  n.step(
      KernelId::int8_conv,
      Int8ConvConstants{.KH = w.kernel[1], .KW = w.kernel[2], .SH = w.stride[1], .SW = w.stride[2], .BLOCKS = blocks},
      params, {x, weights, numbers, y},
      {groups_of(out[2], 32), groups_of(out[1], 8), static_cast<uint32_t>(c.N * ((M4 + blocks - 1) / blocks))},
      c.work());
}

void depthwise(NodeLowering& n, const ByteConvolution& c) {
  const Window& w = c.window;
  const NodeView view = n.view();
  const int64_t C4 = (c.C + 3) / 4, taps = w.taps();
  const TensorId weights = byte_constant(n, "depthwise", C4 * taps * 4, [=](std::span<uint8_t> to) -> Status {
    for (int64_t m = 0; m < c.C; ++m) {
      for (int64_t t = 0; t < taps; ++t) {
        to[static_cast<size_t>((m / 4 * taps + t) * 4 + m % 4)] =
            unsigned_byte(view.input(1), view.input_data(1), m * taps + t);
      }
    }
    return {};
  });
  const Requantize& r = c.requantize;
  const int32_t offset = byte_offset(n.in(0).dtype);
  const Int8DepthwiseParams params{.H = w.in[1],
                                   .W = w.in[2],
                                   .OH = w.out[1],
                                   .OW = w.out[2],
                                   .C4 = C4,
                                   .pad_y = w.before[1],
                                   .pad_x = w.before[2],
                                   .dil_y = w.dilation[1],
                                   .dil_x = w.dilation[2],
                                   .x_zero = r.x_zero + offset,
                                   .y_zero = r.y_zero + offset,
                                   .low = r.range.min + offset,
                                   .high = r.range.max + offset};
  const TensorId x = n.nc4hw4(0), numbers = channels(n, c, false), y = n.make_nc4hw4();
  n.loops(loop_turns(w.kernel[1], loop_turns(w.kernel[2])));
  n.step(KernelId::int8_depthwise,
         Int8DepthwiseConstants{.KH = w.kernel[1], .KW = w.kernel[2], .SH = w.stride[1], .SW = w.stride[2]}, params,
         {x, weights, numbers, y}, {groups_of(w.out[2], 16), groups_of(w.out[1], 8), static_cast<uint32_t>(c.N * C4)},
         c.work());
}

/// [M, C / group, taps], or of a transpose [C, M / group, taps], in the order of the host.
TensorId row_weights(NodeLowering& n) {
  const NodeView view = n.view();
  return byte_constant(n, "rows", n.in(1).elements(), [view](std::span<uint8_t> to) -> Status {
    for (size_t i = 0; i < to.size(); ++i) {
      to[i] = unsigned_byte(view.input(1), view.input_data(1), static_cast<int64_t>(i));
    }
    return {};
  });
}

void on_rows(NodeLowering& n, const ByteConvolution& c, bool transposed) {
  // Of the transpose the window is that of the convolution whose transpose it is: `in` are the sizes of the result.
  const Window& w = c.window;
  const auto &in = transposed ? w.out : w.in, &out = transposed ? w.in : w.out;
  const int64_t count = c.N * c.M * out[0] * out[1] * out[2];
  const bool packed = n.constant(1), bias = n.has(2) && !n.constant(2);
  const Requantize& r = c.requantize;
  const Int8ConvDenseParams params{.count = count,
                                   .M = c.M,
                                   .group_c = c.C / c.group,
                                   .group_m = c.M / c.group,
                                   .C = c.C,
                                   .in = row_window(in),
                                   .out = row_window(out),
                                   .stride = row_window(w.stride),
                                   .dilation = row_window(w.dilation),
                                   .pad = row_window(w.before),
                                   .x_zero = r.x_zero,
                                   .y_zero = r.y_zero,
                                   .low = r.range.min,
                                   .high = r.range.max};
  const TensorId weights = packed ? row_weights(n) : n.dense(1);
  const TensorId x = n.dense(0), numbers = channels(n, c, transposed), b = bias ? n.dense(2) : numbers;
  n.loops(dense_window_turns(w, c.C / c.group));
  n.step(KernelId::int8_conv_dense,
         Int8ConvDenseConstants{
             .K = {w.kernel[0], w.kernel[1], w.kernel[2]}, .TRANSPOSED = transposed, .PACKED = packed, .BIAS = bias},
         params, {x, weights, numbers, n.make_dense(), b}, line_groups(count, 64), c.work());
}

}  // namespace

Status lower_quantized_conv(NodeLowering& n) {
  PINNACE_ASSIGN(const Window window, check_convolution(n.view(), 2));
  PINNACE_ASSIGN(const Activation activation, parse_activation(n.view()));
  if (!positions_fit(window)) return n.refuse(Rule::kAttribute, "strides or dilations of a billion");
  const ByteConvolution c{window,
                          n.in(0).shape[0].size,
                          n.in(0).shape[1].size,
                          n.in(1).shape[0].size,
                          n.view().attr_int("group"),
                          Requantize(n.in(0), n.in(1), n.out(), activation)};
  const bool known = n.constant(1) && (!n.has(2) || n.constant(2));
  const bool flat = known && window.rank <= 2 && window.out[1] <= 65535 * 8 && window.out[2] <= 65535 * 16;
  const bool blocks = c.group == 1 || (c.C / c.group % 4 == 0 && c.M / c.group % 4 == 0);
  if (flat && c.group == c.C && c.M == c.C && c.C > 1) {
    depthwise(n, c);
  } else if (flat && blocks) {
    on_images(n, c);
  } else {
    on_rows(n, c, false);
  }
  return {};
}

Status lower_quantized_conv_transpose(NodeLowering& n) {
  PINNACE_ASSIGN(const Window window, check_conv_transpose(n.view()));
  PINNACE_ASSIGN(const Activation activation, parse_activation(n.view()));
  if (!positions_fit(window)) return n.refuse(Rule::kAttribute, "strides or dilations of a billion");
  on_rows(n,
          {window, n.in(0).shape[0].size, n.in(0).shape[1].size, n.out().shape[1].size, n.view().attr_int("group"),
           Requantize(n.in(0), n.in(1), n.out(), activation)},
          true);
  return {};
}

}  // namespace pinnace::gpu
