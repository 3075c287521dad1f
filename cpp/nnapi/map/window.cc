// The arithmetic of padding schemes, and windows as attributes.
#include "nnapi/map/window.h"

#include <algorithm>

namespace pinnace::nnapi {

Status pad_by_scheme(const Call& call, int64_t scheme, WindowAxis& axis) {
  if (scheme != 1 && scheme != 2) return call.error("padding scheme ", scheme, " is neither 1 nor 2");
  if (scheme == 2) return {};
  if (axis.stride < 1) return call.error("stride ", axis.stride, " is below 1");
  const int64_t out = (axis.in + axis.stride - 1) / axis.stride;
  const int64_t total = std::max<int64_t>(0, (out - 1) * axis.stride + axis.extent() - axis.in);
  axis.head = total / 2;
  axis.tail = total - axis.head;
  return {};
}

Status check_window(const Call& call, const WindowAxis& axis) {
  if (axis.stride < 1 || axis.dilation < 1 || axis.filter < 1 || axis.in < 1) {
    return call.error("size ", axis.in, ", filter ", axis.filter, ", stride ", axis.stride, " and dilation ",
                      axis.dilation, " must be above 0");
  }
  // Far beyond any tensor; keeps the extent from overflowing.
  if (axis.dilation > INT32_MAX / axis.filter) return call.error("dilation ", axis.dilation, " is too large");
  if (axis.head < 0 || axis.tail < 0 || axis.head >= axis.extent() || axis.tail >= axis.extent()) {
    return call.error("pads ", axis.head, " and ", axis.tail, " must be in [0, ", axis.extent(), ")");
  }
  if (axis.in + axis.head + axis.tail < axis.extent()) {
    return call.error("a window of ", axis.extent(), " does not fit in ", axis.in, " with pads ", axis.head, " and ",
                      axis.tail);
  }
  return {};
}

Status read_window(Call& call, const WindowInputs& where, size_t dilations, WindowAxis (&axes)[2]) {
  for (int a : {0, 1}) {
    const size_t horizontal = a == 1 ? 0 : 1;  // the width comes first among scalars
    WindowAxis& axis = axes[a];
    PINNACE_ASSIGN(axis.stride, call.integer(where.strides() + horizontal));
    if (dilations) {
      PINNACE_ASSIGN(axis.dilation, call.integer(dilations + horizontal));
    }
    if (where.explicit_pads) {
      PINNACE_ASSIGN(axis.head, call.integer(where.first + 2 * horizontal));
      PINNACE_ASSIGN(axis.tail, call.integer(where.first + 2 * horizontal + 1));
    } else {
      PINNACE_ASSIGN(int64_t scheme, call.integer(where.first));
      PINNACE_TRY(pad_by_scheme(call, scheme, axis));
    }
    PINNACE_TRY(check_window(call, axis));
  }
  return {};
}

Attrs window_attrs(const WindowAxis (&axes)[2]) {
  Attrs attrs = {{"strides", std::vector<int64_t>{axes[0].stride, axes[1].stride}},
                 {"pads", std::vector<int64_t>{axes[0].head, axes[1].head, axes[0].tail, axes[1].tail}}};
  if (axes[0].dilation != 1 || axes[1].dilation != 1) {
    attrs.emplace_back("dilations", std::vector<int64_t>{axes[0].dilation, axes[1].dilation});
  }
  return attrs;
}

}  // namespace pinnace::nnapi
