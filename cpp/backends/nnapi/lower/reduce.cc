// Reductions: MEAN from feature level 2 on, the others from feature level 3; below by pools where the axes are
// neighbours.
#include <algorithm>
#include <cmath>

#include "backends/nnapi/rewrites/rewrites.h"
#include "backends/nnapi/steps/floats.h"
#include "backends/nnapi/steps/shape.h"
#include "ops/reduce.h"

namespace pinnace::nnapi_client {
namespace {

struct Reduction {
  OperandId x, y;
  std::vector<int32_t> axes;  ///< of x's order, ascending
  bool keep;
  double count = 1;  ///< elements that one of y is made of
};

Result<Reduction> reduction(NodeLowering& n) {
  const NodeView& view = n.view();
  Reduction r{};
  const int rank = n.in_type(0).rank();
  std::vector<int64_t> given;
  if (n.has(1)) {
    const auto axes = view.input_ints(1);
    if (!axes) return n.refuse(Rule::kConstant, "axes");
    given = *axes;
  }
  if (given.empty() && view.attr_int("noop_with_empty_axes") == 0) {
    for (int i = 0; i < rank; ++i) given.push_back(i);
  }
  PINNACE_ASSIGN(const std::vector<int> axes, view.axes(given, rank));
  if (axes.empty()) return n.refuse(Rule::kAttribute, "no axes");
  r.keep = view.attr_int("keepdims") != 0;
  // Without its dimensions of size 1, y is in the graph's order.
  const Layout layout = r.keep ? axis_layout(n) : Layout::kPlain;
  for (int a : axes) {
    r.axes.push_back(axis_in(layout, a));
    r.count *= static_cast<double>(n.in_type(0).shape[static_cast<size_t>(a)].size);
  }
  std::sort(r.axes.begin(), r.axes.end());
  PINNACE_ASSIGN(r.x, n.in(0, layout));
  PINNACE_ASSIGN(r.y, n.out(0, layout));
  return r;
}

/// One of NNAPI's reductions of x to y.
Status reduce(NodeLowering& n, Op op, const Reduction& r, OperandId x, OperandId y) {
  const bool mean = op == Op::MEAN;
  if (n.feature_level() >= (mean ? 2 : 3)) {
    const OperandId axes = n.ints(r.axes);
    return n.add(op, {x, axes, mean ? n.scalar(r.keep) : n.flag(r.keep)}, y);
  }
  const auto last = static_cast<size_t>(r.axes.back()) + 1, first = static_cast<size_t>(r.axes.front());
  const bool neighbours = last - first == r.axes.size();
  const bool pools = op == Op::MEAN || op == Op::REDUCE_MAX || op == Op::REDUCE_MIN || op == Op::REDUCE_SUM;
  if (!pools || (!neighbours && op != Op::REDUCE_SUM)) {
    return n.refuse(Rule::kFeatureLevel, str_cat(nnapi::operation_info(static_cast<int32_t>(op))->name,
                                                 " needs feature level ", mean ? 2 : 3));
  }
  Chain c{n, y};
  if (op == Op::REDUCE_MIN) {  // -max(-x)
    const OperandId turned = n.temp(x), most = n.temp(y);
    PINNACE_TRY(n.add(Op::MUL, {x, n.number(-1, x), n.scalar(0)}, turned));
    PINNACE_TRY(reduce_by_pool(n, Op::MAX_POOL_2D, turned, first, last, most));
    c.neg(most, y);
    return c.status;
  }
  if (op != Op::REDUCE_SUM) return reduce_by_pool(n, mean ? Op::AVERAGE_POOL_2D : Op::MAX_POOL_2D, x, first, last, y);
  const OperandId average = n.temp(y);
  PINNACE_TRY(reduce(n, Op::MEAN, r, x, average));
  c.mul(average, c.num(r.count), y);
  return c.status;
}

/// NNAPI's own on quantised types keep the scale.
bool takes_quantized(Op op) {
  return op == Op::MEAN || op == Op::REDUCE_MAX || op == Op::REDUCE_MIN;
}

/// after(reduce(op, before(x))) in float32.
template <class Before, class After>
Status lower_reduction(NodeLowering& n, Op op, Before before, After after) {
  PINNACE_ASSIGN(const Reduction r, reduction(n));
  if (n.operand(r.y).type == nnapi::OperandCode::kTensorInt32) return n.refuse(Rule::kType, to_string(n.out_type()));
  PINNACE_ASSIGN(const OperandId x, as_float32(n, r.x));
  const OperandId y = float32_for(n, r.y);
  Chain on_x{n, x}, on_y{n, y};
  const OperandId ready = before(on_x, x);
  PINNACE_TRY(on_x.status);
  OperandId reduced = n.temp(y);
  PINNACE_TRY(reduce(n, op, r, ready, reduced));
  after(on_y, reduced, y);
  PINNACE_TRY(on_y.status);
  return store_floats(n, y, r.y);
}

Status lower_plain(NodeLowering& n, Op op) {
  PINNACE_ASSIGN(const Reduction r, reduction(n));
  const nnapi::Operand x = n.operand(r.x), y = n.operand(r.y);
  if (y.type == nnapi::OperandCode::kTensorInt32) return n.refuse(Rule::kType, to_string(n.out_type()));
  if (!quantized_type(y.type) || (takes_quantized(op) && x.scale == y.scale && x.zero_point == y.zero_point)) {
    return reduce(n, op, r, r.x, r.y);
  }
  PINNACE_ASSIGN(const OperandId floats, as_floats(n, r.x));
  const OperandId to = floats_for(n, r.y);
  PINNACE_TRY(reduce(n, op, r, floats, to));
  return store_floats(n, to, r.y);
}

OperandId itself(Chain&, OperandId x) {
  return x;
}
OperandId square(Chain& c, OperandId x) {
  return c.mul(x, x);
}

}  // namespace

Status lower_reduce_mean(NodeLowering& n) {
  return lower_plain(n, Op::MEAN);
}
Status lower_reduce_sum(NodeLowering& n) {
  return lower_plain(n, Op::REDUCE_SUM);
}
Status lower_reduce_max(NodeLowering& n) {
  return lower_plain(n, Op::REDUCE_MAX);
}
Status lower_reduce_min(NodeLowering& n) {
  return lower_plain(n, Op::REDUCE_MIN);
}
Status lower_reduce_prod(NodeLowering& n) {
  return lower_plain(n, Op::REDUCE_PROD);
}
Status lower_reduce_l1(NodeLowering& n) {
  return lower_reduction(
      n, Op::REDUCE_SUM, [](Chain& c, OperandId x) { return c.abs(x); },
      [](Chain& c, OperandId s, OperandId y) { c.mul(s, c.num(1), y); });
}
Status lower_reduce_l2(NodeLowering& n) {
  return lower_reduction(n, Op::REDUCE_SUM, square, [](Chain& c, OperandId s, OperandId y) { c.op(Op::SQRT, {s}, y); });
}
Status lower_reduce_sum_square(NodeLowering& n) {
  return lower_reduction(n, Op::REDUCE_SUM, square, [](Chain& c, OperandId s, OperandId y) { c.mul(s, c.num(1), y); });
}
Status lower_reduce_log_sum(NodeLowering& n) {
  return lower_reduction(n, Op::REDUCE_SUM, itself, [](Chain& c, OperandId s, OperandId y) { c.op(Op::LOG, {s}, y); });
}

}  // namespace pinnace::nnapi_client
