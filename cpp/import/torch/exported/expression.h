// Expression: a symbolic size as torch.export writes it, the printed form of a sympy tree:
// "Mul(Integer(2), Symbol('s60', positive=True, integer=True))". Parsed, never evaluated as Python.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"

namespace pinnace::torch_import {

struct Expression {
  enum class Kind : uint8_t { kInteger, kFloat, kSymbol, kBool, kCall };
  Kind kind = Kind::kInteger;
  int64_t integer = 0;  ///< kInteger, kBool
  double real = 0;      ///< kFloat
  std::string name;     ///< kSymbol: its name; kCall: the function, one of the list in expression.cc
  std::vector<Expression> arguments;

  bool is_symbol() const { return kind == Kind::kSymbol; }
  bool is_integer() const { return kind == Kind::kInteger; }
  /// As people write it: "2*s60", "s53//2 + 1"; equal expressions print the same.
  std::string text() const;
  /// Largest constant that divides every value, as far as the form shows it; at least 1.
  int64_t factor() const;
};

/// A closed interval of sizes; INT64_MAX is unbounded.
struct Interval {
  int64_t min = 0;
  int64_t max = INT64_MAX;
};

/// At most 64 levels deep and 64 KiB long. kInvalidArgument names the place and what stands there.
Result<Expression> parse_expression(std::string_view text);

/// The range of sizes (values below 0 count as 0) from those of the symbols; unknown functions give [0, unbounded].
Interval range_of(const Expression& e, const std::function<Interval(std::string_view)>& symbol);

}  // namespace pinnace::torch_import
