// one_hot: a new dimension of size depth, with values[1] at the index and values[0] elsewhere.
//   indices  [A..., B...]  numbers; fractions are cut off
//   depth    [] or [1]  numbers, not negative
//   values   [2]  any type: off, on
//   axis     int in [-rank - 1, rank], default -1: where the new dimension stands
//   y        [A..., depth, B...]  as values
// Indices in [-depth, 0) count from the end; others outside [0, depth) and NaN give a row of off values.
// Source: ONNX OneHot, opset 11.
#include <cmath>

#include "ops/move.h"

namespace pinnace {
namespace {
Result<TensorType> one_hot_type(const NodeView& node) {
  const TensorType &indices = node.input(0), &values = node.input(2);
  PINNACE_ASSIGN(const int axis, node.axis(node.attr_int("axis"), indices.rank() + 1));
  if (values.rank() != 1 || (values.shape[0].known() && values.shape[0].size != 2)) {
    return node.error("values must be [2], are ", values);
  }
  PINNACE_ASSIGN(const KnownInt depth, known_scalar(node, 1));
  Dim d = depth.dim();
  const auto real = node.input_floats(1);
  if (real && real->size() == 1 && !((*real)[0] >= 0 && (*real)[0] < 0x1p62)) {
    return node.error("depth ", (*real)[0], " is not a size");
  }
  if (real && real->size() == 1) d = static_cast<int64_t>((*real)[0]);
  if (!depth.known && !real && node.input_data(1)) return node.error("depth does not fit int64");
  if (depth.known && depth.value < 0) return node.error("depth ", depth.value, " is negative");
  TensorType y{values.dtype, indices.shape, nullptr};
  y.shape.insert(y.shape.begin() + axis, d);
  PINNACE_ASSIGN(y.quantization, moved_quantization(node, 2));
  return y;
}

Status one_hot_reference(const NodeView& node, std::span<const TensorView> in, std::span<const TensorView> out) {
  const TensorView indices = in[0], values = in[2], y = out[0];
  PINNACE_ASSIGN(const int axis, node.axis(node.attr_int("axis"), y.rank()));
  const AxisView v = view_axis(y.type->shape, axis);
  const size_t bytes = element_bytes(y.dtype());
  return visit(indices.dtype(), [&](auto zero) {
    using T = decltype(zero);
    node.threads().ranges(v.outer * v.inner, 2 * static_cast<double>(v.size), [&](int64_t begin, int64_t end) {
      for (int64_t line = begin; line < end; ++line) {
        const int64_t o = line / v.inner, i = line % v.inner;
        // Fractions towards zero; what does not fit int64 is outside any depth.
        const auto wide = widen(indices.data<T>()[o * v.inner + i]);
        int64_t hot = -1;
        if constexpr (is_float<T>) {
          if (std::abs(wide) < 0x1p62) hot = static_cast<int64_t>(wide);
          if (!(std::abs(wide) < 0x1p62)) hot = INT64_MIN;
        } else {
          hot = static_cast<uint64_t>(wide) > INT64_MAX && wide > 0 ? INT64_MIN : static_cast<int64_t>(wide);
        }
        if (hot < 0 && hot >= -v.size) hot += v.size;
        for (int64_t k = 0; k < v.size; ++k) {
          copy_element(y.bytes + static_cast<size_t>((o * v.size + k) * v.inner + i) * bytes,
                       values.bytes + (k == hot ? bytes : 0), bytes);
        }
      }
    });
    return Status();
  });
}
}  // namespace

PINNACE_OP(one_hot){
    .name = "one_hot",
    .inputs = {{"indices", kNumbers}, {"depth", kNumbers}, {"values", kAny}},
    .attrs = {int_attr("axis", -1)},
    .type = one_hot_type,
    .reference = one_hot_reference,
};
}  // namespace pinnace
