// mean_variance_normalization: y = (x - mean) / (standard deviation + 1e-9), both over the given axes of x.
//   x     [...]  floats
//   axes  ints; left out: [0, 2, 3], which is per channel of [N, C, H, W]
//   y     as x
// In double, two passes, one rounding. A NaN or an infinity makes all it is normalised with NaN. Source: ONNX
// MeanVarianceNormalization, opset 13.
#include <algorithm>
#include <cmath>

#include "ops/lines.h"

namespace pinnace {
namespace {
constexpr int64_t kPerChannel[] = {0, 2, 3};

Result<std::vector<int>> axes_of(const NodeView& node) {
  const auto axes = node.attr_ints("axes");
  return node.axes(node.has_attr("axes") ? axes : std::span<const int64_t>(kPerChannel), node.input(0).rank());
}

Result<TensorType> mean_variance_normalization_type(const NodeView& node) {
  PINNACE_TRY(axes_of(node).status());
  return same_type(node);
}

Status mean_variance_normalization_reference(const NodeView& node, std::span<const TensorView> in,
                                             std::span<const TensorView> out) {
  PINNACE_ASSIGN(const std::vector<int> axes, axes_of(node));
  const Shape& shape = in[0].type->shape;
  const std::vector<int64_t> strides = row_major_strides(shape);
  Shape kept, reduced;
  std::vector<int64_t> kept_strides, reduced_strides;
  for (size_t d = 0; d < shape.size(); ++d) {
    const bool reduces = std::find(axes.begin(), axes.end(), static_cast<int>(d)) != axes.end();
    (reduces ? reduced : kept).push_back(shape[d]);
    (reduces ? reduced_strides : kept_strides).push_back(strides[d]);
  }
  StridedLoop outer(kept), inner(reduced);
  outer.add_strides(kept_strides);
  inner.add_strides(reduced_strides);
  const int64_t count = TensorType{DType::kF32, reduced, nullptr}.elements();
  const double cost = 30 * static_cast<double>(count);
  return node.threads().ranges(outer.size(), cost, [&](int64_t begin, int64_t end) -> Status {
    PINNACE_ASSIGN(auto values, Scratch<double>::allocate(count, "mean_variance_normalization's values"));
    outer.run(begin, end, [&](int64_t, const int64_t* base) {
      inner.run([&](int64_t i, const int64_t* at) { load_line(in[0], base[0] + at[0], 1, 1, &values[i]); });
      const Moments m = moments(values.data(), count);
      const double deviation = std::sqrt(m.variance) + 1e-9;
      for (double& v : values.span()) v = (v - m.mean) / deviation;
      inner.run([&](int64_t i, const int64_t* at) { store_line(out[0], base[0] + at[0], 1, 1, &values[i]); });
    });
    return {};
  });
}
}  // namespace

PINNACE_OP(mean_variance_normalization){
    .name = "mean_variance_normalization",
    .inputs = {{"x", kFloats}},
    .attrs = {ints_attr("axes")},
    .type = mean_variance_normalization_type,
    .reference = mean_variance_normalization_reference,
    .in_place = 1,
};
}  // namespace pinnace
