// SVDF: a filter over features, then one over the last elements of time, whose filtered features are the state.
#include "nnapi/map/cell.h"

namespace pinnace::nnapi {

Status map_svdf(Call& call) {
  PINNACE_ASSIGN(const ValueId x, float_input(call, 0));
  PINNACE_ASSIGN(const ValueId features, float_input(call, 1));
  PINNACE_ASSIGN(const ValueId times, float_input(call, 2));
  PINNACE_ASSIGN(ValueId state, float_input(call, 4));
  PINNACE_ASSIGN(const int64_t rank, call.integer(5));
  PINNACE_ASSIGN(const int64_t code, call.integer(6));
  PINNACE_TRY(expect_dims(call, 0, x, {-1, -1}));
  PINNACE_TRY(expect_dims(call, 1, features, {-1, -1}));
  PINNACE_ASSIGN(const int64_t filters, call.size(features, 0));
  PINNACE_TRY(expect_dims(call, 2, times, {filters, -1}));
  PINNACE_ASSIGN(const int64_t memory, call.size(times, 1));
  if (rank < 1 || filters % rank != 0) return call.error("rank ", rank, " does not divide ", filters, " filters");
  if (memory < 1) return call.error("a memory of ", memory);
  PINNACE_ASSIGN(const int64_t batch, call.size(x, 0));
  PINNACE_TRY(expect_dims(call, 4, state, {batch, filters * memory}));

  PINNACE_ASSIGN(ValueId newest, call.emit("gemm", {x, features}, {{"trans_b", int64_t{1}}}));
  PINNACE_ASSIGN(newest, unsqueeze(call, newest, 2));
  PINNACE_ASSIGN(state, call.reshape(state, {batch, filters, memory}));
  PINNACE_ASSIGN(const ValueId axis, call.constant_ints({2}));
  PINNACE_ASSIGN(const ValueId all, call.constant_ints({memory}));
  // The last column, whatever it was, makes room for the newest, and the first one for the next.
  PINNACE_ASSIGN(const ValueId none, call.constant_ints({0}));
  PINNACE_ASSIGN(const ValueId last, call.constant_ints({memory - 1}));
  PINNACE_ASSIGN(const ValueId before, call.emit("slice", {state, none, last, axis}));
  PINNACE_ASSIGN(const ValueId seen, concat(call, {before, newest}, 2));
  PINNACE_ASSIGN(const ValueId one, call.constant_ints({1}));
  PINNACE_ASSIGN(ValueId next, call.emit("slice", {seen, one, all, axis}));
  PINNACE_ASSIGN(const ValueId pads, call.constant_ints({0, 0, 0, 0, 0, 1}));
  PINNACE_ASSIGN(next, call.emit("pad", {next, pads}));
  PINNACE_ASSIGN(next, call.reshape(next, {batch, filters * memory}));
  PINNACE_TRY(finish_float(call, 0, next));

  PINNACE_ASSIGN(ValueId y, call.emit("mul", {seen, times}));
  PINNACE_ASSIGN(y, call.reshape(y, {batch, filters / rank, rank * memory}));
  PINNACE_ASSIGN(y, call.emit("reduce_sum", {y, axis}, {{"keepdims", int64_t{0}}}));
  if (call.has(3)) {
    PINNACE_ASSIGN(const ValueId bias, float_input(call, 3));
    PINNACE_TRY(expect_dims(call, 3, bias, {filters / rank}));
    PINNACE_ASSIGN(y, call.emit("add", {y, bias}));
  }
  PINNACE_ASSIGN(y, cell_activation(call, y, code));
  return finish_float(call, 1, y);
}

}  // namespace pinnace::nnapi
