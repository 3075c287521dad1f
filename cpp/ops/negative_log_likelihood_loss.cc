// negative_log_likelihood_loss: -weight[t] * x[n, t, d...] for the class t = target[n, d...] of every place.
//   x       [N, C, d...]  floats: logarithms of probabilities
//   target  [N, d...]  i32 | i64 in [0, C), or ignore_index
//   weight  [C]  as x, optional; left out: 1
//   ignore_index  int: places with this target count nothing, neither as loss nor as weight; left out: none
//   reduction     "mean" (default): the sum of the losses divided by the sum of their weights; "sum"; "none"
//   loss    as x: [] or, with reduction "none", the shape of target
// Sums in double, rounded once; the mean of nothing is NaN. A target that is neither is an error. Source: ONNX
// NegativeLogLikelihoodLoss, opset 22.
#include "ops/lines.h"
#include "ops/move.h"

namespace pinnace {
namespace {
constexpr int64_t kNone = INT64_MIN;  // "ignore_index" is left out

Result<TensorType> loss_type(const NodeView& node) {
  const TensorType &x = node.input(0), &target = node.input(1);
  const std::string_view reduction = node.attr_string("reduction");
  if (reduction != "mean" && reduction != "sum" && reduction != "none") {
    return node.error("reduction is '", reduction, "', must be mean, sum or none");
  }
  if (x.rank() < 2 || target.rank() != x.rank() - 1) {
    return node.error("x ", x, " must be [N,C,...] and target ", target, " [N,...]");
  }
  Shape shape = target.shape;
  for (size_t d = 0; d < shape.size(); ++d) {
    const auto merged = dim_merge(shape[d], x.shape[d == 0 ? 0 : d + 1]);
    if (!merged) return node.error("x ", x, " and target ", target, " differ in size");
    shape[d] = *merged;
  }
  if (node.has_input(2)) PINNACE_TRY(check_per_channel(node, 2, x.shape[1]));
  return TensorType{x.dtype, reduction == "none" ? shape : Shape{}, nullptr};
}

Status loss_reference(const NodeView& node, std::span<const TensorView> in, std::span<const TensorView> out) {
  const TensorView x = in[0], target = in[1];
  const std::string_view reduction = node.attr_string("reduction");
  const int64_t ignored = node.attr_int("ignore_index");
  const bool has_ignored = ignored != kNone, weighted = in.size() > 2 && in[2].present();
  const AxisView v = view_axis(x.type->shape, 1);
  return visit_float(x.dtype(), [&](auto zero) -> Status {
    using T = decltype(zero);
    double sum = 0, weights = 0;
    for (int64_t i = 0; i < target.elements(); ++i) {
      const int64_t t = load_index(target, i);
      double loss = 0;
      if (!has_ignored || t != ignored) {
        if (t < 0 || t >= v.size) return node.error("target ", t, " of place ", i, " is outside [0,", v.size, ")");
        const double weight = weighted ? widen(in[2].data<T>()[t]) : 1;
        loss = -weight * widen(x.data<T>()[(i / v.inner * v.size + t) * v.inner + i % v.inner]);
        weights += weight;
      }
      sum += loss;
      if (reduction == "none") out[0].data<T>()[i] = narrow<T>(loss);
    }
    if (reduction != "none") *out[0].data<T>() = narrow<T>(reduction == "sum" ? sum : sum / weights);
    return {};
  });
}
}  // namespace

PINNACE_OP(negative_log_likelihood_loss){
    .name = "negative_log_likelihood_loss",
    .inputs = {{"x", kFloats, 'T'}, {"target", kIndices}, {"weight", kFloats, 'T', Arity::kOptional}},
    .attrs = {int_attr("ignore_index", kNone), string_attr("reduction", "mean")},
    .type = loss_type,
    .reference = loss_reference,
};
}  // namespace pinnace
