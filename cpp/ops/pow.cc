// pow: z = x ^ y, broadcast as numpy does.
//   x  [...]  numbers
//   y  [...]  numbers, of any element type
//   z  the broadcast shape, element type of x
// Floats: C's pow in double, rounded once. Integers to integer powers are exact and wrap; a negative power gives 1 or
// -1 for a base of 1 or -1, else 0. Integers to float powers: pow in double, converted as cast does. x ^ 0 and 1 ^ y
// are 1, NaN included. Source: ONNX Pow, opset 15.
#include <cmath>

#include "ops/lines.h"

namespace pinnace {
namespace {
Result<TensorType> pow_type(const NodeView& node) {
  PINNACE_TRY(refuse_quantized(node));
  return binary_type(node);
}

/// Numbers of a block: one loop for all element types, between one that reads them and one that writes them.
constexpr int64_t kBlock = 256;

constexpr DTypes kSigned = kI8 | kI32 | kI64 | dtypes(DType::kI16);

/// Elements of a tensor of integers as 64 bits, extended by their sign if they have one.
void load_ints(const TensorView& t, int64_t first, int64_t step, int64_t count, uint64_t* to) {
  visit_int(t.dtype(), [&](auto zero) {
    const auto* from = t.data<decltype(zero)>();
    for (int64_t j = 0; j < count; ++j) to[j] = static_cast<uint64_t>(static_cast<int64_t>(from[first + j * step]));
  });
}

/// The power modulo 2^64, whose low bits are those of every narrower type.
uint64_t integer_power(uint64_t base, bool base_signed, uint64_t power, bool power_signed) {
  if (power_signed && static_cast<int64_t>(power) < 0) {
    if (base_signed && base == ~uint64_t{0}) return power & 1 ? base : 1;
    return base == 1 ? 1 : 0;
  }
  uint64_t result = 1;
  for (; power; power >>= 1) {
    if (power & 1) result *= base;
    base *= base;
  }
  return result;
}

/// f(first, count, x's place, its step, y's, its step) for at most kBlock elements of the output at a time.
template <class F>
void blocks(const NodeView& node, std::span<const TensorView> in, const TensorView& out, F f) {
  BroadcastRows(out.type->shape, in)
      .run(node.threads(), [&](int64_t first, int64_t count, const int64_t* at, const int64_t* step) {
        for (int64_t j = 0; j < count; j += kBlock) {
          f(first + j, std::min(kBlock, count - j), at[0] + j * step[0], step[0], at[1] + j * step[1], step[1]);
        }
      });
}

Status pow_reference(const NodeView& node, std::span<const TensorView> in, std::span<const TensorView> out) {
  const TensorView &x = in[0], &y = in[1], &z = out[0];
  const bool float_base = dtypes(x.dtype()) & kFloats, float_power = dtypes(y.dtype()) & kFloats;
  if (float_base || float_power) {
    blocks(node, in, z,
           [&](int64_t first, int64_t count, int64_t at, int64_t step, int64_t power_at, int64_t power_step) {
             double bases[kBlock], powers[kBlock];
             load_line(x, at, step, count, bases);
             load_line(y, power_at, power_step, count, powers);
             for (int64_t j = 0; j < count; ++j) bases[j] = std::pow(bases[j], powers[j]);
             if (float_base) return store_line(z, first, 1, count, bases);
             visit_int(z.dtype(), [&](auto zero) {
               using T = decltype(zero);
               for (int64_t j = 0; j < count; ++j) z.data<T>()[first + j] = convert<T>(bases[j]);
             });
           });
    return {};
  }
  const bool base_signed = dtypes(x.dtype()) & kSigned, power_signed = dtypes(y.dtype()) & kSigned;
  blocks(node, in, z,
         [&](int64_t first, int64_t count, int64_t at, int64_t step, int64_t power_at, int64_t power_step) {
           uint64_t bases[kBlock], powers[kBlock];
           load_ints(x, at, step, count, bases);
           load_ints(y, power_at, power_step, count, powers);
           for (int64_t j = 0; j < count; ++j) bases[j] = integer_power(bases[j], base_signed, powers[j], power_signed);
           visit_int(z.dtype(), [&](auto zero) {
             using T = decltype(zero);
             for (int64_t j = 0; j < count; ++j) z.data<T>()[first + j] = static_cast<T>(bases[j]);
           });
         });
  return {};
}
}  // namespace

PINNACE_OP(pow){
    .name = "pow",
    .inputs = {{"x", kNumbers}, {"y", kNumbers}},
    .type = pow_type,
    .reference = pow_reference,
    .in_place = 0b01,
    .traits = Trait::kElementwise,
};
}  // namespace pinnace
