// dynamic_quantize_linear: quantises to u8 with a scale and zero point taken from the data.
//   x           [...]  f32
//   y           the shape of x, u8
//   scale       []  f32: (high - low) / 255 with low = min(x, 0), high = max(x, 0); 1 where that is 0
//   zero_point  []  u8: round_half_even(clamp(0 - low / scale, 0, 255))
// y = clamp(round_half_even(x / scale) + zero_point). All arithmetic is in float32 in this order. NaN does not count
// for the range and gives the zero point; an empty x gives scale 1 and zero point 0. Source: ONNX
// DynamicQuantizeLinear, opset 11; scale 1 is what onnxruntime gives where ONNX would divide 0 by 0.
#include <cmath>

#include "ops/element.h"

namespace pinnace {
namespace {
Status dynamic_quantize_linear_types(const NodeView& node, std::span<TensorType> out) {
  out[0] = {DType::kU8, node.input(0).shape, nullptr};
  out[1] = {DType::kF32, {}, nullptr};
  out[2] = {DType::kU8, {}, nullptr};
  return {};
}

Status dynamic_quantize_linear_reference(const NodeView&, std::span<const TensorView> in,
                                         std::span<const TensorView> out) {
  const int64_t count = in[0].elements();
  const float* x = in[0].data<float>();
  float low = 0, high = 0;
  for (int64_t i = 0; i < count; ++i) {
    if (x[i] < low) low = x[i];
    if (x[i] > high) high = x[i];
  }
  float scale = (high - low) / 255.0f;
  if (scale == 0) scale = 1;
  const float middle = 0.0f - low / scale;  // NaN only where x holds infinities of both signs
  const int32_t zero = middle == middle ? static_cast<int32_t>(std::nearbyint(limit(middle, 0.0, 255.0))) : 0;
  for (int64_t i = 0; i < count; ++i)
    out[0].data<uint8_t>()[i] = static_cast<uint8_t>(quantize(x[i], {scale, zero}, {0, 255}));
  *out[1].data<float>() = scale;
  *out[2].data<uint8_t>() = static_cast<uint8_t>(zero);
  return {};
}
}  // namespace

PINNACE_OP(dynamic_quantize_linear){
    .name = "dynamic_quantize_linear",
    .inputs = {{"x", kF32}},
    .min_outputs = 3,
    .max_outputs = 3,
    .types = dynamic_quantize_linear_types,
    .reference = dynamic_quantize_linear_reference,
};
}  // namespace pinnace
