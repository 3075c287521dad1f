// max_pool: y[n, c, o] = the largest x[n, c, o * stride + k * dilation - pad] over the window's k inside x.
//   x        [N, C, spatial...]  1 to 3 spatial dimensions; floats, i8, u8; quantised per tensor
//   kernel_shape ints, required; auto_pad, pads, strides, dilations: see window.h; ceil_mode int, default 0
//   storage_order int, default 0: indices count the elements of a plane in row-major order; 1: in column-major order,
//                 the first spatial dimension fastest
//   y        [N, C, out...]      as x, quantisation included
//   indices  [N, C, out...]      optional, i64: where y was found, counted through all of x; the first of equals
// ceil_mode rounds sizes up, less a last window that would start in the trailing padding. NaN wins, the last one's
// index is given. A window wholly outside x gives the least value of the type (-inf) and index -1. Source: ONNX
// MaxPool, opset 22.
#include <limits>

#include "ops/pool.h"

namespace pinnace {
namespace {
Status max_pool_types(const NodeView& node, std::span<TensorType> out) {
  const TensorType& x = node.input(0);
  if (const int64_t order = node.attr_int("storage_order"); order != 0 && order != 1) {
    return node.error("storage_order is ", order, ", must be 0 or 1");
  }
  const auto declared = node.output_quantization(0);
  if (declared && (!x.quantized() || !(*declared == *x.quantization))) {
    return node.error("the output's declared quantisation differs from that of x ", x, ", which is kept");
  }
  if (x.quantized()) PINNACE_TRY(check_per_tensor(node, *x.quantization, x.dtype, "x"));
  Shape shape;
  PINNACE_TRY(check_pool(node, shape).status());
  out[0] = {x.dtype, shape, x.quantization};
  if (out.size() > 1) out[1] = {DType::kI64, std::move(shape), nullptr};
  return {};
}

template <class T>
T least() {
  if constexpr (is_float<T>)
    return static_cast<T>(-std::numeric_limits<float>::infinity());
  else
    return std::numeric_limits<T>::min();
}

/// Element `at` of a plane counted in column-major order.
int64_t column_major(const Window& w, int64_t at) {
  const int64_t z = at / (w.in[1] * w.in[2]), y = at / w.in[2] % w.in[1], x = at % w.in[2];
  return z + w.in[0] * (y + w.in[1] * x);
}

Status max_pool_reference(const NodeView& node, std::span<const TensorView> in, std::span<const TensorView> out) {
  const TensorView &x = in[0], &y = out[0];
  Shape shape;
  PINNACE_ASSIGN(const Window w, check_pool(node, shape));
  const bool columns = node.attr_int("storage_order") != 0;
  int64_t* indices = out.size() > 1 ? out[1].data<int64_t>() : nullptr;
  const int64_t planes = x.dim(0) * x.dim(1), in_size = w.in_size(), out_size = w.out_size();
  return visit(x.dtype(), [&](auto zero) {
    using T = decltype(zero);
    node.threads().ranges(planes, pool_nanoseconds(w), [&](int64_t begin, int64_t end) {
      for (int64_t p = begin; p < end; ++p) {
        const T* from = x.data<T>() + p * in_size;
        for_each_window(w, [&](int64_t o, const Taps& tz, const Taps& ty, const Taps& tx) {
          T best = least<T>();
          int64_t at = -1;
          for_each_tap(w, tz, ty, tx, [&](int64_t i) {
            if (at < 0 || from[i] > best || from[i] != from[i]) {
              best = from[i];
              at = i;
            }
          });
          y.data<T>()[p * out_size + o] = best;
          if (indices) indices[p * out_size + o] = at < 0 ? -1 : p * in_size + (columns ? column_major(w, at) : at);
        });
      }
    });
    return Status();
  });
}
}  // namespace

PINNACE_OP(max_pool){
    .name = "max_pool",
    .inputs = {{"x", kFloats | kI8 | kU8}},
    .attrs = {kAutoPadAttr, kCeilModeAttr, kDilationsAttr, kKernelShapeAttr, kPadsAttr, int_attr("storage_order", 0),
              kStridesAttr},
    .max_outputs = 2,
    .types = max_pool_types,
    .reference = max_pool_reference,
    .traits = Trait::kCompares | Trait::kFoldsQuantization,
    .work = Work::kPair,
};
}  // namespace pinnace
