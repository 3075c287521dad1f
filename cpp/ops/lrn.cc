// lrn: y[n, c, ...] = x[n, c, ...] / (bias + alpha / size * sum of x[n, i, ...]^2)^beta, i over the channels in
// [c - floor((size - 1) / 2), c + ceil((size - 1) / 2)].
//   x  [N, C, ...]  floats, rank 2 or more
//   size int, required, 1 or more; alpha float, default 1e-4; beta float, default 0.75; bias float, default 1
//   y  as x
// In double, one rounding. A NaN makes every element NaN whose channels hold it. Source: ONNX LRN, opset 13.
#include <algorithm>
#include <cmath>

#include "ops/lines.h"

namespace pinnace {
namespace {
Result<TensorType> lrn_type(const NodeView& node) {
  const TensorType& x = node.input(0);
  if (x.rank() < 2) return node.error("x is ", x, ", must be [N, C, ...]");
  if (node.attr_int("size") < 1) return node.error("size ", node.attr_int("size"), " must be 1 or more");
  return same_type(node);
}

Status lrn_reference(const NodeView& node, std::span<const TensorView> in, std::span<const TensorView> out) {
  const Slices slices(in[0].type->shape, 1);
  const int64_t size = node.attr_int("size"), C = slices.size;
  const double alpha = node.attr_float("alpha") / static_cast<double>(size), beta = node.attr_float("beta"),
               bias = node.attr_float("bias");
  const int64_t before = (size - 1) / 2, after = size - 1 - before;
  return node.threads().ranges(slices.outer * slices.inner,
                               (30 + static_cast<double>(std::min(size, C))) * static_cast<double>(C),
                               [&](int64_t begin, int64_t end) -> Status {
                                 PINNACE_ASSIGN(auto x, Scratch<double>::allocate(C, "lrn's channels"));
                                 PINNACE_ASSIGN(auto y, Scratch<double>::allocate(C, "lrn's channels"));
                                 for (int64_t o = begin; o < end; ++o) {
                                   const int64_t first = o / slices.inner * C * slices.inner + o % slices.inner;
                                   load_line(in[0], first, slices.inner, C, x.data());
                                   for (int64_t c = 0; c < C; ++c) {
                                     if (c % 256 == 255 && loop_stops()) return {};
                                     double squares = 0;
                                     const int64_t last = after >= C - 1 - c ? C - 1 : c + after;
                                     for (int64_t i = std::max<int64_t>(0, c - before); i <= last; ++i)
                                       squares += x[i] * x[i];
                                     y[c] = x[c] / std::pow(bias + alpha * squares, beta);
                                   }
                                   store_line(out[0], first, slices.inner, C, y.data());
                                 }
                                 return {};
                               });
}
}  // namespace

PINNACE_OP(lrn){
    .name = "lrn",
    .inputs = {{"x", kFloats}},
    .attrs = {float_attr("alpha", 1e-4), float_attr("beta", 0.75), float_attr("bias", 1),
              required_attr("size", AttrKind::kInt)},
    .type = lrn_type,
    .reference = lrn_reference,
    .in_place = 1,
    .work = Work::kPair,
};
}  // namespace pinnace
