// Tensors that are made from the places of their elements: range, one_hot, trilu.
#include "backends/gpu/index/params.h"
#include "backends/gpu/strided.h"

namespace pinnace::gpu {
namespace {

/// 0, 1, 2, … as int32, each shifted by `start`.
TensorId counting(NodeLowering& n, std::string_view what, int64_t count, int64_t start = 0) {
  return n.size_table(str_cat(what, " ", count, " from ", start), count, [start](std::span<float> to) {
    for (size_t i = 0; i < to.size(); ++i)
      to[i] = std::bit_cast<float>(static_cast<int32_t>(start) + static_cast<int32_t>(i));
    return Status();
  });
}

Status check_rank(NodeLowering& n) {
  return n.out().rank() > 6 ? n.refuse(Rule::kRank, to_string(n.out())) : Status();
}

}  // namespace

/// start + i * delta, of floats by a kernel of its own, which has them in 32 bits where they are constants.
Status lower_range(NodeLowering& n) {
  const int64_t count = n.out().elements();
  if (is_device_float(n.in(0).dtype)) {
    RangeConstants known;
    RangeParams params{.count = count};
    for (int i : {0, 2}) {
      const std::vector<double> number = n.constant(i) ? n.floats(i) : std::vector<double>();
      (i == 0 ? known.START_KNOWN : known.DELTA_KNOWN) = !number.empty();
      const float value = number.empty() ? 0.0f : static_cast<float>(number[0]);
      (i == 0 ? params.start : params.delta) = std::bit_cast<int32_t>(value);
    }
    n.step(KernelId::range, known, params, {n.dense(0), n.dense(2), n.make_dense()}, line_groups(count, 64),
           static_cast<double>(count * 32));
    return {};
  }
  const Shape line = {count};
  const DType type = n.out().dtype;
  const TensorId start = n.dense(0), delta = n.dense(2), places = counting(n, "places", count);
  const TensorId scaled = n.make_scratch(count, type);
  int32_step(n, Function::k_mul, whole_operand(places, line), {delta}, line, scaled, type);
  int32_step(n, Function::k_add, whole_operand(scaled, line), {start}, line, n.make_dense(), type);
  return {};
}

/// An index equals its place in the new dimension, perhaps counted from the end; then the value is chosen.
Status lower_one_hot(NodeLowering& n) {
  PINNACE_TRY(check_rank(n));
  PINNACE_ASSIGN(const int axis, n.view().axis(n.view().attr_int("axis"), n.out().rank()));
  const Shape& shape = n.out().shape;
  const int64_t depth = shape[static_cast<size_t>(axis)].size;
  const auto at = static_cast<size_t>(int64_t{6} - n.out().rank() + axis);
  TensorId given = n.dense(0);
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
  int32_step(n, Function::k_hot, index, place, shape, hot, DType::kI32, depth);
  const TensorId values = n.dense(2);
  select_step(n, n.out().dtype, whole_operand(hot, shape), {values, {}, 1}, {values, {}, 0}, shape, n.make_dense());
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
  const TensorId x = n.dense(0), keep = n.make_scratch(rows * columns, DType::kBool);
  int32_step(n, Function::k_less_or_equal, upper ? row : column, upper ? column : row, plane, keep);
  const int32_t zero_point = n.out().quantized() ? n.out().quantization->zero_points[0] : 0;
  const auto nothing = [zero_point](std::span<float> to) {
    to[0] = std::bit_cast<float>(zero_point);
    return Status();
  };
  const TensorId zero =
      is_device_float(n.out().dtype) ? n.weights("nothing", 1, nothing) : n.wide_weights("nothing", 1, nothing);
  select_step(n, n.out().dtype, whole_operand(keep, plane), whole_operand(x, shape), {zero}, shape, n.make_dense());
  return {};
}

}  // namespace pinnace::gpu
