// Activations, softmax, dropout (identity when not training).
#include <cmath>

#include "import/torch/mapping.h"

namespace pinnace::torch_import {
namespace {

void map_plain(Call& c) {
  c.output(c.add(c.parameter(), {c.cast(c.tensor("self"), c.out_dtype())}));
}

// relu6, hardtanh
void map_hardtanh(Call& c) {
  const DType dtype = c.out_dtype();
  const ValueId x = c.tensor("self");
  const bool relu6 = c.parameter() == "relu6";
  const double low = c.number("min_val", relu6 ? 0 : -1), high = c.number("max_val", relu6 ? 6 : 1);
  c.output(c.add("clip", {x, c.constant(low, dtype), c.constant(high, dtype)}));
}

void map_hardsigmoid(Call& c) {
  c.output(c.add("hard_sigmoid", {c.tensor("self")}, {{"alpha", 1.0 / 6}, {"beta", 0.5}}));
}

void map_gelu(Call& c) {
  c.output(c.add("gelu", {c.tensor("self")}, {{"approximate", c.string("approximate", "none")}}));
}

void map_leaky_relu(Call& c) {
  c.output(c.add("leaky_relu", {c.tensor("self")}, {{"alpha", c.number("negative_slope", 0.01)}}));
}

// elu(x) = scale * (x > 0 ? x : alpha * (exp(x * input_scale) - 1))
void map_elu(Call& c) {
  const ValueId x = c.tensor("self");
  const double alpha = c.number("alpha", 1), scale = c.number("scale", 1), input_scale = c.number("input_scale", 1);
  const DType dtype = c.out_dtype();
  if (input_scale != 1) return c.fail("elu with another input scale than 1", str_cat(input_scale));
  ValueId y = c.add("elu", {x}, {{"alpha", alpha}});
  if (scale != 1) y = c.add("mul", {y, c.constant(scale, dtype)});
  c.output(y);
}

void map_selu(Call& c) {
  c.output(c.add("selu", {c.tensor("self")}));
}
void map_celu(Call& c) {
  c.output(c.add("celu", {c.tensor("self")}, {{"alpha", c.number("alpha", 1)}}));
}

void map_prelu(Call& c) {
  const ValueId x = c.tensor("self");
  ValueId slope = c.tensor("weight");
  // One slope per channel is [C] in PyTorch, [C, 1, 1, ...] in a product.
  if (c.rank(slope) == 0 || c.dim(slope, 0) == Dim(1)) {
    slope = c.reshape(slope, std::vector<int64_t>{1});
  } else if (c.rank(x) > 2) {
    std::vector<int64_t> axes;
    for (int i = 1; i < c.rank(x) - 1; ++i) axes.push_back(i);
    slope = c.unsqueeze(slope, axes);
  }
  c.output(c.add("prelu", {x, slope}));
}

// softplus with beta: log(1 + exp(beta x)) / beta; linear above the threshold, where the two agree to 2e-9
void map_softplus(Call& c) {
  const ValueId x = c.tensor("self");
  const DType dtype = c.out_dtype();
  const double beta = c.number("beta", 1), threshold = c.number("threshold", 20);
  const ValueId scaled = beta == 1 ? x : c.add("mul", {x, c.constant(beta, dtype)});
  ValueId y = c.add("softplus", {scaled});
  if (beta != 1) y = c.add("mul", {y, c.constant(1 / beta, dtype)});
  if (threshold < 15) y = c.add("where", {c.add("greater", {scaled, c.constant(threshold, dtype)}), x, y});
  c.output(y);
}

// NaN stays NaN, of which ONNX' shrink makes 0
void map_shrink(Call& c) {
  const bool soft = c.parameter() == "soft";
  const double lambda = c.number("lambd", 0.5);
  const ValueId x = c.tensor("self");
  const ValueId y = c.add("shrink", {x}, {{"lambd", lambda}, {"bias", soft ? lambda : 0.0}});
  c.output(c.add("where", {c.add("is_nan", {x}), x, y}));
}

void map_composed(Call& c) {
  const DType result = c.out_dtype(), dtype = compute_type(result);
  const ValueId x = c.cast(c.tensor("self"), dtype);
  const std::string_view form = c.parameter();
  if (form == "tanhshrink") return c.output(c.cast(c.add("sub", {x, c.add("tanh", {x})}), result));
  if (form == "log_sigmoid") return c.output(c.cast(c.add("neg", {c.add("softplus", {c.add("neg", {x})})}), result));
  if (form == "square") return c.output(dtype == DType::kBool ? x : c.cast(c.add("mul", {x, x}), result));
  if (form == "threshold") {
    const double threshold = c.number("threshold", 0), value = c.number("value", 0);
    const ValueId above = c.add("greater", {x, c.constant(threshold, dtype)});
    // A NaN is not below the threshold and stays.
    const ValueId stays = (dtypes(dtype) & kFloats) ? c.add("or", {above, c.add("is_nan", {x})}) : above;
    return c.output(c.cast(c.add("where", {stays, x, c.constant(value, dtype)}), result));
  }
  // logit: log(x / (1 - x)), x clamped to [eps, 1 - eps]
  const double eps = c.number("eps", -1);
  const ValueId one = c.constant(1, dtype);
  const ValueId p = eps < 0 ? x : c.add("clip", {x, c.constant(eps, dtype), c.constant(1 - eps, dtype)});
  c.output(c.cast(c.add("log", {c.add("div", {p, c.add("sub", {one, p})})}), result));
}

void map_glu(Call& c) {
  const ValueId x = c.tensor("self");
  const int64_t axis = c.axis("dim", c.rank(x), -1);
  const Dim size = c.dim(x, axis);
  if (!size.known()) return c.fail("glu over a symbolic dimension");
  const ValueId a = c.slice(x, axis, Scalar::of_int(0), Scalar::of_int(size.size / 2));
  const ValueId b = c.slice(x, axis, Scalar::of_int(size.size / 2), Scalar::of_int(INT64_MAX));
  c.output(c.add("mul", {a, c.add("sigmoid", {b})}));
}

void map_softmax(Call& c) {
  const ValueId x = c.tensor("self");
  c.ignore({"dtype", "half_to_float"});
  const ValueId in = c.cast(x, c.out_dtype());
  const int64_t axis = c.axis("dim", c.rank(x));
  if (c.rank(x) == 0) {
    const ValueId flat = c.add(c.parameter(), {c.reshape(in, std::vector<int64_t>{1})}, {{"axis", 0}});
    return c.output(c.reshape(flat, std::vector<int64_t>{}));
  }
  c.output(c.add(c.parameter(), {in}, {{"axis", axis}}));
}

// Rows of nothing but -inf are 0, not NaN.
void map_safe_softmax(Call& c) {
  c.ignore({"dtype"});
  const ValueId x = c.cast(c.tensor("self"), c.out_dtype());
  const int64_t axis = c.axis("dim", c.rank(x));
  const DType dtype = c.dtype_of(x);
  if (c.rank(x) == 0)
    return c.output(
        c.add("where", {c.add("is_inf", {x}, {{"detect_positive", 0}}), c.constant(0, dtype), c.constant(1, dtype)}));
  const ValueId most = c.add("reduce_max", {x, c.constant_ints({axis})});
  const ValueId masked = c.add("is_inf", {most}, {{"detect_positive", 0}});
  c.output(c.add("where", {masked, c.constant(0, dtype), c.add("softmax", {x}, {{"axis", axis}})}));
}

void map_dropout(Call& c) {
  const ValueId x = c.tensor(c.given("input") ? "input" : "self");
  const double p = c.number("p", 0.5);
  if (c.boolean("train", false) && p > 0)
    return c.fail("dropout in training mode: export the model after model.eval()");
  c.shares(Sharing::kSame);
  c.output(x);
}

void map_native_dropout(Call& c) {
  const ValueId x = c.tensor("input");
  c.ignore({"p"});
  if (c.boolean("train", false)) return c.fail("dropout in training mode: export the model after model.eval()");
  c.outputs({x, kNoValue});
}

void map_rrelu(Call& c) {
  const double lower = c.number("lower", 1.0 / 8), upper = c.number("upper", 1.0 / 3);
  if (c.boolean("training", false)) return c.fail("rrelu in training mode: export the model after model.eval()");
  c.ignore({"generator"});
  c.output(c.add("leaky_relu", {c.tensor("self")}, {{"alpha", (lower + upper) / 2}}));
}

constexpr Mapping kMappings[] = {
    {"aten._log_softmax", map_softmax, "log_softmax"},
    {"aten._prelu_kernel", map_prelu, ""},
    {"aten._safe_softmax", map_safe_softmax, ""},
    {"aten._softmax", map_softmax, "softmax"},
    {"aten.alpha_dropout", map_dropout, ""},
    {"aten.celu", map_celu, ""},
    {"aten.dropout", map_dropout, ""},
    {"aten.elu", map_elu, ""},
    {"aten.feature_alpha_dropout", map_dropout, ""},
    {"aten.feature_dropout", map_dropout, ""},
    {"aten.gelu", map_gelu, ""},
    {"aten.glu", map_glu, ""},
    {"aten.hardshrink", map_shrink, "hard"},
    {"aten.hardsigmoid", map_hardsigmoid, ""},
    {"aten.hardswish", map_plain, "hard_swish"},
    {"aten.hardtanh", map_hardtanh, ""},
    {"aten.leaky_relu", map_leaky_relu, ""},
    {"aten.log_sigmoid", map_composed, "log_sigmoid"},
    {"aten.log_softmax", map_softmax, "log_softmax"},
    {"aten.logit", map_composed, "logit"},
    {"aten.mish", map_plain, "mish"},
    {"aten.native_dropout", map_native_dropout, ""},
    {"aten.prelu", map_prelu, ""},
    {"aten.relu", map_plain, "relu"},
    {"aten.relu6", map_hardtanh, "relu6"},
    {"aten.rrelu", map_rrelu, ""},
    {"aten.selu", map_selu, ""},
    {"aten.sigmoid", map_plain, "sigmoid"},
    {"aten.silu", map_plain, "silu"},
    {"aten.softmax", map_softmax, "softmax"},
    {"aten.softplus", map_softplus, ""},
    {"aten.softshrink", map_shrink, "soft"},
    {"aten.softsign", map_plain, "softsign"},
    {"aten.square", map_composed, "square"},
    {"aten.tanh", map_plain, "tanh"},
    {"aten.tanhshrink", map_composed, "tanhshrink"},
    {"aten.threshold", map_composed, "threshold"},
};
static_assert(sorted(kMappings));

}  // namespace

std::span<const Mapping> activation_mappings() {
  return kMappings;
}

}  // namespace pinnace::torch_import
