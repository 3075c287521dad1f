// IF and WHILE: referenced models become nested graphs of `if` and `loop`. What is known before the model runs becomes
// a constant of the nested graph, so that it can be an attribute there; what a loop computes cannot.
#include <algorithm>
#include <set>

#include "nnapi/map/unused.h"
#include "nnapi/mapping.h"

namespace pinnace::nnapi {
namespace {

using Values = std::vector<ValueId>;

Result<Values> inputs_from(Call& call, size_t first) {
  Values values;
  for (size_t i = first; i < call.inputs(); ++i) {
    PINNACE_ASSIGN(const ValueId id, call.in(i));
    values.push_back(id);
  }
  return values;
}

Status finish_all(Call& call, const Values& made) {
  for (size_t i = 0; i < call.outputs(); ++i) PINNACE_TRY(call.finish(i, made[i]));
  return {};
}

Values outputs_of(const GraphBuilder& inner) {
  Values made;
  for (uint32_t i : inner.model->outputs) made.push_back(inner.values[i]);
  return made;
}

// ------------------------------------------------------------------------------------------------------------- IF

/// True if the model, or one that it refers to, draws random numbers.
bool draws(const Model& model, std::set<const Model*>& seen) {
  if (!seen.insert(&model).second) return false;
  const auto random = [](const Operation& o) { return o.code == static_cast<int32_t>(Op::RANDOM_MULTINOMIAL); };
  if (std::any_of(model.operations.begin(), model.operations.end(), random)) return true;
  return std::any_of(model.operands.begin(), model.operands.end(),
                     [&](const Operand& o) { return o.model && draws(*o.model, seen); });
}

/// A branch as a graph whose inputs are those of `values` that are not known, and random numbers if `random`.
Result<GraphPtr> branch(Call& call, size_t i, const char* name, const Values& values, bool random, Values& captured) {
  const Model& model = *call.operand(i).model;
  GraphBuilder inner(model, str_cat(call.name(), "/", name, "/"), call.builder());
  for (size_t k = 0; k < values.size(); ++k) {
    inner.values[model.inputs[k]] = inner.capture(str_cat("input_", k), values[k]);
  }
  if (random) PINNACE_TRY(inner.entropy().status());
  PINNACE_TRY(inner.add_constants());
  PINNACE_TRY(inner.run_operations());
  const Values made = outputs_of(inner);
  for (size_t k = 0; k < made.size(); ++k) inner.graph.add_output(str_cat("output_", k), made[k]);
  captured = inner.captures();
  return std::make_shared<Graph>(std::move(inner.graph));
}

Result<Values> either(Call& call, ValueId condition, const Values& values) {
  Values captured;
  std::set<const Model*> seen;
  const bool random = draws(*call.operand(1).model, seen) || draws(*call.operand(2).model, seen);  // inputs of both
  PINNACE_ASSIGN(GraphPtr then_branch, branch(call, 1, "then", values, random, captured));
  PINNACE_ASSIGN(GraphPtr else_branch, branch(call, 2, "else", values, random, captured));
  Values inputs = {condition};
  inputs.insert(inputs.end(), captured.begin(), captured.end());
  return call.emit_many("if", std::move(inputs),
                        {{"then_branch", std::move(then_branch)}, {"else_branch", std::move(else_branch)}},
                        static_cast<int>(call.outputs()));
}

// ---------------------------------------------------------------------------------------------------------- WHILE

/// Condition and body with the values that matter; the others may have any shape, of any value.
struct Loop {
  Model condition, body;
  std::vector<size_t> kept;  ///< of the operation's inputs, counted from the first value
};

Loop loop_of(Call& call) {
  const Model &condition = *call.operand(0).model, &body = *call.operand(1).model;
  const Model& model = *call.builder().model;
  std::vector<bool> used(body.outputs.size(), false);
  for (size_t i = 0; i < call.outputs(); ++i) {
    const uint32_t output = call.operation().outputs[i];
    const auto reads = [&](const Operation& o) { return std::count(o.inputs.begin(), o.inputs.end(), output) > 0; };
    used[i] = std::count(model.outputs.begin(), model.outputs.end(), output) > 0 ||
              std::any_of(model.operations.begin(), model.operations.end(), reads);
  }
  std::vector<bool> matter = carried_that_matter(condition, body, std::move(used));
  // A loop of which nothing matters may still be one that never ends.
  if (std::count(matter.begin(), matter.end(), true) == 0) matter.assign(matter.size(), true);
  Loop loop;
  std::vector<uint32_t> of_condition, of_body, made;
  for (size_t i = 0; i < body.inputs.size(); ++i) {
    if (i < matter.size() && !matter[i]) continue;
    loop.kept.push_back(i);
    of_condition.push_back(condition.inputs[i]);
    of_body.push_back(body.inputs[i]);
    if (i < matter.size()) made.push_back(body.outputs[i]);
  }
  loop.condition = part_of(condition, std::move(of_condition), condition.outputs);
  loop.body = part_of(body, std::move(of_body), std::move(made));
  return loop;
}

/// What a loop hands from iteration to iteration: values before the first one, and types of all.
struct Carried {
  Values first;
  std::vector<TensorType> types;
};

Result<Carried> carried_values(Call& call, const Model& body, const Values& values) {
  Carried carried;
  for (size_t i = 0; i < body.outputs.size(); ++i) {
    ValueId id = values[i];
    // A temporary may have another quantisation than its operand says; in the loop there is but one.
    if (const QuantizationPtr declared = quantization_of(body.operands[body.inputs[i]])) {
      PINNACE_ASSIGN(id, call.requantize(id, call.type(id).dtype, declared));
    }
    carried.first.push_back(id);
    carried.types.push_back(call.type(id));
  }
  return carried;
}

/// Sizes in which `made` differs from `types` become unknown. True if there are any.
Result<bool> widen(const Call& call, std::vector<TensorType>& types, const GraphBuilder& body, const Values& made) {
  bool wider = false;
  for (size_t i = 0; i < made.size(); ++i) {
    const TensorType& now = body.type(made[i]);
    if (now.rank() != types[i].rank()) {
      return call.error("value ", i, " is ", types[i], " before an iteration and ", now, " after it: its rank changes");
    }
    for (size_t d = 0; d < now.shape.size(); ++d) {
      Dim& dim = types[i].shape[d];
      if (dim == now.shape[d] || (!dim.known() && dim.max < 0 && dim.symbol < 0)) continue;
      dim = Dim();
      wider = true;
    }
  }
  return wider;
}

/// The loop for these types of carried values, or nothing where they had to be widened.
Result<Values> map_loop(Call& call, const Loop& loop, const Values& values, Carried& carried) {
  const Model& body_model = loop.body;
  const size_t count = carried.first.size();
  GraphBuilder body(body_model, str_cat(call.name(), "/body/"), call.builder());
  body.iteration = body.add_input("iteration", {DType::kI64, {}, nullptr});
  body.add_input("condition", {DType::kBool, {}, nullptr});
  for (size_t i = 0; i < count; ++i) {
    body.values[body_model.inputs[i]] = body.add_input(str_cat("carried_", i), carried.types[i]);
  }
  for (size_t i = count; i < values.size(); ++i) {
    body.values[body_model.inputs[i]] = body.capture(str_cat("input_", i), values[i]);
  }
  PINNACE_TRY(body.add_constants());
  PINNACE_TRY(body.run_operations());
  const Values made = outputs_of(body);
  PINNACE_ASSIGN(const bool wider, widen(call, carried.types, body, made));
  if (wider) return Values();
  Values next = made;  // what the condition looks at
  for (size_t i = count; i < values.size(); ++i) next.push_back(body.values[body_model.inputs[i]]);
  PINNACE_ASSIGN(const Values goes_on, body.inlined(loop.condition, call.name() + "/condition", next));
  body.graph.add_output("goes_on", goes_on[0]);
  for (size_t i = 0; i < count; ++i) body.graph.add_output(str_cat("carried_", i), made[i]);
  PINNACE_ASSIGN(const Values starts, call.builder().inlined(loop.condition, call.name() + "/start", values));
  Values inputs = {kNoValue, starts[0]};
  inputs.insert(inputs.end(), carried.first.begin(), carried.first.end());
  const Values captured = body.captures();
  inputs.insert(inputs.end(), captured.begin(), captured.end());
  return call.emit_many(
      "loop", std::move(inputs),
      {{"body", std::make_shared<Graph>(std::move(body.graph))}, {"carried", static_cast<int64_t>(count)}},
      static_cast<int>(count));
}

}  // namespace

Status map_if(Call& call) {
  PINNACE_ASSIGN(const ValueId condition, call.in(0));
  PINNACE_ASSIGN(const Values values, inputs_from(call, 3));
  if (const ConstantPtr known = call.builder().data(condition)) {
    PINNACE_ASSIGN(const std::vector<int64_t> taken, call.ints_of(condition));
    const size_t i = taken.size() == 1 && taken[0] != 0 ? 1 : 2;
    PINNACE_ASSIGN(const Values made, call.builder().inlined(*call.operand(i).model, call.name(), values));
    return finish_all(call, made);
  }
  const Result<Values> made = either(call, condition, values);
  if (!made.ok()) {
    // One branch alone may well be possible, for these shapes and values.
    (void)call.builder().need(condition);
    return made.status();
  }
  return finish_all(call, *made);
}

Status map_while(Call& call) {
  PINNACE_ASSIGN(const Values all, inputs_from(call, 2));
  const Loop loop = loop_of(call);
  Values values;
  for (size_t i : loop.kept) values.push_back(all[i]);
  PINNACE_ASSIGN(Carried carried, carried_values(call, loop.body, values));
  std::copy(carried.first.begin(), carried.first.end(), values.begin());
  for (;;) {  // each round makes at least one more size unknown, or is the last
    PINNACE_ASSIGN(const Values made, map_loop(call, loop, values, carried));
    if (made.empty()) continue;
    for (size_t k = 0; k < made.size() && loop.kept[k] < call.outputs(); ++k) {
      PINNACE_TRY(call.finish(loop.kept[k], made[k]));
    }
    return {};
  }
}

}  // namespace pinnace::nnapi
