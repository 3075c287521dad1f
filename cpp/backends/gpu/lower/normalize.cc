// What looks at whole rows: softmax, reductions, normalisations.
#include <cmath>

#include "backends/gpu/lower/maps.h"
#include "backends/gpu/lower/moves.h"
#include "backends/gpu/lower/reduction.h"
#include "ops/move.h"

namespace pinnace::gpu {
namespace {

Status softmax(NodeLowering& n, bool logarithm) {
  PINNACE_TRY(n.require_float(0));
  PINNACE_ASSIGN(const int axis, n.view().axis(n.view().attr_int("axis"), n.in(0).rank()));
  const AxisView v = view_axis(n.in(0).shape, axis);
  const TensorId x = n.rows(0), y = n.make_rows();
  const int64_t lanes = v.outer * v.inner;
  n.step(KernelId::softmax, {logarithm ? 1 : 0}, Push().i(lanes).i(v.size).i(v.inner), {x, y}, row_groups(lanes),
         static_cast<double>(lanes * v.size * 8));
  return {};
}

/// Dimensions of one kind, neighbours joined: at most three of each kind in six dimensions.
struct Walk {
  int64_t size[3] = {1, 1, 1}, stride[3] = {0, 0, 0};
  int count = 0;
  bool add(int64_t n, int64_t step, bool joins) {
    if (joins && count > 0) {
      size[3 - count] *= n;  // from the innermost: entry 2 first
      return true;
    }
    if (count == 3) return false;
    ++count;
    size[3 - count] = n;
    stride[3 - count] = step;
    return true;
  }
};

/// kind: KIND of reduce.comp; integers have those of reduce_words.comp.
Status reduce(NodeLowering& n, int kind) {
  const TensorType& x = n.in(0);
  const bool words = !is_device_float(x.dtype);
  if (words && (kind == 1 || kind > 6)) PINNACE_TRY(n.require_float(0));
  Reduction r;
  PINNACE_TRY(describe_reduction(n, r));
  if (words && r.size == 0 && (kind == 2 || kind == 3)) return n.refuse(Rule::kAttribute, "a row without elements");
  const TensorId from = n.rows(0), y = n.make_rows();
  const auto work = static_cast<double>(r.rows * r.size);
  if (!words) {
    n.step(KernelId::reduce, {kind}, r.push, {from, y}, row_groups(r.rows), work);
    return {};
  }
  const int32_t held = held_as(x.dtype);
  n.step(KernelId::reduce_words, {kind, held}, r.push, {from, y, held == held_as(DType::kI64) ? n.problem() : y},
         row_groups(r.rows), work);
  return {};
}

struct Normalization {
  int64_t rows = 1, size = 1, period = 1, inner = 1, channels = 1;
  double epsilon = 0;
  bool rms = false;
};

void normalize_step(NodeLowering& n, const Normalization& s, TensorId x, TensorId w, TensorId b, bool scale, bool bias,
                    TensorId y) {
  n.step(KernelId::normalize, {s.rms ? 1 : 0, scale ? 1 : 0, bias ? 1 : 0},
         Push().i(s.rows).i(s.size).i(s.period).i(s.inner).i(s.channels).f(s.epsilon), {x, w, b, y}, row_groups(s.rows),
         static_cast<double>(s.rows * s.size * 4));
}

Status normalize(NodeLowering& n, const Normalization& s, bool scale, bool bias) {
  const TensorId x = n.rows(0), w = scale ? n.rows(1) : x, b = bias ? n.rows(2) : x;
  normalize_step(n, s, x, w, b, scale, bias, n.make_rows());
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
    if (n.has(i) && n.in(i).elements() != s.size) return n.refuse(Rule::kAttribute, to_string(n.in(i)));
  }
  return normalize(n, s, true, n.has(2));
}

}  // namespace

Status describe_reduction(NodeLowering& n, Reduction& to) {
  const TensorType& x = n.in(0);
  if (x.rank() > 6) return n.refuse(Rule::kRank, to_string(x));
  std::vector<int> axes;
  if (n.has(1)) {
    const auto given = n.view().input_ints(1);
    if (!given) return n.refuse(Rule::kConstant, "axes");
    PINNACE_ASSIGN(axes, n.view().axes(*given, x.rank()));
  }
  if (axes.empty()) {
    if (n.view().attr_int("noop_with_empty_axes")) return n.refuse(Rule::kAttribute, "no axes");
    for (int i = 0; i < x.rank(); ++i) axes.push_back(i);
  }
  Walk kept, reduced;
  int64_t stride = 1;
  int last = -1;
  for (int i = x.rank() - 1; i >= 0; --i) {
    const int64_t dim = x.shape[static_cast<size_t>(i)].size;
    const bool is_reduced = std::find(axes.begin(), axes.end(), i) != axes.end();
    (is_reduced ? to.size : to.rows) *= dim;
    if (dim != 1) {
      if (!(is_reduced ? reduced : kept).add(dim, stride, last == (is_reduced ? 1 : 0))) {
        return n.refuse(Rule::kRank, to_string(x));
      }
      last = is_reduced ? 1 : 0;
    }
    stride *= dim;
  }
  to.push.i(to.rows).i(to.size);
  for (const Walk* walk : {&kept, &reduced}) {
    to.push.i(std::max<int64_t>(1, walk->size[1])).i(std::max<int64_t>(1, walk->size[2]));
    for (int64_t step : walk->stride) to.push.i(step);
  }
  return {};
}

Status lower_softmax(NodeLowering& n) {
  return softmax(n, false);
}
Status lower_log_softmax(NodeLowering& n) {
  return softmax(n, true);
}

Status lower_reduce_sum(NodeLowering& n) {
  return reduce(n, 0);
}
Status lower_reduce_mean(NodeLowering& n) {
  return reduce(n, 1);
}
Status lower_reduce_max(NodeLowering& n) {
  return reduce(n, 2);
}
Status lower_reduce_min(NodeLowering& n) {
  return reduce(n, 3);
}
Status lower_reduce_prod(NodeLowering& n) {
  return reduce(n, 4);
}
Status lower_reduce_l1(NodeLowering& n) {
  return reduce(n, 5);
}
Status lower_reduce_sum_square(NodeLowering& n) {
  return reduce(n, 6);
}
Status lower_reduce_l2(NodeLowering& n) {
  return reduce(n, 7);
}
Status lower_reduce_log_sum(NodeLowering& n) {
  return reduce(n, 8);
}
Status lower_reduce_log_sum_exp(NodeLowering& n) {
  return reduce(n, 9);
}

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
  n.step(KernelId::batch_norm, {}, Push().i(count).i(channels).i(inner).f(n.view().attr_float("epsilon")),
         {n.rows(0), n.rows(1), n.rows(2), n.rows(3), n.rows(4), n.make_rows()}, line_groups(count, 64),
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
    map_step(n, n.image(0), -1, true, stages);
    return {};
  }
  const Shape& shape = n.out().shape;
  Operand factor{factors}, shift_of{shifts};
  if (n.in(0).rank() == 2) factor.strides[5] = shift_of.strides[5] = 1;
  const TensorId x = n.rows(0), scaled = n.make_scratch(n.out().elements());
  float_step(n, Function::k_mul, whole_operand(x, shape), factor, shape, scaled);
  float_step(n, Function::k_add, whole_operand(scaled, shape), shift_of, shape, n.make_rows());
  return {};
}

Status lower_lrn(NodeLowering& n) {
  PINNACE_TRY(n.require_float(0));
  const double bias = n.view().attr_float("bias"), alpha = n.view().attr_float("alpha");
  if (bias < 0 || alpha < 0) return n.refuse(Rule::kAttribute, str_cat("bias ", bias, ", alpha ", alpha));
  const int64_t size = n.view().attr_int("size"), before = (size - 1) / 2;
  const AxisView v = view_axis(n.in(0).shape, 1);
  const int64_t count = n.in(0).elements(), most = v.size;  // a window beyond all channels has no more in it
  const TensorId x = n.rows(0), y = n.make_rows();
  n.step(KernelId::lrn, {},
         Push()
             .i(count)
             .i(v.size)
             .i(v.inner)
             .i(std::min(before, most))
             .i(std::min(size - 1 - before, most))
             .f(bias)
             .f(alpha / static_cast<double>(size))
             .f(n.view().attr_float("beta")),
         {x, y}, line_groups(count, 64), static_cast<double>(count) * static_cast<double>(std::min(size, v.size)));
  return {};
}

/// The norms of all lanes, then quotients by them.
Status lower_lp_normalization(NodeLowering& n) {
  PINNACE_TRY(n.require_float(0));
  PINNACE_ASSIGN(const int axis, n.view().axis(n.view().attr_int("axis"), n.in(0).rank()));
  const AxisView v = view_axis(n.in(0).shape, axis);
  const TensorId x = n.rows(0), norms = n.make_scratch(v.outer * v.inner);
  n.step(KernelId::reduce, {n.view().attr_int("p") == 1 ? 5 : 7},
         Push()
             .i(v.outer * v.inner)
             .i(v.size)
             .i(v.outer)
             .i(v.inner)
             .i(0)
             .i(v.size * v.inner)
             .i(1)
             .i(1)
             .i(v.size)
             .i(0)
             .i(0)
             .i(v.inner),
         {x, norms}, row_groups(v.outer * v.inner), static_cast<double>(n.in(0).elements()));
  const Shape lines = {v.outer, v.size, v.inner};
  Operand norm{norms};
  norm.strides[3] = v.inner;
  norm.strides[5] = 1;
  float_step(n, Function::k_div_or_zero, whole_operand(x, lines), norm, lines, n.make_rows());
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
  const TensorId x = n.rows(0), gathered = n.make_scratch(count), made = n.make_scratch(count);
  move_step(n, DType::kF32, x, gathered, together);
  normalize_step(n, s, gathered, gathered, gathered, false, false, made);
  move_step(n, DType::kF32, made, n.make_rows(), back);
  return {};
}

}  // namespace pinnace::gpu
