// The 8-bit loops of resize (resize_i8.h), by the compiler's own vectors.
#include "backends/cpu/resize/resize_i8.h"
#include "backends/cpu/simd/isa.h"

namespace pinnace::cpu {
namespace PINNACE_ISA {
namespace {

void across(const ResizeTapsI8& taps, int64_t i, const uint8_t* x, ptrdiff_t stride, int32_t zero, float scale,
            uint8_t flip, double* y, int64_t n) {
  double* __restrict to = y;
  const auto real = [&](uint8_t byte) { return static_cast<double>(static_cast<float>((byte ^ flip) - zero) * scale); };
  const int32_t* index = taps.index + i * taps.count;
  const double* weight = taps.weight + i * taps.count;
  const uint8_t* a = x + index[0] * stride;
  const double wa = weight[0];
  int64_t k = 1;
  if (taps.count > 1) {
    const uint8_t* b = x + index[1] * stride;
    const double wb = weight[1];
    for (int64_t j = 0; j < n; ++j) to[j] = wa * real(a[j]) + wb * real(b[j]);
    k = 2;
  } else {
    for (int64_t j = 0; j < n; ++j) to[j] = wa * real(a[j]);
  }
  for (; k < taps.count; ++k) {
    const uint8_t* b = x + index[k] * stride;
    const double wb = weight[k];
    for (int64_t j = 0; j < n; ++j) to[j] += wb * real(b[j]);
  }
}

/// The same for one number a place: the compiler would not see that its loop over channels is none.
void along_one(const ResizeTapsI8& taps, int64_t out, const double* x, float* y) {
  if (taps.count == 2) {
    for (int64_t i = 0; i < out; ++i) {
      const int32_t* index = taps.index + 2 * i;
      const double* weight = taps.weight + 2 * i;
      y[i] = static_cast<float>(weight[0] * x[index[0]] + weight[1] * x[index[1]]);
    }
    return;
  }
  const int32_t* index = taps.index;
  const double* weight = taps.weight;
  for (int64_t i = 0; i < out; ++i, index += taps.count, weight += taps.count) {
    double sum = weight[0] * x[index[0]];
    for (int64_t k = 1; k < taps.count; ++k) sum += weight[k] * x[index[k]];
    y[i] = static_cast<float>(sum);
  }
}

void along(const ResizeTapsI8& taps, int64_t out, const double* x, int64_t channels, float* y) {
  if (channels == 1) return along_one(taps, out, x, y);
  for (int64_t i = 0; i < out; ++i) {
    float* __restrict to = y + i * channels;
    const int32_t* index = taps.index + i * taps.count;
    const double* weight = taps.weight + i * taps.count;
    const double* a = x + index[0] * channels;
    const double wa = weight[0];
    if (taps.count == 2) {
      const double* b = x + index[1] * channels;
      const double wb = weight[1];
      for (int64_t j = 0; j < channels; ++j) to[j] = static_cast<float>(wa * a[j] + wb * b[j]);
      continue;
    }
    for (int64_t j = 0; j < channels; ++j) {
      double sum = wa * a[j];
      for (int64_t k = 1; k < taps.count; ++k) sum += weight[k] * x[index[k] * channels + j];
      to[j] = static_cast<float>(sum);
    }
  }
}

}  // namespace
}  // namespace PINNACE_ISA

const ResizeLoopsI8 PINNACE_FOR_ISA(resize_loops_i8) = {PINNACE_ISA::across, PINNACE_ISA::along};

}  // namespace pinnace::cpu
