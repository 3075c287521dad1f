// print: the text form of a graph (docs/text_form.md). It takes graphs that do not verify, for error reports: ids out
// of range are printed as names that no value has.
#include <algorithm>
#include <cstring>

#include "base/dtype_code.h"
#include "base/half.h"
#include "base/packed.h"
#include "base/small_float.h"
#include "graph/graph.h"
#include "graph/lexer.h"

namespace pinnace {
namespace {

constexpr int kMaxNesting = 200;

void append_name(std::string& to, std::string_view name) {
  if (is_bare_name(name)) {
    to += name;
  } else {
    append_quoted(to, name);
  }
}

template <class T>
void append_float(std::string& to, T number) {
  if (number != number) {
    to += "nan";  // sign and payload of a NaN are not kept
  } else {
    append_text(to, number);
  }
}

/// A float attribute: told from an int by '.', 'e', inf or nan.
void append_float_attr(std::string& to, double number) {
  const size_t start = to.size();
  append_float(to, number);
  if (to.find_first_of(".ein", start) == std::string::npos) to += ".0";
}

/// A fingerprint for human eyes, not a checksum: eight bytes at a time, multiplied and folded.
uint64_t fingerprint(const std::byte* data, size_t bytes) {
  uint64_t hash = 0x9e3779b97f4a7c15u ^ bytes;
  for (size_t at = 0; at < bytes; at += 8) {
    uint64_t word = 0;
    std::memcpy(&word, data + at, std::min<size_t>(8, bytes - at));
    hash = (hash ^ word) * 0xff51afd7ed558ccdu;
    hash ^= hash >> 32;
  }
  return hash;
}

bool is_dtype(DType dtype) {
  return static_cast<int>(dtype) < kDTypeCount;
}

class Printer {
 public:
  Printer(std::string& out, std::span<const Symbol> symbols, size_t max_constant_bytes)
      : out_(out), symbols_(symbols), max_constant_bytes_(max_constant_bytes) {}

  void graph(const Graph& graph, int depth) {
    out_ += "graph ";
    append_quoted(out_, graph.name);
    if (depth > kMaxNesting) {
      out_ += " { ... }";
      return;
    }
    out_ += " {\n";
    const std::string indent(static_cast<size_t>(depth) * 2 + 2, ' ');
    for (const Symbol& s : graph.symbols) symbol(indent, s);
    for (const ValueId id : graph.inputs) {
      out_ += indent;
      out_ += "input ";
      value(graph, id);
      typed(graph, id);
      out_ += '\n';
    }
    for (const State& s : graph.states) state(indent, graph, s);
    for (const Value& v : graph.values) {
      if (!v.constant) continue;
      out_ += indent;
      out_ += "const ";
      value_name(v.name);
      out_ += " : ";
      type(v.type);
      out_ += " = ";
      elements(v.type, *v.constant);
      out_ += '\n';
    }
    for (const auto& n : graph.nodes) node(indent, graph, *n, depth);
    for (size_t i = 0; i < graph.outputs.size(); ++i) {
      out_ += indent;
      out_ += "output ";
      append_quoted(out_, i < graph.output_names.size() ? graph.output_names[i] : std::string());
      out_ += ' ';
      value(graph, graph.outputs[i]);
      out_ += '\n';
    }
    out_.append(indent, 2);
    out_ += '}';
  }

 private:
  void symbol(const std::string& indent, const Symbol& s) {
    out_ += indent;
    out_ += "symbol ";
    append_name(out_, s.name);
    out_ += str_cat(" ", s.min, "..", s.max == Symbol::kUnbounded ? "inf" : str_cat(s.max), " multiple ", s.multiple_of,
                    "\n");
  }

  void state(const std::string& indent, const Graph& graph, const State& s) {
    out_ += indent;
    out_ += "state ";
    append_quoted(out_, s.name);
    out_ += ' ';
    value(graph, s.input);
    typed(graph, s.input);
    out_ += " next ";
    value(graph, s.output);
    out_ += " = ";
    if (s.initial && in_range(graph, s.input)) {
      elements(graph.value(s.input).type, *s.initial);
    } else {
      out_ += "{}";
    }
    out_ += '\n';
  }

  void node(const std::string& indent, const Graph& graph, const Node& n, int depth) {
    out_ += indent;
    for (size_t i = 0; i < n.outputs.size(); ++i) {
      if (i) out_ += ", ";
      value(graph, n.outputs[i]);
      typed(graph, n.outputs[i]);
    }
    out_ += n.outputs.empty() ? "= " : " = ";
    append_name(out_, n.op);
    out_ += str_cat("@", n.version, " ");
    append_quoted(out_, n.name);
    out_ += " (";
    for (size_t i = 0; i < n.inputs.size(); ++i) {
      if (i) out_ += ", ";
      if (n.inputs[i] == kNoValue) {
        out_ += "none";
      } else {
        value(graph, n.inputs[i]);
      }
    }
    out_ += ')';
    if (!n.attrs.empty()) {
      out_ += " {";
      for (size_t i = 0; i < n.attrs.size(); ++i) {
        if (i) out_ += ", ";
        append_name(out_, n.attrs[i].first);
        out_ += '=';
        attr(n.attrs[i].second, depth);
      }
      out_ += '}';
    }
    if (!n.source.file.empty() || n.source.line != 0) {
      out_ += " at ";
      append_quoted(out_, n.source.file);
      if (n.source.line != 0) out_ += str_cat(":", n.source.line);
    }
    if (!n.source.module.empty()) {
      out_ += " in ";
      append_quoted(out_, n.source.module);
    }
    out_ += '\n';
  }

  template <class T, class F>
  void list(std::string_view kind, const std::vector<T>& items, F append) {
    if (items.empty()) out_ += kind;
    out_ += '[';
    for (size_t i = 0; i < items.size(); ++i) {
      if (i) out_ += ',';
      append(items[i]);
    }
    out_ += ']';
  }

  void attr(const Attr& a, int depth) {
    switch (attr_kind(a)) {
      case AttrKind::kInt:
        append_text(out_, std::get<int64_t>(a));
        break;
      case AttrKind::kFloat:
        append_float_attr(out_, std::get<double>(a));
        break;
      case AttrKind::kString:
        append_quoted(out_, std::get<std::string>(a));
        break;
      case AttrKind::kInts:
        list("ints", std::get<std::vector<int64_t>>(a), [&](int64_t i) { append_text(out_, i); });
        break;
      case AttrKind::kFloats:
        list("floats", std::get<std::vector<double>>(a), [&](double d) { append_float_attr(out_, d); });
        break;
      case AttrKind::kStrings:
        list("strings", std::get<std::vector<std::string>>(a), [&](const std::string& s) { append_quoted(out_, s); });
        break;
      case AttrKind::kGraph:
        if (const GraphPtr& body = std::get<GraphPtr>(a)) {
          graph(*body, depth + 1);
        } else {
          out_ += "null";
        }
        break;
    }
  }

  static bool in_range(const Graph& graph, ValueId id) {
    return id >= 0 && static_cast<size_t>(id) < graph.values.size();
  }
  void value_name(std::string_view name) {
    out_ += '%';
    append_name(out_, name);
  }
  void value(const Graph& graph, ValueId id) {
    if (in_range(graph, id)) {
      value_name(graph.value(id).name);
    } else {
      out_ += str_cat("%<", id, ">");
    }
  }
  void typed(const Graph& graph, ValueId id) {
    if (!in_range(graph, id)) return;
    out_ += " : ";
    type(graph.value(id).type);
  }

  void type(const TensorType& t) {
    out_ += is_dtype(t.dtype) ? std::string(dtype_code(t.dtype)) : str_cat("<", static_cast<int>(t.dtype), ">");
    out_ += '[';
    for (size_t i = 0; i < t.shape.size(); ++i) {
      const Dim& d = t.shape[i];
      if (i) out_ += ',';
      if (d.known()) {
        append_text(out_, d.size);
      } else if (d.symbol >= 0 && static_cast<size_t>(d.symbol) < symbols_.size()) {
        append_name(out_, symbols_[static_cast<size_t>(d.symbol)].name);
      } else if (d.symbol >= 0) {
        out_ += str_cat("<", d.symbol, ">");
      } else if (d.max >= 0) {
        out_ += str_cat("?<=", d.max);
      } else {
        out_ += '?';
      }
    }
    out_ += ']';
    if (!t.quantization) return;
    const Quantization& q = *t.quantization;
    if (q.axis == -1 && q.block == 0 && q.scales.size() == 1 && q.zero_points.size() == 1) {
      out_ += "{scale ";
      append_float(out_, q.scales[0]);
      out_ += str_cat(", zero ", q.zero_points[0], "}");
      return;
    }
    out_ += "{scales ";
    list("", q.scales, [&](float f) { append_float(out_, f); });
    out_ += ", zeros ";
    list("", q.zero_points, [&](int32_t z) { append_text(out_, z); });
    out_ += str_cat(", axis ", q.axis);
    if (q.block) out_ += str_cat(", block ", q.block);
    out_ += '}';
  }

  template <class T>
  T load(const std::byte* data, size_t index) {
    T element;
    std::memcpy(&element, data + index * sizeof(T), sizeof(T));
    return element;
  }
  void element(DType dtype, const std::byte* data, size_t i) {
    switch (dtype) {
      case DType::kF32:
        append_float(out_, load<float>(data, i));
        break;
      case DType::kF64:
        append_float(out_, load<double>(data, i));
        break;
      case DType::kF16:
        append_float(out_, half_to_float(load<uint16_t>(data, i)));
        break;
      case DType::kBF16:
        append_float(out_, bfloat_to_float(load<uint16_t>(data, i)));
        break;
      case DType::kI8:
        append_text(out_, int{load<int8_t>(data, i)});
        break;
      case DType::kBool:
      case DType::kU8:
        append_text(out_, int{load<uint8_t>(data, i)});
        break;
      case DType::kI16:
        append_text(out_, load<int16_t>(data, i));
        break;
      case DType::kU16:
        append_text(out_, load<uint16_t>(data, i));
        break;
      case DType::kI32:
        append_text(out_, load<int32_t>(data, i));
        break;
      case DType::kU32:
        append_text(out_, load<uint32_t>(data, i));
        break;
      case DType::kI64:
        append_text(out_, load<int64_t>(data, i));
        break;
      case DType::kU64:
        append_text(out_, load<uint64_t>(data, i));
        break;
      case DType::kI2:
      case DType::kI4:
      case DType::kU2:
      case DType::kU4: {
        const int bits = dtype_bits(dtype), code = load_packed(data, bits, static_cast<int64_t>(i));
        const bool negative = (dtype == DType::kI2 || dtype == DType::kI4) && code >> (bits - 1);
        append_text(out_, negative ? code - (1 << bits) : code);
        break;
      }
      case DType::kF8E4M3FN:
      case DType::kF8E4M3FNUZ:
      case DType::kF8E5M2:
      case DType::kF8E5M2FNUZ:
      case DType::kF8E8M0:
      case DType::kF6E2M3:
      case DType::kF6E3M2:
      case DType::kF4E2M1:
        append_float(out_, small_to_float(dtype, load_packed(data, dtype_bits(dtype), static_cast<int64_t>(i))));
        break;
    }
  }
  void elements(const TensorType& t, const Constant& constant) {
    if (!is_dtype(t.dtype)) return;
    if (constant.bytes() > max_constant_bytes_) {
      char digits[16];
      const auto end = std::to_chars(digits, digits + 16, fingerprint(constant.data(), constant.bytes()), 16).ptr;
      out_ += "hash ";
      out_.append(16 - static_cast<size_t>(end - digits), '0');
      out_.append(digits, end);
      return;
    }
    // The bytes decide where they and the type disagree, which verify() would refuse.
    size_t count = constant.bytes() * 8 / static_cast<size_t>(dtype_bits(t.dtype));
    if (t.bytes() == static_cast<int64_t>(constant.bytes())) count = static_cast<size_t>(t.elements());
    out_ += '{';
    for (size_t i = 0; i < count; ++i) {
      if (i) out_ += ',';
      element(t.dtype, constant.data(), i);
    }
    out_ += '}';
  }

  std::string& out_;
  std::span<const Symbol> symbols_;
  size_t max_constant_bytes_;
};

}  // namespace

std::string print(const Graph& graph, size_t max_constant_bytes) {
  std::string text;
  Printer(text, graph.symbols, max_constant_bytes).graph(graph, 0);
  text += '\n';
  return text;
}

}  // namespace pinnace
