// Normalisations: batch, layer, group, instance, rms, weight.
#include <limits>

#include "import/torch/mapping.h"

namespace pinnace::torch_import {
namespace {

/// `given`, or a vector of `size` times `value` in the type of x.
ValueId vector_or(Call& c, ValueId given, const Scalar& size, double value, DType dtype) {
  return given != kNoValue ? given : c.full({size}, c.constant(value, dtype));
}

/// x in the parameters' type, which torch's kernels compute in: float32 parameters go with 16-bit inputs, as where a
/// model is autocast. The result is cast back to x's own type.
ValueId in_type_of(Call& c, ValueId x, std::initializer_list<ValueId> parameters) {
  for (ValueId parameter : parameters) {
    if (parameter != kNoValue && c.dtype_of(parameter) != c.dtype_of(x)) return c.cast(x, c.dtype_of(parameter));
  }
  return x;
}

/// (x - mean) / sqrt(var + eps) over axes; then * weight + bias along axis 1.
ValueId normalize(Call& c, ValueId x, const std::vector<int64_t>& axes, double eps, ValueId weight, ValueId bias) {
  const DType dtype = c.dtype_of(x);
  const ValueId over = c.constant_ints(axes);
  const ValueId centred = c.add("sub", {x, c.add("reduce_mean", {x, over})});
  const ValueId variance = c.add("reduce_mean", {c.add("mul", {centred, centred}), over});
  ValueId y = c.add("div", {centred, c.add("sqrt", {c.add("add", {variance, c.constant(eps, dtype)})})});
  std::vector<int64_t> behind;
  for (int i = 1; i < c.rank(x) - 1; ++i) behind.push_back(i);
  if (weight != kNoValue) y = c.add("mul", {y, c.unsqueeze(weight, behind)});
  if (bias != kNoValue) y = c.add("add", {y, c.unsqueeze(bias, behind)});
  return y;
}

/// What the native forms give beside the result: mean and 1 / standard deviation, with dimensions of 1.
struct Statistics {
  ValueId mean = kNoValue, inverse = kNoValue;
};
Statistics statistics(Call& c, ValueId x, const std::vector<int64_t>& axes, double eps) {
  if (!c.reads(1) && !c.reads(2)) return {};
  const DType in = compute_type(c.dtype_of(x));
  x = c.cast(x, in);
  const ValueId over = c.constant_ints(axes);
  const ValueId mean = c.add("reduce_mean", {x, over}), centred = c.add("sub", {x, mean});
  const ValueId variance = c.add("reduce_mean", {c.add("mul", {centred, centred}), over});
  const ValueId deviation = c.add("sqrt", {c.add("add", {variance, c.constant(eps, in)})});
  return {c.cast(mean, c.out_dtype(1)), c.cast(c.add("reciprocal", {deviation}), c.out_dtype(2))};
}

std::vector<int64_t> all_but_channel(int rank) {
  std::vector<int64_t> axes = {0};
  for (int i = 2; i < rank; ++i) axes.push_back(i);
  return axes;
}

ValueId batch_norm(Call& c, ValueId x, ValueId weight, ValueId bias, ValueId mean, ValueId var, double eps) {
  const Scalar channels = c.size_of(mean, 0);
  const DType out = c.dtype_of(x);
  x = in_type_of(c, x, {weight, bias, mean, var});
  const DType dtype = c.dtype_of(x);
  const ValueId y =
      c.add("batch_normalization",
            {x, vector_or(c, weight, channels, 1, dtype), vector_or(c, bias, channels, 0, dtype), mean, var},
            {{"epsilon", eps}});
  return c.cast(y, out);
}

void map_batch_norm(Call& c) {
  const ValueId x = c.tensor("input"), weight = c.optional_tensor("weight"), bias = c.optional_tensor("bias");
  const ValueId mean = c.optional_tensor("running_mean"), var = c.optional_tensor("running_var");
  const bool training = c.boolean("training", false);
  const double eps = c.number("eps", 1e-5);
  c.ignore({"momentum", "cudnn_enabled"});
  if (mean == kNoValue || var == kNoValue) {  // no running statistics: those of the batch, also in eval mode
    const ValueId wide = in_type_of(c, x, {weight, bias});
    const ValueId y = c.cast(normalize(c, wide, all_but_channel(c.rank(x)), eps, weight, bias), c.dtype_of(x));
    if (!c.meta(1) || (!c.reads(1) && !c.reads(2))) return c.outputs({y, kNoValue, kNoValue, kNoValue});
    const Statistics s = statistics(c, x, all_but_channel(c.rank(x)), eps);
    const std::vector<int64_t> flat = {-1};
    return c.outputs({y, c.reshape(s.mean, flat), c.reshape(s.inverse, flat), kNoValue});
  }
  if (training) return c.fail("batch_norm in training mode: export the model after model.eval()");
  // In evaluation the native forms give no statistics: vectors of nothing.
  const ValueId none = c.meta(1) ? c.full({Scalar::of_int(0)}, c.constant(0, c.out_dtype(1))) : kNoValue;
  c.outputs({batch_norm(c, x, weight, bias, mean, var, eps), none, none, none});
}

void map_instance_norm(Call& c) {
  const ValueId x = c.tensor("input"), weight = c.optional_tensor("weight"), bias = c.optional_tensor("bias");
  const ValueId mean = c.optional_tensor("running_mean"), var = c.optional_tensor("running_var");
  const double eps = c.number("eps", 1e-5);
  const bool own = c.boolean("use_input_stats", true);
  c.ignore({"momentum", "cudnn_enabled"});
  if (!own && mean != kNoValue && var != kNoValue) return c.output(batch_norm(c, x, weight, bias, mean, var, eps));
  if (own && (mean != kNoValue || var != kNoValue))
    return c.fail("instance_norm in training mode: export the model after model.eval()");
  const Scalar channels = c.size_of(x, 1);
  const ValueId wide = in_type_of(c, x, {weight, bias});
  const DType dtype = c.dtype_of(wide);
  const ValueId y = c.add("instance_normalization",
                          {wide, vector_or(c, weight, channels, 1, dtype), vector_or(c, bias, channels, 0, dtype)},
                          {{"epsilon", eps}});
  c.output(c.cast(y, c.dtype_of(x)));
}

void map_layer_norm(Call& c) {
  const ValueId x = c.tensor("input");
  ValueId weight = c.optional_tensor("weight");
  const ValueId bias = c.optional_tensor("bias");
  const std::vector<Scalar> shape = c.sizes("normalized_shape");
  const double eps = c.number("eps", 1e-5);
  c.ignore({"cudnn_enable"});
  const ValueId wide = in_type_of(c, x, {weight, bias});
  if (weight == kNoValue) weight = c.full(shape, c.constant(1, c.dtype_of(wide)));
  const auto axis = -static_cast<int64_t>(shape.size());
  const ValueId y =
      c.cast(c.add("layer_normalization", {wide, weight, bias}, {{"axis", axis}, {"epsilon", eps}}), c.dtype_of(x));
  if (!c.meta(1)) return c.output(y);
  std::vector<int64_t> over;
  for (int64_t i = axis; i < 0; ++i) over.push_back(i + c.rank(x));
  const Statistics s = statistics(c, x, over, eps);
  c.outputs({y, s.mean, s.inverse});
}

void map_rms_norm(Call& c) {
  const ValueId x = c.tensor("input");
  ValueId weight = c.optional_tensor("weight");
  const std::vector<Scalar> shape = c.sizes("normalized_shape");
  // torch computes 16-bit types in float32, with its epsilon.
  const double smallest =
      c.dtype_of(x) == DType::kF64 ? std::numeric_limits<double>::epsilon() : std::numeric_limits<float>::epsilon();
  const double eps = c.number("eps", smallest);
  const ValueId wide = in_type_of(c, x, {weight});
  if (weight == kNoValue) weight = c.full(shape, c.constant(1, c.dtype_of(wide)));
  const auto axis = -static_cast<int64_t>(shape.size());
  const ValueId y = c.add("rms_normalization", {wide, weight}, {{"axis", axis}, {"epsilon", eps}});
  c.outputs({c.cast(y, c.dtype_of(x)), kNoValue});
}

void map_group_norm(Call& c) {
  const ValueId x = c.tensor("input");
  const ValueId weight = c.optional_tensor("weight"), bias = c.optional_tensor("bias");
  const int64_t groups = c.integer(c.parameter() == "native" ? "group" : "num_groups");
  const double eps = c.number("eps", 1e-5);
  c.ignore({"cudnn_enabled", "N", "C", "HxW"});
  const Scalar channels = c.size_of(x, 1);
  const ValueId wide = in_type_of(c, x, {weight, bias});
  const DType dtype = c.dtype_of(wide);
  const ValueId scaled = c.add("group_normalization",
                               {wide, vector_or(c, weight, channels, 1, dtype), vector_or(c, bias, channels, 0, dtype)},
                               {{"num_groups", groups}, {"epsilon", eps}});
  const ValueId y = c.cast(scaled, c.dtype_of(x));
  if (!c.reads(1) && !c.reads(2)) return c.outputs({y, kNoValue, kNoValue});
  const std::vector<Scalar> grouped = {c.size_of(x, 0), Scalar::of_int(groups), Scalar::of_int(-1)};
  const Statistics s = statistics(c, c.reshape(x, grouped), {2}, eps);
  c.outputs({y, c.squeeze(s.mean, {2}), c.squeeze(s.inverse, {2})});
}

// weight_norm: v * (g / |v|), the norm over every axis but dim
void map_weight_norm(Call& c) {
  const ValueId v = c.tensor("v"), g = c.tensor("g");
  const int64_t dim = c.integer("dim", 0);
  std::vector<int64_t> axes;
  for (int i = 0; i < c.rank(v); ++i) {
    if (i != dim) axes.push_back(i);
  }
  const ValueId norm = c.add("reduce_l2", {v, c.constant_ints(axes)});
  c.outputs({c.add("mul", {v, c.add("div", {g, norm})}), norm});
}

constexpr Mapping kMappings[] = {
    {"aten._native_batch_norm_legit", map_batch_norm, ""},
    {"aten._native_batch_norm_legit_no_training", map_batch_norm, ""},
    {"aten._weight_norm", map_weight_norm, ""},
    {"aten._weight_norm_interface", map_weight_norm, ""},
    {"aten.batch_norm", map_batch_norm, ""},
    {"aten.group_norm", map_group_norm, ""},
    {"aten.instance_norm", map_instance_norm, ""},
    {"aten.layer_norm", map_layer_norm, ""},
    {"aten.native_batch_norm", map_batch_norm, ""},
    {"aten.native_group_norm", map_group_norm, "native"},
    {"aten.native_layer_norm", map_layer_norm, ""},
    {"aten.rms_norm", map_rms_norm, ""},
};
static_assert(sorted(kMappings));

}  // namespace

std::span<const Mapping> normalization_mappings() {
  return kMappings;
}

}  // namespace pinnace::torch_import
