// compress: the slices of x along an axis for which condition is true.
//   x          [...]  any type
//   condition  [n]  bool; n may be less than the axis: what is missing counts as false; true beyond the axis is an
//   error axis       int; left out: x is taken as a vector of all its elements y          as x, the axis with as many
//   entries as there are true ones
// The size of y depends on data; bound: the smaller of n and the axis. Source: ONNX Compress, opset 11.
#include <algorithm>

#include "ops/move.h"

namespace pinnace {
namespace {
constexpr int64_t kFlat = INT64_MIN;  // "axis" is left out

Result<TensorType> compress_type(const NodeView& node) {
  const TensorType& x = node.input(0);
  TensorType y{x.dtype, x.shape, nullptr};
  PINNACE_ASSIGN(y.quantization, moved_quantization(node, 0));
  int axis = 0;
  if (node.attr_int("axis") == kFlat) {
    y.shape = {dim_product(x.shape)};
  } else {
    PINNACE_ASSIGN(axis, node.axis(node.attr_int("axis"), x.rank()));
  }
  Dim& d = y.shape[static_cast<size_t>(axis)];
  PINNACE_ASSIGN(const Dim length, vector_length(node, 1, false));
  if (const auto condition = node.input_ints(1)) {
    if (d.known() &&
        std::any_of(condition->begin() + std::min<int64_t>(d.size, static_cast<int64_t>(condition->size())),
                    condition->end(), [](int64_t c) { return c != 0; })) {
      return node.error("condition is true beyond a dimension of size ", d.size);
    }
    d = std::count_if(condition->begin(), condition->end(), [](int64_t c) { return c != 0; });
  } else {
    const int64_t a = dim_bound(d), b = dim_bound(length);
    d = Dim::unknown(a < 0 ? b : b < 0 ? a : std::min(a, b));
  }
  return y;
}

Status compress_reference(const NodeView& node, std::span<const TensorView> in, std::span<const TensorView> out) {
  const TensorView x = in[0], y = out[0];
  AxisView v{1, x.elements(), 1};
  if (node.attr_int("axis") != kFlat) {
    PINNACE_ASSIGN(const int axis, node.axis(node.attr_int("axis"), x.rank()));
    v = view_axis(x.type->shape, axis);
  }
  const uint8_t* condition = in[1].data<uint8_t>();
  const int64_t n = in[1].elements();
  const size_t bytes = element_bytes(x.dtype());
  std::byte* to = y.bytes;
  for (int64_t o = 0; o < v.outer; ++o) {
    for (int64_t k = 0; k < n; ++k) {
      if (!condition[k]) continue;
      if (k >= v.size) return node.error("condition is true at ", k, ", beyond a dimension of size ", v.size);
      copy_run(to, x.bytes + static_cast<size_t>((o * v.size + k) * v.inner) * bytes, v.inner, bytes);
      to += static_cast<size_t>(v.inner) * bytes;
    }
  }
  return {};
}
}  // namespace

PINNACE_OP(compress){
    .name = "compress",
    .inputs = {{"x", kAny}, {"condition", kBool}},
    .attrs = {int_attr("axis", kFlat)},
    .type = compress_type,
    .reference = compress_reference,
    .traits = Trait::kMoves | Trait::kRunsToCount,
    .work = Work::kCopied,
};
}  // namespace pinnace
