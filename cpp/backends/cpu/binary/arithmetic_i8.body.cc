// The loop of arithmetic_i8.h.
#include "backends/cpu/binary/arithmetic_i8.h"
#include "backends/cpu/quantize/stored_registers.h"

namespace pinnace::cpu {
namespace PINNACE_ISA {
namespace {

/// PLAIN: operands are unsigned, and nothing overflows.
template <BinaryI8 OP, bool PLAIN>
void binary_of(const BinaryRowsI8& b) {
  constexpr int kBytes = 4 * Wide::kLanes;
  const auto flip = Wide::all(static_cast<int32_t>(b.flip));
  const Stored<Wide> stored(b.y_real.scale, b.store, b.flip);
  const auto a_zero = Wide::all(static_cast<float>(b.a_real.zero)), a_scale = Wide::all(b.a_real.scale);
  const auto b_zero = Wide::all(static_cast<float>(b.b_real.zero)), b_scale = Wide::all(b.b_real.scale);
  const auto block = [&](const uint8_t* from_a, const uint8_t* from_b, uint8_t* to) {
    stored.template put<PLAIN>(to, [&](int v) {
      auto p_bytes = Wide::widen(from_a + v * Wide::kLanes), q_bytes = Wide::widen(from_b + v * Wide::kLanes);
      if (!PLAIN) p_bytes = Wide::flip(p_bytes, flip), q_bytes = Wide::flip(q_bytes, flip);
      const auto p = (Wide::to_floats(p_bytes) - a_zero) * a_scale, q = (Wide::to_floats(q_bytes) - b_zero) * b_scale;
      return OP == BinaryI8::kAdd ? p + q : OP == BinaryI8::kSub ? p - q : p * q;
    });
  };
  for (int64_t p = 0; p < b.pixels; ++p) {
    const uint8_t *from_a = b.a + p * b.a_step, *from_b = b.b + p * b.b_step;
    uint8_t* to = b.y + p * b.y_step;
    alignas(64) uint8_t same_a[kBytes], same_b[kBytes], part[kBytes];
    if (!b.a_channel) __builtin_memset(same_a, *from_a, kBytes);
    if (!b.b_channel) __builtin_memset(same_b, *from_b, kBytes);
    int64_t c = 0;
    for (; c + kBytes <= b.channels; c += kBytes) {
      block(b.a_channel ? from_a + c : same_a, b.b_channel ? from_b + c : same_b, to + c);
    }
    if (const auto left = static_cast<size_t>(b.channels - c); left > 0) {
      if (b.a_channel) __builtin_memcpy(same_a, from_a + c, left);
      if (b.b_channel) __builtin_memcpy(same_b, from_b + c, left);
      if (b.a_channel) __builtin_memset(same_a + left, 0, kBytes - left);
      if (b.b_channel) __builtin_memset(same_b + left, 0, kBytes - left);
      block(same_a, same_b, part);
      __builtin_memcpy(to + c, part, left);
    }
  }
}

void binary(const BinaryRowsI8& given) {
  BinaryRowsI8 b = given;
  const auto flat = [&](ptrdiff_t step, int32_t channel) { return channel ? step == b.channels : step == 0; };
  if (b.y_step == b.channels && flat(b.a_step, b.a_channel) && flat(b.b_step, b.b_channel)) {
    b.channels *= b.pixels;
    b.pixels = b.channels > 0;
  }
  const float a_most = 255 * b.a_real.scale, b_most = 255 * b.b_real.scale;
  const bool plain = b.flip == 0 && a_most < 1e18f && b_most < 1e18f && b.y_real.scale > 0;
  switch (b.op) {
    case BinaryI8::kAdd:
      return plain ? binary_of<BinaryI8::kAdd, true>(b) : binary_of<BinaryI8::kAdd, false>(b);
    case BinaryI8::kSub:
      return plain ? binary_of<BinaryI8::kSub, true>(b) : binary_of<BinaryI8::kSub, false>(b);
    case BinaryI8::kMul:
      return plain ? binary_of<BinaryI8::kMul, true>(b) : binary_of<BinaryI8::kMul, false>(b);
  }
}

}  // namespace
}  // namespace PINNACE_ISA

void PINNACE_FOR_ISA(binary_rows_i8)(const BinaryRowsI8& rows) {
  PINNACE_ISA::binary(rows);
}

}  // namespace pinnace::cpu
