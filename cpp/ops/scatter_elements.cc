// scatter_elements: data with single elements replaced: y[..., indices[..., i, ...], ...] = updates[..., i, ...].
//   data       [...]  any type
//   indices    [...]  i32 | i64 in [-n, n), n the size of data along axis; same rank, no larger than data beside the
//   axis updates    the shape of indices, the type of data axis       int, default 0 reduction  string, default "none":
//   the last update wins; "add", "mul", "max", "min": joined with what is there y          as data
// An index outside is an error. Joined with NaN is NaN. Source: ONNX ScatterElements, opset 18.
#include "ops/scatter.h"

namespace pinnace {
namespace {
Result<TensorType> scatter_elements_type(const NodeView& node) {
  const TensorType &x = node.input(0), &indices = node.input(1), &updates = node.input(2);
  PINNACE_ASSIGN(const int axis, node.axis(node.attr_int("axis"), x.rank()));
  if (indices.rank() != x.rank() || updates.rank() != x.rank()) {
    return node.error("indices ", indices, " and updates ", updates, " must have the rank of ", x);
  }
  for (size_t d = 0; d < x.shape.size(); ++d) {
    const auto same = dim_merge(indices.shape[d], updates.shape[d]);
    if (!same) return node.error("updates ", updates, " must have the shape of indices ", indices);
    if (static_cast<int>(d) != axis && x.shape[d].known() && same->known() && same->size > x.shape[d].size) {
      return node.error("indices ", indices, " are larger than ", x, " beside axis ", axis);
    }
  }
  return scatter_type(node);
}

Status scatter_elements_reference(const NodeView& node, std::span<const TensorView> in,
                                  std::span<const TensorView> out) {
  const TensorView x = in[0], indices = in[1], updates = in[2], y = out[0];
  PINNACE_ASSIGN(const int axis, node.axis(node.attr_int("axis"), x.rank()));
  PINNACE_ASSIGN(const Join join, scatter_join(node));
  copy_run(y.bytes, x.bytes, x.elements(), element_bytes(x.dtype()));
  std::vector<int64_t> strides = row_major_strides(x.type->shape);
  const int64_t step = std::exchange(strides[static_cast<size_t>(axis)], 0), size = x.dim(axis);
  StridedLoop loop(indices.type->shape);
  loop.add_strides(strides);
  Status status;
  loop.run([&](int64_t i, const int64_t* at) {
    int64_t index = load_index(indices, i);
    if (index < -size || index >= size) {
      if (status.ok()) status = wrap_index(node, index, size).status();
      return;
    }
    index += index < 0 ? size : 0;
    scatter_run(y, at[0] + index * step, updates, i, 1, join);
  });
  return status;
}
}  // namespace

PINNACE_OP(scatter_elements){
    .name = "scatter_elements",
    .inputs = {{"data", kAny, 'T'}, {"indices", kIndices}, {"updates", kAny, 'T'}},
    .attrs = {int_attr("axis", 0), string_attr("reduction", "none")},
    .type = scatter_elements_type,
    .reference = scatter_elements_reference,
    .in_place = 1,
};
}  // namespace pinnace
