// reverse_sequence: the first lengths[b] time steps of batch entry b in reverse order; the rest as it is.
//   x           [...]  any type, rank 2 or more
//   lengths     [batch]  i64 in [0, time]
//   batch_axis  int, default 1
//   time_axis   int, default 0
//   y           as x
// A length outside is an error. ONNX asks for axes 0 and 1; any two are taken. Source: ONNX ReverseSequence, opset 10.
#include "ops/move.h"

namespace pinnace {
namespace {
Result<TensorType> reverse_sequence_type(const NodeView& node) {
  const TensorType& x = node.input(0);
  PINNACE_ASSIGN(const int batch, node.axis(node.attr_int("batch_axis"), x.rank()));
  PINNACE_ASSIGN(const int time, node.axis(node.attr_int("time_axis"), x.rank()));
  if (batch == time) return node.error("batch_axis and time_axis are both ", batch);
  PINNACE_ASSIGN(const Dim length, vector_length(node, 1, false));
  TensorType y{x.dtype, x.shape, nullptr};
  const auto merged = dim_merge(y.shape[static_cast<size_t>(batch)], length);
  if (!merged) return node.error("lengths ", node.input(1), " do not fit axis ", batch, " of ", x);
  y.shape[static_cast<size_t>(batch)] = *merged;
  PINNACE_ASSIGN(y.quantization, moved_quantization(node, 0));
  return y;
}

Status reverse_sequence_reference(const NodeView& node, std::span<const TensorView> in,
                                  std::span<const TensorView> out) {
  const TensorView x = in[0], y = out[0];
  PINNACE_ASSIGN(const int batch, node.axis(node.attr_int("batch_axis"), x.rank()));
  PINNACE_ASSIGN(const int time, node.axis(node.attr_int("time_axis"), x.rank()));
  const std::vector<int64_t> strides = row_major_strides(x.type->shape);
  const int64_t batch_step = strides[static_cast<size_t>(batch)], time_step = strides[static_cast<size_t>(time)];
  const auto bytes = static_cast<ptrdiff_t>(element_bytes(x.dtype()));
  Shape rest = x.type->shape;  // one batch entry, a range of time
  rest[static_cast<size_t>(batch)] = 1;
  std::vector<int64_t> backwards = strides;
  backwards[static_cast<size_t>(time)] = -time_step;
  for (int64_t b = 0; b < x.dim(batch); ++b) {
    const int64_t length = load_index(in[1], b);
    if (length < 0 || length > x.dim(time)) {
      return node.error("length ", length, " of batch entry ", b, " is outside [0,", x.dim(time), "]");
    }
    const std::byte* from = x.bytes + b * batch_step * bytes;
    std::byte* to = y.bytes + b * batch_step * bytes;
    rest[static_cast<size_t>(time)] = length;
    if (length > 0)
      copy_strided(node.threads(), rest, from + (length - 1) * time_step * bytes, backwards, to, strides,
                   static_cast<size_t>(bytes));
    const ptrdiff_t after = length * time_step * bytes;
    rest[static_cast<size_t>(time)] = x.dim(time) - length;
    if (length < x.dim(time))
      copy_strided(node.threads(), rest, from + after, strides, to + after, strides, static_cast<size_t>(bytes));
  }
  return {};
}
}  // namespace

PINNACE_OP(reverse_sequence){
    .name = "reverse_sequence",
    .inputs = {{"x", kAny}, {"lengths", kIndices}},
    .attrs = {int_attr("batch_axis", 1), int_attr("time_axis", 0)},
    .type = reverse_sequence_type,
    .reference = reverse_sequence_reference,
    .traits = Trait::kMoves,
};
}  // namespace pinnace
