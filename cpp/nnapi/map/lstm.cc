// Long short-term memory: one element of time, and sequences in one direction and both. Products of the input are made
// for all of a sequence at once; what depends on the state goes round in a `loop`. A cell that is no more than `lstm`
// is one.
#include "nnapi/map/cell.h"
#include "nnapi/map/lstm_form.h"

namespace pinnace::nnapi {
namespace {

/// One cell's parameters in float32, weights of all gates in one matrix.
struct Cell {
  LstmForm form;
  int64_t units = 0, outputs = 0;
  ValueId w = kNoValue, r = kNoValue;  ///< [gates * units, .]
  ValueId bias = kNoValue;             ///< [gates * units]; none where normalisation adds biases
  ValueId p[3] = {kNoValue, kNoValue, kNoValue};
  ValueId scale[4] = {kNoValue, kNoValue, kNoValue, kNoValue};  ///< of normalised gates
  ValueId b[4] = {kNoValue, kNoValue, kNoValue, kNoValue};
  ValueId projection = kNoValue, projection_bias = kNoValue;
  int64_t code = 0;
  double cell_clip = 0, projection_clip = 0;

  template <class F>
  void each_value(F f) {
    for (ValueId* id : {&w, &r, &bias, &projection, &projection_bias}) f(*id);
    for (ValueId& id : p) f(id);
    for (ValueId& id : scale) f(id);
    for (ValueId& id : b) f(id);
  }
};

/// Output, cell state, and what the gates were before anything but products.
struct Step {
  ValueId h, c, gates;
};

/// Inputs [first, first + 4) of the gates that there are, each of these dimensions.
Result<std::vector<ValueId>> per_gate(Call& call, const LstmForm& form, size_t first,
                                      std::initializer_list<int64_t> dims) {
  std::vector<ValueId> found;
  for (size_t g = form.first(); g < 4; ++g) {
    PINNACE_ASSIGN(const ValueId id, float_input(call, first + g));
    PINNACE_TRY(expect_dims(call, first + g, id, dims));
    found.push_back(id);
  }
  return found;
}

Result<double> clip_input(Call& call, size_t i) {
  PINNACE_ASSIGN(const double clip, call.real(i));
  if (!(clip >= 0)) return call.error("a state is cut at ", clip, ", must be 0 or more");
  return clip;
}

/// `settings`: the input with the activation, before the two clips.
Result<Cell> read_cell(Call& call, const LstmPlaces& at, size_t settings) {
  Cell cell;
  PINNACE_ASSIGN(cell.form, lstm_form(call, at));
  const LstmForm& form = cell.form;
  PINNACE_ASSIGN(const ValueId forget, call.in(at.r + kForgetGate));
  PINNACE_TRY(expect_dims(call, at.r + kForgetGate, forget, {-1, -1}));
  PINNACE_ASSIGN(cell.units, call.size(forget, 0));
  PINNACE_ASSIGN(cell.outputs, call.size(forget, 1));
  if (!form.projected && cell.outputs != cell.units) {
    return call.error(cell.outputs, " outputs of ", cell.units, " units without a projection");
  }
  PINNACE_ASSIGN(const ValueId other, call.in(at.w + kForgetGate));
  PINNACE_TRY(expect_dims(call, at.w + kForgetGate, other, {cell.units, -1}));
  PINNACE_ASSIGN(const int64_t features, call.size(other, 1));
  PINNACE_ASSIGN(auto w, per_gate(call, form, at.w, {cell.units, features}));
  PINNACE_ASSIGN(auto r, per_gate(call, form, at.r, {cell.units, cell.outputs}));
  PINNACE_ASSIGN(auto b, per_gate(call, form, at.b, {cell.units}));
  PINNACE_ASSIGN(cell.w, concat(call, std::move(w), 0));
  PINNACE_ASSIGN(cell.r, concat(call, std::move(r), 0));
  if (form.normalised) {
    PINNACE_ASSIGN(const auto scales, per_gate(call, form, at.norm, {cell.units}));
    for (size_t g = form.first(); g < 4; ++g) {
      cell.scale[g] = scales[g - form.first()];
      cell.b[g] = b[g - form.first()];
    }
  } else {
    PINNACE_ASSIGN(cell.bias, concat(call, std::move(b), 0));
  }
  for (size_t k = 0; k < 3; ++k) {
    if (!call.has(at.p + k)) continue;
    PINNACE_ASSIGN(cell.p[k], float_input(call, at.p + k));
    PINNACE_TRY(expect_dims(call, at.p + k, cell.p[k], {cell.units}));
  }
  if (form.projected) {
    PINNACE_ASSIGN(cell.projection, float_input(call, at.projection));
    PINNACE_TRY(expect_dims(call, at.projection, cell.projection, {cell.outputs, cell.units}));
  }
  if (call.has(at.projection + 1)) {
    PINNACE_ASSIGN(cell.projection_bias, float_input(call, at.projection + 1));
    PINNACE_TRY(expect_dims(call, at.projection + 1, cell.projection_bias, {cell.outputs}));
  }
  PINNACE_ASSIGN(cell.code, call.integer(settings));
  PINNACE_ASSIGN(cell.cell_clip, clip_input(call, settings + 1));
  PINNACE_ASSIGN(cell.projection_clip, clip_input(call, settings + 2));
  return cell;
}

/// Weights of the auxiliary input beside those of the input.
Status add_aux(Call& call, Cell& cell, size_t first, int64_t features) {
  PINNACE_ASSIGN(auto weights, per_gate(call, cell.form, first, {cell.units, features}));
  PINNACE_ASSIGN(const ValueId more, concat(call, std::move(weights), 0));
  PINNACE_ASSIGN(cell.w, concat(call, {cell.w, more}, 1));
  return {};
}

/// x wᵀ + b.
Result<ValueId> product(Call& call, ValueId x, ValueId w, ValueId b) {
  std::vector<ValueId> inputs = {x, w};
  if (b != kNoValue) inputs.push_back(b);
  return call.emit("gemm", std::move(inputs), {{"trans_b", int64_t{1}}});
}

Result<ValueId> clipped(Call& call, ValueId id, double most) {
  if (most == 0) return id;
  PINNACE_ASSIGN(const ValueId low, call.constant_scalar(DType::kF32, -most));
  PINNACE_ASSIGN(const ValueId high, call.constant_scalar(DType::kF32, most));
  return call.emit("clip", {id, low, high});
}

/// a * b + c.
Result<ValueId> multiply_add(Call& call, ValueId a, ValueId b, ValueId c) {
  PINNACE_ASSIGN(const ValueId ab, call.emit("mul", {a, b}));
  return call.emit("add", {ab, c});
}

/// `x`: products of the input [B, gates * units], with their bias.
Result<Step> step(Call& call, const Cell& cell, ValueId x, ValueId h, ValueId c) {
  const LstmForm& form = cell.form;
  Step made{};
  PINNACE_ASSIGN(made.gates, product(call, h, cell.r, x));
  PINNACE_ASSIGN(const auto parts, call.emit_many("split", {made.gates}, {{"axis", int64_t{1}}}, form.gates()));
  // A gate's argument: peephole, then normalisation.
  const auto gate = [&](Gate g, size_t hole, ValueId state) -> Result<ValueId> {
    ValueId z = parts[g - form.first()];
    if (hole < 3 && cell.p[hole] != kNoValue) {
      PINNACE_ASSIGN(z, multiply_add(call, cell.p[hole], state, z));
    }
    if (!form.normalised) return z;
    return call.emit("layer_normalization", {z, cell.scale[g], cell.b[g]}, {{"epsilon", 1e-8}});
  };
  PINNACE_ASSIGN(ValueId forget, gate(kForgetGate, 1, c));
  PINNACE_ASSIGN(forget, call.emit("sigmoid", {forget}));
  ValueId input = kNoValue;
  if (form.coupled) {
    PINNACE_ASSIGN(const ValueId one, call.constant_scalar(DType::kF32, 1));
    PINNACE_ASSIGN(input, call.emit("sub", {one, forget}));
  } else {
    PINNACE_ASSIGN(input, gate(kInputGate, 0, c));
    PINNACE_ASSIGN(input, call.emit("sigmoid", {input}));
  }
  PINNACE_ASSIGN(ValueId candidate, gate(kCellGate, 3, c));
  PINNACE_ASSIGN(candidate, cell_activation(call, candidate, cell.code));
  PINNACE_ASSIGN(const ValueId kept, call.emit("mul", {forget, c}));
  PINNACE_ASSIGN(made.c, multiply_add(call, input, candidate, kept));
  PINNACE_ASSIGN(made.c, clipped(call, made.c, cell.cell_clip));
  PINNACE_ASSIGN(ValueId output, gate(kOutputGate, 2, made.c));
  PINNACE_ASSIGN(output, call.emit("sigmoid", {output}));
  PINNACE_ASSIGN(const ValueId seen, cell_activation(call, made.c, cell.code));
  PINNACE_ASSIGN(made.h, call.emit("mul", {output, seen}));
  if (form.projected) {
    PINNACE_ASSIGN(made.h, product(call, made.h, cell.projection, cell.projection_bias));
    PINNACE_ASSIGN(made.h, clipped(call, made.h, cell.projection_clip));
  }
  return made;
}

struct States {
  ValueId h, c;
};

Result<States> read_states(Call& call, const LstmPlaces& at, const Cell& cell) {
  States states{};
  PINNACE_ASSIGN(states.h, float_input(call, at.h));
  PINNACE_ASSIGN(states.c, float_input(call, at.c));
  PINNACE_TRY(expect_dims(call, at.h, states.h, {-1, cell.outputs}));
  PINNACE_ASSIGN(const int64_t batch, call.size(states.h, 0));
  PINNACE_TRY(expect_dims(call, at.c, states.c, {batch, cell.units}));
  return states;
}

// ------------------------------------------------------------------------------------------------------ sequences

/// Gates in the order of `lstm`: input, output, forget, cell.
Result<ValueId> gates_of_lstm(Call& call, ValueId id) {
  PINNACE_ASSIGN(const auto parts, call.emit_many("split", {id}, {{"axis", int64_t{0}}}, 4));
  return concat(call, {parts[kInputGate], parts[kOutputGate], parts[kForgetGate], parts[kCellGate]}, 0);
}

bool is_lstm(const Cell& cell) {
  const LstmForm& form = cell.form;
  return !form.coupled && !form.normalised && !form.projected && cell.cell_clip == 0 && cell.code != 3;
}

Result<Sequence> run_lstm(Call& call, const Cell& cell, ValueId x, const States& states, bool reverse) {
  PINNACE_ASSIGN(const ValueId none, zeros(call, 4 * cell.units));
  PINNACE_ASSIGN(ValueId b, gates_of_lstm(call, cell.bias));
  PINNACE_ASSIGN(b, concat(call, {b, none}, 0));
  PINNACE_ASSIGN(const ValueId w, gates_of_lstm(call, cell.w));
  PINNACE_ASSIGN(const ValueId r, gates_of_lstm(call, cell.r));
  std::vector<ValueId> inputs = {x, w, r, b, kNoValue, states.h, states.c};
  if (cell.form.peephole) {
    PINNACE_ASSIGN(const ValueId p, concat(call, {cell.p[0], cell.p[2], cell.p[1]}, 0));
    inputs.push_back(p);
  }
  for (size_t i = 1; i < inputs.size(); ++i) {
    if (inputs[i] == kNoValue) continue;
    PINNACE_ASSIGN(inputs[i], unsqueeze(call, inputs[i], 0));
  }
  PINNACE_ASSIGN(const std::string activation, cell_activation_name(call, cell.code));
  Attrs attrs = {{"activations", std::vector<std::string>{"sigmoid", activation, activation}}};
  if (reverse) attrs.emplace_back("direction", std::string("reverse"));
  PINNACE_ASSIGN(const auto made, call.emit_many("lstm", std::move(inputs), std::move(attrs), 3));
  Sequence sequence;
  PINNACE_ASSIGN(sequence.y, squeeze(call, made[0], 1));
  PINNACE_ASSIGN(sequence.h, squeeze(call, made[1], 0));
  PINNACE_ASSIGN(sequence.c, squeeze(call, made[2], 0));
  return sequence;
}

/// Goes round `time` times; `x` are the input's products [time, B, gates * units].
Result<Sequence> run_loop(Call& call, const Cell& cell, ValueId x, const States& states, int64_t time) {
  GraphBuilder& outer = call.builder();
  GraphBuilder body(*outer.model, call.name() + "/body/", outer);
  Call inside(body, call.operation(), call.name() + "/body");
  const ValueId iteration = body.add_input("iteration", {DType::kI64, {}, nullptr});
  const ValueId goes_on = body.add_input("goes_on", {DType::kBool, {}, nullptr});
  const ValueId h = body.add_input("h", call.type(states.h)), c = body.add_input("c", call.type(states.c));
  Cell captured = cell;
  captured.each_value([&](ValueId& id) {
    if (id != kNoValue) id = body.capture("weights", id);
  });
  PINNACE_ASSIGN(const ValueId now, inside.emit("gather", {body.capture("x", x), iteration}));
  PINNACE_ASSIGN(const Step made, step(inside, captured, now, h, c));
  body.graph.add_output("goes_on", goes_on);
  body.graph.add_output("h", made.h);
  body.graph.add_output("c", made.c);
  body.graph.add_output("y", made.h);
  PINNACE_ASSIGN(const ValueId trips, call.constant_scalar(DType::kI64, static_cast<double>(time)));
  std::vector<ValueId> inputs = {trips, kNoValue, states.h, states.c};
  const std::vector<ValueId> from = body.captures();
  inputs.insert(inputs.end(), from.begin(), from.end());
  PINNACE_ASSIGN(
      const auto values,
      call.emit_many("loop", std::move(inputs),
                     {{"body", std::make_shared<Graph>(std::move(body.graph))}, {"carried", int64_t{2}}}, 3));
  return Sequence{values[2], values[0], values[1]};
}

/// x [T, B, I].
Result<Sequence> run(Call& call, const Cell& cell, ValueId x, const States& states, bool reverse = false) {
  if (is_lstm(cell)) return run_lstm(call, cell, x, states, reverse);
  PINNACE_ASSIGN(const int64_t time, call.size(x, 0));
  PINNACE_ASSIGN(const int64_t batch, call.size(x, 1));
  PINNACE_ASSIGN(const int64_t features, call.size(x, 2));
  PINNACE_ASSIGN(x, call.reshape(x, {time * batch, features}));
  PINNACE_ASSIGN(x, product(call, x, cell.w, cell.bias));
  PINNACE_ASSIGN(x, call.reshape(x, {time, batch, cell.form.gates() * cell.units}));
  if (!reverse) return run_loop(call, cell, x, states, time);
  PINNACE_ASSIGN(x, reversed(call, x));
  PINNACE_ASSIGN(Sequence made, run_loop(call, cell, x, states, time));
  PINNACE_ASSIGN(made.y, reversed(call, made.y));
  return made;
}

}  // namespace

Status map_lstm(Call& call) {
  constexpr LstmPlaces kAt = {.w = 1, .r = 5, .p = 9, .b = 12, .projection = 16, .h = 18, .c = 19, .norm = 23};
  PINNACE_ASSIGN(ValueId x, float_input(call, 0));
  PINNACE_ASSIGN(const Cell cell, read_cell(call, kAt, 20));
  PINNACE_ASSIGN(const States states, read_states(call, kAt, cell));
  PINNACE_ASSIGN(const int64_t batch, call.size(states.h, 0));
  PINNACE_TRY(expect_dims(call, 0, x, {batch, -1}));
  PINNACE_ASSIGN(x, product(call, x, cell.w, cell.bias));
  PINNACE_ASSIGN(const Step made, step(call, cell, x, states.h, states.c));
  PINNACE_TRY(finish_float(call, 0, made.gates));  // a work buffer, in which NNAPI promises nothing
  PINNACE_TRY(finish_float(call, 1, made.h));
  PINNACE_TRY(finish_float(call, 2, made.c));
  return finish_float(call, 3, made.h);
}

Status map_unidirectional_sequence_lstm(Call& call) {
  constexpr LstmPlaces kAt = {.w = 1, .r = 5, .p = 9, .b = 12, .projection = 16, .h = 18, .c = 19, .norm = 24};
  PINNACE_ASSIGN(ValueId x, float_input(call, 0));
  PINNACE_ASSIGN(const Cell cell, read_cell(call, kAt, 20));
  PINNACE_ASSIGN(const States states, read_states(call, kAt, cell));
  PINNACE_ASSIGN(const bool time_major, call.flag(23));
  PINNACE_ASSIGN(x, swap_time(call, x, time_major));
  PINNACE_ASSIGN(const Sequence made, run(call, cell, x, states));
  PINNACE_ASSIGN(const ValueId y, swap_time(call, made.y, time_major));
  PINNACE_TRY(finish_float(call, 0, y));
  if (call.outputs() == 1) return {};
  PINNACE_TRY(finish_float(call, 1, made.h));
  return finish_float(call, 2, made.c);
}

Status map_bidirectional_sequence_lstm(Call& call) {
  constexpr LstmPlaces kForward = {.w = 1, .r = 5, .p = 9, .b = 12, .projection = 16, .h = 35, .c = 36, .norm = 53};
  constexpr LstmPlaces kBackward = {.w = 18, .r = 22, .p = 26, .b = 29, .projection = 33, .h = 37, .c = 38, .norm = 57};
  constexpr size_t kAux = 39, kForwardAux = 40, kBackwardAux = 44, kSettings = 48;
  PINNACE_ASSIGN(ValueId x, float_input(call, 0));
  PINNACE_ASSIGN(Cell forward, read_cell(call, kForward, kSettings));
  PINNACE_ASSIGN(Cell backward, read_cell(call, kBackward, kSettings));
  PINNACE_ASSIGN(const States first, read_states(call, kForward, forward));
  PINNACE_ASSIGN(const States second, read_states(call, kBackward, backward));
  PINNACE_ASSIGN(const bool merged, call.flag(51));
  PINNACE_ASSIGN(const bool time_major, call.flag(52));
  PINNACE_ASSIGN(x, swap_time(call, x, time_major));
  size_t weights = 0;
  for (size_t i = kForwardAux; i < kSettings; ++i) weights += call.has(i);
  const int gates = forward.form.gates() + backward.form.gates();
  PINNACE_ASSIGN(const Aux aux, aux_use(call, kAux, weights, static_cast<size_t>(gates)));
  ValueId backward_x = x;
  if (aux != Aux::kNone) {
    PINNACE_ASSIGN(backward_x, float_input(call, kAux));
    PINNACE_ASSIGN(backward_x, swap_time(call, backward_x, time_major));
  }
  if (aux == Aux::kCross) {
    PINNACE_ASSIGN(const int64_t features, call.size(backward_x, -1));
    PINNACE_TRY(add_aux(call, forward, kForwardAux, features));
    PINNACE_TRY(add_aux(call, backward, kBackwardAux, features));
    PINNACE_ASSIGN(x, concat(call, {x, backward_x}, 2));
    backward_x = x;
  }
  PINNACE_ASSIGN(const Sequence y, run(call, forward, x, first));
  PINNACE_ASSIGN(const Sequence z, run(call, backward, backward_x, second, true));
  return finish_bidirectional(call, time_major, merged, y, z);
}

}  // namespace pinnace::nnapi
