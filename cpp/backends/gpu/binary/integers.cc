// Integers and bools, and what makes them: comparisons, logic, choices. They have 32 bits on the device; 64-bit
// integers are held in those, and what does not fit is reported, never cut.
#include "backends/gpu/binary/params.h"
#include "backends/gpu/strided.h"

namespace pinnace::gpu {
namespace {

/// Whether an element can be one that the kernel reports.
bool reports(Function f, int32_t held) {
  switch (f) {
    case Function::k_div:
    case Function::k_mod:
    case Function::k_fmod:
      return true;
    case Function::k_add:
    case Function::k_sub:
    case Function::k_mul:
    case Function::k_pow:
    case Function::k_neg:
    case Function::k_abs:
    case Function::k_shift_left:
    case Function::k_to_int:
      return held == held_as(DType::kI64);
    default:
      return false;
  }
}

/// y = function(a, b) by one of the two kernels that make integers: of floats (compare) or of integers
/// (elementwise_int32).
void pair_step(NodeLowering& n, KernelId kernel, Function f, const Operand& a, const Operand& b, const Shape& shape,
               TensorId y, DType type, int64_t p) {
  const int32_t held = held_as(type);
  auto params = strided_params<PairParams>(shape);
  params.a = push_strides(a.strides);
  params.b = push_strides(b.strides);
  params.p = p;
  const int64_t count = TensorType{type, shape, nullptr}.elements();
  const int32_t function = static_cast<int32_t>(f);
  const SpecValues constants = kernel == KernelId::compare ? SpecValues(CompareConstants{.F = function, .HELD = held})
                                                           : ElementwiseInt32Constants{.F = function, .HELD = held};
  n.step(kernel, constants, params, {a.tensor, b.tensor, y, reports(f, held) ? n.error_record() : y},
         line_groups(count, 64), static_cast<double>(count));
}

/// A comparison of inputs a and b, of whatever type.
Status compare(NodeLowering& n, Function f, int a, int b) {
  PINNACE_ASSIGN(const MergedDims dims, merge_operands(n, a, b));
  const Operand x{n.dense(a), dims.a}, other{n.dense(b), dims.b};
  const TensorId y = n.make_dense();
  if (is_device_float(n.in(0).dtype)) {
    compare_step(n, f, x, other, dims.shape(), y);
  } else {
    int32_step(n, f, x, other, dims.shape(), y);
  }
  return {};
}

/// A question about every float of input 0.
Status test(NodeLowering& n, Function f, int64_t p = 0) {
  PINNACE_TRY(n.require_float(0));
  const Shape line = {n.out().elements()};
  const Operand x = whole_operand(n.dense(0), line);
  compare_step(n, f, x, x, line, n.make_dense(), DType::kI32, p);
  return {};
}

}  // namespace

void compare_step(NodeLowering& n, Function f, const Operand& a, const Operand& b, const Shape& shape, TensorId y,
                  DType type, int64_t p) {
  pair_step(n, KernelId::compare, f, a, b, shape, y, type, p);
}

void int32_step(NodeLowering& n, Function function, const Operand& a, const Operand& b, const Shape& shape, TensorId y,
                DType type, int64_t p) {
  pair_step(n, KernelId::elementwise_int32, function, a, b, shape, y, type, p);
}

void select_step(NodeLowering& n, DType type, const Operand& condition, const Operand& a, const Operand& b,
                 const Shape& shape, TensorId y) {
  auto params = strided_params<SelectParams>(shape);
  params.c = push_strides(condition.strides);
  params.a_strides = push_strides(a.strides);
  params.a = a.from;
  params.b_strides = push_strides(b.strides);
  params.b = b.from;
  const int64_t count = TensorType{type, shape, nullptr}.elements();
  n.step(is_device_float(type) ? KernelId::select : KernelId::select_int32, params,
         {condition.tensor, a.tensor, b.tensor, y}, line_groups(count, 64), static_cast<double>(count));
}

Status int32_binary(NodeLowering& n, Function function) {
  PINNACE_ASSIGN(const MergedDims dims, merge_operands(n, 0, 1));
  int32_step(n, function, {n.dense(0), dims.a}, {n.dense(1), dims.b}, dims.shape(), n.make_dense(), n.out().dtype);
  return {};
}

Status int32_unary(NodeLowering& n, Function function) {
  const Shape line = {n.out().elements()};
  const Operand x = whole_operand(n.dense(0), line);
  int32_step(n, function, x, x, line, n.make_dense(), n.out().dtype);
  return {};
}

Status lower_equal(NodeLowering& n) {
  return compare(n, Function::k_equal, 0, 1);
}

Status lower_less(NodeLowering& n) {
  return compare(n, Function::k_less, 0, 1);
}

Status lower_less_or_equal(NodeLowering& n) {
  return compare(n, Function::k_less_or_equal, 0, 1);
}

Status lower_greater(NodeLowering& n) {
  return compare(n, Function::k_less, 1, 0);
}

Status lower_greater_or_equal(NodeLowering& n) {
  return compare(n, Function::k_less_or_equal, 1, 0);
}

Status lower_is_nan(NodeLowering& n) {
  return test(n, Function::k_is_nan);
}

Status lower_is_inf(NodeLowering& n) {
  return test(n, Function::k_is_inf,
              (n.view().attr_int("detect_negative") ? 1 : 0) + (n.view().attr_int("detect_positive") ? 2 : 0));
}

Status lower_and(NodeLowering& n) {
  return int32_binary(n, Function::k_and);
}

Status lower_or(NodeLowering& n) {
  return int32_binary(n, Function::k_or);
}

Status lower_xor(NodeLowering& n) {
  return int32_binary(n, Function::k_xor);
}

Status lower_not(NodeLowering& n) {
  return int32_unary(n, Function::k_not);
}

Status lower_bitwise_and(NodeLowering& n) {
  return int32_binary(n, Function::k_and);
}

Status lower_bitwise_or(NodeLowering& n) {
  return int32_binary(n, Function::k_or);
}

Status lower_bitwise_xor(NodeLowering& n) {
  return int32_binary(n, Function::k_xor);
}

Status lower_bitwise_not(NodeLowering& n) {
  return int32_unary(n, Function::k_bit_not);
}

Status lower_bit_shift(NodeLowering& n) {
  return int32_binary(n,
                      n.view().attr_string("direction") == "LEFT" ? Function::k_shift_left : Function::k_shift_right);
}

Status lower_mod(NodeLowering& n) {
  const Function function = n.view().attr_int("fmod") == 1 ? Function::k_fmod : Function::k_mod;
  if (!is_device_float(n.in(0).dtype)) return int32_binary(n, function);
  PINNACE_ASSIGN(const MergedDims dims, merge_operands(n, 0, 1));
  float_step(n, function, {n.dense(0), dims.a}, {n.dense(1), dims.b}, dims.shape(), n.make_dense());
  return {};
}

Status lower_where(NodeLowering& n) {
  if (n.out().rank() > 6) return n.refuse(Rule::kRank, to_string(n.out()));
  const Operand condition = operand(n, 0), a = operand(n, 1), b = operand(n, 2);
  select_step(n, n.out().dtype, condition, a, b, n.out().shape, n.make_dense());
  return {};
}

}  // namespace pinnace::gpu
