// identity: y = x, bit for bit.
//   x  [...]  any type, quantised in any way
//   y  as x, with x's quantisation
// Source: ONNX Identity, opset 25.
#include <cstring>

#include "ops/op.h"

namespace pinnace {
namespace {
Result<TensorType> identity_type(const NodeView& node) {
  const auto declared = node.output_quantization(0);
  const auto own = node.input(0).quantization;
  if (declared && !(own && *own == *declared)) {
    return node.error("the output is declared with another quantisation than ", node.input(0));
  }
  return node.input(0);
}

Status identity_reference(const NodeView&, std::span<const TensorView> in, std::span<const TensorView> out) {
  const auto bytes = static_cast<size_t>(out[0].type->bytes());
  if (bytes && out[0].bytes != in[0].bytes) std::memcpy(out[0].bytes, in[0].bytes, bytes);
  return {};
}
}  // namespace

PINNACE_OP(identity){
    .name = "identity",
    .inputs = {{"x", kEvery}},
    .type = identity_type,
    .reference = identity_reference,
    .in_place = 1,
    .traits = Trait::kView | Trait::kMoves | Trait::kKeepsSameType,
    .work = Work::kCopied,
};
}  // namespace pinnace
