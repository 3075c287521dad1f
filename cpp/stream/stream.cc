// stream_graph: forward, how every value comes in pieces; backward, which of its elements are read; then the nodes.
#include "stream/stream.h"

#include <utility>

#include "stream/rules.h"
#include "stream/sizes.h"

namespace pinnace {

StreamRule stream_rule(const StreamReader& reader, const Node& node) {
  static constexpr std::pair<std::string_view, StreamRule> kRules[] = {
#define RULE(op, rule) {#op, stream_##rule},
#include "stream/rules.inc"
#undef RULE
  };
  for (const auto& [op, rule] : kRules) {
    if (op == node.op) return rule;
  }
  const OpDef* op = reader.ops().find(node.op);
  return op && op->has(Trait::kElementwise | Trait::kConverts) ? stream_elementwise : nullptr;
}

namespace {

/// Pads that mirror change places with the functions of one operand behind them, such as a quantiser: a window then
/// reads what is padded (through_pads() of windows.cc).
void sink_pads(Graph& graph, const OpTable& ops) {
  std::vector<int> readers(graph.values.size(), 0);
  for (const auto& node : graph.nodes) {
    for (const ValueId id : node->inputs) {
      if (id != kNoValue) ++readers[static_cast<size_t>(id)];
    }
  }
  for (const ValueId id : graph.outputs) ++readers[static_cast<size_t>(id)];
  std::vector<Node*> maker(graph.values.size(), nullptr);
  for (const auto& next : graph.nodes) {
    for (const ValueId id : next->outputs) maker[static_cast<size_t>(id)] = next.get();
    if (next->inputs.empty() || next->inputs[0] == kNoValue || next->outputs.size() != 1) continue;
    const ValueId padded = next->inputs[0], result = next->outputs[0];
    Node* pad = maker[static_cast<size_t>(padded)];
    const Attr* mode = pad && pad->op == "pad" ? pad->attr("mode") : nullptr;
    const auto* pad_mode = mode ? std::get_if<std::string>(mode) : nullptr;
    if (!pad_mode || *pad_mode == "constant" || readers[static_cast<size_t>(padded)] != 1) continue;
    const OpDef* op = ops.find(next->op);
    const bool alone = std::all_of(next->inputs.begin() + 1, next->inputs.end(), [&](ValueId id) {
      return id == kNoValue || (graph.value(id).constant && graph.value(id).type.elements() == 1);
    });
    if (!op || !op->has(Trait::kElementwise | Trait::kConverts) || !alone) continue;
    TensorType between = graph.value(result).type;
    const Shape& shape = graph.value(pad->inputs[0]).type.shape;
    if (between.shape.size() != shape.size()) continue;  // a constant of higher rank adds dimensions
    between.shape = shape;
    graph.value(padded).type = between;
    next->inputs[0] = std::exchange(pad->inputs[0], padded);
    if (pad->inputs.size() > 2) pad->inputs[2] = kNoValue;  // a number that these modes have no use for
    std::swap(pad->outputs, next->outputs);
    std::swap(*pad, *next);  // each at the other's place: what is read is made before
    maker[static_cast<size_t>(padded)] = pad;
    maker[static_cast<size_t>(result)] = next.get();
  }
}

class Streaming {
 public:
  Streaming(const Graph& whole, std::span<const StreamRequest> streams, const OpTable& ops)
      : whole_(whole.clone()),
        streams_(streams),
        reader_(whole_, ops),
        steps_(whole.nodes.size()),
        needed_(whole.values.size()),
        written_needs_(whole.nodes.size()) {}

  Result<Streamed> run() {
    PINNACE_TRY(find_inputs());
    sink_pads(whole_, reader_.ops());
    fix_sizes(whole_, symbol_, reader_.ops());
    PINNACE_TRY(analyse());
    find_needs();
    find_latency();
    Streamed made;
    PINNACE_TRY(write(made));
    return made;
  }

 private:
  Status find_inputs();
  Status analyse();
  /// How the node's results come; a refusal is a problem.
  Status analyse_node(const Node& node, std::optional<StreamStep>& step);
  void find_needs();
  void find_latency();
  Status write(Streamed& made);
  Status refused() const;
  void problem(const Node& node, const Status& why) {
    problems_.push_back({node.name, node.op, node.source.text(), why.message(), why.rule(), node.source.module});
    for (const ValueId id : node.outputs) bad_.push_back(id);
  }
  bool is_bad(ValueId id) const { return std::find(bad_.begin(), bad_.end(), id) != bad_.end(); }

  Graph whole_;  ///< a copy, whose sizes are fixed where they do not depend on time
  std::span<const StreamRequest> streams_;
  StreamReader reader_;
  std::vector<std::optional<StreamStep>> steps_;
  std::vector<Needed> needed_;
  std::vector<Needed> written_needs_;
  std::vector<ValueId> inputs_;  ///< of each stream
  int32_t symbol_ = -1;
  std::vector<NodeProblem> problems_;
  std::vector<ValueId> bad_;
  int64_t latency_ = 0, tail_ = 0;
};

Status Streaming::find_inputs() {
  if (streams_.empty()) return invalid("a stream has at least one input");
  for (const StreamRequest& s : streams_) {
    const auto found = std::find_if(whole_.inputs.begin(), whole_.inputs.end(),
                                    [&](ValueId id) { return whole_.value(id).name == s.input; });
    if (found == whole_.inputs.end()) {
      std::string names;
      for (const ValueId id : whole_.inputs) names += str_cat(names.empty() ? "'" : ", '", whole_.value(id).name, "'");
      return invalid("stream '", s.input, "': there is no such input; the model takes ", names);
    }
    if (std::find(inputs_.begin(), inputs_.end(), *found) != inputs_.end()) {
      return invalid("stream '", s.input, "' is given twice");
    }
    const TensorType& type = whole_.value(*found).type;
    const int axis = s.axis < 0 ? s.axis + type.rank() : s.axis;
    if (axis < 0 || axis >= type.rank()) {
      return invalid("stream '", s.input, "': axis ", s.axis, " is outside rank ", type.rank(), " of ",
                     to_string(type.shape));
    }
    const Dim& time = type.shape[static_cast<size_t>(axis)];
    if (time.symbol < 0) {
      return invalid("stream '", s.input, "': axis ", axis, " of ", to_string(type.shape), " has a fixed size");
    }
    if (symbol_ >= 0 && symbol_ != time.symbol) {
      return invalid("stream '", s.input, "': its size is ", whole_.symbols[static_cast<size_t>(time.symbol)].name,
                     ", that of the first stream is ", whole_.symbols[static_cast<size_t>(symbol_)].name,
                     ": streams of one program have the same number of elements");
    }
    symbol_ = time.symbol;
    inputs_.push_back(*found);
    Flow flow;
    flow.axis = axis;
    flow.before = flow.after = 0;
    reader_[*found].flow = flow;
  }
  for (const ValueId id : whole_.inputs) {
    const Shape& shape = whole_.value(id).type.shape;
    const Flow* flow = reader_.flow(id);
    for (size_t i = 0; i < shape.size(); ++i) {
      if (shape[i].symbol == symbol_ && (!flow || flow->axis != static_cast<int>(i))) {
        return invalid("input '", whole_.value(id).name, "' has the size of the stream at axis ", i,
                       " and is no stream there");
      }
    }
  }
  if (!whole_.states.empty()) {
    return invalid("the model keeps state '", whole_.states[0].name,
                   "' from call to call: what it would be after one call for the whole is not known");
  }
  const Symbol& symbol = whole_.symbols[static_cast<size_t>(symbol_)];
  reader_.multiple = symbol.multiple_of;
  reader_.longest = symbol.max;
  return {};
}

Status Streaming::analyse_node(const Node& node, std::optional<StreamStep>& step) {
  bool streamed = false, depends = false;
  for (const ValueId id : node.inputs) {
    if (id == kNoValue) continue;
    streamed |= reader_.flow(id) != nullptr;
    depends |= reader_[id].depends;
  }
  if (!streamed && !depends) return {};
  if (node.op == "shape" || !streamed) {
    if (auto lengths = lengths_of(reader_, node)) {
      reader_[node.outputs[0]] = {std::nullopt, std::move(lengths), true};
      return {};
    }
    if (node.op != "range" && node.op != "expand") {  // nobody may read it
      for (const ValueId id : node.outputs) reader_[id].depends = true;
      return {};
    }
  }
  for (size_t i = 0; i < node.inputs.size(); ++i) {
    if (node.inputs[i] == kNoValue || !reader_[node.inputs[i]].depends) continue;
    static constexpr std::pair<std::string_view, size_t> kSizes[] = {
        {"col2im", 1}, {"expand", 1},  {"pad", 1},    {"range", 0}, {"range", 1},
        {"range", 2},  {"reshape", 1}, {"resize", 3}, {"slice", 1}, {"slice", 2}};
    if (std::find(std::begin(kSizes), std::end(kSizes), std::pair<std::string_view, size_t>(node.op, i)) ==
        std::end(kSizes)) {
      return cannot_stream("it reads what the number of elements, or the last one, decides",
                           whole_.value(node.inputs[i]).name);
    }
  }
  const StreamRule rule = stream_rule(reader_, node);
  if (!rule) return cannot_stream("the operator has no rule for streams");
  PINNACE_ASSIGN(step, rule(reader_, node));
  for (size_t i = 0; i < node.outputs.size(); ++i) {
    reader_[node.outputs[i]] = {step->outputs[i], std::nullopt, !step->outputs[i]};
  }
  return {};
}

Status Streaming::analyse() {
  for (size_t i = 0; i < whole_.nodes.size(); ++i) {
    const Node& node = *whole_.nodes[i];
    if (std::any_of(node.inputs.begin(), node.inputs.end(), [&](ValueId id) { return is_bad(id); })) {
      for (const ValueId id : node.outputs) bad_.push_back(id);
      continue;
    }
    const Status status = analyse_node(node, steps_[i]);
    if (status.ok()) continue;
    if (status.code() != Code::kConversion) return status;
    problem(node, status);
  }
  for (size_t i = 0; i < whole_.outputs.size(); ++i) {
    const ValueId id = whole_.outputs[i];
    if (reader_.flow(id) || is_bad(id)) continue;
    const Status why = cannot_stream(
        reader_[id].depends ? "its result is an output and depends on the number of elements or the last one"
                            : "its result is an output and depends on no stream",
        whole_.output_names[i]);
    const auto made = std::find_if(whole_.nodes.begin(), whole_.nodes.end(), [&](const auto& node) {
      return std::find(node->outputs.begin(), node->outputs.end(), id) != node->outputs.end();
    });
    if (made == whole_.nodes.end()) return invalid("output '", whole_.output_names[i], "' is no result of the model");
    problem(**made, why);
  }
  return problems_.empty() ? Status() : refused();
}

Status Streaming::refused() const {
  const NodeProblem& first = problems_[0];
  Status status(Code::kConversion,
                str_cat(problems_.size(), " of ", whole_.nodes.size(), " nodes cannot compute a stream; the first: ",
                        first.op, " '", first.node, "'", first.source.empty() ? "" : ", ", first.source, ": ",
                        first.rule, first.value.empty() ? "" : " (", first.value, first.value.empty() ? "" : ")"));
  status.with_nodes(problems_);
  return status;
}

void Streaming::find_needs() {
  for (const ValueId id : whole_.outputs) {
    needed_[static_cast<size_t>(id)].add({0, reader_.flow(id)->more});
  }
  for (size_t i = whole_.nodes.size(); i-- > 0;) {
    if (!steps_[i]) continue;
    const Node& node = *whole_.nodes[i];
    Needed all;
    for (const ValueId id : node.outputs) all.add(needed_[static_cast<size_t>(id)]);
    written_needs_[i] = all;
    if (!all.any()) continue;
    const Needed reads = steps_[i]->reads ? steps_[i]->reads(all) : all;
    const std::vector<ValueId> source = {steps_[i]->source};
    for (const ValueId id : steps_[i]->source == kNoValue ? node.inputs : source) {
      const Flow* flow = reader_.flow(id);
      if (!flow) continue;
      needed_[static_cast<size_t>(id)].add({std::max<int64_t>(0, reads.first), std::min(flow->more, reads.last)});
    }
  }
}

void Streaming::find_latency() {
  const auto whole_chunks = [&](int64_t elements) {
    return ceil_div(std::max<int64_t>(0, elements), reader_.multiple) * reader_.multiple;
  };
  for (const ValueId id : whole_.outputs) {
    const Flow& f = *reader_.flow(id);
    latency_ = std::max(latency_, whole_chunks(ceil_div(f.delay * f.down, f.up)));
  }
  for (const ValueId id : whole_.outputs) {
    const Flow& f = *reader_.flow(id);
    tail_ = std::max(tail_, whole_chunks(ceil_div((latency_ * f.up / f.down + f.more) * f.down, f.up)));
  }
}

Status Streaming::write(Streamed& made) {
  Graph& graph = made.graph;
  graph.name = whole_.name;
  graph.symbols = whole_.symbols;
  Symbol& time = graph.symbols[static_cast<size_t>(symbol_)];
  time.min = time.multiple_of = reader_.multiple;
  if (time.max != Symbol::kUnbounded) time.max = std::max(time.max / time.min, int64_t{1}) * time.min;
  std::vector<ValueId> inputs;
  for (const ValueId id : whole_.inputs) inputs.push_back(graph.add_input(whole_.value(id).name, reader_.type(id)));
  const auto place =
      static_cast<size_t>(std::find(whole_.inputs.begin(), whole_.inputs.end(), inputs_[0]) - whole_.inputs.begin());
  const std::string& name = whole_.value(inputs_[0]).name;
  StreamWriter writer(reader_, graph, name, inputs[place], reader_.flow(inputs_[0])->axis, tail_);
  for (size_t i = 0; i < inputs.size(); ++i) writer.map(whole_.inputs[i], inputs[i]);
  for (size_t i = 0; i < whole_.nodes.size(); ++i) {
    const Node& node = *whole_.nodes[i];
    writer.node_name = node.name;
    writer.source = node.source;
    Status status;
    if (steps_[i]) {
      if (!written_needs_[i].any()) continue;  // nobody reads it
      if (steps_[i]->write) {
        status = steps_[i]->write(writer, written_needs_[i]);
      } else {
        std::vector<ValueId> operands;
        for (const ValueId id : node.inputs) {
          const Flow* flow = reader_.flow(id);
          ValueId operand = writer.mapped(id);
          if (flow) {
            auto late = writer.delayed(operand, *flow, steps_[i]->delay.value_or(flow->delay));
            status = late.status();
            if (!status.ok()) break;
            operand = *late;
          }
          operands.push_back(operand);
        }
        if (status.ok()) writer.copy(node, std::move(operands));
      }
    } else if (std::none_of(node.outputs.begin(), node.outputs.end(),
                            [&](ValueId id) { return reader_[id].depends; })) {
      writer.copy(node);
    }
    if (!status.ok()) {
      if (status.code() != Code::kConversion) return status;
      problem(node, status);
    }
    if (!problems_.empty()) return refused();
  }
  for (size_t i = 0; i < whole_.outputs.size(); ++i) {
    const Flow flow = *reader_.flow(whole_.outputs[i]);
    const int64_t late = latency_ * flow.up / flow.down;
    writer.node_name = whole_.output_names[i];
    writer.source = {};
    PINNACE_ASSIGN(ValueId id, writer.delayed(writer.mapped(whole_.outputs[i]), flow, late));
    const Flow now = flow.delayed(late);
    PINNACE_ASSIGN(id, writer.masked(id, now, late > 0 && now.before != 0.0, false, 0));
    graph.add_output(whole_.output_names[i], id);
    made.outputs.push_back({whole_.output_names[i], flow.axis, flow.up, flow.down, flow.more});
  }
  for (const ValueId id : inputs_) {
    made.inputs.push_back({whole_.value(id).name, reader_.flow(id)->axis, latency_, reader_.multiple, tail_});
  }
  return {};
}

}  // namespace

Result<Streamed> stream_graph(const Graph& whole, std::span<const StreamRequest> streams, const OpTable& ops) {
  return Streaming(whole, streams, ops).run();
}

}  // namespace pinnace
