// softmax: y = exp(x - m) / sum of exp(x - m) along one axis, m the largest x there.
//   x     [...]  floats; quantised i8 | u8 per tensor; rank 1 or more
//   axis  int, default -1
//   y     as x; quantised: declared scale and zero point
// In double, one rounding. A NaN or +inf makes its slice along the axis NaN, and so do only -inf. Quantised:
// dequantise, this with the sum ascending along the axis, quantise. Source: ONNX Softmax, opset 13.
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
  const Slices slices(in[0].type->shape, axis);
  return node.threads().ranges(
      slices.outer * slices.inner, 15 * static_cast<double>(slices.size), [&](int64_t begin, int64_t end) -> Status {
        PINNACE_ASSIGN(auto slice, Scratch<double>::allocate(slices.size, "softmax's slice"));
        for (int64_t o = begin; o < end && slices.size > 0; ++o) {
          const int64_t first = o / slices.inner * slices.size * slices.inner + o % slices.inner;
          load_line(in[0], first, slices.inner, slices.size, slice.data());
          double largest = slice[0], sum = 0;
          for (double v : slice.span()) largest = v > largest ? v : largest;
          for (double& v : slice.span()) sum += v = std::exp(v - largest);
          for (double& v : slice.span()) v /= sum;
          store_line(out[0], first, slices.inner, slices.size, slice.data());
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
