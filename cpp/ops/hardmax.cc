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
  const Lanes lanes(in[0].type->shape, axis);
  return node.threads().ranges(lanes.outer * lanes.inner, 5 * static_cast<double>(lanes.size),
                               [&](int64_t begin, int64_t end) -> Status {
                                 PINNACE_ASSIGN(auto lane, Scratch<double>::allocate(lanes.size, "hardmax's lane"));
                                 for (int64_t o = begin; o < end && lanes.size > 0; ++o) {
                                   const int64_t first = o / lanes.inner * lanes.size * lanes.inner + o % lanes.inner;
                                   load_line(in[0], first, lanes.inner, lanes.size, lane.data());
                                   int64_t best = 0;
                                   for (int64_t i = 1; i < lanes.size; ++i) {
                                     const bool best_is_nan = lane[best] != lane[best];
                                     if (!best_is_nan && (lane[i] > lane[best] || lane[i] != lane[i])) best = i;
                                   }
                                   std::fill_n(lane.data(), lanes.size, 0.0);
                                   lane[best] = 1;
                                   store_line(out[0], first, lanes.inner, lanes.size, lane.data());
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
