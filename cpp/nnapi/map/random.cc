// Random numbers.
#include "nnapi/map/real.h"

namespace pinnace::nnapi {
namespace {

/// Seeds that are others in each run, in each iteration and for each operation; kNoValue where there are none.
Result<ValueId> fresh_seeds(Call& call) {
  PINNACE_ASSIGN(const ValueId entropy, call.builder().entropy());
  if (entropy == kNoValue) return entropy;
  PINNACE_ASSIGN(const ValueId number, call.constant_ints({call.builder().next_draw(), 0}));
  PINNACE_ASSIGN(const ValueId narrow, call.cast(number, DType::kI32));
  return call.emit("bitwise_xor", {entropy, narrow});
}

/// The client's seeds, or the run's own where both are 0.
Result<ValueId> seeds_of(Call& call) {
  PINNACE_ASSIGN(const ValueId seeds, call.in(2));
  if (call.builder().data(seeds)) {
    PINNACE_ASSIGN(const std::vector<int64_t> known, call.ints(2));
    if (known != std::vector<int64_t>{0, 0}) return seeds;
  }
  PINNACE_ASSIGN(const ValueId fresh, fresh_seeds(call));
  if (fresh == kNoValue) return seeds;
  PINNACE_ASSIGN(const ValueId zero, call.constant_scalar(DType::kI32, 0));
  PINNACE_ASSIGN(ValueId given, call.emit("equal", {seeds, zero}));
  PINNACE_ASSIGN(given, call.emit("not", {given}));
  PINNACE_ASSIGN(given, call.cast(given, DType::kI32));
  PINNACE_ASSIGN(given, call.emit("reduce_max", {given}));
  PINNACE_ASSIGN(given, call.cast(given, DType::kBool));
  return call.emit("where", {given, seeds, fresh});
}

}  // namespace

Status map_random_multinomial(Call& call) {
  PINNACE_ASSIGN(const ValueId logits, real_input(call, 0));
  PINNACE_ASSIGN(const int64_t samples, call.integer(1));
  PINNACE_ASSIGN(const ValueId seeds, seeds_of(call));
  PINNACE_ASSIGN(const ValueId y, call.emit("random_multinomial", {logits, seeds}, {{"samples", samples}}));
  return call.finish(0, y);
}

}  // namespace pinnace::nnapi
