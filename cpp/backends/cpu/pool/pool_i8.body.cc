// The loops of pool_i8.h.
#include "backends/cpu/pool/pool_i8.h"
#include "backends/cpu/quantize/stored_registers.h"

namespace pinnace::cpu {
namespace PINNACE_ISA {
namespace {

void maximum(const uint8_t* x, ptrdiff_t row, int64_t rows, ptrdiff_t column, int64_t columns, uint8_t* y,
             int64_t channels) {
  constexpr int kBytes = 4 * Wide::kLanes;
  for (int64_t c = 0; c < channels; c += kBytes) {
    Wide::I most = Wide::all(0);
    for (int64_t i = 0; i < rows; ++i) {
      const uint8_t* from = x + i * row + c;
      for (int64_t j = 0; j < columns; ++j) most = Wide::at_least_bytes(most, Wide::load(from + j * column));
    }
    if (c + kBytes <= channels) {
      Wide::store(y + c, most);
    } else {
      __builtin_memcpy(y + c, &most, static_cast<size_t>(channels - c));
    }
  }
}

void sum(const uint8_t* x, ptrdiff_t step, int64_t pixels, int64_t channels, int32_t* sums) {
  int64_t c = 0;
  constexpr int kChannels = 4 * Wide::kLanes;
  for (; c + kChannels <= channels; c += kChannels) {
    Wide::I own[4];
    PINNACE_UNROLL for (int v = 0; v < 4; ++v) own[v] = Wide::load(sums + c + v * Wide::kLanes);
    for (int64_t p = 0; p < pixels; ++p) {
      const uint8_t* from = x + p * step + c;
      PINNACE_UNROLL for (int v = 0; v < 4; ++v) own[v] = Wide::add(own[v], Wide::widen(from + v * Wide::kLanes));
    }
    PINNACE_UNROLL for (int v = 0; v < 4; ++v) Wide::store(sums + c + v * Wide::kLanes, own[v]);
  }
  for (int64_t p = 0; p < pixels; ++p) {
    for (int64_t i = c; i < channels; ++i) sums[i] += x[p * step + i];
  }
}

void means(const int32_t* sums, int32_t less, float x_scale, float count, RealI8 y_real, uint8_t flip, uint8_t* y,
           int64_t n) {
  const Stored<Wide> stored(y_real.scale, {y_real.zero, 0, 255}, flip);
  put_all(y, n, [&](int64_t i, int64_t left, uint8_t* to) {
    alignas(64) int32_t part[4 * Wide::kLanes] = {};
    const int32_t* from = sums + i;
    if (left < 4 * Wide::kLanes) {
      __builtin_memcpy(part, from, sizeof(int32_t) * static_cast<size_t>(left));
      from = part;
    }
    stored.put(to, [&](int v) {
      const auto centered = Wide::add(Wide::load(from + v * Wide::kLanes), Wide::all(-less));
      return Wide::to_floats(centered) * Wide::all(x_scale) / Wide::all(count);
    });
  });
}

}  // namespace
}  // namespace PINNACE_ISA

const PoolLoopsI8 PINNACE_FOR_ISA(pool_loops_i8) = {PINNACE_ISA::maximum, PINNACE_ISA::sum, PINNACE_ISA::means};

}  // namespace pinnace::cpu
