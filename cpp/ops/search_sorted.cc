// search_sorted: where values stand among sorted ones: how many elements of a row are less than each value.
//   sorted  [..., m]  numbers, rows that do not fall, NaN last
//   values  [..., n]  as sorted, with the same leading dimensions; any shape where sorted is [m]
//   right   int, default 0; 1: how many are not greater
//   unordered_nan  int, default 0; 1: where the search meets a NaN, in the row or as the value, it goes on to the right
//   y       as values, i64: 0 to m
// Without unordered_nan, which PyTorch's searchsorted has, NaN is greater than all numbers and equal to itself. Zeros
// are equal. In a row that is not sorted the place is some place. ONNX has no such operator.
#include <bit>

#include "ops/lines.h"

namespace pinnace {
namespace {
Result<TensorType> search_sorted_type(const NodeView& node) {
  PINNACE_TRY(refuse_quantized(node));
  const TensorType &sorted = node.input(0), &values = node.input(1);
  if (sorted.rank() < 1) return node.error("sorted has no dimensions");
  bool fits = sorted.rank() == 1 || sorted.rank() == values.rank();
  for (size_t d = 0; fits && d + 1 < sorted.shape.size(); ++d) fits = !differ(sorted.shape[d], values.shape[d]);
  if (!fits) return node.error("values ", values, " do not have the rows of sorted ", sorted);
  return TensorType{DType::kI64, values.shape, nullptr};
}

template <class T>
bool less(T a, T b) {
  return a < b || (b != b && a == a);
}

Status search_sorted_reference(const NodeView& node, std::span<const TensorView> in, std::span<const TensorView> out) {
  const TensorView sorted = in[0], values = in[1], y = out[0];
  const bool right = node.attr_int("right") != 0, unordered = node.attr_int("unordered_nan") != 0;
  const int64_t m = sorted.dim(-1), count = y.elements();
  // With one row all values look there, else those of a row in that row.
  const int64_t per_row = sorted.rank() == 1 ? count : values.dim(-1);
  node.threads().ranges(count, 10 * std::bit_width(static_cast<uint64_t>(m)), [&](int64_t first, int64_t end) {
    visit(sorted.dtype(), [&](auto zero) {
      using T = decltype(zero);
      for (int64_t i = first; i < end; ++i) {
        const T* row = sorted.data<T>() + i / per_row * m;
        const Wide<T> value = widen(values.data<T>()[i]);
        int64_t low = 0, high = m;
        while (low < high) {
          const int64_t middle = low + (high - low) / 2;
          const Wide<T> element = widen(row[middle]);
          const bool further = right ? !less(value, element) : less(element, value);
          if (further || (unordered && (value != value || element != element))) {
            low = middle + 1;
          } else {
            high = middle;
          }
        }
        y.data<int64_t>()[i] = low;
      }
      return 0;
    });
  });
  return {};
}
}  // namespace

PINNACE_OP(search_sorted){
    .name = "search_sorted",
    .inputs = {{"sorted", kNumbers, 'T'}, {"values", kNumbers, 'T'}},
    .attrs = {int_attr("right", 0), int_attr("unordered_nan", 0)},
    .type = search_sorted_type,
    .reference = search_sorted_reference,
    .work = Work::kSorted,
};
}  // namespace pinnace
