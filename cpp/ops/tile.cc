// tile: x repeated along each axis.
//   x        [...]  any type
//   repeats  [rank of x]  i64, none negative
//   y        as x, each size multiplied
// Source: ONNX Tile, opset 13.
#include "ops/move.h"

namespace pinnace {
namespace {
Result<TensorType> tile_type(const NodeView& node) {
  const TensorType& x = node.input(0);
  PINNACE_ASSIGN(const Dim length, vector_length(node, 1, false));
  if (length.known() && length.size != x.rank()) {
    return node.error("repeats has ", length.size, " elements for ", x);
  }
  TensorType y{x.dtype, Shape(x.shape.size()), nullptr};
  PINNACE_ASSIGN(y.quantization, moved_quantization(node, 0));
  const auto repeats = node.input_known(1);
  for (size_t d = 0; d < y.shape.size(); ++d) {
    const KnownInt k = repeats && d < repeats->size() ? (*repeats)[d] : KnownInt{};
    if (k.known && k.value < 0) return node.error("repeats ", k.value, " of axis ", d, " is negative");
    y.shape[d] = dim_mul(x.shape[d], k.dim());
  }
  return y;
}

Status tile_reference(const NodeView& node, std::span<const TensorView> in, std::span<const TensorView> out) {
  const TensorView x = in[0], y = out[0];
  // As a copy over [repeat, size] per axis, of which y's strides see both and x's only the size.
  Shape shape;
  std::vector<int64_t> from, to;
  const std::vector<int64_t> x_strides = row_major_strides(x.type->shape), y_strides = row_major_strides(y.type->shape);
  for (size_t d = 0; d < x_strides.size(); ++d) {
    const int64_t size = x.type->shape[d].size;
    if (size == 0) return {};
    shape.insert(shape.end(), {Dim(y.type->shape[d].size / size), Dim(size)});
    from.insert(from.end(), {0, x_strides[d]});
    to.insert(to.end(), {size * y_strides[d], y_strides[d]});
  }
  copy_strided(node.threads(), shape, x.bytes, from, y.bytes, to, element_bytes(x.dtype()));
  return {};
}
}  // namespace

PINNACE_OP(tile){
    .name = "tile",
    .inputs = {{"x", kAny}, {"repeats", kI64}},
    .type = tile_type,
    .reference = tile_reference,
    .traits = Trait::kMoves,
    .work = Work::kCopied,
};
}  // namespace pinnace
