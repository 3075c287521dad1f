// Arithmetic of fp16 values for ARMv8.2: sums, products and quotients are rounded once.
#include "backends/cpu/binary/arithmetic_f32.h"
#include "backends/cpu/simd/f16_neon.h"

namespace pinnace::cpu {
namespace neon_dotprod {
namespace {

/// run(f), where f is the operator on registers.
template <class Run>
void with_operator(BinaryKind kind, Run run) {
  switch (kind) {
    case BinaryKind::kAdd:
      return run([](Halves a, Halves b) { return vaddq_f16(a, b); });
    case BinaryKind::kSub:
      return run([](Halves a, Halves b) { return vsubq_f16(a, b); });
    case BinaryKind::kMul:
      return run([](Halves a, Halves b) { return vmulq_f16(a, b); });
    case BinaryKind::kDiv:
      return run([](Halves a, Halves b) { return vdivq_f16(a, b); });
    case BinaryKind::kMin:
      return run([](Halves a, Halves b) { return vminq_f16(a, b); });
    case BinaryKind::kMax:
      return run([](Halves a, Halves b) { return vmaxq_f16(a, b); });
    case BinaryKind::kPrelu:
      return run([](Halves a, Halves b) { return vbslq_f16(vcgezq_f16(a), a, vmulq_f16(a, b)); });
  }
}

void dense(BinaryKind kind, const uint16_t* a, int a_step, const uint16_t* b, int b_step, uint16_t* y, int64_t count) {
  with_operator(kind, [&](auto f) {
    const Halves a0 = vreinterpretq_f16_u16(vdupq_n_u16(count > 0 ? *a : 0));
    const Halves b0 = vreinterpretq_f16_u16(vdupq_n_u16(count > 0 ? *b : 0));
    int64_t i = 0;
    for (; i + kLanes <= count; i += kLanes) store(y + i, f(a_step ? load(a + i) : a0, b_step ? load(b + i) : b0));
    if (i == count) return;
    const int64_t left = count - i;
    store_part(y + i, f(a_step ? load_part(a + i, left) : a0, b_step ? load_part(b + i, left) : b0), left);
  });
}

void pixels(BinaryKind kind, const uint16_t* a, ptrdiff_t a_step, const uint16_t* b, ptrdiff_t b_step, uint16_t* y,
            ptrdiff_t y_step, int64_t pixels, int64_t channels) {
  if (a_step == channels && b_step == channels && y_step == channels) {
    channels *= pixels;
    pixels = 1;
  }
  with_operator(kind, [&](auto f) {
    for (int64_t p = 0; p < pixels; ++p, a += a_step, b += b_step, y += y_step) {
      int64_t c = 0;
      for (; c + kLanes <= channels; c += kLanes) store(y + c, f(load(a + c), load(b + c)));
      if (c == channels) continue;
      const int64_t left = channels - c;
      store_part(y + c, f(load_part(a + c, left), load_part(b + c, left)), left);
    }
  });
}

}  // namespace
}  // namespace neon_dotprod

const ArithmeticLoops<uint16_t> arithmetic_loops_f16_neon_dotprod = {neon_dotprod::dense, neon_dotprod::pixels};

}  // namespace pinnace::cpu
