// Functions of two or three operands that broadcast: arithmetic with a fused activation, extremes, powers, comparisons,
// logic, choice.
#include <algorithm>

#include "nnapi/mapping.h"

namespace pinnace::nnapi {
namespace {

struct Operands {
  ValueId a, b;
  int64_t code;  ///< activation
};

Result<Operands> read_arithmetic(Call& call) {
  Operands o{};
  PINNACE_ASSIGN(o.a, call.in(0));
  PINNACE_ASSIGN(o.b, call.in(1));
  PINNACE_ASSIGN(o.code, call.integer(2));
  if (o.code < 0 || o.code > 3) return call.error("activation ", o.code, " is not one of 0 to 3");
  if (o.code != 0 && call.type(o.a).dtype == DType::kI32) return call.error("activation ", o.code, " on integers");
  return o;
}

Status map_arithmetic(Call& call, std::string_view op) {
  PINNACE_ASSIGN(Operands o, read_arithmetic(call));
  PINNACE_ASSIGN(ValueId y, call.pointwise(op, {o.a, o.b}, {}, call.declared()));
  PINNACE_ASSIGN(y, call.activate(y, o.code));
  return call.finish(0, y);
}

Status map_binary(Call& call, std::string_view op) {
  PINNACE_ASSIGN(ValueId a, call.in(0));
  PINNACE_ASSIGN(ValueId b, call.in(1));
  PINNACE_ASSIGN(ValueId y, call.pointwise(op, {a, b}, {}, call.declared()));
  return call.finish(0, y);
}

std::string_view comparison(Op op) {
  switch (op) {
    case Op::EQUAL:
    case Op::NOT_EQUAL:
      return "equal";
    case Op::GREATER:
      return "greater";
    case Op::GREATER_EQUAL:
      return "greater_or_equal";
    case Op::LESS:
      return "less";
    default:
      return "less_or_equal";
  }
}

}  // namespace

Status map_add(Call& call) {
  PINNACE_ASSIGN(Operands o, read_arithmetic(call));
  PINNACE_ASSIGN(Attrs attrs, call.activation(o.code));
  PINNACE_ASSIGN(ValueId y, call.pointwise("add", {o.a, o.b}, std::move(attrs), call.declared()));
  return call.finish(0, y);
}

Status map_mul(Call& call) {
  return map_arithmetic(call, "mul");
}

Status map_sub(Call& call) {
  return map_arithmetic(call, "sub");
}

// Integers: rounded down, where our div truncates; what a divisor of 0 gives is open, but no error. A double holds
// every quotient of two i32 closely enough for its floor to be exact.
Status map_div(Call& call) {
  PINNACE_ASSIGN(Operands o, read_arithmetic(call));
  if (call.type(o.a).dtype != DType::kI32) return map_arithmetic(call, "div");
  PINNACE_ASSIGN(ValueId a, call.cast(o.a, DType::kF64));
  PINNACE_ASSIGN(ValueId b, call.cast(o.b, DType::kF64));
  PINNACE_ASSIGN(ValueId y, call.emit("div", {a, b}));
  PINNACE_ASSIGN(y, call.emit("floor", {y}));
  PINNACE_ASSIGN(y, call.cast(y, DType::kI32));
  return call.finish(0, y);
}

Status map_extreme(Call& call) {
  return map_binary(call, call.op() == Op::MAXIMUM ? "max" : "min");
}

Status map_pow(Call& call) {
  return map_binary(call, "pow");
}

// Our slope broadcasts to x only.
Status map_prelu(Call& call) {
  PINNACE_ASSIGN(ValueId x, call.in(0));
  PINNACE_ASSIGN(ValueId alpha, call.in(1));
  PINNACE_ASSIGN(TensorType x_type, call.concrete(x));
  PINNACE_ASSIGN(TensorType alpha_type, call.concrete(alpha));
  const size_t rank = std::max(x_type.shape.size(), alpha_type.shape.size());
  std::vector<int64_t> dims(rank, 1);
  bool widen = x_type.shape.size() < rank;
  for (size_t d = 0; d < rank; ++d) {  // from the last dimension on
    const int64_t n = d < x_type.shape.size() ? x_type.shape[x_type.shape.size() - 1 - d].size : 1;
    const int64_t m = d < alpha_type.shape.size() ? alpha_type.shape[alpha_type.shape.size() - 1 - d].size : 1;
    dims[rank - 1 - d] = n == 1 ? m : n;
    widen |= n == 1 && m != 1;
  }
  if (widen) {
    PINNACE_ASSIGN(ValueId shape, call.constant_ints(dims));
    PINNACE_ASSIGN(x, call.emit("expand", {x, shape}));
  }
  PINNACE_ASSIGN(ValueId y, call.pointwise("prelu", {x, alpha}, {}, call.declared()));
  return call.finish(0, y);
}

Status map_compare(Call& call) {
  PINNACE_ASSIGN(ValueId a, call.in(0));
  PINNACE_ASSIGN(ValueId b, call.in(1));
  const bool equality = call.op() == Op::EQUAL || call.op() == Op::NOT_EQUAL;
  if (call.type(a).dtype == DType::kBool && !equality) {  // false is less than true
    PINNACE_ASSIGN(a, call.cast(a, DType::kI32));
    PINNACE_ASSIGN(b, call.cast(b, DType::kI32));
  }
  PINNACE_ASSIGN(ValueId y, call.emit(comparison(call.op()), {a, b}));
  if (call.op() == Op::NOT_EQUAL) {
    PINNACE_ASSIGN(y, call.emit("not", {y}));
  }
  return call.finish(0, y);
}

Status map_logical(Call& call) {
  return map_binary(call, call.op() == Op::LOGICAL_AND ? "and" : "or");
}

Status map_select(Call& call) {
  PINNACE_ASSIGN(ValueId mask, call.in(0));
  PINNACE_ASSIGN(ValueId a, call.in(1));
  PINNACE_ASSIGN(ValueId b, call.in(2));
  if (call.type(mask).shape != call.type(a).shape || call.type(a).shape != call.type(b).shape) {
    return call.error("the shapes of ", call.type(mask), ", ", call.type(a), " and ", call.type(b), " must be equal");
  }
  PINNACE_ASSIGN(ValueId y, call.emit("where", {mask, a, b}, {}, call.declared()));
  return call.finish(0, y);
}

}  // namespace pinnace::nnapi
