// gcd: z = the greatest common divisor of a and b, broadcast as numpy does.
//   a, b  [...]  integers, the same type
//   z     the broadcast shape
// Not negative, and 0 only of 0 and 0; where it is 2^(bits - 1) of a signed type, that is, of the smallest value with
// itself or 0, it wraps to the smallest value. ONNX has no such operator; PyTorch's gcd.
#include <numeric>

#include "ops/element.h"

namespace pinnace {
namespace {
Result<TensorType> gcd_type(const NodeView& node) {
  PINNACE_TRY(refuse_quantized(node));
  return binary_type(node);
}

template <class T>
T common_divisor(T a, T b) {
  const auto magnitude = [](T v) { return v < 0 ? uint64_t{0} - static_cast<uint64_t>(v) : static_cast<uint64_t>(v); };
  return static_cast<T>(std::gcd(magnitude(a), magnitude(b)));
}

Status gcd_reference(const NodeView& node, std::span<const TensorView> in, std::span<const TensorView> out) {
  return visit_int(out[0].dtype(), [&](auto zero) {
    using T = decltype(zero);
    map_broadcast<T, T>(node.threads(), in[0], in[1], out[0], [](T a, T b) { return common_divisor(a, b); });
    return Status();
  });
}
}  // namespace

PINNACE_OP(gcd){
    .name = "gcd",
    .inputs = {{"a", kInts, 'T'}, {"b", kInts, 'T'}},
    .type = gcd_type,
    .reference = gcd_reference,
    .in_place = 0b11,
    .traits = Trait::kElementwise,
};
}  // namespace pinnace
