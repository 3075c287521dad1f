// The loops of arithmetic_f32.h.
#include "backends/cpu/binary/arithmetic_f32.h"
#include "backends/cpu/simd/f32_channels.h"

namespace pinnace::cpu {
namespace PINNACE_ISA {
namespace {

template <class Op>
void binary_loop(const float* a, int a_step, const float* b, int b_step, float* y, int64_t count, Op op) {
  if (a_step && b_step) {
    for (int64_t i = 0; i < count; ++i) y[i] = op(a[i], b[i]);
  } else if (a_step) {
    const float value = *b;
    for (int64_t i = 0; i < count; ++i) y[i] = op(a[i], value);
  } else {
    const float value = *a;
    for (int64_t i = 0; i < count; ++i) y[i] = op(value, b[b_step ? i : 0]);
  }
}

void dense(BinaryKind kind, const float* a, int a_step, const float* b, int b_step, float* y, int64_t count) {
  switch (kind) {
    case BinaryKind::kAdd:
      return binary_loop(a, a_step, b, b_step, y, count, [](float p, float q) { return p + q; });
    case BinaryKind::kSub:
      return binary_loop(a, a_step, b, b_step, y, count, [](float p, float q) { return p - q; });
    case BinaryKind::kMul:
      return binary_loop(a, a_step, b, b_step, y, count, [](float p, float q) { return p * q; });
    case BinaryKind::kDiv:
      return binary_loop(a, a_step, b, b_step, y, count, [](float p, float q) { return p / q; });
    case BinaryKind::kMin:
      return binary_loop(a, a_step, b, b_step, y, count, [](float p, float q) { return (p < q) | (p != p) ? p : q; });
    case BinaryKind::kMax:
      return binary_loop(a, a_step, b, b_step, y, count, [](float p, float q) { return (p > q) | (p != p) ? p : q; });
    case BinaryKind::kPrelu:
      return binary_loop(a, a_step, b, b_step, y, count, [](float p, float q) { return p >= 0 ? p : q * p; });
  }
}

template <class F>
void pixels_of(const float* a, ptrdiff_t a_step, const float* b, ptrdiff_t b_step, float* y, ptrdiff_t y_step,
               int64_t pixels, int64_t channels, F f) {
  if (a_step == channels && b_step == channels && y_step == channels) {
    channels *= pixels;
    pixels = 1;
  }
  for (int64_t p = 0; p < pixels; ++p, a += a_step, b += b_step, y += y_step) {
    int64_t c = 0;
    for (; c + Wide::kLanes <= channels; c += Wide::kLanes) Wide::store(y + c, f(Wide::load(a + c), Wide::load(b + c)));
    for (; c + Lanes::kLanes <= channels; c += Lanes::kLanes) {
      Lanes::store(y + c, f(Lanes::load(a + c), Lanes::load(b + c)));
    }
    for (; c < channels; ++c) y[c] = f(a[c], b[c]);
  }
}

void pixels(BinaryKind kind, const float* a, ptrdiff_t a_step, const float* b, ptrdiff_t b_step, float* y,
            ptrdiff_t y_step, int64_t pixels, int64_t channels) {
  switch (kind) {
    case BinaryKind::kAdd:
      return pixels_of(a, a_step, b, b_step, y, y_step, pixels, channels, [](auto p, auto q) { return p + q; });
    case BinaryKind::kSub:
      return pixels_of(a, a_step, b, b_step, y, y_step, pixels, channels, [](auto p, auto q) { return p - q; });
    case BinaryKind::kMul:
      return pixels_of(a, a_step, b, b_step, y, y_step, pixels, channels, [](auto p, auto q) { return p * q; });
    case BinaryKind::kDiv:
      return pixels_of(a, a_step, b, b_step, y, y_step, pixels, channels, [](auto p, auto q) { return p / q; });
    case BinaryKind::kMin:
      return pixels_of(a, a_step, b, b_step, y, y_step, pixels, channels,
                       [](auto p, auto q) { return (p < q) | (p != p) ? p : q; });
    case BinaryKind::kMax:
      return pixels_of(a, a_step, b, b_step, y, y_step, pixels, channels,
                       [](auto p, auto q) { return (p > q) | (p != p) ? p : q; });
    case BinaryKind::kPrelu:
      return pixels_of(a, a_step, b, b_step, y, y_step, pixels, channels,
                       [](auto p, auto q) { return p >= 0.0f ? p : q * p; });
  }
}

}  // namespace
}  // namespace PINNACE_ISA

const ArithmeticLoops<float> PINNACE_FOR_ISA(arithmetic_loops_f32) = {PINNACE_ISA::dense, PINNACE_ISA::pixels};

}  // namespace pinnace::cpu
