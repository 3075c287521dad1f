// conv as CONV_2D, DEPTHWISE_CONV_2D or GROUPED_CONV_2D, channels last, weights laid out ahead of time.
#include "ops/convolution.h"

#include "backends/nnapi/rewrites/rewrites.h"
#include "backends/nnapi/steps/weights.h"
#include "backends/nnapi/steps/window.h"

namespace pinnace::nnapi_client {
namespace {

/// Distances in w [M, C / group, kernel...].
struct FilterStrides {
  int64_t m, c, ky, kx;
  FilterStrides(const Window& w, int64_t channels) : m(channels * w.taps()), c(w.taps()), ky(w.kernel[2]), kx(1) {}
};

}  // namespace

Status lower_conv(NodeLowering& n) {
  PINNACE_ASSIGN(Window w, check_convolution(n.view(), 2));
  PINNACE_ASSIGN(const Activation activation, parse_activation(n.view()));
  if (w.rank > 2) return n.refuse(Rule::kSpatial, to_string(n.in_type(0)));
  const auto C = static_cast<uint32_t>(n.in_type(0).shape[1].size),
             M = static_cast<uint32_t>(n.in_type(1).shape[0].size);
  const int64_t groups = n.view().attr_int("group");
  PINNACE_ASSIGN(const Images images, images_of(n));
  OperandId x = images.x;
  // A pad as long as the window is an operation of its own.
  for (int d : {1, 2}) {
    const int64_t extent = (w.kernel[d] - 1) * w.dilation[d] + 1;
    if (w.before[d] < extent && w.after[d] < extent) continue;
    PINNACE_ASSIGN(x, padded(n, x, w.before[1], w.after[1], w.before[2], w.after[2]));
    for (int i : {1, 2}) w.in[i] += w.before[i] + w.after[i];
    w.before = w.after = {};
  }
  for (int d : {1, 2}) {
    if (w.kernel[d] == 1) w.dilation[d] = 1;
  }
  const auto kh = static_cast<uint32_t>(w.kernel[1]), kw = static_cast<uint32_t>(w.kernel[2]);
  const FilterStrides s(w, C / groups);
  const Gathered all{{M, kh, kw, static_cast<uint32_t>(C / groups)}, {s.m, s.ky, s.kx, s.c}};
  const bool depthwise = groups == C && groups > 1;
  if (groups > 1 && !depthwise) {
    PINNACE_TRY(grouped_conv(n, {w, activation, x, images.y, static_cast<uint32_t>(groups), C, M, all}));
    return finish_images(n, images);
  }
  const bool scales = n.in_type(1).quantized() && n.in_type(1).quantization->scales.size() > 1;
  if (scales && n.feature_level() < 3 && w.dilation[1] == 1 && w.dilation[2] == 1) {
    PINNACE_TRY(per_channel_conv(n, {w, activation, x, images.y, static_cast<uint32_t>(groups), C, M, all}));
    return finish_images(n, images);
  }
  if ((w.dilation[1] > 1 || w.dilation[2] > 1) && n.feature_level() < 3) {
    PINNACE_TRY(dilated_conv(n, {w, activation, x, images.y, static_cast<uint32_t>(groups), C, M, all}));
    return finish_images(n, images);
  }
  const Gathered gathered = depthwise ? Gathered{{1, kh, kw, M}, {0, s.ky, s.kx, s.m}} : all;
  PINNACE_ASSIGN(const OperandId filter, filter_operand(n, 1, x, gathered, depthwise ? 3 : 0));
  PINNACE_ASSIGN(const OperandId bias, bias_operand(n, 2, x, filter, M));
  std::vector<OperandId> inputs = {x, filter, bias};
  append_pads(n, w, inputs);
  append_strides(n, w, inputs);
  if (depthwise) inputs.push_back(n.scalar(static_cast<int32_t>(M / C)));
  std::vector<OperandId> after;
  if (w.dilation[1] > 1 || w.dilation[2] > 1) {
    after = {n.flag(false), n.scalar(static_cast<int32_t>(w.dilation[2])),
             n.scalar(static_cast<int32_t>(w.dilation[1]))};
  }
  const Op op = depthwise ? Op::DEPTHWISE_CONV_2D : Op::CONV_2D;
  PINNACE_TRY(n.add_activated(op, std::move(inputs), activation, images.y, std::move(after)));
  return finish_images(n, images);
}

}  // namespace pinnace::nnapi_client
