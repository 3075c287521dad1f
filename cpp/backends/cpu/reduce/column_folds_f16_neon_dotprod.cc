// Sums of columns of fp16 values for ARMv8.2, in float32.
#include "backends/cpu/reduce/column_folds.h"
#include "backends/cpu/simd/f16_neon.h"

namespace pinnace::cpu {
namespace neon_dotprod {
namespace {

void sum(const uint16_t* x, ptrdiff_t step, int64_t pixels, int64_t channels, float* sums) {
  int64_t c = 0;
  for (; c + kLanes <= channels; c += kLanes) {
    float32x4_t low = vld1q_f32(sums + c), high = vld1q_f32(sums + c + 4);
    for (int64_t p = 0; p < pixels; ++p) {
      const Halves v = load(x + p * step + c);
      low = vaddq_f32(low, vcvt_f32_f16(vget_low_f16(v)));
      high = vaddq_f32(high, vcvt_high_f32_f16(v));
    }
    vst1q_f32(sums + c, low);
    vst1q_f32(sums + c + 4, high);
  }
  for (; c < channels; ++c) {
    for (int64_t p = 0; p < pixels; ++p) {
      sums[c] += vgetq_lane_f32(vcvt_f32_f16(vreinterpret_f16_u16(vdup_n_u16(x[p * step + c]))), 0);
    }
  }
}

}  // namespace
}  // namespace neon_dotprod

const ColumnFolds<uint16_t> column_folds_f16_neon_dotprod = {.sum = neon_dotprod::sum};

}  // namespace pinnace::cpu
