// Reductions over axes.
#include <algorithm>

#include "nnapi/mapping.h"

namespace pinnace::nnapi {
namespace {

std::string_view operator_of(Op op) {
  switch (op) {
    case Op::MEAN:
      return "reduce_mean";
    case Op::REDUCE_SUM:
      return "reduce_sum";
    case Op::REDUCE_PROD:
      return "reduce_prod";
    case Op::REDUCE_MAX:
    case Op::REDUCE_ANY:
      return "reduce_max";
    default:
      return "reduce_min";
  }
}

}  // namespace

Status map_reduce(Call& call) {
  PINNACE_ASSIGN(ValueId x, call.in(0));
  PINNACE_ASSIGN(std::vector<int64_t> axes, call.ints(1));
  PINNACE_ASSIGN(int64_t keep, call.integer(2));
  const int64_t rank = call.rank(x);
  for (int64_t& axis : axes) {
    if (axis < -rank || axis >= rank) return call.error("axis ", axis, " is outside rank ", rank);
    if (axis < 0) axis += rank;
  }
  std::sort(axes.begin(), axes.end());
  axes.erase(std::unique(axes.begin(), axes.end()), axes.end());
  // Over both of an image's dimensions either order of the others gives the same.
  if (const ValueId first = call.channels_first(x); first != kNoValue && axes == std::vector<int64_t>{1, 2}) {
    PINNACE_ASSIGN(ValueId list, call.constant_ints({2, 3}));
    Attrs attrs = {{"keepdims", int64_t{keep > 0}}};
    const std::string_view op = operator_of(call.op());
    PINNACE_ASSIGN(ValueId y, call.emit(op, {first, list}, std::move(attrs), call.type(x).quantization));
    if (keep > 0) {
      PINNACE_ASSIGN(y, call.from_nchw(y));
    }
    return call.finish(0, y);
  }
  PINNACE_ASSIGN(ValueId list, call.constant_ints(axes));
  Attrs attrs = {{"keepdims", int64_t{keep > 0}}, {"noop_with_empty_axes", int64_t{1}}};
  PINNACE_ASSIGN(ValueId y, call.emit(operator_of(call.op()), {x, list}, std::move(attrs), call.type(x).quantization));
  if (call.rank(y) == 0) {
    PINNACE_ASSIGN(y, call.reshape(y, {1}));
  }
  return call.finish(0, y);
}

}  // namespace pinnace::nnapi
