// gather_nd: slices of x at index tuples: y[b, i] = x[b, indices[b, i, 0], indices[b, i, 1], ...].
//   x           [B..., ...]  any type
//   indices     [B..., I..., k]  i64, each in [-n, n) of its dimension of x; k <= rank of x - batch_dims
//   batch_dims  int, default 0: how many leading dimensions B are shared
//   y           [B..., I..., dimensions of x after B and the k indexed ones]  as x
// An index outside is an error. Source: ONNX GatherND, opset 13.
#include "ops/move.h"

namespace pinnace {
namespace {
Result<TensorType> gather_nd_type(const NodeView& node) {
  const TensorType &x = node.input(0), &indices = node.input(1);
  const int64_t batch = node.attr_int("batch_dims");
  if (indices.rank() < 1) return node.error("indices must have a dimension, are ", indices);
  if (batch < 0 || batch >= indices.rank() || batch > x.rank()) {
    return node.error("batch_dims ", batch, " is outside ", x, " and ", indices);
  }
  const Dim k = indices.shape.back();
  if (!k.known()) return node.error("its rank depends on the last size of indices, which is not known: ", indices);
  if (k.size < 1 || k.size > x.rank() - batch) {
    return node.error("indices ", indices, " name ", k.size, " dimensions of ", x, " after ", batch);
  }
  TensorType y{x.dtype, {}, nullptr};
  PINNACE_ASSIGN(y.quantization, moved_quantization(node, 0));
  for (size_t i = 0; i + 1 < indices.shape.size(); ++i) {
    auto d = std::optional(indices.shape[i]);
    if (static_cast<int64_t>(i) < batch) d = dim_merge(x.shape[i], indices.shape[i]);
    if (!d) return node.error("the first ", batch, " sizes of ", x, " and ", indices, " differ");
    y.shape.push_back(*d);
  }
  y.shape.insert(y.shape.end(), x.shape.begin() + batch + k.size, x.shape.end());
  return y;
}

Status gather_nd_reference(const NodeView& node, std::span<const TensorView> in, std::span<const TensorView> out) {
  const TensorView x = in[0], indices = in[1], y = out[0];
  const auto batch = static_cast<size_t>(node.attr_int("batch_dims")), k = static_cast<size_t>(indices.dim(-1));
  const std::span<const Dim> sizes = x.type->shape;
  const std::vector<int64_t> strides = row_major_strides(x.type->shape);
  const int64_t batches = dim_product(sizes.first(batch)).size;
  const int64_t run = dim_product(sizes.subspan(batch + k)).size, batch_step = dim_product(sizes.subspan(batch)).size;
  const int64_t tuples = batches ? indices.elements() / static_cast<int64_t>(k) / batches : 0;
  const size_t bytes = element_bytes(x.dtype());
  const double cost = 5 + copy_nanoseconds(run, bytes);
  return node.threads().ranges(batches * tuples, cost, [&](int64_t begin, int64_t end) -> Status {
    for (int64_t t = begin; t < end; ++t) {
      int64_t from = t / tuples * batch_step;
      for (size_t j = 0; j < k; ++j) {
        const int64_t at = load_index(indices, t * static_cast<int64_t>(k) + static_cast<int64_t>(j));
        PINNACE_ASSIGN(const int64_t index, wrap_index(node, at, sizes[batch + j].size));
        from += index * strides[batch + j];
      }
      copy_run(y.bytes + static_cast<size_t>(t * run) * bytes, x.bytes + static_cast<size_t>(from) * bytes, run, bytes);
    }
    return {};
  });
}
}  // namespace

PINNACE_OP(gather_nd){
    .name = "gather_nd",
    .inputs = {{"x", kAny}, {"indices", kIndices}},
    .attrs = {int_attr("batch_dims", 0)},
    .type = gather_nd_type,
    .reference = gather_nd_reference,
    .traits = Trait::kMoves,
};
}  // namespace pinnace
