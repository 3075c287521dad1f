// Parser, printer and intervals of symbolic sizes.
#include "import/torch/exported/expression.h"

#include <algorithm>
#include <charconv>
#include <numeric>

namespace pinnace::torch_import {
namespace {

constexpr size_t kMaxLength = 64 * 1024;
constexpr int kMaxDepth = 64;

constexpr std::string_view kFunctions[] = {
    "Add",
    "And",
    "CeilDiv",
    "CeilToInt",
    "CleanDiv",
    "Equality",
    "Eq",
    "FloatPow",
    "FloatTrueDiv",
    "FloorDiv",
    "FloorToInt",
    "Ge",
    "GreaterThan",
    "Gt",
    "Identity",
    "IntTrueDiv",
    "LShift",
    "Le",
    "LessThan",
    "Lt",
    "Max",
    "Min",
    "Mod",
    "ModularIndexing",
    "Mul",
    "Ne",
    "Not",
    "Or",
    "Pow",
    "PowByNatural",
    "PythonMod",
    "RShift",
    "RoundToInt",
    "StrictGreaterThan",
    "StrictLessThan",
    "ToFloat",
    "TruncToInt",
    "Unequality",
    "Where",
};

class Parser {
 public:
  explicit Parser(std::string_view text) : text_(text) {}

  Result<Expression> whole() {
    PINNACE_ASSIGN(Expression e, expression(0));
    skip_space();
    if (at_ != text_.size()) return error("nothing more");
    return e;
  }

 private:
  template <class... Parts>
  Status error(const Parts&... expected) const {
    return invalid("symbolic size '", text_.substr(0, 200), "', place ", at_, ": expected ", expected..., ", found '",
                   text_.substr(std::min(at_, text_.size()), 12), "'");
  }
  void skip_space() {
    while (at_ < text_.size() && text_[at_] == ' ') ++at_;
  }
  bool take(char c) {
    skip_space();
    if (at_ >= text_.size() || text_[at_] != c) return false;
    ++at_;
    return true;
  }
  std::string_view word() {
    skip_space();
    const size_t start = at_;
    const auto part = [](char c) {
      return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
    };
    while (at_ < text_.size() && part(text_[at_])) ++at_;
    return text_.substr(start, at_ - start);
  }

  Result<Expression> number() {
    skip_space();
    Expression e;
    const char* const begin = text_.data() + at_;
    const char* const end = text_.data() + text_.size();
    const auto whole = std::from_chars(begin, end, e.integer);
    const char* stop = whole.ptr;
    if (whole.ec != std::errc() || (stop != end && (*stop == '.' || *stop == 'e'))) {
      const auto real = std::from_chars(begin, end, e.real);
      if (real.ec != std::errc()) return error("a number");
      e.kind = Expression::Kind::kFloat;
      stop = real.ptr;
    }
    at_ += static_cast<size_t>(stop - begin);
    return e;
  }

  Result<std::string> quoted() {
    skip_space();
    const char quote = at_ < text_.size() ? text_[at_] : 0;
    if (quote != '\'' && quote != '"') return error("a quoted name");
    const size_t end = text_.find(quote, at_ + 1);
    if (end == std::string_view::npos) return error("the end of a quoted name");
    std::string name(text_.substr(at_ + 1, end - at_ - 1));
    at_ = end + 1;
    return name;
  }

  /// ", positive=True, integer=True)" and the like: assumptions, which say nothing that ranges do not.
  Status rest_of_call() {
    while (take(',')) {
      if (word().empty()) return error("a keyword");
      if (!take('=')) return error("'='");
      skip_space();
      if (at_ < text_.size() && (text_[at_] == '-' || (text_[at_] >= '0' && text_[at_] <= '9'))) {
        PINNACE_TRY(number().status());
      } else if (word().empty()) {
        return error("a value");
      }
    }
    return take(')') ? Status() : error("')'");
  }

  Result<Expression> expression(int depth) {
    if (depth > kMaxDepth) return error("at most ", kMaxDepth, " levels");
    skip_space();
    if (at_ < text_.size() && (text_[at_] == '-' || (text_[at_] >= '0' && text_[at_] <= '9'))) return number();
    const size_t start = at_;
    const std::string_view name = word();
    Expression e;
    if (name == "True" || name == "False" || name == "true" || name == "false") {
      e.kind = Expression::Kind::kBool;
      e.integer = name[0] == 'T' || name[0] == 't';
      return e;
    }
    if (name == "Symbol" || name == "Dummy") {
      if (!take('(')) return error("'('");
      PINNACE_ASSIGN(e.name, quoted());
      e.kind = Expression::Kind::kSymbol;
      PINNACE_TRY(rest_of_call());
      return e;
    }
    if (name == "Integer" || name == "Float") {
      if (!take('(')) return error("'('");
      skip_space();
      if (at_ < text_.size() && text_[at_] == '\'') {  // Float('0.5', precision=53)
        PINNACE_ASSIGN(const std::string digits, quoted());
        const auto read = std::from_chars(digits.data(), digits.data() + digits.size(), e.real);
        if (read.ec != std::errc()) return error("a number");
        e.kind = Expression::Kind::kFloat;
      } else {
        PINNACE_ASSIGN(e, number());
      }
      PINNACE_TRY(rest_of_call());
      return e;
    }
    if (std::find(std::begin(kFunctions), std::end(kFunctions), name) == std::end(kFunctions)) {
      at_ = start;
      return error("a function of symbolic sizes");
    }
    e.kind = Expression::Kind::kCall;
    e.name = name;
    if (!take('(')) return error("'('");
    if (take(')')) return e;
    do {
      const size_t before = at_;
      const std::string_view keyword = word();
      if (!keyword.empty() && take('=')) {  // evaluate=False
        if (word().empty()) return error("a value");
        continue;
      }
      at_ = before;
      PINNACE_ASSIGN(Expression argument, expression(depth + 1));
      e.arguments.push_back(std::move(argument));
    } while (take(','));
    return take(')') ? Result<Expression>(std::move(e)) : error("',' or ')'");
  }

  std::string_view text_;
  size_t at_ = 0;
};

std::string joined(std::vector<std::string> parts, std::string_view between) {
  std::string text;
  for (size_t i = 0; i < parts.size(); ++i) {
    if (i) text += between;
    text += parts[i];
  }
  return text;
}

int64_t saturating_multiply(int64_t a, int64_t b) {
  int64_t product;
  return __builtin_mul_overflow(a, b, &product) ? INT64_MAX : product;
}
int64_t saturating_add(int64_t a, int64_t b) {
  if (a == INT64_MAX || b == INT64_MAX) return INT64_MAX;
  int64_t sum;
  return __builtin_add_overflow(a, b, &sum) ? (a > 0 ? INT64_MAX : INT64_MIN) : sum;
}

/// As range_of, but values below 0 are kept.
Interval signed_range(const Expression& e, const std::function<Interval(std::string_view)>& symbol) {
  if (e.kind == Expression::Kind::kInteger) return {e.integer, e.integer};
  if (e.is_symbol()) return symbol(e.name);
  const auto of = [&](size_t i) { return signed_range(e.arguments[i], symbol); };
  const size_t count = e.arguments.size();
  if (count && (e.name == "Add" || e.name == "Max" || e.name == "Min")) {
    Interval r = of(0);
    for (size_t i = 1; i < count; ++i) {
      const Interval o = of(i);
      if (e.name == "Add") r = {saturating_add(r.min, o.min), saturating_add(r.max, o.max)};
      if (e.name == "Max") r = {std::max(r.min, o.min), std::max(r.max, o.max)};
      if (e.name == "Min") r = {std::min(r.min, o.min), std::min(r.max, o.max)};
    }
    return r;
  }
  if (count && e.name == "Mul") {
    Interval r{1, 1};
    for (size_t i = 0; i < count; ++i) {
      const Interval o = of(i);
      if (r.min < 0 || o.min < 0) return {INT64_MIN, INT64_MAX};
      r = {saturating_multiply(r.min, o.min),
           r.max == INT64_MAX || o.max == INT64_MAX ? INT64_MAX : saturating_multiply(r.max, o.max)};
    }
    return r;
  }
  if (count == 2 && (e.name == "FloorDiv" || e.name == "CleanDiv") && e.arguments[1].is_integer() &&
      e.arguments[1].integer > 0) {
    const Interval o = of(0);
    const int64_t by = e.arguments[1].integer;
    if (o.min < 0) return {INT64_MIN, o.max == INT64_MAX ? INT64_MAX : o.max / by};
    return {o.min / by, o.max == INT64_MAX ? INT64_MAX : o.max / by};
  }
  return {};
}

}  // namespace

std::string Expression::text() const {
  switch (kind) {
    case Kind::kInteger:
      return str_cat(integer);
    case Kind::kFloat:
      return str_cat(real);
    case Kind::kBool:
      return integer ? "True" : "False";
    case Kind::kSymbol:
      return name;
    case Kind::kCall:
      break;
  }
  std::vector<std::string> parts;
  const auto grouped = [](const Expression& e) {
    const bool sum = e.kind == Kind::kCall && (e.name == "Add" || e.name == "Mul" || e.name == "FloorDiv");
    return sum ? str_cat("(", e.text(), ")") : e.text();
  };
  if (name == "Add" || name == "Mul") {
    for (const Expression& a : arguments) parts.push_back(name == "Mul" ? grouped(a) : a.text());
    // Constants first in products, last in sums; the rest sorted: equal expressions print the same.
    std::sort(parts.begin(), parts.end(), [&](const std::string& a, const std::string& b) {
      const auto constant = [](const std::string& s) {
        return s[0] == '-' || (s[0] >= '0' && s[0] <= '9' && s.find_first_not_of("0123456789.") == std::string::npos);
      };
      if (constant(a) != constant(b)) return constant(a) == (name == "Mul");
      return a < b;
    });
    return joined(std::move(parts), name == "Add" ? " + " : "*");
  }
  if (name == "FloorDiv" && arguments.size() == 2) return str_cat(grouped(arguments[0]), "//", grouped(arguments[1]));
  for (const Expression& a : arguments) parts.push_back(a.text());
  return str_cat(name, "(", joined(std::move(parts), ", "), ")");
}

int64_t Expression::factor() const {
  if (kind == Kind::kInteger) return integer == INT64_MIN ? 1 : std::max<int64_t>(1, integer < 0 ? -integer : integer);
  if (kind != Kind::kCall || arguments.empty()) return 1;
  if (name == "Mul") {
    int64_t product = 1;
    for (const Expression& a : arguments) {
      if (__builtin_mul_overflow(product, a.factor(), &product)) return 1;
    }
    return product;
  }
  if (name == "Add") {
    int64_t common = 0;
    for (const Expression& a : arguments) common = std::gcd(common, a.factor());
    return std::max<int64_t>(1, common);
  }
  return 1;
}

Result<Expression> parse_expression(std::string_view text) {
  if (text.size() > kMaxLength)
    return invalid("a symbolic size of ", text.size(), " characters, at most ", kMaxLength, " are read");
  return Parser(text).whole();
}

Interval range_of(const Expression& e, const std::function<Interval(std::string_view)>& symbol) {
  const Interval r = signed_range(e, symbol);
  return {std::max<int64_t>(r.min, 0), std::max<int64_t>(r.max, 0)};
}

}  // namespace pinnace::torch_import
