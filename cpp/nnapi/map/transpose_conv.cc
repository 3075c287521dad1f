// Transposed convolution: explicit pads, whose tails may be negative, or a wanted output size with a padding scheme.
#include <algorithm>

#include "nnapi/map/bias.h"
#include "nnapi/map/window.h"

namespace pinnace::nnapi {
namespace {

/// One axis; `axis.in` is the size of x.
int64_t out_size(const WindowAxis& axis) {
  return (axis.in - 1) * axis.stride + axis.filter - axis.head - axis.tail;
}

Status pad_for(const Call& call, int64_t scheme, int64_t wanted, WindowAxis& axis) {
  if (scheme != 1 && scheme != 2) return call.error("padding scheme ", scheme, " is neither 1 nor 2");
  if (axis.stride < 1) return call.error("stride ", axis.stride, " is below 1");
  if (scheme == 2) return {};
  const int64_t steps = (wanted + axis.stride - 1) / axis.stride;
  const int64_t total = (steps - 1) * axis.stride + axis.filter - wanted;
  axis.head = std::max<int64_t>(0, total) / 2;
  axis.tail = total - axis.head;
  return {};
}

}  // namespace

Status map_transpose_conv_2d(Call& call) {
  PINNACE_ASSIGN(ValueId x, call.in(0));
  PINNACE_ASSIGN(ValueId filter, call.in(1));
  PINNACE_ASSIGN(ValueId bias, call.in(2));
  PINNACE_TRY(check_bias_scale(call));
  const bool implicit = call.inputs() == 9;
  const size_t stride_at = implicit ? 5 : 7;
  PINNACE_ASSIGN(int64_t code, call.integer(stride_at + 2));
  PINNACE_ASSIGN(bool nchw, call.flag(stride_at + 3));
  if (call.rank(x) != 4 || call.rank(filter) != 4) return call.error("input and filter must have rank 4");
  std::vector<int64_t> wanted;
  if (implicit) {
    PINNACE_ASSIGN(wanted, call.ints(3));
    if (wanted.size() != 4) return call.error("the output shape has ", wanted.size(), " sizes, must have 4");
  }
  WindowAxis axes[2];
  for (int a : {0, 1}) {
    WindowAxis& axis = axes[a];
    const size_t horizontal = a == 1 ? 0 : 1;
    PINNACE_ASSIGN(axis.in, call.size(x, (nchw ? 2 : 1) + a));
    PINNACE_ASSIGN(axis.filter, call.size(filter, 1 + a));
    PINNACE_ASSIGN(axis.stride, call.integer(stride_at + horizontal));
    if (implicit) {
      PINNACE_ASSIGN(int64_t scheme, call.integer(4));
      PINNACE_TRY(pad_for(call, scheme, wanted[static_cast<size_t>((nchw ? 2 : 1) + a)], axis));
    } else {
      PINNACE_ASSIGN(axis.head, call.integer(3 + 2 * horizontal));
      PINNACE_ASSIGN(axis.tail, call.integer(4 + 2 * horizontal));
    }
    if (axis.in < 1 || axis.filter < 1 || axis.stride < 1 || axis.head < 0 || out_size(axis) < 1) {
      return call.error("size ", axis.in, ", filter ", axis.filter, ", stride ", axis.stride, " and pads ", axis.head,
                        ", ", axis.tail, " make no output");
    }
  }
  PINNACE_ASSIGN(int64_t outputs, call.size(filter, 0));
  PINNACE_TRY(check_bias_shape(call, bias, outputs));
  PINNACE_ASSIGN(Attrs attrs, call.activation(code));
  const auto positive = [](int64_t pad) { return std::max<int64_t>(0, pad); };
  attrs.emplace_back("strides", std::vector<int64_t>{axes[0].stride, axes[1].stride});
  attrs.emplace_back("pads",
                     std::vector<int64_t>{axes[0].head, axes[1].head, positive(axes[0].tail), positive(axes[1].tail)});
  if (axes[0].tail < 0 || axes[1].tail < 0) {
    attrs.emplace_back("output_padding", std::vector<int64_t>{positive(-axes[0].tail), positive(-axes[1].tail)});
  }
  PINNACE_ASSIGN(filter, call.transpose(filter, {3, 0, 1, 2}));
  PINNACE_ASSIGN(ValueId y, call.to_nchw(x, nchw));
  PINNACE_ASSIGN(y, call.emit("conv_transpose", {y, filter, bias}, std::move(attrs), call.declared()));
  PINNACE_ASSIGN(y, call.from_nchw(y, nchw));
  return call.finish(0, y);
}

}  // namespace pinnace::nnapi
