// The simple recurrent network: one element of time, and sequences in one direction and both. All are `rnn`.
#include "nnapi/map/cell.h"

namespace pinnace::nnapi {
namespace {

/// W [U, I], R [U, U], b [U] and the state [B, U] are inputs `first` to `first` + 3.
struct Weights {
  ValueId w, r, b;
};

Result<Weights> weights_of(Call& call, size_t first) {
  Weights weights{};
  PINNACE_ASSIGN(weights.w, float_input(call, first));
  PINNACE_ASSIGN(weights.r, float_input(call, first + 1));
  PINNACE_ASSIGN(weights.b, float_input(call, first + 2));
  PINNACE_TRY(expect_dims(call, first, weights.w, {-1, -1}));
  PINNACE_ASSIGN(const int64_t units, call.size(weights.w, 0));
  PINNACE_TRY(expect_dims(call, first + 1, weights.r, {units, units}));
  PINNACE_TRY(expect_dims(call, first + 2, weights.b, {units}));
  return weights;
}

/// x [T, B, I], h [B, U].
Result<Sequence> run(Call& call, ValueId x, const Weights& weights, ValueId h, int64_t code, bool reverse = false) {
  PINNACE_ASSIGN(const int64_t units, call.size(weights.w, 0));
  PINNACE_ASSIGN(const ValueId none, zeros(call, units));
  PINNACE_ASSIGN(ValueId b, concat(call, {weights.b, none}, 0));
  std::vector<ValueId> inputs = {x, weights.w, weights.r, b, kNoValue, h};
  for (size_t i : {1, 2, 3, 5}) {
    PINNACE_ASSIGN(inputs[i], unsqueeze(call, inputs[i], 0));
  }
  PINNACE_ASSIGN(const std::string activation, cell_activation_name(call, code));
  Attrs attrs = code == 3 ? Attrs{{"clip", 6.0}} : Attrs{};
  attrs.emplace_back("activations", std::vector<std::string>{activation});
  if (reverse) attrs.emplace_back("direction", std::string("reverse"));
  PINNACE_ASSIGN(const auto made, call.emit_many("rnn", std::move(inputs), std::move(attrs), 2));
  Sequence sequence;
  PINNACE_ASSIGN(sequence.y, squeeze(call, made[0], 1));
  PINNACE_ASSIGN(sequence.h, squeeze(call, made[1], 0));
  return sequence;
}

}  // namespace

Status map_rnn(Call& call) {
  PINNACE_ASSIGN(ValueId x, float_input(call, 0));
  PINNACE_ASSIGN(const Weights weights, weights_of(call, 1));
  PINNACE_ASSIGN(const ValueId h, float_input(call, 4));
  PINNACE_ASSIGN(const int64_t code, call.integer(5));
  PINNACE_ASSIGN(x, unsqueeze(call, x, 0));
  PINNACE_ASSIGN(const Sequence made, run(call, x, weights, h, code));
  PINNACE_TRY(finish_float(call, 0, made.h));
  return finish_float(call, 1, made.h);
}

Status map_unidirectional_sequence_rnn(Call& call) {
  PINNACE_ASSIGN(ValueId x, float_input(call, 0));
  PINNACE_ASSIGN(const Weights weights, weights_of(call, 1));
  PINNACE_ASSIGN(const ValueId h, float_input(call, 4));
  PINNACE_ASSIGN(const int64_t code, call.integer(5));
  PINNACE_ASSIGN(const int64_t time_major, call.integer(6));
  if (time_major != 0 && time_major != 1) return call.error("time-major is ", time_major, ", must be 0 or 1");
  PINNACE_ASSIGN(x, swap_time(call, x, time_major == 1));
  PINNACE_ASSIGN(const Sequence made, run(call, x, weights, h, code));
  PINNACE_ASSIGN(const ValueId y, swap_time(call, made.y, time_major == 1));
  PINNACE_TRY(finish_float(call, 0, y));
  return call.outputs() > 1 ? finish_float(call, 1, made.h) : Status();
}

Status map_bidirectional_sequence_rnn(Call& call) {
  PINNACE_ASSIGN(ValueId x, float_input(call, 0));
  PINNACE_ASSIGN(Weights forward, weights_of(call, 1));
  PINNACE_ASSIGN(const ValueId forward_h, float_input(call, 4));
  PINNACE_ASSIGN(Weights backward, weights_of(call, 5));
  PINNACE_ASSIGN(const ValueId backward_h, float_input(call, 8));
  PINNACE_ASSIGN(const Aux aux, aux_use(call, 9, size_t{call.has(10)} + call.has(11), 2));
  PINNACE_ASSIGN(const int64_t code, call.integer(12));
  PINNACE_ASSIGN(const bool time_major, call.flag(13));
  PINNACE_ASSIGN(const bool merged, call.flag(14));
  PINNACE_ASSIGN(x, swap_time(call, x, time_major));
  ValueId backward_x = x;
  if (aux != Aux::kNone) {
    PINNACE_ASSIGN(ValueId second, float_input(call, 9));
    PINNACE_ASSIGN(second, swap_time(call, second, time_major));
    backward_x = second;
  }
  if (aux == Aux::kCross) {
    PINNACE_ASSIGN(x, concat(call, {x, backward_x}, 2));
    backward_x = x;
    size_t i = 10;
    for (Weights* weights : {&forward, &backward}) {
      PINNACE_ASSIGN(const ValueId more, float_input(call, i++));
      PINNACE_ASSIGN(weights->w, concat(call, {weights->w, more}, 1));
    }
  }
  PINNACE_ASSIGN(const Sequence first, run(call, x, forward, forward_h, code));
  PINNACE_ASSIGN(const Sequence second, run(call, backward_x, backward, backward_h, code, true));
  return finish_bidirectional(call, time_major, merged, first, second);
}

}  // namespace pinnace::nnapi
