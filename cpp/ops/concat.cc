// concat: inputs one after another along an axis.
//   x...  [...]  any type, the same for all; sizes equal but along the axis
//   axis  int, required
//   y     as the inputs, the axis with the sum of their sizes
// Quantised: inputs with the parameters of y are copied, others are dequantised and quantised again. y has the declared
// parameters; without any, all inputs must agree. Source: ONNX Concat, opset 13.
#include "ops/move.h"

namespace pinnace {
namespace {
Result<TensorType> concat_type(const NodeView& node) {
  const TensorType& first = node.input(0);
  PINNACE_ASSIGN(const int axis, node.axis(node.attr_int("axis"), first.rank()));
  TensorType y{first.dtype, first.shape, node.output_quantization(0)};
  if (!y.quantization) y.quantization = first.quantization;
  const bool declared = node.output_quantization(0) != nullptr;
  for (int i = 0; i < node.input_count(); ++i) {
    const TensorType& x = node.input(i);
    if (x.rank() != first.rank()) {
      return node.error("input ", i, " is ", x, ", its rank differs from that of ", first);
    }
    PINNACE_TRY(moved_quantization(node, i).status());
    if (x.quantized() != y.quantized()) return node.error("input ", i, " is ", x, ", y is ", y);
    if (!declared && !same_quantization(x, first)) {
      return node.error("input ", i, " is ", x, ", differs from ", first,
                        ", and the parameters of the result are not declared");
    }
    if (i == 0) continue;
    for (int d = 0; d < x.rank(); ++d) {
      Dim& into = y.shape[static_cast<size_t>(d)];
      const Dim& from = x.shape[static_cast<size_t>(d)];
      const auto merged = d == axis ? dim_add(into, from) : dim_merge(into, from);
      if (!merged) {
        return node.error("input ", i, " is ", x, ", differs from ", first, " beside axis ", axis);
      }
      into = *merged;
    }
  }
  return y;
}

Status concat_reference(const NodeView& node, std::span<const TensorView> in, std::span<const TensorView> out) {
  const TensorView y = out[0];
  PINNACE_ASSIGN(const int axis, node.axis(node.attr_int("axis"), y.rank()));
  const AxisView v = view_axis(y.type->shape, axis);
  const size_t bytes = element_bytes(y.dtype());
  int64_t start = 0;  // of the input's block in each outer block of y
  for (const TensorView& x : in) {
    const int64_t block = x.dim(axis) * v.inner;
    const bool requantise = y.type->quantized() && !same_quantization(*x.type, *y.type);
    node.threads().ranges(v.outer, copy_nanoseconds(block, bytes), [&](int64_t first, int64_t last) {
      for (int64_t o = first; o < last; ++o) {
        const int64_t to = o * v.size * v.inner + start;
        if (!requantise) {
          copy_run(y.bytes + static_cast<size_t>(to) * bytes, x.bytes + static_cast<size_t>(o * block) * bytes, block,
                   bytes);
          continue;
        }
        for (int64_t i = 0; i < block; ++i) {
          const float real = dequantize(load_int(x, o * block + i), scale_zero(*x.type));
          store_int(y, to + i, quantize(real, scale_zero(*y.type), int_range(y.dtype())));
        }
      }
    });
    start += block;
  }
  return {};
}
}  // namespace

PINNACE_OP(concat){
    .name = "concat",
    .inputs = {{"x", kBytewise, 'T'}, {"more", kBytewise, 'T', Arity::kVariadic}},
    .attrs = {required_attr("axis", AttrKind::kInt)},
    .type = concat_type,
    .reference = concat_reference,
    .traits = Trait::kMoves | Trait::kKeepsOnlyInput | Trait::kFoldsQuantization,
    .work = Work::kCopied,
};
}  // namespace pinnace
