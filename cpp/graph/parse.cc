// The parser of the text form (docs/text_form.md): recursive descent with one token of look-ahead. Recursion is as deep
// as graphs are nested, at most kMaxNesting. Memory grows with the length of the text and never with a number in it:
// the elements that a shape promises are counted against the text that is left before room is made for them.
#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstring>
#include <limits>
#include <unordered_map>
#include <unordered_set>

#include "base/dtype_code.h"
#include "base/half.h"
#include "base/packed.h"
#include "base/small_float.h"
#include "graph/graph.h"
#include "graph/lexer.h"

namespace pinnace {
namespace {

constexpr int kMaxNesting = 200;
constexpr size_t kMaxValues = INT32_MAX;

/// What the statements of one graph have named so far.
struct Scope {
  Graph& graph;
  int depth;
  std::unordered_map<std::string, ValueId> values;
  std::unordered_set<std::string> nodes, states;
  std::vector<size_t> unnamed;                           // indices of nodes that get their names at the end
  std::vector<std::pair<size_t, Token>> awaited_states;  // state index and the %value after `next`
};

class Parser {
 public:
  explicit Parser(std::string_view text) : lexer_(text) { advance(); }

  Result<Graph> parse() {
    Graph graph;
    PINNACE_TRY(parse_graph(graph, 0));
    if (token_.kind != TokenKind::kEnd) return fail("expected the end of the text after the graph");
    return graph;
  }

 private:
  // -------------------------------------------------------------------------------------------------------- tokens
  void advance() { token_ = lexer_.next(); }

  template <class... Parts>
  [[gnu::always_inline]] Status fail_at(const Token& at, const Parts&... rule) const {
    return with_parts([&](const PartKind* kinds, const Part* list) { return failure_at(at, kinds, list); }, rule...);
  }
  template <class... Parts>
  [[gnu::always_inline]] Status fail(const Parts&... rule) const {
    return fail_at(token_, rule...);
  }
  [[gnu::cold]] Status failure_at(const Token& at, const PartKind* kinds, const Part* rule) const {
    std::string sentence = str_cat(lexer_.place(at.offset), ": ");
    append_parts(sentence, kinds, rule);
    if (at.kind == TokenKind::kBad) return invalid(sentence, "; ", at.text, ": '", at.raw.substr(0, 40), "'");
    if (at.kind == TokenKind::kEnd) return invalid(sentence, ", found the end of the text");
    return invalid(sentence, ", found '", at.raw.substr(0, 40), at.raw.size() > 40 ? "..." : "", "'");
  }

  bool take_mark(std::string_view mark) {
    if (!token_.mark(mark)) return false;
    advance();
    return true;
  }
  bool take_name(std::string_view name) {
    if (!token_.name(name)) return false;
    advance();
    return true;
  }
  Status expect(std::string_view mark) { return take_mark(mark) ? Status() : fail("expected '", mark, "'"); }
  Status expect_name(std::string_view name) { return take_name(name) ? Status() : fail("expected '", name, "'"); }
  Result<std::string> string(std::string_view what) {
    if (token_.kind != TokenKind::kString) return fail("expected ", what, " in quotes");
    std::string text = std::move(token_.text);
    advance();
    return text;
  }
  /// A bare or a quoted name.
  Result<std::string> name(std::string_view what) {
    if (token_.kind != TokenKind::kName && token_.kind != TokenKind::kString) return fail("expected ", what);
    std::string text = std::move(token_.text);
    advance();
    return text;
  }

  template <class T>
  Result<T> integer(std::string_view what, T min = std::numeric_limits<T>::min(),
                    T max = std::numeric_limits<T>::max()) {
    T number{};
    const char* end = token_.raw.data() + token_.raw.size();
    const auto read = std::from_chars(token_.raw.data(), end, number);
    if (token_.kind != TokenKind::kNumber || read.ec != std::errc() || read.ptr != end || number < min ||
        number > max) {
      return fail("expected ", what, ", an integer in [", min, ", ", max, "]");
    }
    advance();
    return number;
  }
  bool at_float() const { return token_.kind == TokenKind::kNumber || token_.name("inf") || token_.name("nan"); }
  template <class T>
  Result<T> floating(std::string_view what) {
    if (!at_float()) return fail("expected ", what, ", a number");
    T number{};
    const std::string_view raw = token_.raw;
    if (raw == "nan" || raw == "-nan") {
      number = std::numeric_limits<T>::quiet_NaN();
    } else if (raw == "inf" || raw == "-inf") {
      number = raw[0] == '-' ? -std::numeric_limits<T>::infinity() : std::numeric_limits<T>::infinity();
    } else {
      const auto read = std::from_chars(raw.data(), raw.data() + raw.size(), number);
      if (read.ec != std::errc() || read.ptr != raw.data() + raw.size()) {
        return fail("expected ", what, ", a number that ", 8 * sizeof(T), " bits can hold");
      }
    }
    advance();
    return number;
  }
  /// One or more items between '[' and ']', separated by commas; none at all is allowed.
  template <class F>
  Status list(F item) {
    PINNACE_TRY(expect("["));
    if (take_mark("]")) return {};
    do {
      PINNACE_TRY(item());
    } while (take_mark(","));
    return expect("]");
  }

  // --------------------------------------------------------------------------------------------------------- types
  Result<Dim> dim() {
    if (take_mark("?")) {
      if (!take_mark("<=")) return Dim();
      PINNACE_ASSIGN(const int64_t max, integer<int64_t>("an upper bound", 0));
      return Dim::unknown(max);
    }
    if (token_.kind == TokenKind::kNumber) {
      PINNACE_ASSIGN(const int64_t size, integer<int64_t>("a size", 0));
      return Dim(size);
    }
    const Token at = token_;
    PINNACE_ASSIGN(const std::string symbol, name("a size, a symbol or ?"));
    const auto found = symbols_.find(symbol);
    if (found == symbols_.end()) return fail_at(at, "no symbol of that name is declared");
    return Dim::of_symbol(found->second);
  }

  Result<std::shared_ptr<const Quantization>> quantization() {
    auto q = std::make_shared<Quantization>();
    PINNACE_TRY(expect("{"));
    if (take_name("scale")) {
      PINNACE_ASSIGN(const float scale, floating<float>("a scale"));
      PINNACE_TRY(expect(","));
      PINNACE_TRY(expect_name("zero"));
      PINNACE_ASSIGN(const int32_t zero, integer<int32_t>("a zero point"));
      q->scales = {scale};
      q->zero_points = {zero};
    } else {
      PINNACE_TRY(expect_name("scales"));
      PINNACE_TRY(list([&]() -> Status {
        PINNACE_ASSIGN(const float scale, floating<float>("a scale"));
        q->scales.push_back(scale);
        return {};
      }));
      PINNACE_TRY(expect(","));
      PINNACE_TRY(expect_name("zeros"));
      PINNACE_TRY(list([&]() -> Status {
        PINNACE_ASSIGN(const int32_t zero, integer<int32_t>("a zero point"));
        q->zero_points.push_back(zero);
        return {};
      }));
      while (take_mark(",")) {
        if (take_name("axis")) {
          PINNACE_ASSIGN(q->axis, integer<int32_t>("an axis"));
        } else {
          PINNACE_TRY(expect_name("block"));
          PINNACE_ASSIGN(q->block, integer<int64_t>("a block", 0));
        }
      }
    }
    PINNACE_TRY(expect("}"));
    return std::shared_ptr<const Quantization>(std::move(q));
  }

  Result<TensorType> type() {
    const auto dtype = token_.kind == TokenKind::kName ? dtype_from_code(token_.raw) : std::nullopt;
    if (!dtype) return fail("expected an element type");
    advance();
    TensorType type{*dtype, {}, nullptr};
    PINNACE_TRY(list([&]() -> Status {
      PINNACE_ASSIGN(const Dim d, dim());
      type.shape.push_back(d);
      return {};
    }));
    if (token_.mark("{")) {
      PINNACE_ASSIGN(type.quantization, quantization());
    }
    return type;
  }

  // ------------------------------------------------------------------------------------------------------ elements
  template <class T>
  Status element_ints(std::byte* to, int64_t count) {
    T* out = reinterpret_cast<T*>(to);
    for (int64_t i = 0; i < count; ++i) {
      if (i) PINNACE_TRY(expect(","));
      PINNACE_ASSIGN(out[i], integer<T>("an element"));
    }
    return {};
  }
  template <class T, class Read = T>
  Status element_floats(std::byte* to, int64_t count) {
    T* out = reinterpret_cast<T*>(to);
    for (int64_t i = 0; i < count; ++i) {
      if (i) PINNACE_TRY(expect(","));
      PINNACE_ASSIGN(const Read number, floating<Read>("an element"));
      out[i] = T(number);
      if constexpr (!std::is_same_v<T, Read>) {  // f16, bf16: rounded from double
        if (std::isinf(float{out[i]}) && !std::isinf(number)) return fail("element ", number, " is out of range");
      }
    }
    return {};
  }
  Status element_bools(std::byte* to, int64_t count) {
    for (int64_t i = 0; i < count; ++i) {
      if (i) PINNACE_TRY(expect(","));
      const bool yes = take_name("true");
      int64_t value = yes;
      if (!yes && !take_name("false")) {
        PINNACE_ASSIGN(value, integer<int64_t>("an element", 0, 1));
      }
      to[i] = static_cast<std::byte>(value);
    }
    return {};
  }
  Status element_packed_ints(std::byte* to, int bits, int64_t count, int64_t min, int64_t max) {
    for (int64_t i = 0; i < count; ++i) {
      if (i) PINNACE_TRY(expect(","));
      PINNACE_ASSIGN(const int64_t value, integer<int64_t>("an element", min, max));
      store_packed(to, bits, i, count, static_cast<uint8_t>(value));
    }
    return {};
  }
  Status element_small_floats(DType dtype, std::byte* to, int64_t count) {
    for (int64_t i = 0; i < count; ++i) {
      if (i) PINNACE_TRY(expect(","));
      PINNACE_ASSIGN(const double number, floating<double>("an element"));
      const uint8_t code = small_from_double(dtype, number, false, RoundMode::kNearest);
      // What the type lacks has become NaN, infinity or the largest number; rounding changes less than by half.
      const double stored = small_to_float(dtype, code);
      const bool lost = std::isnan(number) ? !std::isnan(stored)
                                           : std::isnan(stored) || (std::isinf(stored) && !std::isinf(number)) ||
                                                 std::fabs(number) > std::max(1.5 * std::fabs(stored), 1.0);
      if (lost) return fail("element ", number, " is out of range");
      store_packed(to, dtype_bits(dtype), i, count, code);
    }
    return {};
  }
  Status elements(DType dtype, std::byte* to, int64_t count) {
    switch (dtype) {
      case DType::kF32:
        return element_floats<float>(to, count);
      case DType::kF64:
        return element_floats<double>(to, count);
      case DType::kF16:
        return element_floats<Half, double>(to, count);
      case DType::kBF16:
        return element_floats<BFloat16, double>(to, count);
      case DType::kI8:
        return element_ints<int8_t>(to, count);
      case DType::kU8:
        return element_ints<uint8_t>(to, count);
      case DType::kI16:
        return element_ints<int16_t>(to, count);
      case DType::kU16:
        return element_ints<uint16_t>(to, count);
      case DType::kI32:
        return element_ints<int32_t>(to, count);
      case DType::kU32:
        return element_ints<uint32_t>(to, count);
      case DType::kI64:
        return element_ints<int64_t>(to, count);
      case DType::kU64:
        return element_ints<uint64_t>(to, count);
      case DType::kBool:
        return element_bools(to, count);
      case DType::kI4:
        return element_packed_ints(to, 4, count, -8, 7);
      case DType::kU4:
        return element_packed_ints(to, 4, count, 0, 15);
      case DType::kI2:
        return element_packed_ints(to, 2, count, -2, 1);
      case DType::kU2:
        return element_packed_ints(to, 2, count, 0, 3);
      case DType::kF8E4M3FN:
      case DType::kF8E4M3FNUZ:
      case DType::kF8E5M2:
      case DType::kF8E5M2FNUZ:
      case DType::kF8E8M0:
      case DType::kF6E2M3:
      case DType::kF6E3M2:
      case DType::kF4E2M1:
        return element_small_floats(dtype, to, count);
    }
    return {};
  }

  /// `= {…}` of a constant or a state of `type`, which must be concrete.
  Result<ConstantPtr> literal(const TensorType& type, const Token& at) {
    PINNACE_TRY(expect("="));
    if (token_.name("hash")) return fail("the elements were printed as a hash only and cannot be read back");
    // An element takes two bytes of text at least ("0,"), so that a larger count cannot be met.
    const auto limit = static_cast<int64_t>(lexer_.remaining() / 2 + 1);
    int64_t count = 1;
    for (const Dim& d : type.shape) {
      if (!d.known()) return fail_at(at, "the type ", type, " of a value with contents has a dynamic size");
      if (d.size == 0) count = 0;
    }
    for (const Dim& d : type.shape) {
      if (count && d.size > limit / count) {
        return fail("expected as many elements as ", type, " has, the text is shorter than that");
      }
      count *= d.size;
    }
    PINNACE_TRY(expect("{"));
    const int bits = dtype_bits(type.dtype);
    PINNACE_ASSIGN(Buffer bytes, Buffer::allocate(static_cast<size_t>((count * bits + 7) / 8), "a constant"));
    if (bits < 8 && bytes.size()) std::memset(bytes.data(), 0, bytes.size());
    PINNACE_TRY(elements(type.dtype, bytes.data(), count));
    if (!take_mark("}")) return fail("expected '}' after ", count, " elements of ", type);
    return Constant::of(std::move(bytes));
  }

  // -------------------------------------------------------------------------------------------------------- values
  Result<ValueId> define(Scope& scope, TensorType type, const Token& at) {
    if (scope.graph.values.size() >= kMaxValues) return fail_at(at, "a graph has at most ", kMaxValues, " values");
    const auto id = static_cast<ValueId>(scope.graph.values.size());
    if (!scope.values.emplace(at.text, id).second) return fail_at(at, "a value of that name is defined already");
    scope.graph.values.push_back(Value{at.text, std::move(type), nullptr});
    return id;
  }
  Result<ValueId> used(const Scope& scope, const Token& at) const {
    const auto found = scope.values.find(at.text);
    if (found == scope.values.end()) return fail_at(at, "no value of that name is defined before");
    return found->second;
  }
  Result<Token> value_token() {
    if (token_.kind != TokenKind::kValue) return fail("expected a value, %name");
    Token at = std::move(token_);
    advance();
    return at;
  }

  // ---------------------------------------------------------------------------------------------------- statements
  Status parse_symbol(Scope& scope) {
    if (scope.depth > 0) return fail("symbols belong to the outermost graph");
    Symbol symbol;
    const Token at = token_;
    PINNACE_ASSIGN(symbol.name, name("a name of a symbol"));
    PINNACE_ASSIGN(symbol.min, integer<int64_t>("a smallest size", 0));
    PINNACE_TRY(expect(".."));
    if (!take_name("inf")) {
      PINNACE_ASSIGN(symbol.max, integer<int64_t>("a largest size", 0));
    }
    if (take_name("multiple")) {
      PINNACE_ASSIGN(symbol.multiple_of, integer<int64_t>("a divisor", 1));
    }
    if (!symbols_.emplace(symbol.name, static_cast<int32_t>(scope.graph.symbols.size())).second) {
      return fail_at(at, "a symbol of that name is declared already");
    }
    scope.graph.symbols.push_back(std::move(symbol));
    return {};
  }

  Status parse_input(Scope& scope) {
    PINNACE_ASSIGN(const Token at, value_token());
    PINNACE_TRY(expect(":"));
    PINNACE_ASSIGN(TensorType declared, type());
    PINNACE_ASSIGN(const ValueId id, define(scope, std::move(declared), at));
    scope.graph.inputs.push_back(id);
    return {};
  }

  Status parse_state(Scope& scope) {
    State state;
    const Token name_at = token_;
    PINNACE_ASSIGN(state.name, string("the state's name"));
    if (!scope.states.insert(state.name).second) return fail_at(name_at, "a state of that name is defined already");
    PINNACE_ASSIGN(const Token at, value_token());
    PINNACE_TRY(expect(":"));
    PINNACE_ASSIGN(TensorType declared, type());
    PINNACE_TRY(expect_name("next"));
    PINNACE_ASSIGN(Token next, value_token());
    PINNACE_ASSIGN(state.initial, literal(declared, at));
    PINNACE_ASSIGN(state.input, define(scope, std::move(declared), at));
    scope.awaited_states.emplace_back(scope.graph.states.size(), std::move(next));
    scope.graph.states.push_back(std::move(state));
    return {};
  }

  Status parse_const(Scope& scope) {
    PINNACE_ASSIGN(const Token at, value_token());
    PINNACE_TRY(expect(":"));
    PINNACE_ASSIGN(TensorType declared, type());
    PINNACE_ASSIGN(ConstantPtr bytes, literal(declared, at));
    PINNACE_ASSIGN(const ValueId id, define(scope, std::move(declared), at));
    scope.graph.value(id).constant = std::move(bytes);
    return {};
  }

  Status parse_output(Scope& scope) {
    PINNACE_ASSIGN(std::string wanted, string("the output's name"));
    PINNACE_ASSIGN(const Token at, value_token());
    PINNACE_ASSIGN(const ValueId id, used(scope, at));
    scope.graph.add_output(std::move(wanted), id);
    return {};
  }

  /// "[1,2]", "[0.5]", "[\"a\"]", or with the kind before it, which an empty list needs: "ints[]".
  Result<Attr> list_attr() {
    const bool ints = take_name("ints"), floats = !ints && take_name("floats");
    const bool strings = !ints && !floats && take_name("strings");
    const Token at = token_;
    std::vector<int64_t> as_ints;
    std::vector<double> as_floats;
    std::vector<std::string> as_strings;
    bool all_ints = true;
    PINNACE_TRY(list([&]() -> Status {
      if (strings || (token_.kind == TokenKind::kString && as_floats.empty() && !ints && !floats)) {
        PINNACE_ASSIGN(std::string text, string("an item"));
        as_strings.push_back(std::move(text));
        return {};
      }
      if (!as_strings.empty()) return fail("expected a string, as the items before it");
      const bool whole = !floats && token_.raw.find_first_of(".einEN") == std::string_view::npos;
      if (ints || (whole && all_ints)) {
        const Token number = token_;
        PINNACE_ASSIGN(const int64_t item, integer<int64_t>("an item"));
        as_ints.push_back(item);
        as_floats.push_back(static_cast<double>(item));
        return {};
      }
      all_ints = false;
      PINNACE_ASSIGN(const double item, floating<double>("an item"));
      as_floats.push_back(item);
      return {};
    }));
    if (strings || !as_strings.empty()) return Attr(std::move(as_strings));
    if (ints) return Attr(std::move(as_ints));
    if (floats) return Attr(std::move(as_floats));
    if (as_floats.empty()) return fail_at(at, "an empty list needs its kind before it: ints[], floats[] or strings[]");
    if (all_ints) return Attr(std::move(as_ints));
    return Attr(std::move(as_floats));
  }

  Result<Attr> attr(const Scope& scope) {
    if (token_.kind == TokenKind::kString) {
      PINNACE_ASSIGN(std::string text, string("a value"));
      return Attr(std::move(text));
    }
    if (token_.mark("[") || token_.name("ints") || token_.name("floats") || token_.name("strings")) return list_attr();
    if (token_.name("graph")) {
      auto body = std::make_shared<Graph>();
      PINNACE_TRY(parse_graph(*body, scope.depth + 1));
      return Attr(GraphPtr(std::move(body)));
    }
    if (at_float() && token_.raw.find_first_of(".einE") != std::string_view::npos) {
      PINNACE_ASSIGN(const double number, floating<double>("a value"));
      return Attr(number);
    }
    PINNACE_ASSIGN(const int64_t number, integer<int64_t>("a value of an attribute"));
    return Attr(number);
  }

  Status parse_attrs(const Scope& scope, Node& node) {
    PINNACE_TRY(expect("{"));
    if (take_mark("}")) return {};
    do {
      const Token at = token_;
      PINNACE_ASSIGN(const std::string key, name("a name of an attribute"));
      if (node.attr(key)) return fail_at(at, "the attribute is given twice");
      PINNACE_TRY(expect("="));
      PINNACE_ASSIGN(Attr value, attr(scope));
      node.set_attr(key, std::move(value));
    } while (take_mark(","));
    return expect("}");
  }

  Status parse_source(SourceLocation& source) {
    if (take_name("at")) {
      PINNACE_ASSIGN(source.file, string("a file"));
      if (take_mark(":")) {
        PINNACE_ASSIGN(source.line, integer<int32_t>("a line", 0));
      }
    }
    if (take_name("in")) {
      PINNACE_ASSIGN(source.module, string("a module"));
    }
    return {};
  }

  Status parse_node(Scope& scope) {
    // The outputs are defined after the inputs were looked up: a node cannot read what it makes.
    std::vector<std::pair<Token, TensorType>> made;
    while (token_.kind == TokenKind::kValue) {
      PINNACE_ASSIGN(Token at, value_token());
      TensorType declared;
      if (take_mark(":")) {
        PINNACE_ASSIGN(declared, type());
      }
      made.emplace_back(std::move(at), std::move(declared));
      if (!take_mark(",")) break;
    }
    PINNACE_TRY(expect("="));
    auto node = std::make_unique<Node>();
    PINNACE_ASSIGN(node->op, name("an operator"));
    if (take_mark("@")) {
      PINNACE_ASSIGN(node->version, integer<int32_t>("a version", 1));
    }
    const Token name_at = token_;
    if (token_.kind == TokenKind::kString) {
      PINNACE_ASSIGN(node->name, string("a name"));
      if (!scope.nodes.insert(node->name).second) return fail_at(name_at, "a node of that name is defined already");
    } else {
      scope.unnamed.push_back(scope.graph.nodes.size());
    }
    PINNACE_TRY(expect("("));
    if (!take_mark(")")) {
      do {
        if (take_name("none")) {
          node->inputs.push_back(kNoValue);
          continue;
        }
        PINNACE_ASSIGN(const Token at, value_token());
        PINNACE_ASSIGN(const ValueId id, used(scope, at));
        node->inputs.push_back(id);
      } while (take_mark(","));
      PINNACE_TRY(expect(")"));
    }
    if (token_.mark("{")) PINNACE_TRY(parse_attrs(scope, *node));
    PINNACE_TRY(parse_source(node->source));
    for (auto& [at, declared] : made) {
      PINNACE_ASSIGN(const ValueId id, define(scope, std::move(declared), at));
      node->outputs.push_back(id);
    }
    scope.graph.nodes.push_back(std::move(node));
    return {};
  }

  Status parse_statement(Scope& scope) {
    if (take_name("symbol")) return parse_symbol(scope);
    if (take_name("input")) return parse_input(scope);
    if (take_name("state")) return parse_state(scope);
    if (take_name("const")) return parse_const(scope);
    if (take_name("output")) return parse_output(scope);
    if (token_.kind == TokenKind::kValue || token_.mark("=")) return parse_node(scope);
    return fail("expected symbol, input, state, const, output, a node or '}'");
  }

  Status parse_graph(Graph& graph, int depth) {
    if (depth > kMaxNesting) return fail("graphs may be nested ", kMaxNesting, " deep");
    PINNACE_TRY(expect_name("graph"));
    PINNACE_ASSIGN(graph.name, string("the graph's name"));
    PINNACE_TRY(expect("{"));
    Scope scope{graph, depth, {}, {}, {}, {}, {}};
    while (!take_mark("}")) PINNACE_TRY(parse_statement(scope));
    for (const auto& [index, next] : scope.awaited_states) {
      PINNACE_ASSIGN(graph.states[index].output, used(scope, next));
    }
    // A name that is left out is the operator's with a number. Given only now, it cannot take one that stands further
    // on.
    std::unordered_map<std::string, int64_t> numbers;
    for (const size_t index : scope.unnamed) {
      Node& node = *graph.nodes[index];
      do {
        node.name = str_cat(node.op, "_", numbers[node.op]++);
      } while (!scope.nodes.insert(node.name).second);
    }
    return {};
  }

  Lexer lexer_;
  Token token_;
  std::unordered_map<std::string, int32_t> symbols_;
};

}  // namespace

Result<Graph> parse(std::string_view text) {
  return Parser(text).parse();
}

}  // namespace pinnace
