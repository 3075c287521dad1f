// Convolutions: of images where groups are whole blocks of channels, depthwise ones, and of rows for all others.
#include "ops/convolution.h"
#include "backends/gpu/lower/maps.h"

namespace pinnace::gpu {
namespace {

/// Bias by channel, zeros without one, filled up to whole blocks.
TensorId bias_weights(NodeLowering& n, int64_t M) {
  const std::vector<double> numbers = n.has(2) ? n.floats(2) : std::vector<double>();
  return n.weights("bias", (M + 3) / 4 * 4, [numbers](std::span<float> to) {
    std::fill(to.begin(), to.end(), 0.0f);
    for (size_t i = 0; i < numbers.size(); ++i) to[i] = static_cast<float>(numbers[i]);
    return Status();
  });
}

/// [M4][taps][C4 of a group][4][4]: see conv_image.comp.
TensorId image_weights(NodeLowering& n, int64_t M, int64_t group_c, int64_t taps) {
  const int64_t M4 = (M + 3) / 4, C4 = (group_c + 3) / 4;
  const NodeView view = n.view();
  return n.weights("image", std::max<int64_t>(1, M4 * taps * C4) * 16, [=](std::span<float> to) -> Status {
    const auto w = view.input_floats(1);
    if (!w) return unsupported("weights are not known");
    std::fill(to.begin(), to.end(), 0.0f);
    for (int64_t m = 0; m < M; ++m) {
      for (int64_t c = 0; c < group_c; ++c) {
        for (int64_t t = 0; t < taps; ++t) {
          const int64_t at = (((m / 4 * taps + t) * C4 + c / 4) * 4 + c % 4) * 4 + m % 4;
          to[static_cast<size_t>(at)] = static_cast<float>((*w)[static_cast<size_t>((m * group_c + c) * taps + t)]);
        }
      }
    }
    return {};
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

struct Convolution {
  Window window;
  int64_t N, C, M, group;
  Activation activation;
  /// What the kernel applies; the rest follows as a step of its own.
  Epilogue epilogue() const { return in_epilogue(activation) ? epilogue_of(activation) : Epilogue(); }
  double work() const {
    const int64_t inputs = C / group;
    return static_cast<double>(N * M * window.out_size()) * static_cast<double>(inputs * window.taps());
  }
};

void on_rows(NodeLowering& n, const Convolution& c, bool transposed) {
  // Of the transpose the window is that of the convolution whose transpose it is: `in` are the sizes of the result.
  const Window& w = c.window;
  const auto &in = transposed ? w.out : w.in, &out = transposed ? w.in : w.out;
  const int64_t count = c.N * c.M * out[0] * out[1] * out[2];
  const Epilogue e = c.epilogue();
  Push push;
  push.i(count).i(c.M).i(c.C / c.group).i(c.M / c.group).i(c.C);
  for (const auto* list : {&in, &out, &w.stride, &w.dilation, &w.before}) {
    for (int64_t size : *list) push.i(std::min<int64_t>(size, INT32_MAX));
  }
  push.f(e.a).f(e.b);
  const TensorId x = n.rows(0), weights = n.rows(1), bias = bias_weights(n, c.M), y = n.make_rows();
  n.step(transposed ? KernelId::conv_rows_transposed : KernelId::conv_rows,
         {static_cast<int32_t>(e.function), static_cast<int32_t>(w.kernel[0]), static_cast<int32_t>(w.kernel[1]),
          static_cast<int32_t>(w.kernel[2])},
         push, {x, weights, bias, y}, line_groups(count, 64), c.work());
  if (!in_epilogue(c.activation)) apply_after(n, c.activation, false);
}

void depthwise(NodeLowering& n, const Convolution& c) {
  const Window& w = c.window;
  const Epilogue e = c.epilogue();
  const int64_t C4 = (c.C + 3) / 4;
  const TensorId x = n.image(0), weights = depthwise_weights(n, c.C, w.taps()), bias = bias_weights(n, c.M);
  const TensorId y = n.make_image();
  n.step(KernelId::conv_depthwise,
         {static_cast<int32_t>(e.function), static_cast<int32_t>(w.kernel[1]), static_cast<int32_t>(w.kernel[2]),
          static_cast<int32_t>(w.stride[1]), static_cast<int32_t>(w.stride[2])},
         Push()
             .i(w.in[1])
             .i(w.in[2])
             .i(w.out[1])
             .i(w.out[2])
             .i(C4)
             .i(w.before[1])
             .i(w.before[2])
             .i(w.dilation[1])
             .i(w.dilation[2])
             .f(e.a)
             .f(e.b),
         {x, weights, bias, y}, {groups_of(w.out[2], 16), groups_of(w.out[1], 8), static_cast<uint32_t>(c.N * C4)},
         c.work());
  if (!in_epilogue(c.activation)) apply_after(n, c.activation, true);
}

void on_images(NodeLowering& n, const Convolution& c) {
  const Window& w = c.window;
  const Epilogue e = c.epilogue();
  const int64_t C4 = (c.C + 3) / 4, M4 = (c.M + 3) / 4;
  const int64_t group_c4 = c.group == 1 ? C4 : C4 / c.group, group_m4 = c.group == 1 ? M4 : M4 / c.group;
  const TensorId x = n.image(0), weights = image_weights(n, c.M, c.C / c.group, w.taps()), bias = bias_weights(n, c.M);
  const TensorId y = n.make_image();
  const bool pointwise = n.trusts(KernelId::conv_pointwise) && c.group == 1 && w.taps() == 1 && w.stride[1] == 1 &&
                         w.stride[2] == 1 && w.in == w.out;
  if (pointwise) {
    n.step(KernelId::conv_pointwise, {static_cast<int32_t>(e.function), 0},
           Push().i(w.out_size()).i(C4).i(M4).f(e.a).f(e.b), {x, weights, bias, x, y},
           {groups_of(w.out_size(), 64), groups_of(M4, 8), static_cast<uint32_t>(c.N)}, c.work());
  } else {
    const bool pairs = n.trusts(KernelId::conv_image) && (c.group == 1 || group_m4 % 2 == 0);
    const int64_t blocks = pairs ? 2 : 1;
    n.step(blocks == 2 ? KernelId::conv_image : KernelId::conv_image_block,
           {static_cast<int32_t>(e.function), static_cast<int32_t>(w.kernel[1]), static_cast<int32_t>(w.kernel[2]),
            static_cast<int32_t>(w.stride[1]), static_cast<int32_t>(w.stride[2]), 0},
           Push()
               .i(w.in[1])
               .i(w.in[2])
               .i(w.out[1])
               .i(w.out[2])
               .i(C4)
               .i(M4)
               .i(group_c4)
               .i(group_m4)
               .i(w.before[1])
               .i(w.before[2])
               .i(w.dilation[1])
               .i(w.dilation[2])
               .f(e.a)
               .f(e.b),
           {x, weights, bias, x, y},
           {groups_of(w.out[2], 32), groups_of(w.out[1], 8), static_cast<uint32_t>(c.N * ((M4 + blocks - 1) / blocks))},
           c.work());
  }
  if (!in_epilogue(c.activation)) apply_after(n, c.activation, true);
}

Status check_weights(NodeLowering& n) {
  for (int i = 0; i < 3; ++i) PINNACE_TRY(n.require_float(i));
  if (!n.constant(1)) return n.refuse(Rule::kConstant, "w");
  if (n.has(2) && !n.constant(2)) return n.refuse(Rule::kConstant, "bias");
  return {};
}

/// Positions are 32-bit integers in kernels: a stride that leaves them is never taken twice, but is multiplied.
bool positions_fit(const Window& w) {
  for (size_t d = 0; d < 3; ++d) {
    const int64_t reach = std::max(w.in[d], w.out[d]) * w.stride[d] + w.before[d] + w.kernel[d] * w.dilation[d];
    if (reach > INT32_MAX / 2 || w.stride[d] > INT32_MAX / 64) return false;
  }
  return true;
}

}  // namespace

Status lower_conv(NodeLowering& n) {
  PINNACE_TRY(check_weights(n));
  Shape shape;
  PINNACE_ASSIGN(Window window, check_convolution(n.view(), 2, shape));
  PINNACE_ASSIGN(const Activation activation, parse_activation(n.view()));
  const Convolution c{
      window,    n.in(0).shape[0].size, n.in(0).shape[1].size, n.in(1).shape[0].size, n.view().attr_int("group"),
      activation};
  if (!positions_fit(window)) return n.refuse(Rule::kAttribute, "strides or dilations of a billion");
  const int64_t planes = c.N * ((c.M + 3) / 4);
  const bool flat = window.rank <= 2 && planes <= 65535 && c.N * ((c.C + 3) / 4) <= 65535 && window.out[1] <= 65535 * 8;
  const bool blocks = c.group == 1 || (c.C / c.group % 4 == 0 && c.M / c.group % 4 == 0);
  const bool pairs = n.trusts(KernelId::conv_image) && (c.group == 1 || c.M / c.group % 8 == 0);
  if (flat && c.group == c.C && c.M == c.C && c.C > 1 && n.trusts(KernelId::conv_depthwise)) {
    depthwise(n, c);
  } else if (flat && blocks && n.in(0).rank() >= 3 && (n.trusts(KernelId::conv_image_block) || pairs)) {
    on_images(n, c);
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
  on_rows(n,
          {window, n.in(0).shape[0].size, n.in(0).shape[1].size, n.out().shape[1].size, n.view().attr_int("group"),
           activation},
          true);
  return {};
}

}  // namespace pinnace::gpu
