// trilu: the upper or lower triangle of each matrix, zeros elsewhere.
//   x      [..., rows, cols]  any type
//   k      [] or [1]  i64, optional, default 0: the diagonal col = row + k bounds the triangle and belongs to it
//   upper  int, default 1; 0: lower
//   y      as x; quantised: zeros are the zero point
// NaN keeps its bits. Source: ONNX Trilu, opset 14.
#include "ops/move.h"

namespace pinnace {
namespace {
Result<TensorType> trilu_type(const NodeView& node) {
  const TensorType& x = node.input(0);
  if (x.rank() < 2) return node.error("x must have two dimensions or more, is ", x);
  if (node.has_input(1)) PINNACE_TRY(check_one_number(node, 1));
  PINNACE_TRY(moved_quantization(node, 0).status());
  return x;
}

Status trilu_reference(const NodeView& node, std::span<const TensorView> in, std::span<const TensorView> out) {
  const TensorView x = in[0], y = out[0];
  const int64_t k = in.size() > 1 && in[1].present() ? load_index(in[1], 0) : 0;
  const bool upper = node.attr_int("upper") != 0;
  const int64_t rows = x.dim(-2), cols = x.dim(-1), count = x.elements();
  const size_t bytes = element_bytes(x.dtype());
  const int64_t nothing = x.type->quantized() ? x.type->quantization->zero_points[0] : 0;
  const auto run = [&](int64_t first, int64_t last) {
    for (int64_t i = first; i < last; ++i) {
      const int64_t row = i / cols % rows, col = i % cols;
      const bool keep = upper ? col - row >= k : col - row <= k;
      const auto at = static_cast<size_t>(i) * bytes;
      copy_element(y.bytes + at, keep ? x.bytes + at : reinterpret_cast<const std::byte*>(&nothing), bytes);
    }
  };
  node.threads().ranges(count, kMapNanoseconds, run, kMapGrain);
  return {};
}
}  // namespace

PINNACE_OP(trilu){
    .name = "trilu",
    .inputs = {{"x", kAny}, {"k", kI64, 0, Arity::kOptional}},
    .attrs = {int_attr("upper", 1)},
    .type = trilu_type,
    .reference = trilu_reference,
    .in_place = 1,
    .traits = Trait::kMoves,
};
}  // namespace pinnace
