// group_normalization: the C channels fall into num_groups groups of equal size; y[n, c, ...] = (x[n, c, ...] - mean) /
// sqrt(variance + epsilon) * scale[c] + bias[c], mean and variance (of the population) over c's group in image n.
//   x            [N, C, ...]  floats, rank 2 or more
//   scale, bias  [C]          as x
//   num_groups int, required, divides C; epsilon float, default 1e-5; stash_type string, default "f32": has no effect
//   y            as x
// In double, two passes, one rounding. A NaN or an infinity makes its group NaN. Source: ONNX GroupNormalization,
// opset 21.
#include <cmath>

#include "ops/lines.h"

namespace pinnace {
namespace {
Result<TensorType> group_normalization_type(const NodeView& node) {
  const TensorType& x = node.input(0);
  const int64_t groups = node.attr_int("num_groups");
  if (x.rank() < 2) return node.error("x is ", x, ", must be [N, C, ...]");
  if (groups < 1 || (x.shape[1].known() && x.shape[1].size % groups)) {
    return node.error("num_groups ", groups, " does not divide the channels of x ", x);
  }
  for (int i = 1; i < 3; ++i) PINNACE_TRY(check_per_channel(node, i, x.shape[1]));
  return same_type(node);
}

Status group_normalization_reference(const NodeView& node, std::span<const TensorView> in,
                                     std::span<const TensorView> out) {
  const TensorView &x = in[0], &y = out[0];
  const Slices slices(x.type->shape, 2, x.rank() - 2);
  const int64_t groups = node.attr_int("num_groups"), channels = x.dim(1) / groups, size = channels * slices.size;
  return node.threads().ranges(
      x.dim(0) * groups, 5 * static_cast<double>(size), [&](int64_t begin, int64_t end) -> Status {
        PINNACE_ASSIGN(auto group, Scratch<double>::allocate(size, "group_normalization's group"));
        for (int64_t g = begin; g < end; ++g) {
          load_line(x, g * size, 1, size, group.data());
          const Moments m = moments(group.data(), size);
          const double inverse = 1 / std::sqrt(m.variance + node.attr_float("epsilon"));
          for (int64_t i = 0; i < channels; ++i) {
            double scale, bias;
            load_line(in[1], g % groups * channels + i, 1, 1, &scale);
            load_line(in[2], g % groups * channels + i, 1, 1, &bias);
            for (int64_t k = i * slices.size; k < (i + 1) * slices.size; ++k)
              group[k] = (group[k] - m.mean) * inverse * scale + bias;
          }
          store_line(y, g * size, 1, size, group.data());
        }
        return {};
      });
}
}  // namespace

PINNACE_OP(group_normalization){
    .name = "group_normalization",
    .inputs = {{"x", kFloats, 'T'}, {"scale", kFloats, 'T'}, {"bias", kFloats, 'T'}},
    .attrs = {float_attr("epsilon", 1e-5), required_attr("num_groups", AttrKind::kInt),
              string_attr("stash_type", "f32")},
    .type = group_normalization_type,
    .reference = group_normalization_reference,
    .in_place = 1,
};
}  // namespace pinnace
