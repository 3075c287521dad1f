// Arithmetic, comparison, logic and choice between operands that broadcast.
#include <algorithm>
#include <cmath>
#include <functional>

#include "backends/nnapi/rewrites/rewrites.h"
#include "backends/nnapi/steps/floats.h"
#include "backends/nnapi/steps/shape.h"

namespace pinnace::nnapi_client {
namespace {

using enum nnapi::OperandCode;

/// The first two inputs and the output in one layout.
struct Pair {
  OperandId a, b, y;
};
Result<Pair> pair(NodeLowering& n) {
  const Layout layout = n.elementwise_layout();
  Pair p{};
  PINNACE_ASSIGN(p.a, n.in(0, layout));
  PINNACE_ASSIGN(p.b, n.in(1, layout));
  PINNACE_ASSIGN(p.y, n.out(0, layout));
  return p;
}

Status lower_arithmetic(NodeLowering& n, Op op, const Activation& activation) {
  PINNACE_ASSIGN(const Pair p, pair(n));
  const nnapi::Operand a = n.operand(p.a), b = n.operand(p.b), y = n.operand(p.y);
  const bool in_floats = quantized_type(y.type) && (op == Op::DIV || (op == Op::MUL && y.scale <= a.scale * b.scale));
  if (in_floats) {
    PINNACE_ASSIGN(const OperandId x0, as_floats(n, p.a));
    PINNACE_ASSIGN(const OperandId x1, as_floats(n, p.b));
    const OperandId to = floats_for(n, p.y);
    PINNACE_TRY(n.add(op, {x0, x1, n.scalar(0)}, to));
    return store_floats(n, to, p.y);
  }
  if (op == Op::SUB && n.feature_level() == 1 && y.type == kTensorFloat32) {
    Chain c{n, p.y};
    c.sub(p.a, p.b, p.y);
    return c.status;
  }
  if (op == Op::DIV && y.type == kTensorInt32)
    return n.refuse(Rule::kAttribute, "integers, whose quotient NNAPI rounds down");
  return n.add_activated(op, {p.a, p.b}, activation, p.y);
}

std::vector<uint32_t> broadcast(std::vector<uint32_t> a, std::vector<uint32_t> b) {
  if (a.size() < b.size()) std::swap(a, b);
  const size_t less = a.size() - b.size();
  for (size_t i = 0; i < b.size(); ++i) a[i + less] = std::max(a[i + less], b[i]);
  return a;
}

/// a op b op c ..: pairs, left to right.
Status fold(NodeLowering& n, const std::function<Status(OperandId a, OperandId b, OperandId y)>& add) {
  const Layout layout = n.elementwise_layout();
  PINNACE_ASSIGN(const OperandId y, n.out(0, layout));
  const int count = n.view().input_count();
  PINNACE_ASSIGN(OperandId sum, n.in(0, layout));
  if (count == 1) return reshape_into(n, sum, y);
  for (int i = 1; i < count; ++i) {
    PINNACE_ASSIGN(const OperandId b, n.in(i, layout));
    const OperandId to = i + 1 == count ? y : n.temp(y, broadcast(n.operand(sum).dims, n.operand(b).dims));
    PINNACE_TRY(add(sum, b, to));
    sum = to;
  }
  return {};
}
/// Whether input i is a constant of the graph that is not beyond what feature levels 1 and 2 can take off and add.
bool can_be_taken_off(NodeLowering& n, int i) {
  const auto values = n.view().input_floats(i);
  return values && std::all_of(values->begin(), values->end(), [](double v) { return std::fabs(v) <= kMostTakenOff; });
}
Status lower_extreme(NodeLowering& n, bool larger) {
  bool turned = false;  // the constant stands first
  if (n.feature_level() < 3 && n.view().input_count() > 1) {
    turned = !can_be_taken_off(n, 1);
    if (n.view().input_count() > 2 || (turned && !can_be_taken_off(n, 0))) {
      return n.refuse(Rule::kFeatureLevel,
                      str_cat("of other than one value and a constant of at most ", kMostTakenOff));
    }
  }
  return fold(n, [&](OperandId a, OperandId b, OperandId y) {
    return turned ? extreme(n, larger, b, a, y) : extreme(n, larger, a, b, y);
  });
}

Status lower_compare(NodeLowering& n, Op op) {
  PINNACE_ASSIGN(const Pair p, pair(n));
  return n.add(op, {p.a, p.b}, p.y);
}

}  // namespace

Status lower_add(NodeLowering& n) {
  PINNACE_ASSIGN(const Activation activation, parse_activation(n.view()));
  return lower_arithmetic(n, Op::ADD, activation);
}
Status lower_sub(NodeLowering& n) {
  return lower_arithmetic(n, Op::SUB, {});
}
Status lower_mul(NodeLowering& n) {
  return lower_arithmetic(n, Op::MUL, {});
}
Status lower_div(NodeLowering& n) {
  return lower_arithmetic(n, Op::DIV, {});
}
Status lower_pow(NodeLowering& n) {
  PINNACE_ASSIGN(const Pair p, pair(n));
  return n.add(Op::POW, {p.a, p.b}, p.y);
}
/// Quantised: scales of their own on all three.
Status lower_prelu(NodeLowering& n) {
  PINNACE_ASSIGN(const Pair p, pair(n));
  if (n.feature_level() >= 3 || quantized_type(n.operand(p.y).type)) return n.add(Op::PRELU, {p.a, p.b}, p.y);
  n.rewritten("prelu by relu of both signs");
  Chain c{n, p.a};
  const OperandId negative = c.mul(c.relu(c.neg(p.a)), p.b);
  c.sub(c.relu(p.a), negative, p.y);
  return c.status;
}
Status lower_max(NodeLowering& n) {
  return lower_extreme(n, true);
}
Status lower_min(NodeLowering& n) {
  return lower_extreme(n, false);
}
Status lower_sum(NodeLowering& n) {
  return fold(n, [&](OperandId a, OperandId b, OperandId y) { return n.add(Op::ADD, {a, b, n.scalar(0)}, y); });
}
Status lower_equal(NodeLowering& n) {
  return lower_compare(n, Op::EQUAL);
}
Status lower_greater(NodeLowering& n) {
  return lower_compare(n, Op::GREATER);
}
Status lower_greater_or_equal(NodeLowering& n) {
  return lower_compare(n, Op::GREATER_EQUAL);
}
Status lower_less(NodeLowering& n) {
  return lower_compare(n, Op::LESS);
}
Status lower_less_or_equal(NodeLowering& n) {
  return lower_compare(n, Op::LESS_EQUAL);
}
Status lower_and(NodeLowering& n) {
  return lower_compare(n, Op::LOGICAL_AND);
}
Status lower_or(NodeLowering& n) {
  return lower_compare(n, Op::LOGICAL_OR);
}
Status lower_xor(NodeLowering& n) {
  return lower_compare(n, Op::NOT_EQUAL);
}
Status lower_not(NodeLowering& n) {
  PINNACE_ASSIGN(const OperandId x, n.in(0));
  PINNACE_ASSIGN(const OperandId y, n.out());
  return n.add(Op::LOGICAL_NOT, {x}, y);
}

namespace {
/// x repeated to dims: TILE, from feature level 3 on.
Result<OperandId> repeated(NodeLowering& n, OperandId x, const std::vector<uint32_t>& dims) {
  std::vector<uint32_t> from = n.operand(x).dims;
  if (from == dims) return x;
  if (from.size() < dims.size() && n.operand(x).type != kTensorBool8 && n.operand(x).type != kTensorInt32) {
    from.insert(from.begin(), dims.size() - from.size(), 1);
    PINNACE_ASSIGN(x, reshaped(n, x, from));
  }
  while (from.size() < dims.size()) {
    from.insert(from.begin(), 1);
    const OperandId wide = n.temp(x, from);
    PINNACE_TRY(n.add(Op::EXPAND_DIMS, {x, n.scalar(0)}, wide));
    x = wide;
  }
  std::vector<int32_t> times;
  for (size_t i = 0; i < dims.size(); ++i) times.push_back(static_cast<int32_t>(dims[i] / from[i]));
  if (n.operand(x).dims == dims) return x;
  if (n.operand(x).type == kTensorBool8) return n.refuse(Rule::kBroadcast, "a condition");
  const OperandId y = n.temp(x, dims);
  PINNACE_TRY(n.add(Op::TILE, {x, n.ints(times)}, y));
  return y;
}
}  // namespace

/// SELECT wants three equal shapes.
Status lower_where(NodeLowering& n) {
  PINNACE_ASSIGN(const OperandId y, n.out());
  const std::vector<uint32_t> dims = n.operand(y).dims;
  PINNACE_ASSIGN(OperandId condition, n.in(0));
  PINNACE_ASSIGN(OperandId a, n.in(1));
  PINNACE_ASSIGN(OperandId b, n.in(2));
  if (n.operand(condition).dims != dims) {
    // Conditions repeat as numbers do not: and with ones of the wanted shape.
    size_t count = 1;
    for (uint32_t d : dims) count *= d;
    const OperandId ones = n.lowering().add_weight({kTensorBool8, dims}, "ones",
                                                   [count](std::byte* to) { std::fill_n(to, count, std::byte{1}); });
    const OperandId wide = n.temp(condition, dims);
    PINNACE_TRY(n.add(Op::LOGICAL_AND, {condition, ones}, wide));
    condition = wide;
  }
  PINNACE_ASSIGN(a, repeated(n, a, dims));
  PINNACE_ASSIGN(b, repeated(n, b, dims));
  return n.add(Op::SELECT, {condition, a, b}, y);
}

/// Repeats along axes: floats by adding zeros, any feature level; others by TILE.
Status lower_expand(NodeLowering& n) {
  PINNACE_ASSIGN(const OperandId x, n.in(0));
  PINNACE_ASSIGN(const OperandId y, n.out());
  const nnapi::Operand to = n.operand(y);
  if (n.operand(x).dims == to.dims && !quantized_type(to.type) && to.type != kTensorInt32) return reshape_into(n, x, y);
  if (to.type == kTensorFloat32 || to.type == kTensorFloat16) {
    const size_t bytes = to.bytes();
    const OperandId zeros = n.lowering().add_weight({to.type, to.dims}, "zeros",
                                                    [bytes](std::byte* at) { std::fill_n(at, bytes, std::byte{0}); });
    return n.add(Op::ADD, {x, zeros, n.scalar(0)}, y);
  }
  std::vector<uint32_t> from = n.operand(x).dims;
  OperandId same_rank = x;
  while (from.size() < to.dims.size()) {
    from.insert(from.begin(), 1);
    const OperandId wide = n.temp(same_rank, from);
    PINNACE_TRY(n.add(Op::EXPAND_DIMS, {same_rank, n.scalar(0)}, wide));
    same_rank = wide;
  }
  std::vector<int32_t> times;
  for (size_t i = 0; i < from.size(); ++i) times.push_back(static_cast<int32_t>(to.dims[i] / from[i]));
  return n.add(Op::TILE, {same_rank, n.ints(times)}, y);
}

Status lower_tile(NodeLowering& n) {
  PINNACE_ASSIGN(const OperandId x, n.in(0));
  PINNACE_ASSIGN(const OperandId y, n.out());
  std::vector<int32_t> times;
  for (size_t i = 0; i < n.operand(x).dims.size(); ++i) {
    times.push_back(static_cast<int32_t>(n.operand(y).dims[i] / n.operand(x).dims[i]));
  }
  return n.add(Op::TILE, {x, n.ints(times)}, y);
}

}  // namespace pinnace::nnapi_client
