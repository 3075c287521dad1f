// clip: y = min(max(x, min), max).
//   x    [...]  numbers, or quantised i8 | u8
//   min  one element, element type of x (f32 where x is quantised); left out: no lower limit
//   max  one element, as min; left out: no upper limit
//   y    as x; quantised: declared scale and zero point
// NaN in x, min or max gives NaN; min > max gives max. Quantised: by table, see quantized_map.h.
// Source: ONNX Clip, opset 13.
#include "ops/unary.h"

namespace pinnace {
namespace {
Result<TensorType> clip_type(const NodeView& node) {
  const TensorType& x = node.input(0);
  const DType wanted = x.quantized() ? DType::kF32 : x.dtype;
  for (int i = 1; i < node.input_count(); ++i) {
    if (!node.has_input(i)) continue;
    const TensorType& bound = node.input(i);
    bool single = true;
    for (const Dim& d : bound.shape) single &= !d.known() || d.size == 1;
    if (!single || bound.quantized() || bound.dtype != wanted) {
      return node.error(i == 1 ? "min is " : "max is ", bound, ", must be one element of ", dtype_name(wanted));
    }
  }
  return same_type(node);
}

Status clip_reference(const NodeView& node, std::span<const TensorView> in, std::span<const TensorView> out) {
  const TensorView x = in[0], y = out[0];
  const bool has_min = in.size() > 1 && in[1].present(), has_max = in.size() > 2 && in[2].present();
  if (x.type->quantized()) {
    const double low = has_min ? *in[1].data<float>() : 0, high = has_max ? *in[2].data<float>() : 0;
    return map_function(node.threads(), x, y, [=](double v) {
      if (has_min) v = larger(v, low);
      return has_max ? smaller(v, high) : v;
    });
  }
  return visit(x.dtype(), [&](auto zero) {
    using T = decltype(zero);
    const Wide<T> low = has_min ? widen(*in[1].data<T>()) : Wide<T>{};
    const Wide<T> high = has_max ? widen(*in[2].data<T>()) : Wide<T>{};
    map_elements<T, T>(node.threads(), x, y, [=](Wide<T> v) {
      if (has_min) v = larger(v, low);
      return has_max ? smaller(v, high) : v;
    });
    return Status();
  });
}
}  // namespace

PINNACE_OP(clip){
    .name = "clip",
    .inputs = {{"x", kNumbers}, {"min", kNumbers, 0, Arity::kOptional}, {"max", kNumbers, 0, Arity::kOptional}},
    .type = clip_type,
    .reference = clip_reference,
    .in_place = 1,
    .traits = Trait::kElementwise | Trait::kFoldsQuantization,
    .unary = UnaryKind::kClip,
};
}  // namespace pinnace
