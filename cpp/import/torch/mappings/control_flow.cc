// Higher-order operators: cond becomes if; while_loop, scan and map become loop; wrappers are inlined.
#include "import/torch/mapping.h"

namespace pinnace::torch_import {
namespace {

const TensorType kIteration{DType::kI64, {}, nullptr}, kCondition{DType::kBool, {}, nullptr};

/// The values of a list of operands: tensors, and symbolic numbers as [1].
std::vector<ValueId> operands(Call& c, const Argument* list) {
  std::vector<ValueId> ids;
  if (!list || (list->kind != ArgumentKind::kTensors && !list->items.empty())) {
    c.fail("operands that are not all tensors");
    return ids;
  }
  for (const Argument& item : list->items) {
    if (item.kind != ArgumentKind::kTensor) {
      c.fail("an operand that is no tensor");
      return ids;
    }
    const int index = c.handle_of(item.text);
    if (!c.ok()) return ids;
    auto value = c.builder().read(index);
    if (!value) {
      c.fail(value.status());
      return ids;
    }
    ids.push_back(*value);
  }
  return ids;
}

std::vector<TensorType> types_of(Call& c, const std::vector<ValueId>& ids) {
  std::vector<TensorType> types;
  for (ValueId id : ids) types.push_back(c.type(id));
  return types;
}

const GraphDef* graph_at(Call& c, size_t i) {
  const Argument* a = c.positional(i);
  if (a && a->kind == ArgumentKind::kGraph) return a->graph.get();
  c.fail("a graph is expected");
  return nullptr;
}

/// A nested graph whose outputs are those of `def`. Null after a failure, which is reported.
struct Body {
  GraphPtr graph;
  std::unique_ptr<Builder> builder;
  std::vector<ValueId> outputs;
};
Body body_of(Call& c, const GraphDef& def, const std::vector<TensorType>& leading,
             const std::vector<TensorType>& types) {
  Body body;
  body.graph = std::make_shared<Graph>();
  body.builder = std::make_unique<Builder>(c.builder().session, *body.graph);
  const size_t before = c.builder().session.problems.size();
  auto outputs = body.builder->build_body(def, leading, types);
  if (!outputs) {
    c.fail(outputs.status());
  } else if (c.builder().session.problems.size() > before) {
    c.fail("its body has nodes that cannot be imported");
  } else {
    body.outputs = std::move(*outputs);
  }
  return body;
}

void add_outputs(Body& body, const std::vector<ValueId>& ids) {
  for (size_t i = 0; i < ids.size(); ++i) body.graph->add_output(str_cat("output_", i), ids[i]);
}

GraphPtr finished(Call& c, Body& body) {
  c.fail(body.builder->finish());
  return std::make_shared<Graph>(body.graph->clone());
}

size_t output_count(Call& c) {
  size_t count = 0;
  for (const Argument& a : c.node().outputs) count += a.kind == ArgumentKind::kTensors ? a.items.size() : 1;
  return count;
}

// cond(pred, true_graph, false_graph, operands)
void map_cond(Call& c) {
  const Argument* predicate = c.positional(0);
  const GraphDef* yes = graph_at(c, 1);
  const GraphDef* no = graph_at(c, 2);
  std::vector<ValueId> inputs = operands(c, c.positional(3));
  if (!c.ok() || !predicate) return;
  ValueId condition;
  if (predicate->kind == ArgumentKind::kTensor) {
    const int index = c.handle_of(predicate->text);
    if (!c.ok()) return;
    auto value = c.builder().read(index);
    if (!value) return c.fail(value.status());
    condition = c.cast(*value, DType::kBool);
  } else {
    condition = c.as_tensor({kNoValue, c.scalar_of(*predicate)}, DType::kBool);
  }
  if (c.rank(condition) != 0) condition = c.reshape(condition, std::vector<int64_t>{});
  const std::vector<TensorType> types = types_of(c, inputs);
  Body then_body = body_of(c, *yes, {}, types);
  Body else_body = body_of(c, *no, {}, types);
  if (!c.ok()) return;
  add_outputs(then_body, then_body.outputs);
  add_outputs(else_body, else_body.outputs);
  GraphPtr then_graph = finished(c, then_body), else_graph = finished(c, else_body);
  inputs.insert(inputs.begin(), condition);
  const size_t count = output_count(c);
  c.outputs(c.add_node("if", std::move(inputs), static_cast<int>(count),
                       {{"else_branch", else_graph}, {"then_branch", then_graph}}));
}

/// The condition graph run inside `builder` on these values; the bool [] that it gives.
ValueId condition_in(Call& c, Builder& builder, const GraphDef& def, const std::vector<ValueId>& values,
                     const std::string& name) {
  std::map<std::string, int, std::less<>> tensors;
  if (def.inputs.size() != values.size()) {
    c.fail("the condition takes another number of values", str_cat(values.size()));
    return kNoValue;
  }
  for (size_t i = 0; i < values.size(); ++i) {
    Handle h;
    h.value = values[i];
    h.origin = Handle::Origin::kUserInput;
    tensors.emplace(def.inputs[i].text, builder.add_handle(h));
  }
  const size_t before = builder.session.problems.size();
  auto scope = builder.inline_graph(def, std::move(tensors), {}, name);
  if (!scope || builder.session.problems.size() > before || def.outputs.size() != 1) {
    c.fail("the condition has nodes that cannot be imported");
    return kNoValue;
  }
  const Argument& out = def.outputs[0].kind == ArgumentKind::kTensors && def.outputs[0].items.size() == 1
                            ? def.outputs[0].items[0]
                            : def.outputs[0];
  const auto at = (*scope)->tensors.find(out.text);
  if (out.kind != ArgumentKind::kTensor || at == (*scope)->tensors.end()) {
    c.fail("the condition is no tensor");
    return kNoValue;
  }
  auto value = builder.read(at->second);
  if (!value) {
    c.fail(value.status());
    return kNoValue;
  }
  if (builder.type(*value).rank() == 0) return *value;
  const auto shape = builder.constant(DType::kI64, {0}, nullptr, 0, name + ".shape");
  if (!shape) {
    c.fail(shape.status());
    return kNoValue;
  }
  auto flat = builder.emit("reshape", {*value, *shape}, 1, {}, name + ".reshape", c.node().source);
  if (!flat) {
    c.fail(flat.status());
    return kNoValue;
  }
  return (*flat)[0];
}

// while_loop(cond_graph, body_graph, carried, captured)
void map_while(Call& c) {
  const GraphDef* condition = graph_at(c, 0);
  const GraphDef* step = graph_at(c, 1);
  const std::vector<ValueId> carried = operands(c, c.positional(2)), captured = operands(c, c.positional(3));
  if (!c.ok()) return;
  std::vector<ValueId> all = carried;
  all.insert(all.end(), captured.begin(), captured.end());
  const std::string name = c.node().name;
  const ValueId first = condition_in(c, c.builder(), *condition, all, name + ".condition");
  Body body = body_of(c, *step, {kIteration, kCondition}, types_of(c, all));
  if (!c.ok()) return;
  if (body.outputs.size() != carried.size())
    return c.fail("the body gives another number of values", str_cat(body.outputs.size()));
  std::vector<ValueId> next = body.outputs;
  for (size_t i = 0; i < captured.size(); ++i) next.push_back(body.graph->inputs[2 + carried.size() + i]);
  const ValueId again = condition_in(c, *body.builder, *condition, next, "condition");
  if (!c.ok()) return;
  std::vector<ValueId> outputs = {again};
  outputs.insert(outputs.end(), body.outputs.begin(), body.outputs.end());
  add_outputs(body, outputs);
  GraphPtr graph = finished(c, body);
  std::vector<ValueId> inputs = {kNoValue, first};
  inputs.insert(inputs.end(), all.begin(), all.end());
  c.outputs(c.add_node("loop", std::move(inputs), static_cast<int>(carried.size()),
                       {{"body", graph}, {"carried", static_cast<int64_t>(carried.size())}}));
}

// scan(combine, init, xs, captured), map_impl(body, mapped, captured): one step per row of xs
void map_scan(Call& c) {
  const bool scan = c.parameter() == "scan";
  const GraphDef* step = graph_at(c, 0);
  const std::vector<ValueId> carried = scan ? operands(c, c.positional(1)) : std::vector<ValueId>{};
  const std::vector<ValueId> rows = operands(c, c.positional(scan ? 2 : 1)),
                             captured = operands(c, c.positional(scan ? 3 : 2));
  if (!c.ok()) return;
  if (rows.empty() || c.rank(rows[0]) < 1) return c.fail("a scan over nothing");
  // The body's own inputs are the carried values, one row of each, and the captured ones; ours has whole tensors
  // instead of the rows, so it is built around a graph that takes them.
  std::vector<ValueId> all = carried;
  all.insert(all.end(), rows.begin(), rows.end());
  all.insert(all.end(), captured.begin(), captured.end());
  if (step->inputs.size() != all.size())
    return c.fail("the body takes another number of values", str_cat(step->inputs.size()));
  GraphPtr graph = std::make_shared<Graph>();
  const ValueId iteration = graph->add_input("iteration", kIteration),
                going = graph->add_input("condition", kCondition);
  std::vector<ValueId> inputs;
  for (ValueId id : all) inputs.push_back(graph->add_input("value", c.type(id)));
  Builder builder(c.builder().session, *graph);
  std::map<std::string, int, std::less<>> tensors;
  for (size_t i = 0; i < inputs.size(); ++i) {
    Handle h;
    h.value = inputs[i];
    h.origin = Handle::Origin::kUserInput;
    if (i >= carried.size() && i < carried.size() + rows.size()) {
      auto row = builder.emit("gather", {inputs[i], iteration}, 1, {}, "row", c.node().source);
      if (!row) return c.fail(row.status());
      h.value = (*row)[0];
    }
    tensors.emplace(step->inputs[i].text, builder.add_handle(h));
  }
  const size_t before = builder.session.problems.size();
  auto scope = builder.inline_graph(*step, std::move(tensors), {}, "body");
  if (!scope || builder.session.problems.size() > before) return c.fail("its body has nodes that cannot be imported");
  graph->add_output("condition", going);
  size_t count = 0;
  for (const Argument& out : step->outputs) {
    const std::vector<Argument> single = {out};
    for (const Argument& one : out.kind == ArgumentKind::kTensors ? out.items : single) {
      const auto at = (*scope)->tensors.find(one.text);
      if (one.kind != ArgumentKind::kTensor || at == (*scope)->tensors.end())
        return c.fail("an output of the body is no tensor");
      auto value = builder.read(at->second);
      if (!value) return c.fail(value.status());
      graph->add_output(str_cat("output_", count++), *value);
    }
  }
  c.fail(builder.finish());
  std::vector<ValueId> outer = {c.as_tensor({kNoValue, c.size_of(rows[0], 0)}, DType::kI64), kNoValue};
  outer.insert(outer.end(), all.begin(), all.end());
  GraphPtr indexed = std::make_shared<Graph>(graph->clone());
  // Rows are whole tensors that every iteration reads: captured, so they stand behind the carried values.
  c.outputs(c.add_node("loop", std::move(outer), static_cast<int>(count),
                       {{"body", indexed}, {"carried", static_cast<int64_t>(carried.size())}}));
}

// wrap_with_set_grad_enabled(flag, graph, operands...): what is inside, as if it stood here
void map_inline(Call& c) {
  c.positional(0);
  const GraphDef* def = graph_at(c, 1);
  if (!c.ok()) return;
  std::map<std::string, int, std::less<>> tensors;
  std::map<std::string, Scalar, std::less<>> scalars;
  if (c.node().inputs.size() != def->inputs.size() + 2)
    return c.fail("the wrapped graph takes another number of values");
  for (size_t i = 0; i < def->inputs.size(); ++i) {
    const Argument* a = c.positional(i + 2);
    if (a->kind == ArgumentKind::kTensor) {
      tensors.emplace(def->inputs[i].text, c.handle_of(a->text));
    } else {
      scalars.emplace(def->inputs[i].text, c.scalar_of(*a));
    }
  }
  if (!c.ok()) return;
  auto scope = c.builder().inline_graph(*def, std::move(tensors), std::move(scalars), c.node().name);
  if (!scope) return c.fail(scope.status());
  std::vector<const Argument*> inner, outer;
  const auto flatten = [](const std::vector<Argument>& list, std::vector<const Argument*>& flat) {
    for (const Argument& a : list) {
      if (a.kind == ArgumentKind::kTensors) {
        for (const Argument& item : a.items) flat.push_back(&item);
      } else {
        flat.push_back(&a);
      }
    }
  };
  flatten(def->outputs, inner);
  flatten(c.node().outputs, outer);
  if (inner.size() != outer.size())
    return c.fail("the wrapped graph gives another number of values", str_cat(inner.size()));
  for (size_t i = 0; i < inner.size(); ++i) {
    if (inner[i]->kind == ArgumentKind::kTensor) {
      const auto at = (*scope)->tensors.find(inner[i]->text);
      if (at == (*scope)->tensors.end()) return c.fail("an output of the wrapped graph is made by no node");
      c.scope().tensors.insert_or_assign(outer[i]->text, at->second);
    } else if (const auto at = (*scope)->scalars.find(inner[i]->text); at != (*scope)->scalars.end()) {
      c.scope().scalars.insert_or_assign(outer[i]->text, at->second);
    }
  }
  c.bound();
}

void map_autocast(Call& c) {
  c.fail(
      "inside torch.autocast: its casts are not in this graph (rule autocast); call "
      "exported_program.run_decompositions() first");
}

constexpr Mapping kMappings[] = {
    {"higher_order.cond", map_cond, ""},
    {"higher_order.map_impl", map_scan, "map"},
    {"higher_order.scan", map_scan, "scan"},
    {"higher_order.while_loop", map_while, ""},
    {"higher_order.wrap_with_autocast", map_autocast, ""},
    {"higher_order.wrap_with_set_grad_enabled", map_inline, ""},
};
static_assert(sorted(kMappings));

}  // namespace

std::span<const Mapping> control_flow_mappings() {
  return kMappings;
}

}  // namespace pinnace::torch_import
