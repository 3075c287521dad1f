// lp_pool: y[n, c, o] = (sum of |x[n, c, o * stride + k * dilation - pad]|^p over the window's k)^(1 / p).
//   x  [N, C, spatial...]  1 to 3 spatial dimensions; floats; quantised i8 | u8 per tensor
//   kernel_shape ints, required; auto_pad, pads, strides, dilations: see window.h; ceil_mode int, default 0
//   p int, default 2, at least 1
//   y  [N, C, out...]      quantised: declared scale and zero point
// What lies outside x counts as 0. Sums in double, one rounding. Quantised: dequantise, this, quantise.
// A NaN makes every window NaN that holds it. Source: ONNX LpPool, opset 22.
#include <cmath>

#include "ops/pool.h"

namespace pinnace {
namespace {
Result<TensorType> lp_pool_type(const NodeView& node) {
  PINNACE_TRY(check_quantized(node, 0));
  if (node.attr_int("p") < 1) return node.error("p is ", node.attr_int("p"), ", must be 1 or more");
  Shape shape;
  PINNACE_TRY(check_pool(node, shape).status());
  return TensorType{node.input(0).dtype, std::move(shape), node.output_quantization(0)};
}

Status lp_pool_reference(const NodeView& node, std::span<const TensorView> in, std::span<const TensorView> out) {
  const TensorView &x = in[0], &y = out[0];
  Shape shape;
  PINNACE_ASSIGN(const Window w, check_pool(node, shape));
  const auto p = static_cast<double>(node.attr_int("p"));
  const int64_t planes = x.dim(0) * x.dim(1), in_size = w.in_size(), out_size = w.out_size();
  return node.threads().ranges(planes, pool_nanoseconds(w), [&](int64_t begin, int64_t end) -> Status {
    PINNACE_ASSIGN(auto plane, Scratch<double>::allocate(in_size, "lp_pool's plane"));
    for (int64_t c = begin; c < end; ++c) {
      load_line(x, c * in_size, 1, in_size, plane.data());
      for (double& v : plane.span()) v = p == 2 ? v * v : std::pow(std::fabs(v), p);
      for_each_window(w, [&](int64_t o, const Taps& tz, const Taps& ty, const Taps& tx) {
        double sum = 0;
        for_each_tap(w, tz, ty, tx, [&](int64_t i) { sum += plane[i]; });
        const double norm = p == 2 ? std::sqrt(sum) : std::pow(sum, 1 / p);
        store_line(y, c * out_size + o, 1, 1, &norm);
      });
    }
    return {};
  });
}
}  // namespace

PINNACE_OP(lp_pool){
    .name = "lp_pool",
    .inputs = {{"x", kFloats | kI8 | kU8}},
    .attrs = {kAutoPadAttr, kCeilModeAttr, kDilationsAttr, kKernelShapeAttr, int_attr("p", 2), kPadsAttr, kStridesAttr},
    .type = lp_pool_type,
    .reference = lp_pool_reference,
    .work = Work::kPair,
};
}  // namespace pinnace
