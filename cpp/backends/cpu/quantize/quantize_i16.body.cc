// The loops of quantize_i16.h.
#include "backends/cpu/quantize/quantize_i16.h"
#include "backends/cpu/quantize/stored_registers.h"

namespace pinnace::cpu {
namespace PINNACE_ISA {
namespace {

void quantize(const float* x, RealI8 real, int32_t low, int32_t high, uint16_t* y, int64_t n) {
  constexpr int64_t kBlock = 4 * Wide::kLanes;
  const auto scale = Wide::all(real.scale);
  const auto least = Wide::all(static_cast<float>(low - real.zero));
  const auto most = Wide::all(static_cast<float>(high - real.zero));
  const auto zero = Wide::all(real.zero);
  const auto block = [&](const float* from, int64_t count, uint16_t* to) __attribute__((always_inline)) {
    alignas(64) int32_t whole[kBlock];
    for (int64_t i = 0; i < kBlock; i += Wide::kLanes) {
      const auto quotient = Wide::not_nan(Wide::load_floats(from + i) / scale);
      const auto q = Wide::to_ints(Wide::smaller(Wide::larger(quotient, least), most));
      Wide::store(whole + i, Wide::add(q, zero));
    }
    for (int64_t i = 0; i < count; ++i) to[i] = static_cast<uint16_t>(whole[i]);
  };
  int64_t i = 0;
  for (; i + kBlock <= n; i += kBlock) block(x + i, kBlock, y + i);
  if (i < n) {
    alignas(64) float part[kBlock] = {};
    __builtin_memcpy(part, x + i, sizeof(float) * static_cast<size_t>(n - i));
    block(part, n - i, y + i);
  }
}

template <class T>
void dequantize(const T* x, RealI8 real, float* y, int64_t n) {
  for (int64_t i = 0; i < n; ++i) y[i] = static_cast<float>(x[i] - real.zero) * real.scale;
}

}  // namespace
}  // namespace PINNACE_ISA

const QuantizeLoopsI16 PINNACE_FOR_ISA(quantize_loops_i16) = {PINNACE_ISA::quantize, PINNACE_ISA::dequantize<int16_t>,
                                                              PINNACE_ISA::dequantize<uint16_t>};

}  // namespace pinnace::cpu
