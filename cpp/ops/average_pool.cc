// average_pool: y[n, c, o] = the mean of x[n, c, o * stride + k * dilation - pad] over the window's k.
//   x  [N, C, spatial...]  1 to 3 spatial dimensions; floats; quantised i8 | u8 per tensor
//   kernel_shape ints, required; auto_pad, pads, strides, dilations: see window.h; ceil_mode int, default 0
//   count_include_pad int, default 0: the divisor counts elements inside x; 1: those inside x and its padding
//   y  [N, C, out...]      quantised: declared scale and zero point
// ceil_mode rounds sizes up, less a last window that would start in the trailing padding; what hangs over the padding
// is never counted. Sums in double, one rounding. Quantised: exact sum S of (q - zero_x) over the elements inside x,
// then quantize(float32(float32(S) * scale_x) / float32(divisor)). A mean of nothing is NaN, quantised the zero point.
// Source: ONNX AveragePool, opset 22.
#include "ops/pool.h"

namespace pinnace {
namespace {
Result<TensorType> average_pool_type(const NodeView& node) {
  PINNACE_TRY(check_quantized(node, 0));
  Shape shape;
  PINNACE_TRY(check_pool(node, shape).status());
  return TensorType{node.input(0).dtype, std::move(shape), node.output_quantization(0)};
}

Status average_pool_reference(const NodeView& node, std::span<const TensorView> in, std::span<const TensorView> out) {
  const TensorView &x = in[0], &y = out[0];
  Shape shape;
  PINNACE_ASSIGN(const Window w, check_pool(node, shape));
  const bool with_pads = node.attr_int("count_include_pad") != 0;
  const int64_t planes = x.dim(0) * x.dim(1), in_size = w.in_size(), out_size = w.out_size();
  const auto counted = [&](int d, const Taps& t) {
    if (!with_pads) return static_cast<double>(t.last - t.first);
    return static_cast<double>(std::min(w.kernel[d], (w.in[d] + w.after[d] - 1 - t.start) / w.dilation[d] + 1));
  };
  return node.threads().ranges(planes, pool_nanoseconds(w), [&](int64_t begin, int64_t end) -> Status {
    PINNACE_ASSIGN(auto plane, Scratch<double>::allocate(in_size, "average_pool's plane"));
    for (int64_t p = begin; p < end; ++p) {
      load_summands(x, p * in_size, in_size, plane.data());
      for_each_window(w, [&](int64_t o, const Taps& tz, const Taps& ty, const Taps& tx) {
        double sum = 0;
        for_each_tap(w, tz, ty, tx, [&](int64_t i) { sum += plane[i]; });
        store_mean(x, y, p * out_size + o, sum, counted(0, tz) * counted(1, ty) * counted(2, tx));
      });
    }
    return {};
  });
}
}  // namespace

PINNACE_OP(average_pool){
    .name = "average_pool",
    .inputs = {{"x", kFloats | kI8 | kU8}},
    .attrs = {kAutoPadAttr, kCeilModeAttr, int_attr("count_include_pad", 0), kDilationsAttr, kKernelShapeAttr,
              kPadsAttr, kStridesAttr},
    .type = average_pool_type,
    .reference = average_pool_reference,
    .traits = Trait::kFoldsQuantization,
    .work = Work::kPair,
};
}  // namespace pinnace
