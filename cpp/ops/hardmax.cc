// hardmax: y is 1 at the first largest x along one axis and 0 elsewhere.
//   x     [...]  floats, rank 1 or more
//   axis  int, default -1
//   y     as x
// NaN counts as larger than every number. Source: ONNX Hardmax, opset 13.
#include <algorithm>

#include "ops/lines.h"

namespace pinnace {
namespace {
Result<TensorType> hardmax_type(const NodeView& node) {
  PINNACE_TRY(node.axis(node.attr_int("axis"), node.input(0).rank()).status());
  return same_type(node);
}

Status hardmax_reference(const NodeView& node, std::span<const TensorView> in, std::span<const TensorView> out) {
  PINNACE_ASSIGN(const int axis, node.axis(node.attr_int("axis"), in[0].rank()));
  const Slices slices(in[0].type->shape, axis);
  return node.threads().ranges(
      slices.outer * slices.inner, 5 * static_cast<double>(slices.size), [&](int64_t begin, int64_t end) -> Status {
        PINNACE_ASSIGN(auto slice, Scratch<double>::allocate(slices.size, "hardmax's slice"));
        for (int64_t o = begin; o < end && slices.size > 0; ++o) {
          const int64_t first = o / slices.inner * slices.size * slices.inner + o % slices.inner;
          load_line(in[0], first, slices.inner, slices.size, slice.data());
          int64_t best = 0;
          for (int64_t i = 1; i < slices.size; ++i) {
            const bool best_is_nan = slice[best] != slice[best];
            if (!best_is_nan && (slice[i] > slice[best] || slice[i] != slice[i])) best = i;
          }
          std::fill_n(slice.data(), slices.size, 0.0);
          slice[best] = 1;
          store_line(out[0], first, slices.inner, slices.size, slice.data());
        }
        return {};
      });
}
}  // namespace

PINNACE_OP(hardmax){
    .name = "hardmax",
    .inputs = {{"x", kFloats}},
    .attrs = {int_attr("axis", -1)},
    .type = hardmax_type,
    .reference = hardmax_reference,
    .in_place = 1,
};
}  // namespace pinnace
