// Elements by indices: gathers, whose indices may be known in a run only, and rearrangements as gathers by tables that
// are made with the plan.
#include "backends/gpu/index/params.h"
#include "backends/gpu/index/places.h"
#include "ops/move.h"

namespace pinnace::gpu {

Status check_ranks(NodeLowering& n) {
  for (const TensorType* type : {&n.in(0), &n.in(1), &n.out()}) {
    if (type->rank() > 6) return n.refuse(Rule::kRank, to_string(*type));
  }
  if (n.in(0).elements() == 0) return n.refuse(Rule::kAttribute, "nothing to index");
  return {};
}

TensorId place_step(NodeLowering& n, TensorId index, const Six& space, const Six& base, int64_t tuple, const Six& sizes,
                    const Six& steps) {
  int64_t count = 1;
  for (int64_t size : space) count *= size;
  const PlaceParams params{.count = count,
                           .sizes = {space[1], space[2], space[3], space[4], space[5]},
                           .base = push_strides(base),
                           .tuple = tuple,
                           .indexed = push_strides(sizes),
                           .steps = push_strides(steps)};
  const TensorId places = n.make_scratch(count, DType::kI32);
  n.step(KernelId::place, params, {index, places, n.error_record()}, line_groups(count, 64),
         static_cast<double>(count));
  return places;
}

TensorId table(NodeLowering& n, const std::string& what, std::vector<int32_t> places) {
  const auto count = static_cast<int64_t>(places.size());
  return n.size_table(str_cat(what, " ", count, " ", to_string(n.in(0)), " ", to_string(n.out())),
                      std::max<int64_t>(1, count), [places = std::move(places)](std::span<float> to) {
                        for (size_t i = 0; i < places.size(); ++i) to[i] = std::bit_cast<float>(places[i]);
                        return Status();
                      });
}

void gather_step(NodeLowering& n, DType type, TensorId x, TensorId index, TensorId y, int64_t count, int64_t indices,
                 int64_t size, int64_t inner) {
  n.step(is_device_float(type) ? KernelId::gather : KernelId::gather_int32,
         GatherParams{.count = count, .indices = indices, .inner = inner, .size = size, .held = size}, {x, index, y},
         line_groups(count, 64), static_cast<double>(count));
}

Status lower_gather(NodeLowering& n) {
  PINNACE_ASSIGN(const int axis, n.view().axis(n.view().attr_int("axis"), n.in(0).rank()));
  const AxisView v = view_axis(n.in(0).shape, axis);
  if (v.size == 0) return n.refuse(Rule::kAttribute, "nothing to index");
  if (n.constant(1) && !n.all().dry()) {
    for (int64_t index : n.view().input_ints(1).value_or(std::vector<int64_t>())) {
      PINNACE_TRY(wrap_index(n.view(), index, v.size).status());
    }
  }
  const int64_t indices = n.in(1).elements();
  const TensorId x = n.dense(0);
  TensorId index = n.dense(1);
  if (!n.constant(1)) index = place_step(n, index, {indices, 1, 1, 1, 1, 1}, {}, 1, {v.size}, {1});
  gather_step(n, n.in(0).dtype, x, index, n.make_dense(), n.out().elements(), indices, v.size, v.inner);
  return {};
}

Status lower_gather_elements(NodeLowering& n) {
  PINNACE_TRY(check_ranks(n));
  PINNACE_ASSIGN(const int axis, n.view().axis(n.view().attr_int("axis"), n.in(0).rank()));
  const auto at = static_cast<size_t>(int64_t{6} - n.in(0).rank() + axis);
  Six base = dense_strides(n.in(0).shape);
  const int64_t step = std::exchange(base[at], 0), all = n.in(0).elements(), count = n.out().elements();
  const TensorId x = n.dense(0), index = n.dense(1);
  const TensorId places =
      place_step(n, index, six_sizes(n.in(1).shape), base, 1, {n.in(0).shape[static_cast<size_t>(axis)].size}, {step});
  gather_step(n, n.in(0).dtype, x, places, n.make_dense(), count, count, all, 1);
  return {};
}

Status lower_gather_nd(NodeLowering& n) {
  PINNACE_TRY(check_ranks(n));
  const Shape &x_shape = n.in(0).shape, &shape = n.in(1).shape;
  const auto batch = static_cast<size_t>(n.view().attr_int("batch_dims")), k = static_cast<size_t>(shape.back().size);
  const auto product = [](const Shape& s, size_t from, size_t to) {
    int64_t all = 1;
    for (size_t i = from; i < to; ++i) all *= s[i].size;
    return all;
  };
  const int64_t run = product(x_shape, batch + k, x_shape.size()), batches = product(x_shape, 0, batch);
  const int64_t tuples = product(shape, batch, shape.size() - 1);
  Six sizes{}, steps{};
  for (size_t j = 0; j < k; ++j) {
    sizes[j] = x_shape[batch + j].size;
    steps[j] = product(x_shape, batch + j + 1, x_shape.size()) / run;
  }
  const int64_t batch_step = product(x_shape, batch, x_shape.size()) / run, all = n.in(0).elements() / run;
  const TensorId x = n.dense(0), index = n.dense(1);
  const TensorId places = place_step(n, index, {1, 1, 1, 1, batches, tuples}, {0, 0, 0, 0, batch_step, 0},
                                     static_cast<int64_t>(k), sizes, steps);
  gather_step(n, n.in(0).dtype, x, places, n.make_dense(), n.out().elements(), batches * tuples, all, run);
  return {};
}

/// As a gather along time and batch as one dimension, where they are neighbours.
Status lower_reverse_sequence(NodeLowering& n) {
  PINNACE_ASSIGN(const int batch, n.view().axis(n.view().attr_int("batch_axis"), n.in(0).rank()));
  PINNACE_ASSIGN(const int time, n.view().axis(n.view().attr_int("time_axis"), n.in(0).rank()));
  if (batch - time != 1 && time - batch != 1) {
    return n.refuse(Rule::kAttribute, str_cat("batch_axis ", batch, ", time_axis ", time));
  }
  const int first = std::min(batch, time);
  const AxisView v = view_axis(n.in(0).shape, first);
  const int64_t T = n.in(0).shape[static_cast<size_t>(time)].size, B = n.in(0).shape[static_cast<size_t>(batch)].size;
  const int64_t run = v.inner / n.in(0).shape[static_cast<size_t>(first) + 1].size;
  if (!n.constant(1)) {
    const TensorId x = n.dense(0), index = n.make_scratch(T * B, DType::kI32);
    n.step(KernelId::lengths, LengthsConstants{.FORM = time < batch ? 1 : 2},
           LengthsParams{.count = T * B, .time = T, .batch = B}, {n.dense(1), index, n.error_record()},
           line_groups(T * B, 64), static_cast<double>(T * B));
    gather_step(n, n.in(0).dtype, x, index, n.make_dense(), n.out().elements(), T * B, T * B, run);
    return {};
  }
  std::vector<int32_t> places;
  if (!n.all().dry()) {
    const auto lengths = n.view().input_ints(1);
    if (!lengths) return n.refuse(Rule::kConstant, "lengths");
    for (int64_t i = 0; i < T * B; ++i) {
      const int64_t b = time < batch ? i % B : i / T, t = time < batch ? i / B : i % T;
      const int64_t length = (*lengths)[static_cast<size_t>(b)];
      if (length < 0 || length > T) return n.view().error("length ", length, " is outside [0,", T, "]");
      const int64_t from = t < length ? length - 1 - t : t;
      places.push_back(static_cast<int32_t>(time < batch ? from * B + b : b * T + from));
    }
  }
  const TensorId x = n.dense(0), index = table(n, "reversed", std::move(places));
  gather_step(n, n.in(0).dtype, x, index, n.make_dense(), n.out().elements(), T * B, T * B, run);
  return {};
}

}  // namespace pinnace::gpu
