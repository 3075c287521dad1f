// softmax: y = exp(x - m) / sum of exp(x - m) along one axis, m the largest x there.
//   x     [...]  floats; quantised i8 | u8 per tensor; rank 1 or more
//   axis  int, default -1
//   y     as x; quantised: declared scale and zero point
// In double, one rounding. A NaN or +inf in a lane makes the lane NaN, and so do only -inf. Quantised: dequantise, this
// with the sum ascending along the axis, quantise. Source: ONNX Softmax, opset 13.
#include <cmath>

#include "ops/lines.h"

namespace pinnace {
namespace {
Result<TensorType> softmax_type(const NodeView& node) {
  PINNACE_TRY(check_quantized(node, 0));
  PINNACE_TRY(node.axis(node.attr_int("axis"), node.input(0).rank()).status());
  return same_type(node);
}

Status softmax_reference(const NodeView& node, std::span<const TensorView> in, std::span<const TensorView> out) {
  PINNACE_ASSIGN(const int axis, node.axis(node.attr_int("axis"), in[0].rank()));
  const Lanes lanes(in[0].type->shape, axis);
  return node.threads().ranges(lanes.outer * lanes.inner, 15 * static_cast<double>(lanes.size),
                               [&](int64_t begin, int64_t end) -> Status {
                                 PINNACE_ASSIGN(auto lane, Scratch<double>::allocate(lanes.size, "softmax's lane"));
                                 for (int64_t o = begin; o < end && lanes.size > 0; ++o) {
                                   const int64_t first = o / lanes.inner * lanes.size * lanes.inner + o % lanes.inner;
                                   load_line(in[0], first, lanes.inner, lanes.size, lane.data());
                                   double largest = lane[0], sum = 0;
                                   for (double v : lane.span()) largest = v > largest ? v : largest;
                                   for (double& v : lane.span()) sum += v = std::exp(v - largest);
                                   for (double& v : lane.span()) v /= sum;
                                   store_line(out[0], first, lanes.inner, lanes.size, lane.data());
                                 }
                                 return {};
                               });
}
}  // namespace

PINNACE_OP(softmax){
    .name = "softmax",
    .inputs = {{"x", kFloats | kI8 | kU8}},
    .attrs = {int_attr("axis", -1)},
    .type = softmax_type,
    .reference = softmax_reference,
    .in_place = 1,
    .traits = Trait::kFoldsQuantization,
};
}  // namespace pinnace
