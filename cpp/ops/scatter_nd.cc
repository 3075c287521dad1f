// scatter_nd: data with slices replaced at index tuples: y[indices[i, 0], indices[i, 1], ...] = updates[i].
//   data       [...]  any type
//   indices    [I..., k]  i64, each in [-n, n) of its dimension of data; k <= rank of data
//   updates    [I..., dimensions of data after the first k]  as data
//   reduction  string, default "none": the last update wins; "add", "mul", "max", "min": joined with what is there
//   y          as data
// An index outside is an error. Joined with NaN is NaN. Source: ONNX ScatterND, opset 18.
#include "ops/scatter.h"

namespace pinnace {
namespace {
Result<TensorType> scatter_nd_type(const NodeView& node) {
  const TensorType &x = node.input(0), &indices = node.input(1), &updates = node.input(2);
  if (indices.rank() < 1) return node.error("indices must have a dimension, are ", indices);
  const Dim k = indices.shape.back();
  if (k.known()) {
    if (k.size > x.rank()) return node.error("indices ", indices, " name ", k.size, " dimensions of ", x);
    Shape wanted(indices.shape.begin(), indices.shape.end() - 1);
    wanted.insert(wanted.end(), x.shape.begin() + k.size, x.shape.end());
    bool fits = wanted.size() == updates.shape.size();
    for (size_t i = 0; fits && i < wanted.size(); ++i) fits = dim_merge(wanted[i], updates.shape[i]).has_value();
    if (!fits) {
      return node.error("updates are ", updates, ", must be ", TensorType{x.dtype, wanted, nullptr});
    }
  }
  return scatter_type(node);
}

Status scatter_nd_reference(const NodeView& node, std::span<const TensorView> in, std::span<const TensorView> out) {
  const TensorView x = in[0], indices = in[1], updates = in[2], y = out[0];
  PINNACE_ASSIGN(const Join join, scatter_join(node));
  copy_run(y.bytes, x.bytes, x.elements(), element_bytes(x.dtype()));
  const auto k = static_cast<size_t>(indices.dim(-1));
  const std::span<const Dim> sizes = x.type->shape;
  const std::vector<int64_t> strides = row_major_strides(x.type->shape);
  const int64_t run = dim_product(sizes.subspan(k)).size;
  const int64_t tuples = dim_product(std::span(indices.type->shape).first(indices.type->shape.size() - 1)).size;
  for (int64_t t = 0; t < tuples; ++t) {
    if (t % 4096 == 4095 && loop_stops()) break;
    int64_t to = 0;
    for (size_t j = 0; j < k; ++j) {
      const int64_t at = load_index(indices, t * static_cast<int64_t>(k) + static_cast<int64_t>(j));
      PINNACE_ASSIGN(const int64_t index, wrap_index(node, at, sizes[j].size));
      to += index * strides[j];
    }
    scatter_run(y, to, updates, t * run, run, join);
  }
  return {};
}
}  // namespace

PINNACE_OP(scatter_nd){
    .name = "scatter_nd",
    .inputs = {{"data", kAny, 'T'}, {"indices", kIndices}, {"updates", kAny, 'T'}},
    .attrs = {string_attr("reduction", "none")},
    .type = scatter_nd_type,
    .reference = scatter_nd_reference,
    .in_place = 1,
};
}  // namespace pinnace
