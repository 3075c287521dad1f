// pow: z = x ^ y, broadcast as numpy does.
//   x  [...]  numbers
//   y  [...]  numbers, of any element type
//   z  the broadcast shape, element type of x
// Floats: C's pow in double, rounded once. Integers to integer powers are exact and wrap; a negative power gives 1 or
// -1 for a base of 1 or -1, else 0. Integers to float powers: pow in double, converted as cast does. x ^ 0 and 1 ^ y
// are 1, NaN included. Source: ONNX Pow, opset 15.
#include <cmath>

#include "base/memory.h"
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

template <class T, class U>
void powers(const NodeView& node, const TensorView& x, const TensorView& y, const TensorView& out) {
  map_broadcast_mixed<T, U, T>(node.threads(), x, y, out, [](Wide<T> base, Wide<U> power) {
    if constexpr (is_float<T> || is_float<U>) {
      return convert<Wide<T>>(std::pow(static_cast<double>(base), static_cast<double>(power)));
    } else {
      return integer_power(base, power);
    }
  });
}

/// y as W, which holds its numbers exactly: 12 by 3 pairs of types are a quarter of the code that 12 by 12 are.
template <class T, class W>
Status widened_powers(const NodeView& node, const TensorView& x, const TensorView& y, const TensorView& out) {
  constexpr DType dtype = is_float<W> ? DType::kF64 : std::is_signed_v<W> ? DType::kI64 : DType::kU64;
  const TensorType type{dtype, y.type->shape, nullptr};
  PINNACE_ASSIGN(Buffer wide, Buffer::allocate(static_cast<size_t>(y.elements()) * sizeof(W), "pow"));
  const TensorView view{&type, wide.data()};
  const auto copied = visit(y.dtype(), [&](auto zero_y) {
    using U = decltype(zero_y);
    for (int64_t i = 0; i < y.elements(); ++i) view.data<W>()[i] = static_cast<W>(widen(y.data<U>()[i]));
    return Status();
  });
  if (copied.ok()) powers<T, W>(node, x, view, out);
  return copied;
}

Status pow_reference(const NodeView& node, std::span<const TensorView> in, std::span<const TensorView> out) {
  const TensorView &x = in[0], &y = in[1];
  return visit(x.dtype(), [&](auto zero_x) -> Status {
    using T = decltype(zero_x);
    if constexpr (std::is_same_v<T, bool>) {
      return {};
    } else {
      if (x.dtype() == y.dtype()) {
        powers<T, T>(node, x, y, out[0]);
        return {};
      }
      const DType d = y.dtype();
      if (d == DType::kF32 || d == DType::kF16 || d == DType::kBF16 || d == DType::kF64) {
        return widened_powers<T, double>(node, x, y, out[0]);
      }
      if (d == DType::kU64) return widened_powers<T, uint64_t>(node, x, y, out[0]);
      return widened_powers<T, int64_t>(node, x, y, out[0]);
    }
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
