// Formula: several operators on one element type, written close to how they are written on paper.
#pragma once

#include "import/torch/mapping.h"

namespace pinnace::torch_import {

/// f("add", x, f("mul", y, 2.0)): operands are values or numbers, which become constants of the formula's type. A
/// number must be a double, since an int is a value.
class Formula {
 public:
  Formula(Call& call, DType dtype) : call_(call), dtype_(dtype) {}

  DType dtype() const { return dtype_; }
  template <class... Operands>
  ValueId operator()(std::string_view op, Operands... operands) const {
    return call_.add(op, {value(operands)...});
  }
  ValueId number(double n) const { return call_.constant(n, dtype_); }
  /// The tensor or number of that name.
  ValueId argument(std::string_view name) const { return call_.as_tensor(call_.operand(name), dtype_); }
  ValueId equal(ValueId x, double n) const { return (*this)("equal", x, n); }
  ValueId differs(ValueId x, double n) const { return call_.add("not", {equal(x, n)}); }
  /// Below zero, -0 included.
  ValueId signed_negative(ValueId x) const {
    return call_.add("where", {equal(x, 0), (*this)("less", (*this)("reciprocal", x), 0.0), (*this)("less", x, 0.0)});
  }
  /// log(1 + x), which keeps the digits of an x near 0 that the sum loses: the error of u = 1 + x is taken out by the
  /// factor x / (u - 1) (W. Kahan, in the handbook of the HP-15C, 1982).
  ValueId log1p(ValueId x) const {
    const Formula& f = *this;
    const ValueId u = f("add", x, 1.0), log = f("log", u);
    const ValueId near = f("where", equal(u, 1), x, f("div", f("mul", log, x), f("sub", u, 1.0)));
    return f("where", f("less", x, 1.0), near, log);
  }
  /// exp(x) - 1, to the last digits near 0 as well: elu(x) below 0, and -elu(-x) exp(x) above.
  ValueId expm1(ValueId x) const {
    const Formula& f = *this;
    const auto elu = [&](ValueId v) { return call_.add("elu", {v}, {{"alpha", 1.0}}); };
    const ValueId above = f("neg", f("mul", elu(f("neg", x)), f("exp", x)));
    return f("where", f("less", x, 0.0), elu(x), above);
  }
  /// 1 - erf(x), which would vanish where erf rounds to 1: exp(-x^2) erfcx(x) from 0.5 on.
  ValueId erfc(ValueId x) const {
    const Formula& f = *this;
    const ValueId far = f("mul", f("exp", f("neg", f("mul", x, x))), f("erfcx", x));
    return f("where", f("less", x, 0.5), f("sub", 1.0, f("erf", x)), far);
  }
  /// Gives `y`, in the node's own type.
  void output(ValueId y) const { call_.output(call_.cast(y, call_.out_dtype())); }

 private:
  ValueId value(ValueId id) const { return id; }
  ValueId value(double n) const { return number(n); }

  Call& call_;
  DType dtype_;
};

}  // namespace pinnace::torch_import
