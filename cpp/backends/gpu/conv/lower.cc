// Convolutions: of NC4HW4 buffers where windows have up to two dimensions, and of dense tensors for all others.
#include "backends/gpu/conv/convolution.h"

namespace pinnace::gpu {

TensorId bias_weights(NodeLowering& n, int64_t M) {
  const std::vector<double> numbers = n.has(2) ? n.floats(2) : std::vector<double>();
  return n.weights("bias", (M + 3) / 4 * 4, [numbers](std::span<float> to) {
    std::fill(to.begin(), to.end(), 0.0f);
    for (size_t i = 0; i < numbers.size(); ++i) to[i] = static_cast<float>(numbers[i]);
    return Status();
  });
}

namespace {

/// Which blocks of input a block of outputs reads, as conv_nc4hw4.comp has it: those of its outputs' groups.
struct GroupBlocks {
  int64_t group_c, group_m, M, count = 0;
  GroupBlocks(int64_t C, int64_t outs, int64_t group) : group_c(C / group), group_m(outs / group), M(outs) {
    for (int64_t m = 0; m < M; m += 4) {
      const int64_t last_group = std::min(m + 3, M - 1) / group_m;
      count = std::max(count, ((last_group + 1) * group_c + 3) / 4 - first(m));
    }
  }
  int64_t first(int64_t m) const { return m / 4 * 4 / group_m * group_c / 4; }
};

/// [M4][taps][count][4][4]: see conv_nc4hw4.comp. Of w [M, C / group, taps], or [C, M / group, taps] of a transpose.
TensorId image_weights(NodeLowering& n, const GroupBlocks& g, int64_t taps, bool transposed) {
  const NodeView view = n.view();
  return n.weights("image", std::max<int64_t>(1, (g.M + 3) / 4 * taps * g.count) * 16, [=](std::span<float> to) {
    const auto w = view.input_floats(1);
    if (!w) return unsupported("weights are not known");
    std::fill(to.begin(), to.end(), 0.0f);
    for (int64_t m = 0; m < g.M; ++m) {
      const int64_t group = m / g.group_m, first = g.first(m) * 4;
      for (int64_t k = 0; k < g.group_c; ++k) {
        const int64_t c = group * g.group_c + k, lane = c - first;
        const int64_t from = transposed ? c * g.group_m + m % g.group_m : m * g.group_c + k;
        for (int64_t t = 0; t < taps; ++t) {
          const int64_t at = (((m / 4 * taps + t) * g.count + lane / 4) * 4 + lane % 4) * 4 + m % 4;
          to[static_cast<size_t>(at)] = static_cast<float>((*w)[static_cast<size_t>(from * taps + t)]);
        }
      }
    }
    return Status();
  });
}

TensorId depthwise_weights(NodeLowering& n, int64_t C, int64_t taps) {
  const NodeView view = n.view();
  return n.weights("depthwise", (C + 3) / 4 * 4 * taps, [=](std::span<float> to) -> Status {
    const auto w = view.input_floats(1);
    if (!w) return unsupported("weights are not known");
    std::fill(to.begin(), to.end(), 0.0f);
    for (int64_t c = 0; c < C; ++c) {
      for (int64_t t = 0; t < taps; ++t) {
        to[static_cast<size_t>((c / 4 * taps + t) * 4 + c % 4)] =
            static_cast<float>((*w)[static_cast<size_t>(c * taps + t)]);
      }
    }
    return {};
  });
}

void on_rows(NodeLowering& n, const Convolution& c, bool transposed) {
  // Of the transpose the window is that of the convolution whose transpose it is: `in` are the sizes of the result.
  const Window& w = c.window;
  const auto &in = transposed ? w.out : w.in, &out = transposed ? w.in : w.out;
  const int64_t count = c.N * c.M * out[0] * out[1] * out[2];
  const Epilogue e = c.epilogue();
  const ConvDenseParams params{.count = count,
                               .M = c.M,
                               .group_c = c.C / c.group,
                               .group_m = c.M / c.group,
                               .C = c.C,
                               .in = row_window(in),
                               .out = row_window(out),
                               .stride = row_window(w.stride),
                               .dilation = row_window(w.dilation),
                               .pad = row_window(w.before),
                               .a = e.a,
                               .b = e.b};
  const TensorId x = n.dense(0), weights = n.dense(1);
  const TensorId bias = n.has(2) && !n.constant(2) ? n.dense(2) : bias_weights(n, c.M), y = n.make_dense();
  n.loops(dense_window_turns(w, c.C / c.group));
  n.step(transposed ? KernelId::conv_dense_transposed : KernelId::conv_dense,
         ConvDenseConstants{.ACT = static_cast<int32_t>(e.function), .K = {w.kernel[0], w.kernel[1], w.kernel[2]}},
         params, {x, weights, bias, y}, line_groups(count, 64), c.work());
  if (!in_epilogue(c.activation)) apply_after(n, c.activation, false);
}

void depthwise(NodeLowering& n, const Convolution& c) {
  const Window& w = c.window;
  const Epilogue e = c.epilogue();
  const int64_t C4 = (c.C + 3) / 4;
  const TensorId x = n.nc4hw4(0), weights = depthwise_weights(n, c.C, w.taps()), bias = bias_weights(n, c.M);
  const TensorId y = n.make_nc4hw4();
  n.loops(loop_turns(w.kernel[1], loop_turns(w.kernel[2])));
  n.step(KernelId::conv_depthwise,
         ConvDepthwiseConstants{.ACT = static_cast<int32_t>(e.function),
                                .KH = w.kernel[1],
                                .KW = w.kernel[2],
                                .SH = w.stride[1],
                                .SW = w.stride[2]},
         ConvDepthwiseParams{.H = w.in[1],
                             .W = w.in[2],
                             .OH = w.out[1],
                             .OW = w.out[2],
                             .C4 = C4,
                             .planes = c.N * C4,
                             .pad_y = w.before[1],
                             .pad_x = w.before[2],
                             .dil_y = w.dilation[1],
                             .dil_x = w.dilation[2],
                             .a = e.a,
                             .b = e.b},
         {x, weights, bias, y}, {groups_of(w.out[2], 16), groups_of(w.out[1], 8), groups_of(c.N * C4, 2)}, c.work());
  if (!in_epilogue(c.activation)) apply_after(n, c.activation, true);
}

void on_images(NodeLowering& n, const Convolution& c, bool transposed) {
  // Of the transpose the window is that of the convolution whose transpose it is: `in` are the sizes of the result.
  const Window& w = c.window;
  const auto &in = transposed ? w.out : w.in, &out = transposed ? w.in : w.out;
  const Epilogue e = c.epilogue();
  const GroupBlocks g(c.C, c.M, c.group);
  const int64_t C4 = (c.C + 3) / 4, M4 = (c.M + 3) / 4, out_size = out[1] * out[2];
  const TensorId x = n.nc4hw4(0), weights = image_weights(n, g, w.taps(), transposed), bias = bias_weights(n, c.M);
  const TensorId y = n.make_nc4hw4();
  const KernelId product = pointwise_kernel(n, c.C, c.M, out_size);
  const bool pointwise = n.trusts(product) && !transposed && c.group == 1 && w.taps() == 1 && w.stride[1] == 1 &&
                         w.stride[2] == 1 && in == out && out_size <= 65535 * 64;
  if (pointwise) {
    n.loops(loop_turns(C4));
    n.step(product, ConvPointwiseConstants{.ACT = static_cast<int32_t>(e.function)},
           ConvPointwiseParams{.pixels = out_size, .C4 = C4, .M4 = M4, .a = e.a, .b = e.b}, {x, weights, bias, x, y},
           {groups_of(out_size, 64), groups_of(M4, 8), static_cast<uint32_t>(c.N)}, c.work());
  } else {
    // Two blocks of outputs share what they read where one group has both.
    const bool two =
        n.trusts(KernelId::conv_nc4hw4) && !transposed && (c.group == 1 || (g.group_c % 4 == 0 && g.group_m % 8 == 0));
    const int64_t blocks = two ? 2 : 1;
    const int64_t columns =
        transposed ? (out[2] + 4 * w.stride[2] - 1) / (4 * w.stride[2]) * w.stride[2] : (out[2] + 3) / 4;
    n.loops(window_turns(w, g.count));
    n.step(transposed ? KernelId::conv_nc4hw4_transposed
           : two      ? KernelId::conv_nc4hw4
                      : KernelId::conv_nc4hw4_block,
           ConvNc4hw4Constants{.ACT = static_cast<int32_t>(e.function),
                               .KH = w.kernel[1],
                               .KW = w.kernel[2],
                               .SH = w.stride[1],
                               .SW = w.stride[2]},
           ConvNc4hw4Params{.H = in[1],
                            .W = in[2],
                            .OH = out[1],
                            .OW = out[2],
                            .C4 = C4,
                            .M4 = M4,
                            .group_c = g.group_c,
                            .group_m = g.group_m,
                            .count = g.count,
                            .pad_y = w.before[1],
                            .pad_x = w.before[2],
                            .dil_y = w.dilation[1],
                            .dil_x = w.dilation[2],
                            .a = e.a,
                            .b = e.b},
           {x, weights, bias, x, y},
           {groups_of(columns, 8), groups_of(out[1], 8), static_cast<uint32_t>(c.N * ((M4 + blocks - 1) / blocks))},
           c.work());
  }
  if (!in_epilogue(c.activation)) apply_after(n, c.activation, true);
}

Status check_weights(NodeLowering& n) {
  for (int i = 0; i < 3; ++i) PINNACE_TRY(n.require_float(i));
  return {};
}

/// Weights that a run brings are read as they lie, by the kernels of rows.
bool weights_known(NodeLowering& n) {
  return n.constant(1) && (!n.has(2) || n.constant(2));
}

/// Whether the kernels of NC4HW4 buffers hold it: at most two dimensions, rows and columns within the groups of any
/// device.
bool on_planes(const Convolution& c, const std::array<int64_t, 3>& out) {
  return c.window.rank <= 2 && out[1] <= 65535 * 8 && out[2] <= 65535 * 16;
}

}  // namespace

bool positions_fit(const Window& w) {
  for (size_t d = 0; d < 3; ++d) {
    const int64_t reach = std::max(w.in[d], w.out[d]) * w.stride[d] + w.before[d] + w.kernel[d] * w.dilation[d];
    if (reach > INT32_MAX / 2 || w.stride[d] > INT32_MAX / 64) return false;
  }
  return true;
}

int64_t window_turns(const Window& w, int64_t vectors) {
  return loop_turns(w.kernel[1], loop_turns(w.kernel[2], loop_turns(vectors)));
}

int64_t dense_window_turns(const Window& w, int64_t channels) {
  int64_t turns = 0;  // compilers leave out loops of one turn
  for (size_t d = 3; d-- > 0;) turns = w.kernel[d] == 1 ? turns : loop_turns(w.kernel[d], turns);
  return loop_turns(channels, turns);
}

Status lower_conv(NodeLowering& n) {
  PINNACE_TRY(check_weights(n));
  PINNACE_ASSIGN(Window window, check_convolution(n.view(), 2));
  PINNACE_ASSIGN(const Activation activation, parse_activation(n.view()));
  const Convolution c{
      window,    n.in(0).shape[0].size, n.in(0).shape[1].size, n.in(1).shape[0].size, n.view().attr_int("group"),
      activation};
  if (!positions_fit(window)) return n.refuse(Rule::kAttribute, "strides or dilations of a billion");
  if (!weights_known(n)) {
    on_rows(n, c, false);
  } else if (on_planes(c, window.out) && c.group == c.C && c.M == c.C && c.C > 1 &&
             n.trusts(KernelId::conv_depthwise)) {
    depthwise(n, c);
  } else if (on_planes(c, window.out) && n.in(0).rank() >= 3 && n.trusts(KernelId::conv_nc4hw4_block)) {
    if (!lower_winograd(n, c)) on_images(n, c, false);
  } else {
    on_rows(n, c, false);
  }
  return {};
}

Status lower_conv_transpose(NodeLowering& n) {
  PINNACE_TRY(check_weights(n));
  PINNACE_ASSIGN(const Window window, check_conv_transpose(n.view()));
  PINNACE_ASSIGN(const Activation activation, parse_activation(n.view()));
  if (!positions_fit(window)) return n.refuse(Rule::kAttribute, "strides or dilations of a billion");
  const Convolution c{
      window,    n.in(0).shape[0].size, n.in(0).shape[1].size, n.out().shape[1].size, n.view().attr_int("group"),
      activation};
  // What the kernel moves positions by is an integer too; a row of groups has as many as every device has.
  const int64_t moved = window.stride[2] * window.kernel[2] * window.dilation[2];
  const bool near = moved < INT32_MAX / 4 && window.stride[2] < 65535;
  if (weights_known(n) && near && c.C > 0 && on_planes(c, window.in) && n.in(0).rank() >= 3 &&
      n.trusts(KernelId::conv_nc4hw4_transposed)) {
    on_images(n, c, true);
  } else {
    on_rows(n, c, true);
  }
  return {};
}

}  // namespace pinnace::gpu
