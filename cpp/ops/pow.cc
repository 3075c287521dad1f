// pow: z = x ^ y, broadcast as numpy does.
//   x  [...]  numbers
//   y  [...]  numbers, of any element type
//   z  the broadcast shape, element type of x
// Floats: C's pow in double, rounded once. Integers to integer powers are exact and wrap; a negative power gives 1 or
// -1 for a base of 1 or -1, else 0. Integers to float powers: pow in double, converted as cast does. x ^ 0 and 1 ^ y
// are 1, NaN included. Source: ONNX Pow, opset 15.
#include <cmath>

#include "ops/element.h"

namespace pinnace {
namespace {
Result<TensorType> pow_type(const NodeView& node) {
  PINNACE_TRY(refuse_quantized(node));
  return binary_type(node);
}

template <class T, class U>
T integer_power(T base, U power) {
  if constexpr (std::is_signed_v<U>) {
    if (power < 0) {
      if (base == T{1}) return T{1};
      if (std::is_signed_v<T> && base == static_cast<T>(-1)) return static_cast<T>(power % 2 ? -1 : 1);
      return T{};
    }
  }
  uint64_t result = 1, factor = static_cast<uint64_t>(base);
  for (auto left = static_cast<uint64_t>(power); left; left >>= 1) {
    if (left & 1) result *= factor;
    factor *= factor;
  }
  return wrap<T>(result);
}

Status pow_reference(const NodeView& node, std::span<const TensorView> in, std::span<const TensorView> out) {
  return visit(in[0].dtype(), [&](auto zero_x) {
    using T = decltype(zero_x);
    return visit(in[1].dtype(), [&](auto zero_y) {
      using U = decltype(zero_y);
      if constexpr (!std::is_same_v<T, bool> && !std::is_same_v<U, bool>) {
        map_broadcast_mixed<T, U, T>(node.threads(), in[0], in[1], out[0], [](Wide<T> x, Wide<U> y) {
          if constexpr (is_float<T> || is_float<U>) {
            return convert<Wide<T>>(std::pow(static_cast<double>(x), static_cast<double>(y)));
          } else {
            return integer_power(x, y);
          }
        });
      }
      return Status();
    });
  });
}
}  // namespace

PINNACE_OP(pow){
    .name = "pow",
    .inputs = {{"x", kNumbers}, {"y", kNumbers}},
    .type = pow_type,
    .reference = pow_reference,
    .in_place = 0b01,
};
}  // namespace pinnace
