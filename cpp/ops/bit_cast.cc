// bit_cast: the bytes of x read as another element type of the same width.
//   x   [...]  any type
//   to  string, required: name of the element type of y, as wide as that of x
//   y   the shape of x, element type `to`
// bool may become another type, but no other type may become bool, whose bytes are only 0 and 1. Quantised tensors are
// refused. Source: ONNX BitCast, opset 26.
#include "base/dtype_code.h"
#include "ops/move.h"

namespace pinnace {
namespace {
Result<TensorType> bit_cast_type(const NodeView& node) {
  PINNACE_TRY(refuse_quantized(node));
  const TensorType& x = node.input(0);
  const auto to = dtype_from_code(node.attr_string("to"));
  if (!to) return node.error("to is '", node.attr_string("to"), "', which is no element type");
  if (dtype_bits(*to) != dtype_bits(x.dtype)) {
    return node.error(dtype_name(*to), " has ", dtype_bits(*to), " bits, x ", x, " has ", dtype_bits(x.dtype));
  }
  if (*to == DType::kBool && x.dtype != DType::kBool) {
    return node.error("the bytes of x ", x, " may be no bool, which is 0 or 1");
  }
  return TensorType{*to, x.shape, nullptr};
}

Status bit_cast_reference(const NodeView&, std::span<const TensorView> in, std::span<const TensorView> out) {
  copy_run(out[0].bytes, in[0].bytes, out[0].type->bytes(), 1);
  return {};
}
}  // namespace

PINNACE_OP(bit_cast){
    .name = "bit_cast",
    .inputs = {{"x", kEvery}},
    .attrs = {required_attr("to", AttrKind::kString)},
    .type = bit_cast_type,
    .reference = bit_cast_reference,
    .traits = Trait::kView | Trait::kKeepsSameType,
};
}  // namespace pinnace
