// diff: what differs between two programs, found by name: inputs, outputs, states, nodes with their attributes, inputs
// and types, constants, nested graphs. A renamed node is one that went and one that came.
#include <algorithm>
#include <cstring>
#include <string>
#include <tuple>
#include <unordered_map>
#include <vector>

#include <pinnace/program.h>

#include "base/hash.h"
#include "program/program_data.h"

namespace pinnace {
namespace {

std::string hash_text(std::span<const std::byte> bytes) {
  char digits[16];
  const auto end = std::to_chars(digits, digits + sizeof digits, hash64(bytes), 16);
  return str_cat(bytes.size(), " bytes, hash ", std::string_view(digits, static_cast<size_t>(end.ptr - digits)));
}

std::span<const std::byte> bytes_of(const Constant& c) {
  return {c.data(), c.bytes()};
}

bool equal_bytes(std::span<const std::byte> a, std::span<const std::byte> b) {
  return a.size() == b.size() && (a.empty() || std::memcmp(a.data(), b.data(), a.size()) == 0);
}

std::string attr_text(const Attr* attr) {
  if (!attr) return "not set";
  switch (attr_kind(*attr)) {
    case AttrKind::kInt:
      return str_cat(std::get<int64_t>(*attr));
    case AttrKind::kFloat:
      return str_cat(std::get<double>(*attr));
    case AttrKind::kString:
      return str_cat("\"", std::get<std::string>(*attr), "\"");
    case AttrKind::kInts:
      return list_text(std::span<const int64_t>(std::get<std::vector<int64_t>>(*attr)));
    case AttrKind::kFloats:
      return list_text(std::span<const double>(std::get<std::vector<double>>(*attr)));
    case AttrKind::kStrings: {
      std::string text = "[";
      for (const std::string& s : std::get<std::vector<std::string>>(*attr)) {
        text += str_cat(text.size() > 1 ? "," : "", "\"", s, "\"");
      }
      return text + "]";
    }
    case AttrKind::kGraph:
      return str_cat("graph \"", std::get<GraphPtr>(*attr)->name, "\"");
  }
  return {};
}

template <class T>
bool equal_bits(const std::vector<T>& a, const std::vector<T>& b) {
  return a.size() == b.size() && (a.empty() || std::memcmp(a.data(), b.data(), a.size() * sizeof(T)) == 0);
}

bool equal_attrs(const Attr& a, const Attr& b) {
  if (a.index() != b.index()) return false;
  // By bits: NaN equals itself, and -0 is another value than 0.
  if (const double* x = std::get_if<double>(&a)) return equal_bits<double>({*x}, {std::get<double>(b)});
  if (const auto* x = std::get_if<std::vector<double>>(&a)) return equal_bits(*x, std::get<std::vector<double>>(b));
  return a == b;
}

class Differ {
 public:
  Differ(std::span<const Symbol> a_symbols, std::span<const Symbol> b_symbols)
      : a_symbols_(a_symbols), b_symbols_(b_symbols) {}

  void graphs(const Graph& a, const Graph& b, const std::string& place) {
    change(place, "name", a.name, b.name);
    values("input", a, a.inputs, nullptr, b, b.inputs, nullptr, place);
    values("output", a, a.outputs, &a.output_names, b, b.outputs, &b.output_names, place);
    states(a, b, place);
    constants(a, b, place);
    nodes(a, b, place);
  }
  void symbols() {
    const auto text = [](const Symbol& s) {
      return str_cat(s.name, " in [", s.min, ", ", s.max == Symbol::kUnbounded ? "unbounded" : str_cat(s.max),
                     "] in steps of ", s.multiple_of);
    };
    for (size_t i = 0; i < std::max(a_symbols_.size(), b_symbols_.size()); ++i) {
      change("", str_cat("symbol ", i), i < a_symbols_.size() ? text(a_symbols_[i]) : "absent",
             i < b_symbols_.size() ? text(b_symbols_[i]) : "absent");
    }
  }
  void line(const std::string& place, const std::string& text) {
    lines.push_back(place.empty() ? text : place + ": " + text);
  }
  void change(const std::string& place, const std::string& what, const std::string& a, const std::string& b) {
    if (a != b) line(place, str_cat(what, ": ", a, " -> ", b));
  }

  std::vector<std::string> lines;

 private:
  static std::string value_name(const Graph& graph, ValueId id) {
    return id == kNoValue ? std::string("none") : "%" + graph.value(id).name;
  }

  void type(const std::string& place, const std::string& what, const TensorType& a, const TensorType& b) {
    const std::string x = to_string(a, a_symbols_), y = to_string(b, b_symbols_);
    if (x != y) {
      line(place, str_cat(what, ": ", x, " -> ", y));
    } else if (a.quantized() && b.quantized() && !(*a.quantization == *b.quantization)) {
      line(place, str_cat(what, ": ", x, " with other scales or zero points"));
    }
  }

  void values(const char* kind, const Graph& a, const std::vector<ValueId>& a_ids,
              const std::vector<std::string>* a_names, const Graph& b, const std::vector<ValueId>& b_ids,
              const std::vector<std::string>* b_names, const std::string& place) {
    for (size_t i = 0; i < std::max(a_ids.size(), b_ids.size()); ++i) {
      const std::string what = str_cat(kind, " ", i);
      const auto text = [&](const Graph& g, const std::vector<ValueId>& ids, const std::vector<std::string>* names) {
        if (i >= ids.size()) return std::string("absent");
        return names ? str_cat("'", (*names)[i], "' ", value_name(g, ids[i])) : str_cat("'", g.value(ids[i]).name, "'");
      };
      change(place, what, text(a, a_ids, a_names), text(b, b_ids, b_names));
      if (i < a_ids.size() && i < b_ids.size())
        type(place, what + " type", a.value(a_ids[i]).type, b.value(b_ids[i]).type);
    }
  }

  void states(const Graph& a, const Graph& b, const std::string& place) {
    for (size_t i = 0; i < std::max(a.states.size(), b.states.size()); ++i) {
      const auto text = [&](const Graph& g) {
        if (i >= g.states.size()) return std::string("absent");
        const State& s = g.states[i];
        return str_cat("'", s.name, "' from ", value_name(g, s.input), " to ", value_name(g, s.output));
      };
      change(place, str_cat("state ", i), text(a), text(b));
      if (i >= a.states.size() || i >= b.states.size()) continue;
      const State &x = a.states[i], &y = b.states[i];
      type(place, str_cat("state '", x.name, "' type"), a.value(x.input).type, b.value(y.input).type);
      bytes(place, str_cat("state '", x.name, "' starts with"), bytes_of(*x.initial), bytes_of(*y.initial));
    }
  }

  void bytes(const std::string& place, const std::string& what, std::span<const std::byte> a,
             std::span<const std::byte> b) {
    if (!equal_bytes(a, b)) line(place, str_cat(what, ": ", hash_text(a), " -> ", hash_text(b)));
  }

  void constants(const Graph& a, const Graph& b, const std::string& place) {
    std::unordered_map<std::string_view, const Value*> in_b, in_a;
    for (const Value& v : b.values)
      if (v.constant) in_b.emplace(v.name, &v);
    for (const Value& v : a.values) {
      if (!v.constant) continue;
      in_a.emplace(v.name, &v);
      const auto other = in_b.find(v.name);
      const std::string what = str_cat("constant '", v.name, "'");
      if (other == in_b.end()) {
        line(place, str_cat(what, " ", to_string(v.type, a_symbols_), " removed"));
        continue;
      }
      type(place, what + " type", v.type, other->second->type);
      bytes(place, what, bytes_of(*v.constant), bytes_of(*other->second->constant));
    }
    for (const Value& v : b.values) {
      if (!v.constant || in_a.contains(v.name)) continue;
      line(place, str_cat("constant '", v.name, "' ", to_string(v.type, b_symbols_), " added"));
    }
  }

  void nodes(const Graph& a, const Graph& b, const std::string& place) {
    std::unordered_map<std::string_view, size_t> in_b, in_a;
    for (size_t i = 0; i < b.nodes.size(); ++i) in_b.emplace(b.nodes[i]->name, i);
    for (size_t i = 0; i < a.nodes.size(); ++i) in_a.emplace(a.nodes[i]->name, i);
    size_t next = 0;  // first node of b that has not been passed: what is new there is told before what follows it
    const auto added_before = [&](size_t end) {
      for (; next < end; ++next) {
        if (!in_a.contains(b.nodes[next]->name))
          line(place, str_cat(b.nodes[next]->op, " '", b.nodes[next]->name, "' added"));
      }
    };
    bool moved = false;
    for (const auto& node : a.nodes) {
      const auto other = in_b.find(node->name);
      if (other == in_b.end()) {
        line(place, str_cat(node->op, " '", node->name, "' removed"));
        continue;
      }
      if (other->second < next && !moved) {
        moved = true;
        line(place, str_cat(node->op, " '", node->name, "' comes earlier in the order"));
      }
      added_before(other->second);
      next = std::max(next, other->second + 1);
      one(a, *node, b, *b.nodes[other->second], place);
    }
    added_before(b.nodes.size());
  }

  void one(const Graph& ga, const Node& a, const Graph& gb, const Node& b, const std::string& place) {
    const std::string what = str_cat(place, place.empty() ? "" : "/", a.op, " '", a.name, "'");
    change(what, "operator", a.op, b.op);
    change(what, "version", str_cat(a.version), str_cat(b.version));
    for (size_t i = 0; i < std::max(a.inputs.size(), b.inputs.size()); ++i) {
      change(what, str_cat("input ", i), i < a.inputs.size() ? value_name(ga, a.inputs[i]) : "none",
             i < b.inputs.size() ? value_name(gb, b.inputs[i]) : "none");
    }
    for (size_t i = 0; i < std::max(a.outputs.size(), b.outputs.size()); ++i) {
      change(what, str_cat("output ", i), i < a.outputs.size() ? value_name(ga, a.outputs[i]) : "absent",
             i < b.outputs.size() ? value_name(gb, b.outputs[i]) : "absent");
      if (i < a.outputs.size() && i < b.outputs.size()) {
        type(what, str_cat("output ", i, " type"), ga.value(a.outputs[i]).type, gb.value(b.outputs[i]).type);
      }
    }
    for (const auto& [name, value] : a.attrs) {
      const Attr* other = b.attr(name);
      const auto* x = std::get_if<GraphPtr>(&value);
      const auto* y = other ? std::get_if<GraphPtr>(other) : nullptr;
      if (x && y) {
        graphs(**x, **y, str_cat(what, ".", name));
      } else if (!other || !equal_attrs(value, *other)) {
        line(what, str_cat("attribute ", name, ": ", attr_text(&value), " -> ", attr_text(other)));
      }
    }
    for (const auto& [name, value] : b.attrs) {
      if (!a.attr(name)) line(what, str_cat("attribute ", name, ": not set -> ", attr_text(&value)));
    }
    change(what, "source", a.source.text(), b.source.text());
    change(what, "module", a.source.module, b.source.module);
  }

  std::span<const Symbol> a_symbols_, b_symbols_;
};

/// Entries of two sorted lists, one line for each that is not in both alike.
void metadata(Differ& differ, const Metadata& a, const Metadata& b) {
  size_t i = 0, j = 0;
  while (i < a.size() || j < b.size()) {
    const bool from_a = i < a.size() && (j >= b.size() || a[i].first <= b[j].first);
    const bool from_b = j < b.size() && (i >= a.size() || b[j].first <= a[i].first);
    const std::string& key = from_a ? a[i].first : b[j].first;
    differ.change("", str_cat("metadata '", key, "'"), from_a ? a[i].second : "absent",
                  from_b ? b[j].second : "absent");
    i += from_a;
    j += from_b;
  }
}

void payloads(Differ& differ, const std::vector<Payload>& a, const std::vector<Payload>& b) {
  const auto key = [](const Payload& p) { return std::tie(p.target, p.key); };
  size_t i = 0, j = 0;
  while (i < a.size() || j < b.size()) {
    const bool from_a = i < a.size() && (j >= b.size() || key(a[i]) <= key(b[j]));
    const bool from_b = j < b.size() && (i >= a.size() || key(b[j]) <= key(a[i]));
    const Payload& p = from_a ? a[i] : b[j];
    if (!from_a || !from_b || !equal_bytes(a[i].bytes, b[j].bytes)) {
      differ.change("", str_cat("payload '", p.key, "' for ", p.target), from_a ? hash_text(a[i].bytes) : "absent",
                    from_b ? hash_text(b[j].bytes) : "absent");
    }
    i += from_a;
    j += from_b;
  }
}

}  // namespace

std::vector<std::string> diff(const Program& a, const Program& b, bool include_metadata) {
  const ProgramData &x = a.data(), &y = b.data();
  Differ differ(x.graph.symbols, y.graph.symbols);
  differ.symbols();
  differ.graphs(x.graph, y.graph, "");
  // Equal graphs print alike; what is left are values that nothing mentions, and the order of values.
  if (differ.lines.empty() && print(x.graph, 64) != print(y.graph, 64))
    differ.line("", "the programs differ in values that nothing reads, or in their order");
  if (include_metadata) {
    metadata(differ, x.metadata, y.metadata);
    payloads(differ, x.payloads, y.payloads);
  }
  return std::move(differ.lines);
}

}  // namespace pinnace
