// Scatters. Where indices are constants and the last update stays, a gather by a table that is made with the plan; else
// a kernel goes through the updates of each column in order.
#include "ops/scatter.h"

#include "backends/gpu/index/params.h"
#include "backends/gpu/index/places.h"
#include "backends/gpu/layout/params.h"
#include "backends/gpu/move/region.h"

namespace pinnace::gpu {
namespace {

/// Updates of one column that one dispatch goes through, one after the other: a millisecond at 30 ns each. Software
/// Vulkan ends loops after 65,535 turns.
constexpr int64_t kDispatchUpdates = int64_t{1} << 15;
/// 128 such dispatches; each goes through all of a column's updates once per owner.
constexpr int64_t kMostUpdates = int64_t{1} << 22;
/// Columns by owners that keep a device busy; owners go through the same updates and are not worth more.
constexpr int64_t kBusy = 4096;
constexpr int64_t kMostOwners = 64;
/// Elements of data and updates that a gather from both takes.
constexpr int64_t kMostMerged = int64_t{1} << 25;

/// data with elements of updates in it: `last[i]` is the update that element i takes, -1 for none. As a gather from
/// both.
void merge(NodeLowering& n, std::vector<int32_t> last) {
  const int64_t count = n.in(0).elements(), updates = n.in(2).elements();
  for (int64_t i = 0; i < static_cast<int64_t>(last.size()); ++i) {
    int32_t& from = last[static_cast<size_t>(i)];
    from = from < 0 ? static_cast<int32_t>(i) : static_cast<int32_t>(count) + from;
  }
  const DType type = n.in(0).dtype;
  const TensorId x = n.dense(0), u = n.dense(2), both = n.make_scratch(count + updates, type);
  for (const bool second : {false, true}) {
    Region r = whole_region({second ? updates : count});
    r.from_stride = r.to_stride;
    r.to = second ? count : 0;
    move_step(n, type, second ? u : x, both, r);
  }
  const TensorId places = table(n, "merged", std::move(last));
  gather_step(n, type, both, places, n.make_dense(), count, count, count + updates, 1);
}

/// Updates [outer, each, inner], of which a column (outer, inner) takes its own in order; see scatter.comp.
struct Columns {
  int64_t outer, each, inner, unit;
  bool slices;
  int64_t places;  ///< of one column
};

/// y = data with the updates of all columns joined at `places`.
Status scatter(NodeLowering& n, TensorId places, const Columns& l, Join join) {
  const DType type = n.in(0).dtype;
  const bool floats = is_device_float(type), halves = floats && n.all().f16();
  const int64_t count = n.in(0).elements(), columns = l.outer * l.inner, vectors = (count + 3) / 4;
  if (l.each > kMostUpdates) {
    return n.refuse(Rule::kAttribute, str_cat(l.each, " updates in a row, has ", kMostUpdates));
  }
  const TensorId x = n.dense(0), updates = n.dense(2);
  const LayoutParams copy{.count = vectors};
  TensorId y = kNoTensor;  // in 32 bits
  if (halves) {
    y = n.all().add_tensor(DeviceTensor::Place::kActivation, 0, static_cast<size_t>(vectors) * 16);
    n.step(KernelId::leave, copy, {x, y}, line_groups(vectors, 64), static_cast<double>(count));
  } else {
    y = n.make_dense();
    Region r = whole_region({count});
    r.from_stride = r.to_stride;
    move_step(n, type, x, y, r);
  }
  const int64_t owners = std::clamp<int64_t>(std::min(kBusy / columns, l.places), 1, kMostOwners);
  for (int64_t first = 0; first < l.each; first += kDispatchUpdates) {
    const int64_t last = std::min(l.each, first + kDispatchUpdates);
    const ScatterParams params{.count = columns * owners,
                               .columns = columns,
                               .each = l.each,
                               .inner = l.inner,
                               .first = first,
                               .last = last,
                               .owners = owners,
                               .unit = l.unit};
    std::vector<TensorId> bindings = {places, updates, y};
    const int32_t held = held_as(type);
    if (!floats) {
      const bool sums = join == Join::kAdd || join == Join::kMul;
      bindings.push_back(sums && held == held_as(DType::kI64) ? n.error_record() : y);
    }
    const auto combine = static_cast<int32_t>(join);
    const SpecValues constants = floats ? SpecValues(ScatterConstants{.JOIN = combine, .SLICES = l.slices})
                                        : ScatterInt32Constants{.JOIN = combine, .SLICES = l.slices, .HELD = held};
    n.loops(loop_turns(last - first));
    // Few columns leave most of the device idle: their updates count as if all of it worked.
    n.step(floats ? KernelId::scatter : KernelId::scatter_int32, constants, params, std::move(bindings),
           line_groups(columns * owners, 64),
           static_cast<double>(std::max(columns * owners, kBusy)) * static_cast<double>(last - first));
  }
  if (halves) {
    const TensorId made = n.make_dense();
    n.step(KernelId::enter, copy, {y, made}, line_groups(vectors, 64), static_cast<double>(count));
  }
  return {};
}

/// No updates: y is data.
Status nothing(NodeLowering& n) {
  n.alias(0, 0);
  return {};
}

/// Whether the table of merge() serves; `indices` has them unless this is a dry run.
Result<bool> merges(NodeLowering& n, Join join, std::vector<int64_t>* indices) {
  if (join != Join::kNone || !n.constant(1) || n.in(0).elements() + n.in(2).elements() > kMostMerged) return false;
  if (n.all().dry()) return true;
  auto given = n.view().input_ints(1);
  if (!given) return n.refuse(Rule::kConstant, "indices");
  *indices = std::move(*given);
  return true;
}

}  // namespace

Status lower_scatter_elements(NodeLowering& n) {
  PINNACE_TRY(check_ranks(n));
  if (n.in(2).elements() == 0) return nothing(n);
  PINNACE_ASSIGN(const Join join, scatter_join(n.view()));
  PINNACE_ASSIGN(const int axis, n.view().axis(n.view().attr_int("axis"), n.in(0).rank()));
  const Six space = six_sizes(n.in(1).shape);
  const auto at = static_cast<size_t>(int64_t{6} - n.in(0).rank() + axis);
  Six strides = dense_strides(n.in(0).shape);
  const int64_t step = std::exchange(strides[at], 0), size = n.in(0).shape[static_cast<size_t>(axis)].size;
  std::vector<int64_t> indices;
  PINNACE_ASSIGN(const bool merged, merges(n, join, &indices));
  if (!merged) {
    const AxisView v = view_axis(n.in(1).shape, axis);
    const TensorId places = place_step(n, n.dense(1), space, strides, 1, {size}, {step});
    return scatter(n, places, {v.outer, v.size, v.inner, step, false, size}, join);
  }
  std::vector<int32_t> last;
  if (!n.all().dry()) {
    last.assign(static_cast<size_t>(n.in(0).elements()), -1);
    for (size_t i = 0; i < indices.size(); ++i) {
      PINNACE_ASSIGN(const int64_t index, wrap_index(n.view(), indices[i], size));
      int64_t to = index * step;
      auto rest = static_cast<int64_t>(i);
      for (size_t d = 6; d-- > 0; rest /= space[d]) to += rest % space[d] * strides[d];
      last[static_cast<size_t>(to)] = static_cast<int32_t>(i);
    }
  }
  merge(n, std::move(last));
  return {};
}

Status lower_scatter_nd(NodeLowering& n) {
  PINNACE_TRY(check_ranks(n));
  if (n.in(2).elements() == 0) return nothing(n);
  PINNACE_ASSIGN(const Join join, scatter_join(n.view()));
  const Shape& shape = n.in(0).shape;
  const auto k = static_cast<size_t>(n.in(1).shape.back().size);
  std::vector<int64_t> steps(shape.size() + 1, 1);
  for (size_t d = shape.size(); d-- > 0;) steps[d] = steps[d + 1] * shape[d].size;
  const int64_t run = steps[k], tuples = n.in(2).elements() / run;
  std::vector<int64_t> indices;
  PINNACE_ASSIGN(const bool merged, merges(n, join, &indices));
  if (!merged) {
    Six sizes{}, strides{};
    for (size_t j = 0; j < k; ++j) {
      sizes[j] = shape[j].size;
      strides[j] = steps[j + 1] / run;
    }
    // Tuples of no numbers name all of data.
    const TensorId places =
        k == 0 ? table(n, "whole", std::vector<int32_t>(static_cast<size_t>(tuples), 0))
               : place_step(n, n.dense(1), {1, 1, 1, 1, 1, tuples}, {}, static_cast<int64_t>(k), sizes, strides);
    return scatter(n, places, {1, tuples, run, 1, true, n.in(0).elements() / run}, join);
  }
  std::vector<int32_t> last;
  if (!n.all().dry()) {
    last.assign(static_cast<size_t>(n.in(0).elements()), -1);
    for (int64_t t = 0; t < tuples; ++t) {
      int64_t to = 0;
      for (size_t j = 0; j < k; ++j) {
        PINNACE_ASSIGN(const int64_t index,
                       wrap_index(n.view(), indices[static_cast<size_t>(t) * k + j], shape[j].size));
        to += index * steps[j + 1];
      }
      for (int64_t i = 0; i < run; ++i) last[static_cast<size_t>(to + i)] = static_cast<int32_t>(t * run + i);
    }
  }
  merge(n, std::move(last));
  return {};
}

}  // namespace pinnace::gpu
