// lp_normalization: y = x / norm along one axis; norm is the sum of |x| (p = 1) or the root of the sum of squares (p =
// 2).
//   x     [...]  floats; quantised i8 | u8 per tensor; rank 1 or more
//   axis  int, default -1; p int, 1 or 2, default 2
//   y     as x; quantised: declared scale and zero point
// A norm of 0 gives 0. In double, one rounding. Quantised: dequantise, this, quantise. A NaN makes its slice along
// the axis NaN; beside an infinity, itself NaN, finite elements become 0. Source: ONNX LpNormalization, opset 22.
#include <cmath>

#include "ops/lines.h"

namespace pinnace {
namespace {
Result<TensorType> lp_normalization_type(const NodeView& node) {
  PINNACE_TRY(check_quantized(node, 0));
  PINNACE_TRY(node.axis(node.attr_int("axis"), node.input(0).rank()).status());
  const int64_t p = node.attr_int("p");
  if (p != 1 && p != 2) return node.error("p is ", p, ", must be 1 or 2");
  return same_type(node);
}

Status lp_normalization_reference(const NodeView& node, std::span<const TensorView> in,
                                  std::span<const TensorView> out) {
  PINNACE_ASSIGN(const int axis, node.axis(node.attr_int("axis"), in[0].rank()));
  const bool squares = node.attr_int("p") == 2;
  const Slices slices(in[0].type->shape, axis);
  return node.threads().ranges(
      slices.outer * slices.inner, 5 * static_cast<double>(slices.size), [&](int64_t begin, int64_t end) -> Status {
        PINNACE_ASSIGN(auto slice, Scratch<double>::allocate(slices.size, "lp_normalization's slice"));
        for (int64_t o = begin; o < end; ++o) {
          const int64_t first = o / slices.inner * slices.size * slices.inner + o % slices.inner;
          load_line(in[0], first, slices.inner, slices.size, slice.data());
          double norm = 0;
          for (double v : slice.span()) norm += squares ? v * v : std::fabs(v);
          if (squares) norm = std::sqrt(norm);
          for (double& v : slice.span()) v = norm == 0 ? 0 : v / norm;
          store_line(out[0], first, slices.inner, slices.size, slice.data());
        }
        return {};
      });
}
}  // namespace

PINNACE_OP(lp_normalization){
    .name = "lp_normalization",
    .inputs = {{"x", kFloats | kI8 | kU8}},
    .attrs = {int_attr("axis", -1), int_attr("p", 2)},
    .type = lp_normalization_type,
    .reference = lp_normalization_reference,
    .in_place = 1,
};
}  // namespace pinnace
