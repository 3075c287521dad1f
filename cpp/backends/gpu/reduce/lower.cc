// Reductions of floats and integers: a workgroup per row of what is reduced.
#include "backends/gpu/reduce/reduction.h"

namespace pinnace::gpu {
namespace {

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

/// kind: KIND of reduce.comp; integers have those of reduce_int32.comp.
Status reduce(NodeLowering& n, int kind) {
  const TensorType& x = n.in(0);
  const bool words = !is_device_float(x.dtype);
  if (words && (kind == 1 || kind > 6)) PINNACE_TRY(n.require_float(0));
  Reduction r;
  PINNACE_TRY(describe_reduction(n, r));
  if (words && r.size == 0 && (kind == 2 || kind == 3)) return n.refuse(Rule::kAttribute, "a row without elements");
  const TensorId from = n.dense(0), y = n.make_dense();
  const auto work = static_cast<double>(r.rows * r.size);
  // The logarithm of a sum of exponentials looks for the largest first.
  n.loops((kind == 9 ? 2 : 1) * (shared_turns(r.size) + kTreeTurns));
  if (!words) {
    n.step(KernelId::reduce, ReduceConstants{.KIND = kind}, r.params, {from, y}, row_groups(r.rows), work);
    return {};
  }
  const int32_t held = held_as(x.dtype);
  n.step(KernelId::reduce_int32, ReduceInt32Constants{.KIND = kind, .HELD = held}, r.params,
         {from, y, held == held_as(DType::kI64) ? n.error_record() : y}, row_groups(r.rows), work);
  return {};
}

}  // namespace

Status describe_reduction(NodeLowering& n, Reduction& to) {
  const TensorType& x = n.in(0);
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
  to.params = {.rows = to.rows,
               .size = to.size,
               .k1 = std::max<int64_t>(1, kept.size[1]),
               .k2 = std::max<int64_t>(1, kept.size[2]),
               .kept = {kept.stride[0], kept.stride[1], kept.stride[2]},
               .r1 = std::max<int64_t>(1, reduced.size[1]),
               .r2 = std::max<int64_t>(1, reduced.size[2]),
               .reduced = {reduced.stride[0], reduced.stride[1], reduced.stride[2]}};
  return {};
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

}  // namespace pinnace::gpu
