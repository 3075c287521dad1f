// Functions of one tensor, in either layout.
#include <cmath>
#include <limits>

#include "backends/gpu/strided.h"
#include "backends/gpu/unary/chain.h"

namespace pinnace::gpu {

namespace {
/// By stages where a bound is known in a run only, or a NaN; integers by one step per bound.
Status lower_clip(NodeLowering& n) {
  const Function functions[2] = {Function::k_max, Function::k_min};
  if (!is_device_float(n.in(0).dtype)) {
    if (!n.has(1) && !n.has(2)) return int32_unary(n, Function::k_none);
    const Shape& shape = n.out().shape;
    if (shape.size() > 6) return n.refuse(Rule::kRank, to_string(n.out()));
    Operand x = operand(n, 0);
    for (int i = 1; i < 3; ++i) {
      if (!n.has(i)) continue;
      const TensorId bound = n.dense(i);
      const TensorId y = i == 2 || !n.has(2) ? n.make_dense() : n.make_scratch(n.out().elements(), n.out().dtype);
      int32_step(n, functions[i - 1], x, {bound}, shape, y);
      x = whole_operand(y, shape);
    }
    return {};
  }
  double bounds[2] = {-std::numeric_limits<double>::infinity(), std::numeric_limits<double>::infinity()};
  bool known = true;
  for (int i = 1; i < 3; ++i) {
    if (!n.has(i)) continue;
    if (n.in(i).elements() != 1) return n.refuse(Rule::kAttribute, to_string(n.in(i)));
    known = known && n.constant(i);
    if (!n.constant(i)) continue;
    const std::vector<double> bound = n.floats(i);
    if (bound.size() != 1) return n.refuse(Rule::kConstant, i == 1 ? "min" : "max");
    known = known && !std::isnan(bound[0]);
    bounds[i - 1] = bound[0];
  }
  if (known) return unary_step(n, Function::k_clip, bounds[0], bounds[1]);
  std::vector<MapStage> stages;
  for (int i = 1; i < 3; ++i) {
    if (n.has(i)) stages.push_back({functions[i - 1], 0, 0, MapStage::Operand::kOne, n.dense(i)});
  }
  const bool as_nc4hw4 = n.held_as_nc4hw4(0) && n.in(0).rank() >= 3;
  map_step(n, as_nc4hw4 ? n.nc4hw4(0) : n.dense(0), -1, as_nc4hw4, stages);
  return {};
}

}  // namespace

/// Of one row of unary.inc.
Status lower_unary(NodeLowering& n) {
  if (n.view().op().unary == UnaryKind::kClip) return lower_clip(n);  // whose bounds may be inputs
  const auto f = unary_of(n.view());
  return f ? unary_step(n, function_of(f->kind), f->p, f->q) : n.refuse(Rule::kOperator, n.node().op);
}

}  // namespace pinnace::gpu
