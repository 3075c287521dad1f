// conv_transpose as TRANSPOSE_CONV_2D, in groups as several; what output_padding adds is a negative pad at the end.
#include "ops/convolution.h"

#include "backends/nnapi/rewrites/rewrites.h"
#include "backends/nnapi/steps/weights.h"
#include "backends/nnapi/steps/window.h"

namespace pinnace::nnapi_client {

Status lower_conv_transpose(NodeLowering& n) {
  PINNACE_ASSIGN(Window w, check_conv_transpose(n.view()));
  PINNACE_ASSIGN(const Activation activation, parse_activation(n.view()));
  if (w.rank > 2) return n.refuse(Rule::kSpatial, to_string(n.in_type(0)));
  const auto groups = static_cast<uint32_t>(n.view().attr_int("group"));
  if (w.dilation[1] > 1 || w.dilation[2] > 1)
    return n.refuse(Rule::kDilation, str_cat(w.dilation[1], ",", w.dilation[2]));
  const auto C = static_cast<uint32_t>(n.in_type(1).shape[0].size),
             M = static_cast<uint32_t>(n.in_type(1).shape[1].size);
  const auto kh = static_cast<uint32_t>(w.kernel[1]), kw = static_cast<uint32_t>(w.kernel[2]);
  for (int d : {1, 2}) {  // `in` is of y, `out` of x
    w.after[d] = (w.out[d] - 1) * w.stride[d] + w.kernel[d] - w.before[d] - w.in[d];
    if (w.before[d] < 0 || w.before[d] >= w.kernel[d] || w.after[d] >= w.kernel[d])
      return n.refuse(Rule::kPadding, str_cat(w.before[d], ",", w.after[d]));
  }
  PINNACE_ASSIGN(const Images images, images_of(n));
  // w is [C, M / group, kernel...].
  const Gathered all{{M, kh, kw, C / groups}, {w.taps(), w.kernel[2], 1, int64_t{M} * w.taps()}};
  if (groups > 1) {
    PINNACE_TRY(grouped_conv_transpose(n, {w, activation, images.x, images.y, groups, C, M * groups, all}));
    return finish_images(n, images);
  }
  PINNACE_ASSIGN(const OperandId filter, filter_operand(n, 1, images.x, all, 0));
  PINNACE_ASSIGN(const OperandId bias, bias_operand(n, 2, images.x, filter, M));
  std::vector<OperandId> inputs = {images.x, filter, bias};
  append_pads(n, w, inputs);
  append_strides(n, w, inputs);
  PINNACE_TRY(n.add_activated(Op::TRANSPOSE_CONV_2D, std::move(inputs), activation, images.y, {n.flag(false)}));
  return finish_images(n, images);
}

}  // namespace pinnace::nnapi_client
