// size: the number of elements of x.
//   x  [...]  any type; its elements are not read
//   y  []  i64
// Source: ONNX Size, opset 25.
#include "ops/op.h"

namespace pinnace {
namespace {
Result<TensorType> size_type(const NodeView&) {
  return TensorType{DType::kI64, {}, nullptr};
}

Status size_reference(const NodeView&, std::span<const TensorView> in, std::span<const TensorView> out) {
  *out[0].data<int64_t>() = in[0].elements();
  return {};
}
}  // namespace

PINNACE_OP(size){
    .name = "size",
    .inputs = {{"x", kEvery}},
    .type = size_type,
    .reference = size_reference,
    .work = Work::kConstant,
};
}  // namespace pinnace
