// Elements by index, and indices of elements.
#include "nnapi/mapping.h"

namespace pinnace::nnapi {
namespace {

/// Indices of which a negative one is an error, as one that is too large: as u32 it is.
Result<ValueId> only_positive(Call& call, ValueId indices) {
  PINNACE_ASSIGN(ValueId wide, call.cast(indices, DType::kU32));
  return call.cast(wide, DType::kI64);
}

Result<ValueId> gather(Call& call, ValueId x, ValueId indices, int64_t axis) {
  PINNACE_ASSIGN(ValueId checked, only_positive(call, indices));
  return call.emit("gather", {x, checked}, {{"axis", axis}});
}

/// x along its last axis backwards.
Result<ValueId> backwards(Call& call, ValueId x) {
  PINNACE_ASSIGN(ValueId start, call.constant_ints({-1}));
  PINNACE_ASSIGN(ValueId end, call.constant_ints({INT64_MIN}));
  PINNACE_ASSIGN(ValueId axis, call.constant_ints({call.rank(x) - 1}));
  PINNACE_ASSIGN(ValueId step, call.constant_ints({-1}));
  return call.emit("slice", {x, start, end, axis, step});
}

}  // namespace

Status map_embedding_lookup(Call& call) {
  PINNACE_ASSIGN(ValueId indices, call.in(0));
  PINNACE_ASSIGN(ValueId values, call.in(1));
  if (call.rank(values) < 2) return call.error("values must have rank 2 or more, are ", call.type(values));
  PINNACE_ASSIGN(ValueId y, gather(call, values, indices, 0));
  return call.finish(0, y);
}

Status map_gather(Call& call) {
  PINNACE_ASSIGN(ValueId x, call.in(0));
  PINNACE_ASSIGN(int64_t axis, call.axis(1, call.rank(x)));
  PINNACE_ASSIGN(ValueId indices, call.in(2));
  PINNACE_ASSIGN(ValueId y, gather(call, x, indices, axis));
  return call.finish(0, y);
}

Status map_arg_extreme(Call& call) {
  PINNACE_ASSIGN(ValueId x, call.in(0));
  PINNACE_ASSIGN(int64_t axis, call.axis(1, call.rank(x)));
  const Attrs attrs = {{"axis", axis}, {"keepdims", int64_t{call.rank(x) == 1}}};
  PINNACE_ASSIGN(ValueId y, call.emit(call.op() == Op::ARGMAX ? "arg_max" : "arg_min", {x}, attrs));
  PINNACE_ASSIGN(y, call.cast(y, DType::kI32));
  return call.finish(0, y);
}

// Of equal elements NNAPI takes the larger index first, our top_k the smaller one: it sees x backwards.
Status map_topk_v2(Call& call) {
  PINNACE_ASSIGN(ValueId x, call.in(0));
  PINNACE_ASSIGN(int64_t k, call.integer(1));
  if (call.rank(x) < 1) return call.error("a scalar has no rows");
  PINNACE_ASSIGN(int64_t size, call.size(x, -1));
  if (k < 1 || k > size) return call.error("k is ", k, ", must be in [1, ", size, "]");
  PINNACE_ASSIGN(ValueId reversed, backwards(call, x));
  PINNACE_ASSIGN(ValueId count, call.constant_ints({k}));
  PINNACE_ASSIGN(auto found, call.emit_many("top_k", {reversed, count}, {}, 2));
  PINNACE_TRY(call.finish(0, found[0]));
  PINNACE_ASSIGN(ValueId last, call.constant_scalar(DType::kI64, static_cast<double>(size - 1)));
  PINNACE_ASSIGN(ValueId index, call.emit("sub", {last, found[1]}));
  PINNACE_ASSIGN(index, call.cast(index, DType::kI32));
  return call.finish(1, index);
}

}  // namespace pinnace::nnapi
