// Random cases of comparisons, integer arithmetic and bits: with equal and extreme numbers, and with NaN and infinities
// among floats.
#include "cpp/random_cases.h"

namespace pinnace::testing {
namespace {

bool one_of(const std::string& op, std::initializer_list<std::string_view> list) {
  return std::find(list.begin(), list.end(), op) != list.end();
}

/// Integers near each other, or any; `divides`: none of them 0, often -1.
std::string integers(Draw& d, const std::string& type, const Sizes& sizes, bool divides) {
  int64_t count = 1;
  for (int64_t n : sizes) count *= n;
  if (!divides && (count > 300 || d.once_in(3))) return tensor(type, sizes) + (d.once_in(2) ? " in -4..4" : "");
  if (divides && count > 300) return tensor(type, sizes) + (d.once_in(2) ? " in 1..9" : " in -1000..-1");
  const bool wide = type == "i64";
  std::string s = tensor(type, sizes) + "{";
  for (int64_t i = 0; i < count; ++i) {
    int64_t v = d.once_in(8)   ? (wide ? INT64_MIN : INT32_MIN)
                : d.once_in(8) ? (wide ? INT64_MAX : INT32_MAX)
                : d.once_in(2) ? d.integer(INT32_MIN, INT32_MAX)
                               : d.integer(-5, 5);
    if (divides && (v == 0 || d.once_in(6))) v = -1;
    s += str_cat(i ? "," : "", v);
  }
  return s + "}";
}

}  // namespace

RandomCase plain(Draw& d) {
  constexpr const char* kOps[] = {"equal",       "less",       "greater",     "less_or_equal", "greater_or_equal",
                                  "add",         "sub",        "mul",         "div",           "mod",
                                  "min",         "max",        "div",         "mod",           "and",
                                  "or",          "xor",        "not",         "is_nan",        "is_inf",
                                  "bitwise_and", "bitwise_or", "bitwise_xor", "bitwise_not",   "bit_shift"};
  constexpr const char *kCompared[] = {"f32", "i32", "i64"}, *kIntegers[] = {"i32", "i64"};
  constexpr const char* kAnyIntegers[] = {"i8", "u8", "i16", "u16", "i32", "u32", "i64", "u64"};
  RandomCase c{.op = d.of(kOps)};
  const bool logic = one_of(c.op, {"and", "or", "xor", "not"}), bits = c.op.starts_with("bitwise");
  const std::string type = logic                     ? "bool"
                           : bits                    ? d.of(kAnyIntegers)
                           : c.op.starts_with("is_") ? "f32"
                           : one_of(c.op, {"equal", "less", "greater", "less_or_equal", "greater_or_equal"})
                               ? d.of(kCompared)
                               : d.of(kIntegers);
  const int64_t rank = d.integer(1, 5);
  Sizes y;
  for (int64_t i = 0; i < rank; ++i) y.push_back(d.once_in(50) ? 0 : d.size(rank > 3 ? 10 : 60));
  const auto operand = [&](bool divides) {
    Sizes s = y;
    for (auto& n : s) n = d.once_in(3) ? 1 : n;
    if (d.once_in(3)) s.erase(s.begin(), s.begin() + d.integer(0, rank - 1));
    if (type == "f32") return floats(d, s, 2);
    if (type == "i32" || type == "i64") return integers(d, type, s, divides);
    return tensor(type, s);
  };
  c.inputs = operand(false);
  if (one_of(c.op, {"not", "bitwise_not", "is_nan", "is_inf"})) {
    if (c.op == "is_inf") {
      c.attributes = str_cat("detect_negative=", d.integer(0, 1), ", detect_positive=", d.integer(0, 1));
    }
    return c;
  }
  const int64_t more = one_of(c.op, {"min", "max"}) ? d.integer(0, 3) : 1;
  for (int64_t i = 0; i < more; ++i) c.inputs += ";" + operand(one_of(c.op, {"div", "mod"}));
  if (c.op == "mod") c.attributes = str_cat("fmod=", d.integer(0, 1));
  if (c.op == "bit_shift") {
    // Numbers of bits, some of them none.
    constexpr const char* kWays[] = {"LEFT", "RIGHT"};
    c.attributes = str_cat("direction=\"", d.of(kWays), "\"");
    c.inputs = c.inputs.substr(0, c.inputs.find(';')) + ";" + tensor(type, {y.back()}) + " in -3..70";
  }
  return c;
}

}  // namespace pinnace::testing
