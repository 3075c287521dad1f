// instance_normalization: y[n, c, ...] = (x[n, c, ...] - mean) / sqrt(variance + epsilon) * scale[c] + b[c], mean and
// variance (of the population) over x[n, c, ...].
//   x         [N, C, ...]  floats, rank 2 or more
//   scale, b  [C]          as x
//   epsilon float, default 1e-5
//   y         as x
// In double, two passes, one rounding. A NaN or an infinity makes its plane NaN. Source: ONNX InstanceNormalization,
// opset 22.
#include <cmath>

#include "ops/lines.h"

namespace pinnace {
namespace {
Result<TensorType> instance_normalization_type(const NodeView& node) {
  const TensorType& x = node.input(0);
  if (x.rank() < 2) return node.error("x is ", x, ", must be [N, C, ...]");
  for (int i = 1; i < 3; ++i) PINNACE_TRY(check_per_channel(node, i, x.shape[1]));
  return same_type(node);
}

Status instance_normalization_reference(const NodeView& node, std::span<const TensorView> in,
                                        std::span<const TensorView> out) {
  const TensorView &x = in[0], &y = out[0];
  const Slices slices(x.type->shape, 2, x.rank() - 2);
  const int64_t C = x.dim(1);
  return node.threads().ranges(
      slices.outer, 5 * static_cast<double>(slices.size), [&](int64_t begin, int64_t end) -> Status {
        PINNACE_ASSIGN(auto plane, Scratch<double>::allocate(slices.size, "instance_normalization's plane"));
        for (int64_t p = begin; p < end; ++p) {
          double scale, b;
          load_line(in[1], p % C, 1, 1, &scale);
          load_line(in[2], p % C, 1, 1, &b);
          load_line(x, p * slices.size, 1, slices.size, plane.data());
          const Moments m = moments(plane.data(), slices.size);
          const double factor = scale / std::sqrt(m.variance + node.attr_float("epsilon"));
          for (double& v : plane.span()) v = (v - m.mean) * factor + b;
          store_line(y, p * slices.size, 1, slices.size, plane.data());
        }
        return {};
      });
}
}  // namespace

PINNACE_OP(instance_normalization){
    .name = "instance_normalization",
    .inputs = {{"x", kFloats, 'T'}, {"scale", kFloats, 'T'}, {"b", kFloats, 'T'}},
    .attrs = {float_attr("epsilon", 1e-5)},
    .type = instance_normalization_type,
    .reference = instance_normalization_reference,
    .in_place = 1,
};
}  // namespace pinnace
