// mod: z = the remainder of a / b, broadcast as numpy does.
//   a, b  [...]  numbers, the same type
//   fmod  int, default 0: quotient rounded down, z has the sign of b; 1: quotient truncated, z has the sign of a
//   z     the broadcast shape
// Integers: a divisor of 0 is an error; any value modulo -1 is 0. Floats, in double, rounded once: NaN for an infinite
// a or a zero b; fmod 0 gives zeros the sign of b, and b itself for an infinite b of the other sign. Source: ONNX Mod,
// opset 28.
#include <cmath>

#include "ops/element.h"

namespace pinnace {
namespace {
Result<TensorType> mod_type(const NodeView& node) {
  PINNACE_TRY(refuse_quantized(node));
  const int64_t fmod = node.attr_int("fmod");
  if (fmod != 0 && fmod != 1) return node.error("fmod is ", fmod, ", must be 0 or 1");
  return binary_type(node);
}

template <class W>
W remainder(W a, W b, bool truncated) {
  if constexpr (std::is_same_v<W, double>) {
    const double r = std::fmod(a, b);
    if (truncated || r != r) return r;
    if (r == 0) return std::copysign(0.0, b);
    return (r < 0) != (b < 0) ? r + b : r;
  } else if constexpr (std::is_signed_v<W>) {
    if (b == -1) return W{};  // the smallest value % -1 is undefined in C++
    const W r = static_cast<W>(a % b);
    return !truncated && r != 0 && (r < 0) != (b < 0) ? static_cast<W>(r + b) : r;
  } else {
    return static_cast<W>(a % b);
  }
}

Status mod_reference(const NodeView& node, std::span<const TensorView> in, std::span<const TensorView> out) {
  const bool truncated = node.attr_int("fmod") == 1;
  return visit(out[0].dtype(), [&](auto zero) {
    using T = decltype(zero);
    if constexpr (std::is_integral_v<T>) PINNACE_TRY(refuse_zero_divisor<T>(node, in[1], out[0]));
    map_broadcast<T, T>(node.threads(), in[0], in[1], out[0],
                        [=](Wide<T> a, Wide<T> b) { return remainder(a, b, truncated); });
    return Status();
  });
}
}  // namespace

PINNACE_OP(mod){
    .name = "mod",
    .inputs = {{"a", kNumbers, 'T'}, {"b", kNumbers, 'T'}},
    .attrs = {int_attr("fmod", 0)},
    .type = mod_type,
    .reference = mod_reference,
    .in_place = 0b11,
    .traits = Trait::kElementwise,
};
}  // namespace pinnace
