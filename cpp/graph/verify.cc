// verify: what Graph promises, checked without knowing operators.
//
//   rule   what must hold
//   G-1    every value id is that of a value of the graph; kNoValue only as a node's input
//   G-2    a value is made once: by one node's output, or it is one input, one state's old value, or a constant
//   G-3    a value is made before it is read; outputs and states' new values are made by the end
//   G-4    names of values are unique
//   G-5    names of nodes are unique
//   G-6    there are as many output names as outputs
//   G-7    a constant has a concrete type and as many bytes
//   G-8    a state has a concrete type, initial contents of as many bytes, and a new value of a type that fits
//   G-9    names of states are unique; only the outermost graph has states
//   G-10   a symbol has a unique name and a range with a multiple of its divisor; only the outermost graph has any
//   G-11   a dimension is a size, a symbol of the outermost graph, or unknown with or without a bound
//   G-12   the bytes of a type can be counted in 63 bits
//   G-13   quantisation: an integer type, scales and zero points as many as axis and block say, each in range
//   G-14   attributes are sorted by name, none twice
//   G-15   a graph attribute holds a graph; graphs are nested at most 200 deep and never in themselves
//   G-16   a node has an operator and a version of at least 1
//   G-17   every name and every text is UTF-8
//
// Nested graphs are visited by an explicit stack, so that depth costs no stack of the process.
#include <algorithm>
#include <cmath>
#include <unordered_map>
#include <unordered_set>

#include "base/int_range.h"
#include "base/status.h"
#include "base/utf8.h"
#include "graph/graph.h"

namespace pinnace {
namespace {

constexpr int kMaxNesting = 200;

[[gnu::cold]] Status violation(const char* rule, const Graph& graph, const PartKind* kinds, const Part* parts) {
  return invalid("graph '", graph.name, "', ", join_parts(kinds, parts), " (rule ", rule, ")").with_rule(rule);
}
template <class... Parts>
[[gnu::always_inline]] inline Status broken(const char* rule, const Graph& graph, const Parts&... parts) {
  return with_parts([&](const PartKind* kinds, const Part* list) { return violation(rule, graph, kinds, list); },
                    parts...);
}

bool in_range(const Graph& graph, ValueId id) {
  return id >= 0 && static_cast<size_t>(id) < graph.values.size();
}

/// How many scales the type must have, or kUnknown where a dynamic size decides.
int64_t scale_count(const TensorType& type, const Quantization& q) {
  if (q.axis < 0) return 1;
  if (q.block == 0) return type.shape[static_cast<size_t>(q.axis)].size;
  int64_t count = 1;
  for (size_t i = 0; i < type.shape.size(); ++i) {
    const Dim& d = type.shape[i];
    if (!d.known()) return Dim::kUnknown;
    count *= i == static_cast<size_t>(q.axis) ? d.size / q.block + (d.size % q.block != 0) : d.size;
  }
  return count;
}

Status verify_quantization(const Graph& graph, const Value& value) {
  const Quantization& q = *value.type.quantization;
  const auto fail = [&](const auto&... parts) {
    return broken("G-13", graph, "value '", value.name, "' ", value.type, ": ", parts...);
  };
  const auto [min, max] = int_range(value.type.dtype);
  if (min > max || dtype_bits(value.type.dtype) < 4) return fail("only integers of 4 to 32 bits are quantised");
  if (q.axis < -1 || q.axis >= value.type.rank()) return fail("axis ", q.axis, " is outside rank ", value.type.rank());
  if (q.block < 0 || (q.block > 0 && q.axis < 0)) return fail("block ", q.block, " with axis ", q.axis);
  const int64_t count = scale_count(value.type, q);
  if (count != Dim::kUnknown && static_cast<int64_t>(q.scales.size()) != count) {
    return fail("has ", q.scales.size(), " scales, must have ", count);
  }
  if (q.zero_points.size() != q.scales.size()) {
    return fail("has ", q.zero_points.size(), " zero points for ", q.scales.size(), " scales");
  }
  for (const float scale : q.scales) {
    if (!std::isfinite(scale) || scale < 0) return fail("scale ", scale, " is not a finite positive number");
  }
  for (const int32_t zero : q.zero_points) {
    if (zero < min || zero > max) return fail("zero point ", zero, " is outside [", min, ", ", max, "]");
  }
  return {};
}

Status verify_type(const Graph& graph, const Value& value, size_t symbols) {
  const TensorType& type = value.type;
  const auto fail = [&](const char* rule, const auto&... parts) {
    return broken(rule, graph, "value '", value.name, "': ", parts...);
  };
  if (static_cast<int>(type.dtype) >= kDTypeCount) return fail("G-11", "element type ", static_cast<int>(type.dtype));
  int64_t bits = dtype_bits(type.dtype);
  for (size_t i = 0; i < type.shape.size(); ++i) {
    const Dim& d = type.shape[i];
    if (d.size < Dim::kUnknown) return fail("G-11", "dimension ", i, " has size ", d.size);
    if (d.symbol < -1 || (d.symbol >= 0 && static_cast<size_t>(d.symbol) >= symbols)) {
      return fail("G-11", "dimension ", i, " is symbol ", d.symbol, " of ", symbols);
    }
    if (d.symbol >= 0 && d.known()) return fail("G-11", "dimension ", i, " has a size, ", d.size, ", and a symbol");
    if (d.max < Dim::kUnknown || (d.max >= 0 && (d.known() || d.symbol >= 0))) {
      return fail("G-11", "dimension ", i, " has a bound, ", d.max, ", and is not unknown");
    }
    const int64_t size = std::max<int64_t>(d.known() ? d.size : 1, 1);
    if (bits > (INT64_MAX >> 4) / size)
      return fail("G-12", "its type is larger than memory can be, dimension ", i, " is ", size);
    bits *= size;
  }
  return type.quantization ? verify_quantization(graph, value) : Status();
}

Status verify_symbols(const Graph& graph) {
  std::unordered_set<std::string_view> names;
  for (const Symbol& s : graph.symbols) {
    const auto fail = [&](const auto&... parts) { return broken("G-10", graph, "symbol '", s.name, "': ", parts...); };
    if (s.name.empty() || !names.insert(s.name).second) return fail("the name is empty or taken");
    if (s.min < 0 || s.max < s.min || s.multiple_of < 1) {
      return fail("the range is ", s.min, "..", s.max, " in steps of ", s.multiple_of);
    }
    if (s.max / s.multiple_of * s.multiple_of < s.min) {
      return fail("no multiple of ", s.multiple_of, " lies in ", s.min, "..", s.max);
    }
  }
  return {};
}

Status verify_attrs(const Graph& graph, const Node& node) {
  for (size_t i = 1; i < node.attrs.size(); ++i) {
    if (!(node.attrs[i - 1].first < node.attrs[i].first)) {
      return broken("G-14", graph, "node '", node.name, "': attribute '", node.attrs[i].first, "' follows '",
                    node.attrs[i - 1].first, "'");
    }
  }
  for (const auto& [name, attr] : node.attrs) {
    const auto* body = std::get_if<GraphPtr>(&attr);
    if (body && !*body) return broken("G-15", graph, "node '", node.name, "': attribute '", name, "' holds no graph");
  }
  return {};
}

/// Places are by number: the names are what is in doubt.
Status verify_texts(const Graph& graph) {
  const auto check = [&](std::string_view text, const auto&... place) {
    return is_utf8(text) ? Status() : broken("G-17", graph, place..., ": '", text, "' is not UTF-8");
  };
  PINNACE_TRY(check(graph.name, "its own name"));
  for (size_t i = 0; i < graph.symbols.size(); ++i) PINNACE_TRY(check(graph.symbols[i].name, "symbol ", i));
  for (size_t i = 0; i < graph.values.size(); ++i) PINNACE_TRY(check(graph.values[i].name, "value ", i));
  for (size_t i = 0; i < graph.states.size(); ++i) PINNACE_TRY(check(graph.states[i].name, "state ", i));
  for (size_t i = 0; i < graph.output_names.size(); ++i) PINNACE_TRY(check(graph.output_names[i], "output ", i));
  for (size_t i = 0; i < graph.nodes.size(); ++i) {
    const Node& node = *graph.nodes[i];
    for (std::string_view text : {std::string_view(node.name), std::string_view(node.op),
                                  std::string_view(node.source.file), std::string_view(node.source.module)}) {
      PINNACE_TRY(check(text, "node ", i));
    }
    for (const auto& [name, attr] : node.attrs) {
      PINNACE_TRY(check(name, "an attribute of node ", i));
      if (const auto* text = std::get_if<std::string>(&attr)) PINNACE_TRY(check(*text, "attribute '", name, "'"));
      const auto* list = std::get_if<std::vector<std::string>>(&attr);
      for (size_t k = 0; list && k < list->size(); ++k) PINNACE_TRY(check((*list)[k], "attribute '", name, "'"));
    }
  }
  return {};
}

/// True if a new value of type `next` can take the place of a state of the concrete type `now`.
bool fits(const TensorType& now, const TensorType& next) {
  if (now.dtype != next.dtype || now.rank() != next.rank()) return false;
  for (size_t i = 0; i < now.shape.size(); ++i) {
    if (next.shape[i].known() && next.shape[i].size != now.shape[i].size) return false;
  }
  return true;
}

/// Checks one graph but not those nested in it.
class Verifier {
 public:
  Verifier(const Graph& graph, size_t symbols, bool outermost)
      : graph_(graph), symbols_(symbols), outermost_(outermost), made_(graph.values.size(), false) {}

  Status verify() {
    if (!outermost_ && !graph_.symbols.empty()) return broken("G-10", graph_, "a nested graph has symbols");
    PINNACE_TRY(verify_symbols(graph_));
    PINNACE_TRY(values());
    for (const ValueId id : graph_.inputs) PINNACE_TRY(make(id, "input"));
    PINNACE_TRY(states());
    for (size_t i = 0; i < graph_.values.size(); ++i) {
      if (graph_.values[i].constant) PINNACE_TRY(make(static_cast<ValueId>(i), "constant"));
    }
    PINNACE_TRY(nodes());
    PINNACE_TRY(ends());
    return verify_texts(graph_);
  }

 private:
  Status values() {
    std::unordered_set<std::string_view> names;
    for (const Value& value : graph_.values) {
      if (!names.insert(value.name).second) return broken("G-4", graph_, "value '", value.name, "': the name is taken");
      PINNACE_TRY(verify_type(graph_, value, symbols_));
      if (!value.constant) continue;
      const int64_t want = value.type.bytes();
      if (want < 0 || static_cast<uint64_t>(want) != value.constant->bytes()) {
        return broken("G-7", graph_, "constant '", value.name, "' has ", value.constant->bytes(),
                      " bytes, its type is ", value.type);
      }
    }
    return {};
  }

  template <class... Parts>
  Status make(ValueId id, const Parts&... maker) {
    if (!in_range(graph_, id)) {
      return broken("G-1", graph_, maker..., ": value ", id, " is none of ", graph_.values.size());
    }
    if (made_[static_cast<size_t>(id)]) {
      return broken("G-2", graph_, maker..., ": value '", graph_.value(id).name, "' is made already");
    }
    made_[static_cast<size_t>(id)] = true;
    return {};
  }
  template <class... Parts>
  Status read(ValueId id, const Parts&... reader) const {
    if (!in_range(graph_, id)) {
      return broken("G-1", graph_, reader..., ": value ", id, " is none of ", graph_.values.size());
    }
    if (!made_[static_cast<size_t>(id)]) {
      return broken("G-3", graph_, reader..., ": value '", graph_.value(id).name, "' is read before it is made");
    }
    return {};
  }

  Status states() {
    if (!outermost_ && !graph_.states.empty()) return broken("G-9", graph_, "a nested graph has states");
    std::unordered_set<std::string_view> names;
    for (const State& s : graph_.states) {
      if (!names.insert(s.name).second) return broken("G-9", graph_, "state '", s.name, "': the name is taken");
      PINNACE_TRY(make(s.input, "state '", s.name, "'"));
      const TensorType& type = graph_.value(s.input).type;
      const int64_t want = type.bytes();
      if (!s.initial || want < 0 || static_cast<uint64_t>(want) != s.initial->bytes()) {
        return broken("G-8", graph_, "state '", s.name, "' starts with ", s.initial ? s.initial->bytes() : 0,
                      " bytes, its type is ", type);
      }
    }
    return {};
  }

  Status nodes() {
    std::unordered_set<std::string_view> names;
    for (size_t i = 0; i < graph_.nodes.size(); ++i) {
      const Node* node = graph_.nodes[i].get();
      if (!node || node->op.empty() || node->version < 1) {
        return broken("G-16", graph_, "node ", i, " has no operator or version ", node ? node->version : 0);
      }
      if (!names.insert(node->name).second) return broken("G-5", graph_, "node '", node->name, "': the name is taken");
      for (const ValueId id : node->inputs) {
        if (id != kNoValue) PINNACE_TRY(read(id, "node '", node->name, "'"));
      }
      for (const ValueId id : node->outputs) PINNACE_TRY(make(id, "node '", node->name, "'"));
      PINNACE_TRY(verify_attrs(graph_, *node));
    }
    return {};
  }

  Status ends() const {
    if (graph_.output_names.size() != graph_.outputs.size()) {
      return broken("G-6", graph_, "there are ", graph_.output_names.size(), " names for ", graph_.outputs.size(),
                    " outputs");
    }
    for (size_t i = 0; i < graph_.outputs.size(); ++i) {
      PINNACE_TRY(read(graph_.outputs[i], "output ", i, " '", graph_.output_names[i], "'"));
    }
    for (const State& s : graph_.states) {
      PINNACE_TRY(read(s.output, "state '", s.name, "'"));
      const TensorType& now = graph_.value(s.input).type;
      const TensorType& next = graph_.value(s.output).type;
      if (!fits(now, next)) {
        return broken("G-8", graph_, "state '", s.name, "' is ", now, ", its new value ", next);
      }
    }
    return {};
  }

  const Graph& graph_;
  const size_t symbols_;
  const bool outermost_;
  std::vector<bool> made_;
};

std::vector<const Graph*> nested_graphs(const Graph& graph) {
  std::vector<const Graph*> found;
  for (const auto& node : graph.nodes) {
    for (const auto& [name, attr] : node->attrs) {
      if (const auto* body = std::get_if<GraphPtr>(&attr)) found.push_back(body->get());
    }
  }
  return found;
}

}  // namespace

Status verify(const Graph& graph) {
  // Depth first. Two nodes may share a nested graph, which is then checked once; `height` is how deep it nests itself,
  // or kOpen while it is on the stack.
  constexpr int kOpen = -1;
  struct Frame {
    const Graph* graph;
    std::vector<const Graph*> nested;
    size_t next = 0;
    int height = 0;
  };
  std::unordered_map<const Graph*, int> heights;
  std::vector<Frame> stack;
  const auto enter = [&](const Graph& g) -> Status {
    PINNACE_TRY(Verifier(g, graph.symbols.size(), stack.empty()).verify());
    heights[&g] = kOpen;
    stack.push_back({&g, nested_graphs(g)});
    return {};
  };
  PINNACE_TRY(enter(graph));
  while (!stack.empty()) {
    Frame& top = stack.back();
    if (top.next == top.nested.size()) {
      const Frame done = std::move(top);
      heights[done.graph] = done.height;
      stack.pop_back();
      if (!stack.empty()) stack.back().height = std::max(stack.back().height, done.height + 1);
      continue;
    }
    const Graph* body = top.nested[top.next++];
    const auto seen = heights.find(body);
    const int height = seen == heights.end() ? 0 : seen->second;
    if (height == kOpen) return broken("G-15", *body, "the graph is nested in itself");
    if (stack.size() + static_cast<size_t>(height) > kMaxNesting) {
      return broken("G-15", *body, "graphs are nested more than ", kMaxNesting, " deep");
    }
    if (seen == heights.end()) {
      PINNACE_TRY(enter(*body));
    } else {
      top.height = std::max(top.height, height + 1);
    }
  }
  return {};
}

}  // namespace pinnace
