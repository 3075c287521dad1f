// batch_normalization: y[n, c, ...] = (x[n, c, ...] - mean[c]) / sqrt(var[c] + epsilon) * scale[c] + b[c].
//   x            [N, C, ...] or [N], which is one channel  floats
//   scale, b     [C]  floats of one type
//   mean, var    [C]  floats of one type
//   epsilon float, default 1e-5
//   y            as x
// In double, one rounding. var + epsilon below 0 gives NaN. Source: ONNX BatchNormalization, opset 15, of trained
// models.
#include <cmath>

#include "ops/lines.h"

namespace pinnace {
namespace {
Result<TensorType> batch_normalization_type(const NodeView& node) {
  const TensorType& x = node.input(0);
  if (x.rank() == 0) return node.error("x is a scalar");
  for (int i = 1; i < 5; ++i) PINNACE_TRY(check_per_channel(node, i, x.rank() == 1 ? Dim(1) : x.shape[1]));
  return same_type(node);
}

Status batch_normalization_reference(const NodeView& node, std::span<const TensorView> in,
                                     std::span<const TensorView> out) {
  const TensorView &x = in[0], &y = out[0];
  const double epsilon = node.attr_float("epsilon");
  const int64_t C = x.rank() == 1 ? 1 : x.dim(1);
  const Slices slices(x.type->shape, x.rank() == 1 ? 1 : 2, x.rank() - 2);
  const int64_t size = slices.size * slices.inner;
  return node.threads().ranges(slices.outer, 5 * static_cast<double>(size), [&](int64_t begin, int64_t end) -> Status {
    PINNACE_ASSIGN(auto plane, Scratch<double>::allocate(size, "batch_normalization's plane"));
    for (int64_t p = begin; p < end; ++p) {
      double scale, b, mean, var;
      load_line(in[1], p % C, 1, 1, &scale);
      load_line(in[2], p % C, 1, 1, &b);
      load_line(in[3], p % C, 1, 1, &mean);
      load_line(in[4], p % C, 1, 1, &var);
      const double factor = scale / std::sqrt(var + epsilon);
      load_line(x, p * size, 1, size, plane.data());
      for (double& v : plane.span()) v = (v - mean) * factor + b;
      store_line(y, p * size, 1, size, plane.data());
    }
    return {};
  });
}
}  // namespace

PINNACE_OP(batch_normalization){
    .name = "batch_normalization",
    .inputs =
        {{"x", kFloats}, {"scale", kFloats, 'S'}, {"b", kFloats, 'S'}, {"mean", kFloats, 'M'}, {"var", kFloats, 'M'}},
    .attrs = {float_attr("epsilon", 1e-5)},
    .type = batch_normalization_type,
    .reference = batch_normalization_reference,
    .in_place = 1,
};
}  // namespace pinnace
