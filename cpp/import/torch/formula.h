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
  /// Gives `y`, in the node's own type.
  void output(ValueId y) const { call_.output(call_.cast(y, call_.out_dtype())); }

 private:
  ValueId value(ValueId id) const { return id; }
  ValueId value(double n) const { return number(n); }

  Call& call_;
  DType dtype_;
};

}  // namespace pinnace::torch_import
