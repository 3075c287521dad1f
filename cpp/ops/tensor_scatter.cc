// tensor_scatter: a copy of past with the rows of update written into it from a place of each batch entry on; how a
// cache of keys or values takes what is new.
//   past           [B, ...]  any type; rank 2 or more
//   update         [B, ...]  as past, the axis not longer
//   write_indices  [B]  i64, optional: where along the axis the rows of each batch entry begin; left out: 0
//   axis  int, default -2; not the first
//   mode  "linear" (default): update must end within past; "circular": what goes beyond the end goes on at the start
//   y     as past
// A place outside past is an error; in circular mode any place is taken modulo the axis. NaN keeps its bits. Source:
// ONNX TensorScatter, opset 24.
#include "ops/move.h"

namespace pinnace {
namespace {
Result<TensorType> tensor_scatter_type(const NodeView& node) {
  const TensorType &past = node.input(0), &update = node.input(1);
  const std::string_view mode = node.attr_string("mode");
  if (mode != "linear" && mode != "circular") return node.error("mode is '", mode, "', must be linear or circular");
  if (past.rank() < 2 || update.rank() != past.rank()) {
    return node.error("past ", past, " and update ", update, " must have one rank of 2 or more");
  }
  PINNACE_ASSIGN(const int axis, node.axis(node.attr_int("axis"), past.rank()));
  if (axis == 0) return node.error("axis 0 is the batch");
  TensorType y{past.dtype, past.shape, nullptr};
  PINNACE_ASSIGN(y.quantization, moved_quantization(node, 0));
  if (!same_quantization(past, update)) {
    return node.error("past ", past, " and update ", update, " are quantised differently");
  }
  for (int d = 0; d < past.rank(); ++d) {
    Dim& into = y.shape[static_cast<size_t>(d)];
    const Dim from = update.shape[static_cast<size_t>(d)];
    if (d == axis) {
      if (into.known() && from.known() && from.size > into.size) {
        return node.error("update ", update, " is longer than past ", past, " in axis ", axis);
      }
      continue;
    }
    const auto merged = dim_merge(into, from);
    if (!merged) {
      return node.error("past ", past, " and update ", update, " differ in dimension ", d);
    }
    into = *merged;
  }
  if (node.has_input(2)) {
    PINNACE_ASSIGN(const Dim length, vector_length(node, 2, false));
    if (!dim_merge(y.shape[0], length)) {
      return node.error("write_indices ", node.input(2), " do not fit the batch of past ", past);
    }
  }
  return y;
}

Status tensor_scatter_reference(const NodeView& node, std::span<const TensorView> in, std::span<const TensorView> out) {
  const TensorView past = in[0], update = in[1], y = out[0];
  PINNACE_ASSIGN(const int axis, node.axis(node.attr_int("axis"), past.rank()));
  const bool circular = node.attr_string("mode") == "circular", placed = in.size() > 2 && in[2].present();
  const AxisView to = view_axis(past.type->shape, axis), from = view_axis(update.type->shape, axis);
  const size_t bytes = element_bytes(past.dtype());
  copy_run(y.bytes, past.bytes, past.elements(), bytes);
  if (update.elements() == 0) return {};
  const int64_t per_batch = to.outer / past.dim(0);
  const auto row = static_cast<size_t>(to.inner) * bytes;
  for (int64_t o = 0; o < to.outer; ++o) {
    int64_t first = placed ? in[2].data<int64_t>()[o / per_batch] : 0;
    if (circular) {
      first = (first % to.size + to.size) % to.size;
    } else if (first < 0 || first > to.size - from.size) {
      return node.error("write index ", first, " of batch entry ", o / per_batch, " leaves no room for ", from.size,
                        " rows within ", to.size);
    }
    for (int64_t i = 0; i < from.size; ++i) {
      const int64_t at = first + i < to.size ? first + i : first + i - to.size;
      copy_run(y.bytes + static_cast<size_t>(o * to.size + at) * row,
               update.bytes + static_cast<size_t>(o * from.size + i) * row, to.inner, bytes);
    }
  }
  return {};
}
}  // namespace

PINNACE_OP(tensor_scatter){
    .name = "tensor_scatter",
    .inputs = {{"past", kAny, 'T'}, {"update", kAny, 'T'}, {"write_indices", kI64, 0, Arity::kOptional}},
    .attrs = {int_attr("axis", -2), string_attr("mode", "linear")},
    .type = tensor_scatter_type,
    .reference = tensor_scatter_reference,
    .in_place = 1,
};
}  // namespace pinnace
