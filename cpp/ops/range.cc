// range: start, start + delta, start + 2 * delta, … up to but not including limit.
//   start, limit, delta  [] or [1]  numbers, the same type; delta not 0
//   y                    [max(ceil((limit - start) / delta), 0)]  as they are
// Floats: the count and each element are computed in double and rounded once. The size depends on data; it is a
// symbol's where range(0, symbol, 1) is asked for. A count that is NaN or infinite is an error. Source: ONNX Range,
// opset 11.
#include <cmath>

#include "ops/move.h"

namespace pinnace {
namespace {
Result<TensorType> range_type(const NodeView& node) {
  PINNACE_TRY(refuse_quantized(node));
  KnownInt known[3];
  for (int i = 0; i < 3; ++i) {
    PINNACE_ASSIGN(known[i], known_scalar(node, i));
  }
  const DType dtype = node.input(0).dtype;
  const auto result = [&](Dim d) { return TensorType{dtype, {d}, nullptr}; };
  const auto [start, limit, delta] = known;
  if (start.known && limit.known && delta.known) {
    if (delta.value == 0) return node.error("delta is 0");
    if (delta.value > 0 ? limit.value <= start.value : limit.value >= start.value) return result(0);
    // Differences of i64 fit u64 once their sign is known; so does -delta.
    const auto a = static_cast<uint64_t>(start.value), b = static_cast<uint64_t>(limit.value);
    const uint64_t distance = delta.value > 0 ? b - a : a - b;
    const uint64_t step = delta.value > 0 ? static_cast<uint64_t>(delta.value) : 0 - static_cast<uint64_t>(delta.value);
    const uint64_t count = (distance - 1) / step + 1;
    return result(static_cast<int64_t>(std::min<uint64_t>(count, INT64_MAX)));
  }
  if (start.known && start.value == 0 && delta.known && delta.value == 1 && limit.symbol >= 0)
    return result(limit.dim());
  double reals[3];
  for (int i = 0; i < 3; ++i) {
    const void* data = node.input_data(i);
    if (!data) return result(Dim());
    reals[i] =
        visit(dtype, [&](auto zero) { return static_cast<double>(widen(*static_cast<const decltype(zero)*>(data))); });
  }
  const double count = std::ceil((reals[1] - reals[0]) / reals[2]);
  if (reals[2] == 0 || !(count < 0x1p62)) {  // written so that NaN fails
    return node.error("from ", reals[0], " to ", reals[1], " by ", reals[2], " has no usable length");
  }
  return result(count > 0 ? static_cast<int64_t>(count) : 0);
}

Status range_reference(const NodeView&, std::span<const TensorView> in, std::span<const TensorView> out) {
  const TensorView y = out[0];
  const int64_t count = y.elements();
  return visit(y.dtype(), [&](auto zero) {
    using T = decltype(zero);
    using Step = std::conditional_t<is_float<T>, double, uint64_t>;  // unsigned: wraps where signed would be undefined
    const auto start = static_cast<Step>(widen(*in[0].data<T>())), delta = static_cast<Step>(widen(*in[2].data<T>()));
    for (int64_t i = 0; i < count; ++i) y.data<T>()[i] = static_cast<T>(start + static_cast<Step>(i) * delta);
    return Status();
  });
}
}  // namespace

PINNACE_OP(range){
    .name = "range",
    .inputs = {{"start", kNumbers, 'T'}, {"limit", kNumbers, 'T'}, {"delta", kNumbers, 'T'}},
    .type = range_type,
    .reference = range_reference,
};
}  // namespace pinnace
