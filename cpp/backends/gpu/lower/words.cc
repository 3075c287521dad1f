// Integers and bools, and what makes or takes them: comparisons, logic, casts, choices. They have 32 bits on the
// device; 64-bit integers are held in those, and what does not fit is reported, never cut.
#include "backends/gpu/lower/maps.h"
#include "backends/gpu/lower/strided.h"

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

/// y = function(a, b) by one of the two kernels that make integers: of floats (compare) or of integers (map_words).
void pair_step(NodeLowering& n, KernelId kernel, Function f, const Operand& a, const Operand& b, const Shape& shape,
               TensorId y, DType type, int64_t p) {
  const int32_t held = held_as(type);
  Push push = sizes_push(shape);
  for (int64_t s : a.strides) push.i(s);
  for (int64_t s : b.strides) push.i(s);
  push.i(p);
  const int64_t count = TensorType{type, shape, nullptr}.elements();
  n.step(kernel, {static_cast<int32_t>(f), held}, push, {a.tensor, b.tensor, y, reports(f, held) ? n.problem() : y},
         line_groups(count, 64), static_cast<double>(count));
}

/// y = function(a, b), integers or bools of floats.
void compare_step(NodeLowering& n, Function f, const Operand& a, const Operand& b, const Shape& shape, TensorId y,
                  DType type = DType::kI32, int64_t p = 0) {
  pair_step(n, KernelId::compare, f, a, b, shape, y, type, p);
}

Status check_rank(NodeLowering& n) {
  return n.out().rank() > 6 ? n.refuse(Rule::kRank, to_string(n.out())) : Status();
}

/// A comparison of inputs a and b, of whatever type.
Status compare(NodeLowering& n, Function f, int a, int b) {
  PINNACE_TRY(check_rank(n));
  const Operand x = operand(n, a), other = operand(n, b);
  const TensorId y = n.make_rows();
  if (is_device_float(n.in(0).dtype)) {
    compare_step(n, f, x, other, n.out().shape, y);
  } else {
    word_step(n, f, x, other, n.out().shape, y);
  }
  return {};
}

/// A question about every float of input 0.
Status test(NodeLowering& n, Function f, int64_t p = 0) {
  PINNACE_TRY(n.require_float(0));
  const Shape line = {n.out().elements()};
  const Operand x = whole_operand(n.rows(0), line);
  compare_step(n, f, x, x, line, n.make_rows(), DType::kI32, p);
  return {};
}

/// 0, 1, 2, … as 32-bit words, each shifted by `start`.
TensorId counting(NodeLowering& n, std::string_view what, int64_t count, int64_t start = 0) {
  return n.words(str_cat(what, " ", count, " from ", start), count, [start](std::span<float> to) {
    for (size_t i = 0; i < to.size(); ++i)
      to[i] = std::bit_cast<float>(static_cast<int32_t>(start) + static_cast<int32_t>(i));
    return Status();
  });
}

Status cast(NodeLowering& n) {
  const DType from = n.in(0).dtype, to = n.out().dtype;
  const bool from_float = is_device_float(from), to_float = is_device_float(to);
  if (from_float && to_float) {
    if (to == DType::kF32 || to == from) {
      n.alias(0, 0);
      return {};
    }
    return unary_step(n, to == DType::kF16 ? Function::k_to_f16 : Function::k_to_bf16);
  }
  const int64_t count = n.out().elements();
  const Shape line = {count};
  if (to_float) {
    const TensorId x = n.rows(0), made = to == DType::kF32 ? n.make_rows() : n.make_scratch(count);
    n.step(KernelId::from_words, {}, Push().i(count), {x, made}, line_groups(count, 64), static_cast<double>(count));
    if (to != DType::kF32) {
      const MapStage rounded{to == DType::kF16 ? Function::k_to_f16 : Function::k_to_bf16};
      map_step(n, made, -1, false, {&rounded, 1});
    }
    return {};
  }
  if (!from_float && (to == DType::kI32 || to == DType::kI64)) {
    n.alias(0, 0);
    return {};
  }
  const Operand x = whole_operand(n.rows(0), line);
  const TensorId y = n.make_rows();
  const Function f = to == DType::kBool ? Function::k_truth : from_float ? Function::k_to_int : Function::k_none;
  if (from_float) {
    compare_step(n, f, x, x, line, y, to);
  } else {
    word_step(n, f, x, x, line, y, to);
  }
  return {};
}

}  // namespace

void word_step(NodeLowering& n, Function function, const Operand& a, const Operand& b, const Shape& shape, TensorId y,
               DType type, int64_t p) {
  pair_step(n, KernelId::map_words, function, a, b, shape, y, type, p);
}

void select_step(NodeLowering& n, DType type, const Operand& condition, const Operand& a, const Operand& b,
                 const Shape& shape, TensorId y) {
  Push push = sizes_push(shape);
  for (int64_t s : condition.strides) push.i(s);
  for (const Operand* o : {&a, &b}) {
    for (int64_t s : o->strides) push.i(s);
    push.i(o->from);
  }
  const int64_t count = TensorType{type, shape, nullptr}.elements();
  n.step(is_device_float(type) ? KernelId::select : KernelId::select_words, {}, push,
         {condition.tensor, a.tensor, b.tensor, y}, line_groups(count, 64), static_cast<double>(count));
}

Status word_binary(NodeLowering& n, Function function) {
  PINNACE_TRY(check_rank(n));
  const Operand a = operand(n, 0), b = operand(n, 1);
  word_step(n, function, a, b, n.out().shape, n.make_rows(), n.out().dtype);
  return {};
}
Status word_unary(NodeLowering& n, Function function) {
  const Shape line = {n.out().elements()};
  const Operand x = whole_operand(n.rows(0), line);
  word_step(n, function, x, x, line, n.make_rows(), n.out().dtype);
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
  return word_binary(n, Function::k_and);
}
Status lower_or(NodeLowering& n) {
  return word_binary(n, Function::k_or);
}
Status lower_xor(NodeLowering& n) {
  return word_binary(n, Function::k_xor);
}
Status lower_not(NodeLowering& n) {
  return word_unary(n, Function::k_not);
}
Status lower_bitwise_and(NodeLowering& n) {
  return word_binary(n, Function::k_and);
}
Status lower_bitwise_or(NodeLowering& n) {
  return word_binary(n, Function::k_or);
}
Status lower_bitwise_xor(NodeLowering& n) {
  return word_binary(n, Function::k_xor);
}
Status lower_bitwise_not(NodeLowering& n) {
  return word_unary(n, Function::k_bit_not);
}
Status lower_bit_shift(NodeLowering& n) {
  return word_binary(n, n.view().attr_string("direction") == "LEFT" ? Function::k_shift_left : Function::k_shift_right);
}
Status lower_mod(NodeLowering& n) {
  const Function function = n.view().attr_int("fmod") == 1 ? Function::k_fmod : Function::k_mod;
  if (!is_device_float(n.in(0).dtype)) return word_binary(n, function);
  PINNACE_TRY(check_rank(n));
  const Operand a = operand(n, 0), b = operand(n, 1);
  float_step(n, function, a, b, n.out().shape, n.make_rows());
  return {};
}

Status lower_cast(NodeLowering& n) {
  return cast(n);
}
Status lower_cast_like(NodeLowering& n) {
  return cast(n);
}

Status lower_where(NodeLowering& n) {
  PINNACE_TRY(check_rank(n));
  const Operand condition = operand(n, 0), a = operand(n, 1), b = operand(n, 2);
  select_step(n, n.out().dtype, condition, a, b, n.out().shape, n.make_rows());
  return {};
}

/// start + i * delta, of floats by a kernel of its own, which has them in 32 bits where they are constants.
Status lower_range(NodeLowering& n) {
  const int64_t count = n.out().elements();
  if (is_device_float(n.in(0).dtype)) {
    std::vector<int32_t> known;
    Push push;
    push.i(count);
    for (int i : {0, 2}) {
      const std::vector<double> number = n.constant(i) ? n.floats(i) : std::vector<double>();
      known.push_back(number.empty() ? 0 : 1);
      push.f(number.empty() ? 0.0 : number[0]);
    }
    n.step(KernelId::range, std::move(known), push, {n.rows(0), n.rows(2), n.make_rows()}, line_groups(count, 64),
           static_cast<double>(count * 32));
    return {};
  }
  const Shape line = {count};
  const DType type = n.out().dtype;
  const TensorId start = n.rows(0), delta = n.rows(2), places = counting(n, "places", count);
  const TensorId scaled = n.make_scratch(count, type);
  word_step(n, Function::k_mul, whole_operand(places, line), {delta}, line, scaled, type);
  word_step(n, Function::k_add, whole_operand(scaled, line), {start}, line, n.make_rows(), type);
  return {};
}

/// An index equals its place in the new dimension, perhaps counted from the end; then the value is chosen.
Status lower_one_hot(NodeLowering& n) {
  PINNACE_TRY(check_rank(n));
  PINNACE_ASSIGN(const int axis, n.view().axis(n.view().attr_int("axis"), n.out().rank()));
  const Shape& shape = n.out().shape;
  const int64_t depth = shape[static_cast<size_t>(axis)].size;
  const auto at = static_cast<size_t>(int64_t{6} - n.out().rank() + axis);
  TensorId given = n.rows(0);
  if (is_device_float(n.in(0).dtype)) {
    const Shape line = {n.in(0).elements()};
    const Operand x = whole_operand(given, line);
    given = n.make_scratch(n.in(0).elements(), DType::kI32);
    compare_step(n, Function::k_to_int, x, x, line, given);
  }
  Shape lines = shape;
  lines[static_cast<size_t>(axis)] = 1;
  Operand index{given, dense_strides(lines)}, place{counting(n, "places", depth), {}};
  index.strides[at] = 0;
  place.strides[at] = 1;
  const TensorId hot = n.make_scratch(n.out().elements(), DType::kBool);
  word_step(n, Function::k_hot, index, place, shape, hot, DType::kI32, depth);
  const TensorId values = n.rows(2);
  select_step(n, n.out().dtype, whole_operand(hot, shape), {values, {}, 1}, {values, {}, 0}, shape, n.make_rows());
  return {};
}

/// Row and column of an element are compared, with the diagonal added to the row.
Status lower_trilu(NodeLowering& n) {
  PINNACE_TRY(check_rank(n));
  int64_t k = 0;
  if (n.has(1)) {
    const auto given = n.view().input_ints(1);
    if (!given || given->size() != 1) return n.refuse(Rule::kConstant, "k");
    k = std::clamp<int64_t>((*given)[0], -(1 << 30), 1 << 30);
  }
  const Shape& shape = n.out().shape;
  const int64_t rows = shape[shape.size() - 2].size, columns = shape[shape.size() - 1].size;
  const Shape plane = {rows, columns};
  Operand row{counting(n, "rows", rows, k)}, column{counting(n, "columns", columns)};
  row.strides[4] = 1;
  column.strides[5] = 1;
  const bool upper = n.view().attr_int("upper") != 0;
  const TensorId x = n.rows(0), keep = n.make_scratch(rows * columns, DType::kBool);
  word_step(n, Function::k_less_or_equal, upper ? row : column, upper ? column : row, plane, keep);
  const int32_t zero_point = n.out().quantized() ? n.out().quantization->zero_points[0] : 0;
  const auto nothing = [zero_point](std::span<float> to) {
    to[0] = std::bit_cast<float>(zero_point);
    return Status();
  };
  const TensorId zero =
      is_device_float(n.out().dtype) ? n.weights("nothing", 1, nothing) : n.words("nothing", 1, nothing);
  select_step(n, n.out().dtype, whole_operand(keep, plane), whole_operand(x, shape), {zero}, shape, n.make_rows());
  return {};
}

}  // namespace pinnace::gpu
