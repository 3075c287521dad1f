// Builder: one graph from its inputs to its outputs. Inputs and weights are bound to names, nodes are mapped in order,
// what is written in place is written back, buffers that change become states.
#include <algorithm>

#include "base/cancel.h"
#include "base/type_size.h"
#include "import/torch/exported/call_names.h"
#include "import/torch/mapping.h"
#include "import/torch/views.h"

namespace pinnace::torch_import {
namespace {

/// "torch.ops.aten.add_.Tensor" in parts.
struct Target {
  std::string op;        ///< "aten.add", "_operator.mul": as the tables name it
  std::string overload;  ///< "Tensor"
  bool in_place = false;
};

Target split_target(const std::string& target) {
  Target t;
  constexpr std::string_view kOps = "torch.ops.";
  if (!target.starts_with(kOps)) {
    t.op = target;
    return t;
  }
  t.op = target.substr(kOps.size());
  if (t.op.starts_with("higher_order.")) return t;
  const size_t dot = t.op.rfind('.');
  if (dot != std::string::npos && dot != t.op.find('.')) {
    t.overload = t.op.substr(dot + 1);
    t.op.resize(dot);
  }
  if (t.op.starts_with("aten.") && t.op.ends_with('_') && !t.op.ends_with("__")) {
    t.in_place = true;
    t.op.pop_back();
  } else if (t.op.starts_with("aten.__i") && t.op.ends_with("__") && t.op != "aten.__invert__") {
    t.in_place = true;  // __iand__ is __and__ in place
    t.op.erase(sizeof("aten.__") - 1, 1);
  }
  return t;
}

const Argument* first_tensor(const NodeDef& node) {
  for (const NamedArgument& a : node.inputs) {
    if (a.value.kind == ArgumentKind::kTensor) return &a.value;
  }
  return nullptr;
}

/// Arguments and the items of lists among them.
std::vector<const Argument*> flat(const std::vector<Argument>& arguments) {
  std::vector<const Argument*> list;
  for (const Argument& a : arguments) {
    if (a.kind == ArgumentKind::kTensors) {
      for (const Argument& item : a.items) list.push_back(&item);
    } else {
      list.push_back(&a);
    }
  }
  return list;
}

/// Which of the graph's inputs nodes write into, followed through operators that may give views, and through nested
/// graphs.
void find_written(const GraphDef& def, std::map<std::string, std::string> roots, std::set<std::string>& written) {
  for (const NodeDef& node : def.nodes) {
    const Argument* self = first_tensor(node);
    const Target target = split_target(node.target);
    const auto root_of = [&](const std::string& name) {
      const auto at = roots.find(name);
      return at == roots.end() ? std::string() : at->second;
    };
    if (self && target.in_place) written.insert(root_of(self->text));
    if (target.in_place || may_share(target.op) || !target.op.starts_with("aten.")) {
      const std::vector<const Argument*> outs = flat(node.outputs);
      for (size_t i = 0; i < outs.size(); ++i) {
        const Argument* of = shared_tensor(node, i);
        if (of && !root_of(of->text).empty()) roots.emplace(outs[i]->text, root_of(of->text));
      }
    }
    if (!target.op.starts_with("higher_order.wrap")) continue;
    for (size_t i = 0; i < node.inputs.size(); ++i) {
      if (!node.inputs[i].value.graph) continue;
      const GraphDef& body = *node.inputs[i].value.graph;
      std::map<std::string, std::string> inner;
      for (size_t k = 0; k < body.inputs.size() && i + 1 + k < node.inputs.size(); ++k) {
        inner.emplace(body.inputs[k].text, root_of(node.inputs[i + 1 + k].value.text));
      }
      find_written(body, std::move(inner), written);
    }
  }
}

/// Operators of ATen that draw random numbers, without the underscore of those that do in place; sorted.
constexpr std::string_view kRandom[] = {"bernoulli",  "binomial",    "cauchy",       "exponential", "geometric",
                                        "log_normal", "multinomial", "normal",       "poisson",     "rand",
                                        "rand_like",  "randint",     "randint_like", "randn",       "randn_like",
                                        "random",     "randperm",    "uniform"};
static_assert(std::ranges::is_sorted(kRandom));

bool is_random(std::string_view op) {
  constexpr std::string_view kAten = "aten.";
  return op.starts_with(kAten) && std::ranges::binary_search(kRandom, op.substr(kAten.size()));
}

bool is_scalar(ArgumentKind kind) {
  return kind == ArgumentKind::kSymInt || kind == ArgumentKind::kSymFloat || kind == ArgumentKind::kSymBool;
}

}  // namespace

// ------------------------------------------------------------------------------------------------------------- nodes

const Argument* shared_tensor(const NodeDef& node, size_t output) {
  if (const Argument* self = first_tensor(node)) return self;
  for (const NamedArgument& a : node.inputs) {
    if (a.value.kind != ArgumentKind::kTensors) continue;
    if (a.value.items.size() == flat(node.outputs).size()) return &a.value.items[output];
    return a.value.items.size() == 1 ? &a.value.items[0] : nullptr;
  }
  return nullptr;
}

bool Builder::has_complex(const Scope& scope, const NodeDef& node) {
  const auto is_complex = [&](const Argument& a) {
    if (a.kind == ArgumentKind::kComplex) return true;
    if (a.kind != ArgumentKind::kTensor) return false;
    const auto at = scope.tensors.find(a.text);
    if (at != scope.tensors.end() && handle(at->second).complex) return true;
    const auto stated = scope.def->tensors.find(a.text);
    return stated != scope.def->tensors.end() && stated->second.part_dtype().has_value();
  };
  const auto any = [&](const Argument& a) {
    return is_complex(a) || std::any_of(a.items.begin(), a.items.end(), is_complex);
  };
  return std::any_of(node.outputs.begin(), node.outputs.end(), any) ||
         std::any_of(node.inputs.begin(), node.inputs.end(), [&](const NamedArgument& i) { return any(i.value); });
}

void Builder::miss(Scope& scope, const NodeDef& node) {
  for (const Argument* out : flat(node.outputs)) {
    if (out->kind == ArgumentKind::kTensor) {
      Handle h;
      h.missing = true;
      scope.tensors.insert_or_assign(out->text, add_handle(h));
    } else if (is_scalar(out->kind)) {
      scope.scalars.insert_or_assign(out->text, Scalar::of_int(1));
    }
  }
}

void Builder::bind_results(Call& call, Scope& scope, const NodeDef& node, bool in_place) {
  const std::vector<const Argument*> outs = flat(node.outputs);
  if (in_place) {
    const Argument* self = first_tensor(node);
    if (!self) return call.fail("an in-place operator without a tensor");
    const int index = call.handle_of(self->text);
    if (!call.ok() || call.given_outputs().empty()) return call.fail("an in-place operator gave nothing");
    auto before = read(index);
    if (!before) return call.fail(before.status());
    ValueId value = call.cast(call.given_outputs()[0], type(*before).dtype);
    if (call.ok() && type(value).shape != type(*before).shape) {
      if (handle(index).complex) call.mark_pair(*before);
      if (handle(index).complex && !call.is_pair(value))
        return call.fail("a real tensor written in place of a complex one");
      value = call.expand(value, call.sizes_of(*before));
    }
    if (!call.ok()) return;
    if (value != *before) {
      call.fail(write(index, value, node));
      for (const Argument* out : outs) {
        note_name(value, call.first_value(), scope.value_name(node, out->text, 0, 1),
                  scope.prefix + scope.name_of(node));
      }
    }
    for (const Argument* out : outs) scope.tensors.insert_or_assign(out->text, index);
    return;
  }
  const Argument* self = call.sharing() != Sharing::kNone ? shared_tensor(node, 0) : nullptr;
  if (self && !may_share(split_target(node.target).op)) return call.fail("a view that is not known as one");
  size_t scalars = 0;
  for (size_t i = 0; i < outs.size() && call.ok(); ++i) {
    if (is_scalar(outs[i]->kind)) {
      if (scalars >= call.given_scalars().size()) return call.fail("a symbolic output has no value");
      scope.scalars.insert_or_assign(outs[i]->text, call.given_scalars()[scalars++]);
      continue;
    }
    if (outs[i]->kind != ArgumentKind::kTensor) continue;
    Handle h;
    h.value = i < call.given_outputs().size() ? call.given_outputs()[i] : kNoValue;
    h.node = &node;
    h.scope = &scope;
    h.output = i;
    if (self) {
      const int parent = call.handle_of(shared_tensor(node, i)->text);
      if (!call.ok()) return;
      h.parent = parent;
      h.sharing = call.sharing();
      if (call.sharing() != Sharing::kUncertain) {
        h.root = handle(parent).root;
        h.seen = handle(h.root).version;
      }
    }
    const auto stated = scope.def->tensors.find(outs[i]->text);
    if (h.value != kNoValue && stated != scope.def->tensors.end()) {
      const TensorType& found = type(h.value);
      const TensorMeta& said = stated->second;
      h.complex = said.part_dtype().has_value();
      bool same = (h.complex ? said.part_dtype() : said.dtype()) == found.dtype &&
                  said.sizes.size() + (h.complex ? 1 : 0) == found.shape.size() &&
                  (!h.complex || found.shape.back() == Dim(2));
      for (size_t d = 0; same && d < said.sizes.size(); ++d) {
        const Dim a = session.dim(said.sizes[d]), b = found.shape[d];
        same = !a.known() || !b.known() || a == b;
      }
      if (!same) {
        std::string text = str_cat(scalar_type_name(said.scalar_type), "[");
        for (size_t d = 0; d < said.sizes.size(); ++d) {
          const SizeDef& size = said.sizes[d];
          append_text(text, d ? "," : "");
          append_text(text, size.expression.empty() ? str_cat(size.value) : str_cat("?"));
        }
        return call.fail("the mapping gives another type than the archive states",
                         str_cat(to_string(found, session.symbols), ", stated ", text, "]"));
      }
    }
    note_name(h.value, call.first_value(), scope.value_name(node, outs[i]->text, i, outs.size()),
              scope.prefix + scope.name_of(node));
    if (!scope.tensors.emplace(outs[i]->text, add_handle(std::move(h))).second)
      return call.fail("two outputs have the same name", outs[i]->text);
  }
}

void Builder::run_node(Scope& scope, const NodeDef& node) {
  // After a node that is missing, what depends on it cannot be judged; it is only looked up by name.
  bool blocked = false;
  const auto check = [&](const Argument& a) {
    const auto at = a.kind == ArgumentKind::kTensor ? scope.tensors.find(a.text) : scope.tensors.end();
    blocked |= at != scope.tensors.end() && handle(at->second).missing;
  };
  for (const NamedArgument& input : node.inputs) {
    check(input.value);
    for (const Argument& item : input.value.items) check(item);
  }
  const Target target = split_target(node.target);
  const auto report = [&](const std::string& rule, const std::string& value) {
    NodeProblem problem{scope.prefix + node.name, node.target, node.source.text(), rule, value, node.source.module};
    if (problem.op.starts_with("torch.ops.")) problem.op.erase(0, sizeof("torch.ops.") - 1);
    session.problems.push_back(std::move(problem));
    miss(scope, node);
  };
  const bool complex = has_complex(scope, node) && !target.op.starts_with("higher_order.wrap");
  const auto find = complex ? find_complex_mapping : find_mapping;
  const Mapping* mapping = find(target.op);
  if (target.in_place && !mapping) mapping = find(target.op + "_");
  // view_copy and the like are the view, without its memory.
  const bool copies = !mapping && target.op.ends_with("_copy");
  if (copies) mapping = find(std::string_view(target.op).substr(0, target.op.size() - 5));
  Call call(*this, scope, node, target.overload, mapping ? mapping->parameter : std::string_view());
  if (!mapping) {
    if (const OpDef* own = session.options.ops.find(target.op); own && own->context && !complex) {
      if (blocked) return miss(scope, node);
      map_custom_operator(call, target.op);
      if (call.ok()) bind_results(call, scope, node, false);
      if (!call.ok()) report(call.rule(), call.value());
      return;
    }
    if (is_random(target.op)) return report("random numbers differ from run to run and cannot be verified", "");
    return report(complex ? "operator not mapped for complex tensors" : "operator not mapped", "");
  }
  if (blocked) return miss(scope, node);
  mapping->map(call);
  if (copies) call.shares(Sharing::kNone);
  if (call.ok()) call.check_all_used();
  if (call.ok() && !call.done()) call.fail("the mapping gave no output");
  const bool writes = target.in_place && !mapping->target.ends_with('_');
  if (call.ok() && !call.binds_itself()) bind_results(call, scope, node, writes);
  if (!call.ok()) report(call.rule(), call.value());
}

void Builder::run_nodes(Scope& scope) {
  for (const NodeDef& node : scope.def->nodes) {
    if (stopped()) return;
    run_node(scope, node);
  }
}

Result<Scope*> Builder::inline_graph(const GraphDef& def, std::map<std::string, int, std::less<>> tensors,
                                     std::map<std::string, Scalar, std::less<>> scalars, const std::string& name) {
  Scope& scope = scopes_.emplace_back();
  scope.begin(def, name + ".");
  scope.tensors = std::move(tensors);
  scope.scalars = std::move(scalars);
  run_nodes(scope);
  return &scope;
}

// --------------------------------------------------------------------------------------------------- whole graphs

std::set<std::string> Builder::written_buffers() const {
  const ProgramDef& program = session.program;
  std::map<std::string, std::string> roots;
  for (const InputSpec& spec : program.inputs) roots.emplace(spec.argument, spec.argument);
  std::set<std::string> written;
  find_written(program.graph, std::move(roots), written);
  for (const OutputSpec& out : program.outputs) {
    const bool mutation =
        out.kind == OutputSpec::Kind::kBufferMutation || out.kind == OutputSpec::Kind::kParameterMutation;
    for (const InputSpec& spec : program.inputs) {
      if (mutation && spec.kind != InputSpec::Kind::kUser && spec.target == out.target) written.insert(spec.argument);
    }
  }
  return written;
}

Status Builder::bind_inputs(Scope& scope) {
  const ProgramDef& program = session.program;
  const std::set<std::string> written = written_buffers();
  // Every leaf of the arguments is an input that the user gives, or one that was fixed at export.
  const auto is_leaf = [](const InputSpec& spec) {
    return spec.kind == InputSpec::Kind::kUser || spec.kind == InputSpec::Kind::kFixed;
  };
  std::vector<std::string> leaves = input_names(program.in_spec, program.argument_names);
  if (std::ranges::count_if(program.inputs, is_leaf) != std::ssize(leaves)) leaves.clear();
  size_t leaf = 0;
  for (size_t i = 0; i < program.inputs.size(); ++i) {
    const InputSpec& spec = program.inputs[i];
    std::string name = spec.argument;
    if (is_leaf(spec) && !leaves.empty()) {
      std::string& known = leaves[leaf++];
      if (!known.empty()) name = std::move(known);
    }
    Handle h;
    h.origin_name = spec.kind == InputSpec::Kind::kUser ? name : spec.target;
    if (spec.kind == InputSpec::Kind::kRefused) {
      return Status(Code::kConversion, str_cat("an input is a ", spec.target, ", which is not supported"));
    }
    if (spec.kind == InputSpec::Kind::kFixed) {
      if (spec.fixed.kind != ArgumentKind::kNone) {
        session.note(str_cat("argument ", name, " was fixed at export and is no input"));
      }
      continue;
    }
    if (spec.kind == InputSpec::Kind::kUser && spec.fixed.kind == ArgumentKind::kSymInt) {
      const ValueId id = graph.add_input(name, {DType::kI64, {}, nullptr});
      type_inference = begin_type_inference(graph);
      PINNACE_ASSIGN(const ValueId shape,
                     constant(DType::kI64, {1}, std::vector<int64_t>{1}.data(), 8, name + ".shape"));
      PINNACE_ASSIGN(const std::vector<ValueId> one, emit("reshape", {id, shape}, 1, {}, name + ".reshape", {}));
      scope.scalars.emplace(spec.argument, Scalar::of_value(Scalar::Kind::kInt, one[0]));
      continue;
    }
    const auto stated = program.graph.tensors.find(spec.argument);
    if (stated == program.graph.tensors.end())
      return Status(Code::kCorruptFile, str_cat("tensor_values has no '", spec.argument, "'"));
    if (spec.kind == InputSpec::Kind::kUser) {
      const auto dtype = stated->second.dtype();
      if (stated->second.part_dtype()) {
        return Status(Code::kConversion, str_cat("input '", name, "' is complex: give torch.view_as_real(", name,
                                                 ") and call torch.view_as_complex in the model"));
      }
      if (!dtype) {
        return Status(Code::kConversion, str_cat("input '", name, "' is ", scalar_type_name(stated->second.scalar_type),
                                                 ", which is not supported"));
      }
      TensorType type{*dtype, {}, nullptr};
      for (const SizeDef& size : stated->second.sizes) {
        PINNACE_ASSIGN(const Dim dim, session.input_dim(size));
        type.shape.push_back(dim);
      }
      if (!fits_memory(type)) {
        return Status(Code::kCorruptFile,
                      str_cat("input '", name, "' is larger than memory can be: ", to_string(type, session.symbols)));
      }
      h.origin = Handle::Origin::kUserInput;
      h.value = graph.add_input(name, type);
    } else {
      h.origin = written.contains(spec.argument) ? Handle::Origin::kState : Handle::Origin::kConstant;
      h.input = static_cast<int>(i);
      h.complex = stated->second.part_dtype().has_value();
      if (h.complex && h.origin == Handle::Origin::kState)
        return Status(Code::kConversion, str_cat("buffer '", spec.target, "' is complex and is written to"));
    }
    const int index = add_handle(std::move(h));
    if (!scope.tensors.emplace(spec.argument, index).second) {
      return Status(Code::kCorruptFile, str_cat("two inputs are named '", spec.argument, "'"));
    }
    if (handle(index).origin == Handle::Origin::kState) {
      states_.emplace_back(index, spec.argument);
      for (const InputSpec& other : program.inputs) {
        const auto path = [&](const InputSpec& s) {
          const Payloads& from =
              s.kind == InputSpec::Kind::kParameter || (s.kind == InputSpec::Kind::kBuffer && s.persistent)
                  ? session.weights
                  : session.constants;
          const auto at = from.find(s.target);
          return s.kind == InputSpec::Kind::kUser || at == from.end() ? std::string() : at->second.path_name;
        };
        if (&other != &spec && !path(spec).empty() && path(other) == path(spec)) {
          return Status(Code::kConversion, str_cat("buffer '", spec.target, "' is written to and shares memory with '",
                                                   other.target, "'"));
        }
      }
    }
  }
  type_inference = begin_type_inference(graph);
  for (const auto& [index, name] : states_) PINNACE_TRY(read(index).status());
  for (const Symbol& wanted : session.options.symbols) {
    const bool ranged = program.ranges.contains(wanted.name);
    const bool known = std::any_of(session.symbols.begin(), session.symbols.end(),
                                   [&](const Symbol& s) { return s.name == wanted.name; });
    if (ranged || known) continue;
    std::string names;
    for (const Symbol& s : session.symbols) names += str_cat(names.empty() ? "" : ", ", s.name);
    return invalid("no dimension of the model is called '", wanted.name,
                   "'; dynamic ones: ", names.empty() ? "none" : names);
  }
  return {};
}

Status Builder::bind_outputs(Scope& scope) {
  const ProgramDef& program = session.program;
  std::vector<std::string> leaves = output_names(program.out_spec);
  const auto user_outputs =
      static_cast<size_t>(std::count_if(program.outputs.begin(), program.outputs.end(),
                                        [](const OutputSpec& o) { return o.kind == OutputSpec::Kind::kUser; }));
  if (leaves.size() != user_outputs) leaves.assign(user_outputs, {});
  std::map<std::string, ValueId> new_states;  // by buffer, where the signature says it
  size_t place = 0;
  const auto tensor = [&](const std::string& name) -> Result<ValueId> {
    const auto at = scope.tensors.find(name);
    if (at == scope.tensors.end()) return Status(Code::kCorruptFile, str_cat("output '", name, "' is made by no node"));
    if (handle(at->second).complex) {
      return Status(Code::kConversion,
                    str_cat("output '", name,
                            "' is complex: return torch.view_as_real of it, or its real and imaginary "
                            "parts"));
    }
    auto value = read(at->second);
    const NodeDef* node = handle(at->second).node;
    if (!value && session.fatal.ok() && node) {
      NodeProblem problem{node->name, node->target,       node->source.text(), value.status().message(),
                          name,       node->source.module};
      if (problem.op.starts_with("torch.ops.")) problem.op.erase(0, sizeof("torch.ops.") - 1);
      session.problems.push_back(std::move(problem));
    }
    return value;
  };
  std::set<std::string> names;
  for (const OutputSpec& out : program.outputs) {
    switch (out.kind) {
      case OutputSpec::Kind::kRefused:
        return Status(Code::kConversion, str_cat("an output is a ", out.target, ", which is for training"));
      case OutputSpec::Kind::kInputMutation:
        return Status(Code::kConversion,
                      str_cat("the model mutates an input: '", out.target, "'; copy it first (x = x.clone())"));
      case OutputSpec::Kind::kBufferMutation:
      case OutputSpec::Kind::kParameterMutation: {
        PINNACE_ASSIGN(new_states[out.target], tensor(out.argument.text));
        continue;
      }
      case OutputSpec::Kind::kUser:
        break;
    }
    const size_t i = place++;
    std::string name = leaves[i].empty() ? out.argument.text : leaves[i];
    ValueId id = kNoValue;
    if (out.argument.kind == ArgumentKind::kTensor) {
      PINNACE_ASSIGN(id, tensor(out.argument.text));
    } else if (out.argument.kind == ArgumentKind::kSymInt || out.argument.kind == ArgumentKind::kInt) {
      Scalar s = Scalar::of_int(out.argument.integer);
      if (out.argument.kind == ArgumentKind::kSymInt) {
        const auto at = scope.scalars.find(out.argument.text);
        if (at == scope.scalars.end())
          return Status(Code::kCorruptFile, str_cat("output '", out.argument.text, "' is made by no node"));
        s = at->second;
      }
      if (name.empty()) name = str_cat("output_", i);
      if (s.known) {
        PINNACE_ASSIGN(id, constant(DType::kI64, {}, &s.integer, sizeof s.integer, name + ".value"));
      } else {
        PINNACE_ASSIGN(const ValueId none, constant(DType::kI64, {0}, nullptr, 0, name + ".shape"));
        PINNACE_ASSIGN(const std::vector<ValueId> made, emit("reshape", {s.value, none}, 1, {}, name + ".reshape", {}));
        id = made[0];
      }
    } else {
      const std::string which = leaves[i].empty() ? str_cat(i) : str_cat("'", leaves[i], "'");
      if (out.argument.kind != ArgumentKind::kNone) {
        session.note(str_cat("output ", which, " is not a tensor and is left out"));
      }
      continue;
    }
    const std::string wanted = name;
    for (int n = 1; !names.insert(name).second; ++n) name = str_cat(wanted, "_", n);
    graph.add_output(name, id);
  }
  for (const auto& [index, argument] : states_) {
    const Handle& h = handle(index);
    const InputSpec& spec = program.inputs[static_cast<size_t>(h.input)];
    for (State& state : graph.states) {
      if (state.name != spec.target) continue;
      const auto at = new_states.find(spec.target);
      if (at != new_states.end()) {
        state.output = at->second;
      } else {
        PINNACE_ASSIGN(state.output, read(index));
      }
      if (type(state.output) != type(state.input)) {
        return Status(Code::kConversion, str_cat("buffer '", state.name, "' is ", to_string(type(state.input)),
                                                 " and becomes ", to_string(type(state.output), session.symbols)));
      }
    }
  }
  return {};
}

Status Builder::finish() {
  settle_names(graph, source_names_);
  std::vector<bool> needed(graph.values.size(), false), dead(graph.nodes.size(), true);
  for (ValueId id : graph.outputs) needed[static_cast<size_t>(id)] = true;
  for (const State& state : graph.states) needed[static_cast<size_t>(state.output)] = true;
  for (size_t i = graph.nodes.size(); i-- > 0;) {
    const Node& node = *graph.nodes[i];
    dead[i] = std::none_of(node.outputs.begin(), node.outputs.end(),
                           [&](ValueId id) { return needed[static_cast<size_t>(id)]; });
    if (dead[i]) continue;
    for (ValueId id : node.inputs) {
      if (id != kNoValue) needed[static_cast<size_t>(id)] = true;
    }
  }
  for (size_t i = 0; i < graph.values.size(); ++i) graph.values[i].type = type_inference.types[i];
  graph.erase_nodes(dead);
  graph.compact();
  return {};
}

Status Builder::build_program() {
  Scope& scope = scopes_.emplace_back();
  scope.begin(session.program.graph);
  PINNACE_TRY(bind_inputs(scope));
  run_nodes(scope);
  if (!session.problems.empty()) return {};
  PINNACE_TRY(bind_outputs(scope));
  PINNACE_TRY(finish());
  graph.symbols = session.symbols;
  return {};
}

Result<std::vector<ValueId>> Builder::build_body(const GraphDef& def, const std::vector<TensorType>& leading,
                                                 const std::vector<TensorType>& types) {
  if (types.size() != def.inputs.size())
    return invalid("a nested graph has ", def.inputs.size(), " inputs and is given ", types.size());
  Scope& scope = scopes_.emplace_back();
  scope.begin(def);
  for (const TensorType& type : leading) graph.add_input("leading", type);
  std::vector<ValueId> ids;
  for (size_t i = 0; i < types.size(); ++i) ids.push_back(graph.add_input(def.inputs[i].text, types[i]));
  type_inference = begin_type_inference(graph);
  for (size_t i = 0; i < types.size(); ++i) {
    const Argument& input = def.inputs[i];
    if (input.kind == ArgumentKind::kTensor) {
      Handle h;
      h.value = ids[i];
      h.origin = Handle::Origin::kUserInput;
      h.origin_name = input.text;
      scope.tensors.emplace(input.text, add_handle(h));
    } else if (is_scalar(input.kind)) {
      scope.scalars.emplace(input.text, Scalar::of_value(input.kind == ArgumentKind::kSymInt     ? Scalar::Kind::kInt
                                                         : input.kind == ArgumentKind::kSymFloat ? Scalar::Kind::kFloat
                                                                                                 : Scalar::Kind::kBool,
                                                         ids[i]));
    } else {
      return invalid("an input of a nested graph is neither a tensor nor a number");
    }
  }
  run_nodes(scope);
  std::vector<ValueId> outputs;
  for (const Argument* out : flat(def.outputs)) {
    if (is_scalar(out->kind)) {
      const auto at = scope.scalars.find(out->text);
      if (at == scope.scalars.end()) return invalid("an output of a nested graph is made by no node");
      if (at->second.known) {
        const int64_t number = at->second.integer;
        PINNACE_ASSIGN(const ValueId id, constant(DType::kI64, {1}, &number, sizeof number, out->text));
        outputs.push_back(id);
      } else {
        outputs.push_back(at->second.value);
      }
      continue;
    }
    if (out->kind != ArgumentKind::kTensor) return invalid("an output of a nested graph is no tensor");
    const auto at = scope.tensors.find(out->text);
    if (at == scope.tensors.end()) return invalid("an output of a nested graph is made by no node");
    if (handle(at->second).missing) return outputs;  // reported already
    if (handle(at->second).complex) return invalid("an output of a nested graph is complex");
    PINNACE_ASSIGN(const ValueId id, read(at->second));
    outputs.push_back(id);
  }
  return outputs;
}

}  // namespace pinnace::torch_import
