// The loops of quantize_i8.h.
#include "backends/cpu/quantize/quantize_i8.h"
#include "backends/cpu/quantize/stored_registers.h"

namespace pinnace::cpu {
namespace PINNACE_ISA {
namespace {

void quantize(const float* x, RealI8 real, uint8_t flip, uint8_t* y, int64_t n) {
  const Stored<Wide> stored(real.scale, {real.zero, 0, 255}, flip);
  put_all(y, n, [&](int64_t i, int64_t left, uint8_t* to) {
    alignas(64) float part[4 * Wide::kLanes] = {};
    const float* from = x + i;
    if (left < 4 * Wide::kLanes) {
      __builtin_memcpy(part, from, sizeof(float) * static_cast<size_t>(left));
      from = part;
    }
    stored.put(to, [&](int v) { return Wide::load_floats(from + v * Wide::kLanes); });
  });
}

void quantize_quads(const float* x, ptrdiff_t plane, int32_t planes, RealI8 real, uint8_t* y, ptrdiff_t pitch,
                    int64_t n) {
  using I = Wide::I;
  const Stored<Wide> stored(real.scale, {real.zero, 0, 255}, 0);
  const I zero = Wide::all(real.zero);
  for (int64_t i = 0; i < n; i += Wide::kLanes) {
    const int64_t left = n - i < Wide::kLanes ? n - i : Wide::kLanes;
    const auto channel = [&](int32_t c) {
      if (c >= planes) return Wide::all(0);
      alignas(64) float part[Wide::kLanes] = {};
      const float* from = x + c * plane + i;
      if (left < Wide::kLanes) {
        __builtin_memcpy(part, from, sizeof(float) * static_cast<size_t>(left));
        from = part;
      }
      return Wide::add(stored.divided(Wide::load_floats(from)), zero);
    };
    const I low = Wide::add(channel(0), Wide::template shift<8>(channel(1)));
    const I quads =
        Wide::add(low, Wide::add(Wide::template shift<16>(channel(2)), Wide::template shift<24>(channel(3))));
    if (pitch == 4 && left == Wide::kLanes) {
      Wide::store(y + i * 4, quads);
      continue;
    }
    alignas(64) uint8_t bytes[4 * Wide::kLanes];
    Wide::store(bytes, quads);
    for (int64_t k = 0; k < left; ++k) __builtin_memcpy(y + (i + k) * pitch, bytes + 4 * k, 4);
  }
}

void dequantize(const uint8_t* x, RealI8 real, uint8_t flip, float* y, int64_t n) {
  for (int64_t i = 0; i < n; ++i) y[i] = static_cast<float>((x[i] ^ flip) - real.zero) * real.scale;
}

}  // namespace
}  // namespace PINNACE_ISA

const QuantizeLoopsI8 PINNACE_FOR_ISA(quantize_loops_i8) = {PINNACE_ISA::quantize, PINNACE_ISA::quantize_quads,
                                                            PINNACE_ISA::dequantize};

}  // namespace pinnace::cpu
