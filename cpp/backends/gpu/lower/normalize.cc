// What looks at whole rows: softmax, reductions, normalisations.
#include "backends/gpu/lowering.h"
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

Status reduce(NodeLowering& n, int kind) {
  PINNACE_TRY(n.require_float(0));
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
  int64_t stride = 1, rows = 1, size = 1;
  int last = -1;
  for (int i = x.rank() - 1; i >= 0; --i) {
    const int64_t dim = x.shape[static_cast<size_t>(i)].size;
    const bool is_reduced = std::find(axes.begin(), axes.end(), i) != axes.end();
    (is_reduced ? size : rows) *= dim;
    if (dim != 1) {
      if (!(is_reduced ? reduced : kept).add(dim, stride, last == (is_reduced ? 1 : 0))) {
        return n.refuse(Rule::kRank, to_string(x));
      }
      last = is_reduced ? 1 : 0;
    }
    stride *= dim;
  }
  const TensorId from = n.rows(0), y = n.make_rows();
  n.step(KernelId::reduce, {kind},
         Push()
             .i(rows).i(size).i(std::max<int64_t>(1, kept.size[1])).i(std::max<int64_t>(1, kept.size[2]))
             .i(kept.stride[0]).i(kept.stride[1]).i(kept.stride[2])
             .i(std::max<int64_t>(1, reduced.size[1])).i(std::max<int64_t>(1, reduced.size[2]))
             .i(reduced.stride[0]).i(reduced.stride[1]).i(reduced.stride[2]),
         {from, y}, row_groups(rows), static_cast<double>(rows * size));
  return {};
}

struct Normalization {
  int64_t rows = 1, size = 1, period = 1, inner = 1, channels = 1;
  double epsilon = 0;
  bool rms = false;
};

Status normalize(NodeLowering& n, const Normalization& s, bool scale, bool bias) {
  const TensorId x = n.rows(0), w = scale ? n.rows(1) : x, b = bias ? n.rows(2) : x, y = n.make_rows();
  n.step(KernelId::normalize, {s.rms ? 1 : 0, scale ? 1 : 0, bias ? 1 : 0},
         Push().i(s.rows).i(s.size).i(s.period).i(s.inner).i(s.channels).f(s.epsilon), {x, w, b, y},
         row_groups(s.rows), static_cast<double>(s.rows * s.size * 4));
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

}  // namespace pinnace::gpu
