// Conversions between float32 and the 16-bit floats (half_f32.h).
#include "backends/cpu/cast/half_f32.h"
#include "backends/cpu/simd/f32.h"

namespace pinnace::cpu {
namespace PINNACE_ISA {
namespace {

/// f(register) in place or from one place to another; what is no whole register goes through one.
template <class From, class To, class F>
void each(const From* from, int64_t count, To* to, F f) {
  constexpr int kLanes = Wide::kLanes;
  int64_t i = 0;
  for (; i + kLanes <= count; i += kLanes) f(from + i, to + i);
  if (i == count) return;
  const auto left = static_cast<size_t>(count - i);
  From in[kLanes] = {};
  To out[kLanes];
  __builtin_memcpy(in, from + i, left * sizeof(From));
  f(in, out);
  __builtin_memcpy(to + i, out, left * sizeof(To));
}

template <class H>
void widen_as(const uint16_t* from, int64_t count, float* to) {
  each(from, count, to, [](const uint16_t* x, float* y) { Wide::store(y, Wide::load(reinterpret_cast<const H*>(x))); });
}
template <class H>
void narrow_as(const float* from, int64_t count, uint16_t* to) {
  each(from, count, to, [](const float* x, uint16_t* y) { Wide::store(reinterpret_cast<H*>(y), Wide::load(x)); });
}
template <class H>
void round_as(float* x, int64_t count) {
  each(x, count, x, [](const float* from, float* to) {
    H bits[Wide::kLanes];
    Wide::store(bits, Wide::load(from));
    Wide::store(to, Wide::load(bits));
  });
}

void widen(HalfKind kind, const uint16_t* from, int64_t count, float* to) {
  kind == HalfKind::kF16 ? widen_as<F16Bits>(from, count, to) : widen_as<BF16Bits>(from, count, to);
}
void narrow(HalfKind kind, const float* from, int64_t count, uint16_t* to) {
  kind == HalfKind::kF16 ? narrow_as<F16Bits>(from, count, to) : narrow_as<BF16Bits>(from, count, to);
}
void round(HalfKind kind, float* x, int64_t count) {
  kind == HalfKind::kF16 ? round_as<F16Bits>(x, count) : round_as<BF16Bits>(x, count);
}

}  // namespace
}  // namespace PINNACE_ISA

const HalfF32Kernels PINNACE_FOR_ISA(half_f32_kernels) = {PINNACE_ISA::widen, PINNACE_ISA::narrow, PINNACE_ISA::round};

}  // namespace pinnace::cpu
