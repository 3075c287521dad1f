// Normalisations: by rows, by channel, over windows of channels, by norms.
#include <cmath>

#include "backends/gpu/move/region.h"
#include "backends/gpu/normalize/params.h"
#include "backends/gpu/reduce/params.h"
#include "backends/gpu/unary/chain.h"
#include "ops/lines.h"
#include "ops/move.h"

namespace pinnace::gpu {
namespace {

struct Normalization {
  int64_t rows = 1, size = 1, period = 1, inner = 1, channels = 1;
  double epsilon = 0;
  bool rms = false;
};

void normalize_step(NodeLowering& n, const Normalization& s, TensorId x, TensorId w, TensorId b, bool scale, bool bias,
                    TensorId y) {
  n.loops(3 * (shared_turns(s.size) + kTreeTurns));
  n.step(KernelId::normalize, NormalizeConstants{.RMS = s.rms, .SCALE = scale ? 1 : 0, .BIAS = bias ? 1 : 0},
         NormalizeParams{.rows = s.rows,
                         .size = s.size,
                         .period = s.period,
                         .inner = s.inner,
                         .channels = s.channels,
                         .epsilon = s.epsilon},
         {x, w, b, y}, row_groups(s.rows), static_cast<double>(s.rows * s.size * 4));
}

Status normalize(NodeLowering& n, const Normalization& s, bool scale, bool bias) {
  const TensorId x = n.dense(0), w = scale ? n.dense(1) : x, b = bias ? n.dense(2) : x;
  normalize_step(n, s, x, w, b, scale, bias, n.make_dense());
  return {};
}

/// Layer and RMS normalisation: rows are dimensions from axis on; scale and bias have their shape.
Status by_axis(NodeLowering& n, bool rms) {
  for (int i = 0; i < 3; ++i) PINNACE_TRY(n.require_float(i));
  if (n.view().output_count() > 1) return n.refuse(Rule::kAttribute, "mean and deviation as outputs");
  PINNACE_ASSIGN(const int axis, n.view().axis(n.view().attr_int("axis"), n.in(0).rank()));
  Normalization s;
  s.rms = rms;
  s.epsilon = n.view().attr_float("epsilon");
  for (int i = 0; i < n.in(0).rank(); ++i) (i < axis ? s.rows : s.size) *= n.in(0).shape[static_cast<size_t>(i)].size;
  s.channels = s.size;
  for (int i = 1; i < 3; ++i) {
    if (n.has(i) && !is_row_of(n.in(i).shape, n.in(0).shape, axis)) {
      return n.refuse(Rule::kAttribute, to_string(n.in(i)));
    }
  }
  return normalize(n, s, true, n.has(2));
}

}  // namespace

Status lower_layer_normalization(NodeLowering& n) {
  return by_axis(n, false);
}

Status lower_rms_normalization(NodeLowering& n) {
  return by_axis(n, true);
}

Status lower_instance_normalization(NodeLowering& n) {
  for (int i = 0; i < 3; ++i) PINNACE_TRY(n.require_float(i));
  const ImageShape s = image_shape(n.in(0));
  return normalize(n, {s.N * s.C, s.pixels, s.C, s.pixels, s.C, n.view().attr_float("epsilon")}, true, true);
}

Status lower_group_normalization(NodeLowering& n) {
  for (int i = 0; i < 3; ++i) PINNACE_TRY(n.require_float(i));
  const ImageShape s = image_shape(n.in(0));
  const int64_t groups = n.view().attr_int("num_groups");
  return normalize(n, {s.N * groups, s.C / groups * s.pixels, groups, s.pixels, s.C, n.view().attr_float("epsilon")},
                   true, true);
}

/// Batch normalisation with numbers that a run brings.
Status normalize_by_channel(NodeLowering& n) {
  const TensorType& x = n.in(0);
  const int64_t count = x.elements(), channels = x.rank() == 1 ? 1 : x.shape[1].size;
  const int64_t outer = x.rank() == 1 ? 1 : x.shape[0].size, inner = count / std::max<int64_t>(1, outer * channels);
  n.step(
      KernelId::batch_norm,
      BatchNormParams{.count = count, .channels = channels, .inner = inner, .epsilon = n.view().attr_float("epsilon")},
      {n.dense(0), n.dense(1), n.dense(2), n.dense(3), n.dense(4), n.make_dense()}, line_groups(count, 64),
      static_cast<double>(count * 4));
  return {};
}

/// With all but x constant it is x * k + shift per channel.
Status lower_batch_normalization(NodeLowering& n) {
  bool known = true;
  for (int i = 0; i < 5; ++i) {
    PINNACE_TRY(n.require_float(i));
    known &= i == 0 || n.constant(i);
  }
  if (!known) return normalize_by_channel(n);
  const double epsilon = n.view().attr_float("epsilon");
  const std::vector<double> scale = n.floats(1), bias = n.floats(2), mean = n.floats(3), variance = n.floats(4);
  if (scale.size() != bias.size() || scale.size() != mean.size() || scale.size() != variance.size()) {
    return n.refuse(Rule::kConstant, "scale, b, mean and var");
  }
  std::vector<double> k, shift;
  for (size_t c = 0; c < scale.size(); ++c) {
    k.push_back(scale[c] / std::sqrt(variance[c] + epsilon));
    shift.push_back(bias[c] - mean[c] * k[c]);
  }
  const auto C = static_cast<int64_t>(scale.size()), lanes = (C + 3) / 4 * 4;
  const auto per_channel = [&](std::string_view what, const std::vector<double>& numbers) {
    return n.weights(what, lanes, [numbers](std::span<float> to) {
      for (size_t c = 0; c < numbers.size(); ++c) to[c] = static_cast<float>(numbers[c]);
      return Status();
    });
  };
  const TensorId factors = per_channel("factors", k), shifts = per_channel("shifts", shift);
  if (n.in(0).rank() >= 3) {
    const MapStage stages[2] = {{Function::k_mul, 0, 0, MapStage::Operand::kChannel, factors},
                                {Function::k_add, 0, 0, MapStage::Operand::kChannel, shifts}};
    map_step(n, n.nc4hw4(0), -1, true, stages);
    return {};
  }
  const Shape& shape = n.out().shape;
  Operand factor{factors}, shift_of{shifts};
  if (n.in(0).rank() == 2) factor.strides[5] = shift_of.strides[5] = 1;
  const TensorId x = n.dense(0), scaled = n.make_scratch(n.out().elements());
  float_step(n, Function::k_mul, whole_operand(x, shape), factor, shape, scaled);
  float_step(n, Function::k_add, whole_operand(scaled, shape), shift_of, shape, n.make_dense());
  return {};
}

Status lower_lrn(NodeLowering& n) {
  PINNACE_TRY(n.require_float(0));
  const double bias = n.view().attr_float("bias"), alpha = n.view().attr_float("alpha");
  if (bias < 0 || alpha < 0) return n.refuse(Rule::kAttribute, str_cat("bias ", bias, ", alpha ", alpha));
  const int64_t size = n.view().attr_int("size"), before = (size - 1) / 2;
  const AxisView v = view_axis(n.in(0).shape, 1);
  const int64_t count = n.in(0).elements(), most = v.size;  // a window beyond all channels has no more in it
  const TensorId x = n.dense(0), y = n.make_dense();
  n.loops(loop_turns(std::min(size, most)));
  n.step(KernelId::lrn,
         LrnParams{.count = count,
                   .channels = v.size,
                   .inner = v.inner,
                   .before = std::min(before, most),
                   .after = std::min(size - 1 - before, most),
                   .bias = bias,
                   .scale = alpha / static_cast<double>(size),
                   .beta = n.view().attr_float("beta")},
         {x, y}, line_groups(count, 64), static_cast<double>(count) * static_cast<double>(std::min(size, v.size)));
  return {};
}

/// The norms of all slices, then quotients by them.
Status lower_lp_normalization(NodeLowering& n) {
  PINNACE_TRY(n.require_float(0));
  PINNACE_ASSIGN(const int axis, n.view().axis(n.view().attr_int("axis"), n.in(0).rank()));
  const AxisView v = view_axis(n.in(0).shape, axis);
  const TensorId x = n.dense(0), norms = n.make_scratch(v.outer * v.inner);
  n.loops(shared_turns(v.size) + kTreeTurns);
  n.step(KernelId::reduce, ReduceConstants{.KIND = n.view().attr_int("p") == 1 ? 5 : 7},
         ReduceParams{.rows = v.outer * v.inner,
                      .size = v.size,
                      .k1 = v.outer,
                      .k2 = v.inner,
                      .kept = {0, v.size * v.inner, 1},
                      .r1 = 1,
                      .r2 = v.size,
                      .reduced = {0, 0, v.inner}},
         {x, norms}, row_groups(v.outer * v.inner), static_cast<double>(n.in(0).elements()));
  const Shape lines = {v.outer, v.size, v.inner};
  Operand norm{norms};
  norm.strides[3] = v.inner;
  norm.strides[5] = 1;
  float_step(n, Function::k_div_or_zero, whole_operand(x, lines), norm, lines, n.make_dense());
  return {};
}

/// Rows are what the axes name: they are brought together, normalised, and brought back.
Status lower_mean_variance_normalization(NodeLowering& n) {
  PINNACE_TRY(n.require_float(0));
  if (n.in(0).rank() > 6) return n.refuse(Rule::kRank, to_string(n.in(0)));
  constexpr int64_t kPerChannel[] = {0, 2, 3};
  const auto given = n.view().attr_ints("axes");
  PINNACE_ASSIGN(
      const std::vector<int> axes,
      n.view().axes(n.view().has_attr("axes") ? given : std::span<const int64_t>(kPerChannel), n.in(0).rank()));
  const Shape& shape = n.in(0).shape;
  const Six strides = dense_strides(shape);
  Normalization s;
  // var + 1e-18 under the root is the deviation + 1e-9 where either counts.
  s.epsilon = 1e-18;
  Region together;
  size_t at = 6 - shape.size();
  for (const bool reduced : {false, true}) {
    for (size_t d = 0; d < shape.size(); ++d) {
      if ((std::find(axes.begin(), axes.end(), static_cast<int>(d)) != axes.end()) != reduced) continue;
      together.size[at] = shape[d].size;
      together.from_stride[at++] = strides[6 - shape.size() + d];
      (reduced ? s.size : s.rows) *= shape[d].size;
    }
  }
  int64_t step = 1;
  for (size_t i = 6; i-- > 0; step *= together.size[i]) together.to_stride[i] = step;
  Region back = together;
  std::swap(back.from_stride, back.to_stride);
  s.channels = s.size;
  const int64_t count = n.in(0).elements();
  const TensorId x = n.dense(0), gathered = n.make_scratch(count), made = n.make_scratch(count);
  move_step(n, DType::kF32, x, gathered, together);
  normalize_step(n, s, gathered, gathered, gathered, false, false, made);
  move_step(n, DType::kF32, made, n.make_dense(), back);
  return {};
}

}  // namespace pinnace::gpu
