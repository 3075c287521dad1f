// top_k: the k largest (smallest) elements along an axis, and where they were.
//   x        [...]  numbers; quantised: stored integers are compared
//   k        [] or [1]  i64 in [0, size of the axis]
//   axis     int, default -1
//   largest  int, default 1; 0: the smallest
//   sorted   int, default 1; elements come in order either way
//   values   as x, the axis with size k
//   indices  i64, likewise
// Of equal elements the one with the lower index comes first; NaN counts as largest. Source: ONNX TopK, opset 24.

#include "base/sort.h"
#include "ops/lines.h"
#include "ops/move.h"

namespace pinnace {
namespace {
Status top_k_types(const NodeView& node, std::span<TensorType> outputs) {
  const TensorType& x = node.input(0);
  PINNACE_ASSIGN(const int axis, node.axis(node.attr_int("axis"), x.rank()));
  PINNACE_ASSIGN(const KnownInt k, known_scalar(node, 1));
  PINNACE_ASSIGN(const auto quantization, moved_quantization(node, 0));
  const Dim d = x.shape[static_cast<size_t>(axis)];
  if (k.known && (k.value < 0 || (d.known() && k.value > d.size))) {
    return node.error("k is ", k.value, ", outside axis ", axis, " of ", x);
  }
  outputs[0] = {x.dtype, x.shape, quantization};
  outputs[0].shape[static_cast<size_t>(axis)] = k.known || k.symbol >= 0 ? k.dim() : dim_at_most(d);
  outputs[1] = {DType::kI64, outputs[0].shape, nullptr};
  return {};
}

Status top_k_reference(const NodeView& node, std::span<const TensorView> in, std::span<const TensorView> out) {
  const TensorView x = in[0], values = out[0], indices = out[1];
  PINNACE_ASSIGN(const int axis, node.axis(node.attr_int("axis"), x.rank()));
  const bool largest = node.attr_int("largest") != 0;
  const AxisView v = view_axis(x.type->shape, axis);
  const int64_t k = load_index(in[1], 0);
  if (k < 0 || k > v.size) return node.error("k is ", k, ", outside an axis of size ", v.size);
  if (values.elements() == 0) return {};
  const size_t bytes = element_bytes(x.dtype());
  const uint64_t turned = largest ? UINT64_MAX : 0;
  const double cost = 10 * static_cast<double>(v.size);
  return node.threads().ranges(v.outer * v.inner, cost, [&](int64_t begin, int64_t end) -> Status {
    PINNACE_ASSIGN(auto order, Scratch<int64_t>::allocate(v.size, node.label()));
    PINNACE_ASSIGN(auto keys, Scratch<uint64_t>::allocate(v.size, node.label()));
    for (int64_t line = begin; line < end; ++line) {
      const int64_t o = line / v.inner, i = line % v.inner;
      const int64_t first = o * v.size * v.inner + i;
      load_order(x, first, v.inner, v.size, keys.data());
      for (int64_t n = 0; n < v.size; ++n) {
        keys[n] ^= turned;
        order[n] = n;
      }
      sort_first(order.data(), order.data() + k, order.data() + v.size,
                 [&](int64_t p, int64_t q) { return keys[p] != keys[q] ? keys[p] < keys[q] : p < q; });
      if (stopped()) return stop_status(node.label());
      for (int64_t n = 0; n < k; ++n) {
        const int64_t to = (o * k + n) * v.inner + i, from = first + order[n] * v.inner;
        copy_element(values.bytes + static_cast<size_t>(to) * bytes, x.bytes + static_cast<size_t>(from) * bytes,
                     bytes);
        indices.data<int64_t>()[to] = order[n];
      }
    }
    return {};
  });
}
}  // namespace

PINNACE_OP(top_k){
    .name = "top_k",
    .inputs = {{"x", kNumbers}, {"k", kIndices}},
    .attrs = {int_attr("axis", -1), int_attr("largest", 1), int_attr("sorted", 1)},
    .min_outputs = 2,
    .max_outputs = 2,
    .types = top_k_types,
    .reference = top_k_reference,
    .traits = Trait::kCompares,
    .work = Work::kSorted,
};
}  // namespace pinnace
