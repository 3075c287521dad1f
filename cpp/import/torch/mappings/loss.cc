// Losses, as models that report one carry them. Reduction is 0 none, 1 mean, 2 sum.
#include <cmath>

#include "import/torch/mappings/formula.h"

namespace pinnace::torch_import {
namespace {

using Ints = std::vector<int64_t>;

ValueId reduced(Call& c, ValueId x, int64_t reduction) {
  if (reduction == 0) return x;
  if (reduction != 1 && reduction != 2) c.fail("reduction", str_cat(reduction));
  if (c.rank(x) == 0) return x;
  Ints axes;
  for (int i = 0; i < c.rank(x); ++i) axes.push_back(i);
  return c.add(reduction == 1 ? "reduce_mean" : "reduce_sum", {x, c.constant_ints(axes)}, {{"keepdims", 0}});
}

// mse, l1, smooth_l1, huber, bce, bce_with_logits, kl_div, soft_margin: element by element
void map_elementwise_loss(Call& c) {
  const DType dtype = c.out_dtype();
  const Formula f(c, compute_type(dtype));
  const ValueId x = f.argument("self"), t = f.argument("target");
  const std::string_view form = c.parameter();
  const int64_t reduction = c.integer("reduction", 1);
  ValueId loss;
  const ValueId distance = f("abs", f("sub", x, t));
  if (form == "l1") {
    loss = distance;
  } else if (form == "mse") {
    loss = f("mul", distance, distance);
  } else if (form == "huber" || form == "smooth_l1") {
    const bool huber = form == "huber";
    const double bound = c.number(huber ? "delta" : "beta", 1);
    const ValueId square = f("mul", f("mul", distance, distance), huber ? 0.5 : 0.5 / bound);
    const ValueId line = f("mul", f("sub", distance, 0.5 * bound), huber ? bound : 1.0);
    loss = bound == 0 ? distance : f("where", f("less", distance, bound), square, line);
  } else if (form == "bce") {  // logarithms no lower than -100
    const auto least = [&](ValueId v) { return f("max", v, -100.0); };
    const ValueId yes = least(f("log", x)), no = least(f.log1p(f("neg", x)));
    loss = f("neg", f("add", f("mul", t, yes), f("mul", f("sub", 1.0, t), no)));
  } else if (form == "bce_logits") {
    // (1 - t) x + (1 + (w - 1) t) log(1 + exp -x)
    const ValueId soft = f("softplus", f("neg", x));
    ValueId weighted = soft;
    if (c.given("pos_weight"))
      weighted = f("mul", soft, f("add", f("mul", f("sub", f.argument("pos_weight"), 1.0), t), 1.0));
    loss = f("add", f("mul", f("sub", 1.0, t), x), weighted);
  } else if (form == "kl_div") {
    if (c.boolean("log_target", false)) {
      loss = f("mul", f("exp", t), f("sub", t, x));
    } else {  // t log t is 0 at 0
      const ValueId own = f("where", f.equal(t, 0), 0.0, f("mul", t, f("log", t)));
      loss = f("sub", own, f("mul", t, x));
    }
  } else {  // soft_margin
    loss = f("softplus", f("neg", f("mul", x, t)));
  }
  if (c.given("weight")) loss = f("mul", loss, f.argument("weight"));
  f.output(reduced(c, loss, reduction));
}

/// The loss of class indices; x [C], [N, C] or [N, C, d...]. The second output is the sum of weights.
std::vector<ValueId> index_loss(Call& c, ValueId x, ValueId target, ValueId weight, int64_t reduction,
                                int64_t ignored) {
  static constexpr const char* kNames[] = {"none", "mean", "sum"};
  if (reduction < 0 || reduction > 2) c.fail("reduction", str_cat(reduction));
  if (!c.ok()) return {kNoValue, kNoValue};
  const bool single = c.rank(x) == 1;
  if (single) {
    x = c.unsqueeze(x, {0});
    target = c.reshape(target, Ints{1});
  }
  target = c.cast(target, DType::kI64);
  ValueId y = c.add("negative_log_likelihood_loss", {x, target, weight},
                    {{"ignore_index", ignored}, {"reduction", kNames[reduction]}});
  if (single && reduction == 0) y = c.squeeze(y, {0});
  const DType dtype = c.dtype_of(x);
  ValueId counted = c.cast(c.add("not", {c.add("equal", {target, c.constant_int(ignored)})}), dtype);
  if (weight != kNoValue) {
    const ValueId safe = c.add("where", {c.add("equal", {target, c.constant_int(ignored)}), c.constant_int(0), target});
    counted = c.add("mul", {counted, c.add("gather", {weight, safe})});
  }
  return {y, reduction == 0 ? c.constant(0, dtype) : reduced(c, counted, 2)};
}

void map_nll(Call& c) {
  const ValueId x = c.tensor("self"), target = c.tensor("target"), weight = c.optional_tensor("weight");
  const std::vector<ValueId> y =
      index_loss(c, x, target, weight, c.integer("reduction", 1), c.integer("ignore_index", -100));
  if (c.parameter() == "forward") return c.outputs(y);
  c.output(y[0]);
}

void map_cross_entropy(Call& c) {
  const ValueId x = c.tensor("self"), target = c.tensor("target");
  ValueId weight = c.optional_tensor("weight");
  const int64_t reduction = c.integer("reduction", 1), ignored = c.integer("ignore_index", -100);
  const double smoothing = c.number("label_smoothing", 0);
  const DType dtype = c.out_dtype(), in = compute_type(dtype);
  const int axis = c.rank(x) == 1 ? 0 : 1;
  if (weight != kNoValue) weight = c.cast(weight, in);
  const ValueId log = c.add("log_softmax", {c.cast(x, in)}, {{"axis", axis}});
  const bool probabilities = (dtypes(c.dtype_of(target)) & kFloats) != 0;
  if (!probabilities && smoothing == 0)
    return c.output(c.cast(index_loss(c, log, target, weight, reduction, ignored)[0], dtype));
  const Dim classes = c.dim(x, axis);
  if (!classes.known()) return c.fail("smoothed labels of a symbolic number of classes");
  const Formula f(c, in);
  Ints behind;
  for (int i = axis + 1; i < c.rank(x); ++i) behind.push_back(i - axis);
  const ValueId by_class = weight == kNoValue ? log : f("mul", log, c.unsqueeze(weight, behind));
  const ValueId over = c.constant_ints({axis});
  const double spread = smoothing / static_cast<double>(classes.size);
  if (probabilities) {
    const ValueId t = f("add", f("mul", c.cast(target, in), 1 - smoothing), spread);
    ValueId y = f("neg", c.add("reduce_sum", {f("mul", by_class, t), over}, {{"keepdims", 0}}));
    if (reduction == 1 && c.rank(x) > 0) {
      // The mean is over places, not over classes.
      y = reduced(c, y, 1);
    } else {
      y = reduced(c, y, reduction);
    }
    return c.output(c.cast(y, dtype));
  }
  // Index targets: (1 - s) of the chosen class, s / C of every class.
  const std::vector<ValueId> chosen = index_loss(c, log, target, weight, reduction == 1 ? 2 : reduction, ignored);
  const ValueId kept = c.add("not", {c.add("equal", {c.cast(target, DType::kI64), c.constant_int(ignored)})});
  ValueId smooth = f("neg", c.add("reduce_sum", {by_class, over}, {{"keepdims", 0}}));
  smooth = f("where", kept, smooth, 0.0);
  ValueId y = f("add", f("mul", chosen[0], 1 - smoothing),
                f("mul", reduced(c, smooth, reduction == 1 ? 2 : reduction), spread));
  if (reduction == 1) y = f("div", y, chosen[1]);
  c.output(c.cast(y, dtype));
}

constexpr Mapping kMappings[] = {
    {"aten.binary_cross_entropy", map_elementwise_loss, "bce"},
    {"aten.binary_cross_entropy_with_logits", map_elementwise_loss, "bce_logits"},
    {"aten.cross_entropy_loss", map_cross_entropy, ""},
    {"aten.huber_loss", map_elementwise_loss, "huber"},
    {"aten.kl_div", map_elementwise_loss, "kl_div"},
    {"aten.l1_loss", map_elementwise_loss, "l1"},
    {"aten.mse_loss", map_elementwise_loss, "mse"},
    {"aten.nll_loss", map_nll, ""},
    {"aten.nll_loss2d", map_nll, ""},
    {"aten.nll_loss2d_forward", map_nll, "forward"},
    {"aten.nll_loss_forward", map_nll, "forward"},
    {"aten.nll_loss_nd", map_nll, ""},
    {"aten.smooth_l1_loss", map_elementwise_loss, "smooth_l1"},
    {"aten.soft_margin_loss", map_elementwise_loss, "soft_margin"},
};
static_assert(sorted(kMappings));

}  // namespace

std::span<const Mapping> loss_mappings() {
  return kMappings;
}

}  // namespace pinnace::torch_import
