// What the pooling operators share: their shape rules, the taps of one window, and means of quantised planes.
#pragma once

#include "ops/window.h"

namespace pinnace {

/// Attributes of every windowed pool; kernel_shape is required, one size per spatial dimension.
inline constexpr AttrDef kCeilModeAttr = int_attr("ceil_mode", 0);
inline constexpr AttrDef kKernelShapeAttr = required_attr("kernel_shape", AttrKind::kInts);

/// Geometry of a windowed pool over x [N, C, spatial...] (input 0) and the shape [N, C, out...]. Beyond window_of's
/// rules, a pad must be smaller than the kernel's extent, so that no window starts behind x.
Result<Window> check_pool(const NodeView& node, Shape& y);

/// Shape [N, C, 1...] of the global pools; x has rank 2 or more. check_quantized has run.
Result<Shape> global_pool_shape(const NodeView& node);

/// Taps [first, last) of dimension d of the window at output position o that lie inside x, and where tap 0 lies.
struct Taps {
  int64_t start, first, last;
};
inline Taps taps_at(const Window& w, int d, int64_t o) {
  const int64_t start = o * w.stride[d] - w.before[d], step = w.dilation[d];
  const int64_t first = start >= 0 ? 0 : (-start + step - 1) / step;
  const int64_t last = start >= w.in[d] ? 0 : std::min(w.kernel[d], (w.in[d] - 1 - start) / step + 1);
  return {start, std::min(first, last), last};
}

/// Calls f(o, positions...) per output: window(o, z, y, x) with the Taps of its three dimensions, o ascending. Leaves
/// out the rest where loop_stops(): one plane may take hours.
template <class F>
void for_each_window(const Window& w, F f) {
  int64_t o = 0;
  for (int64_t z = 0; z < w.out[0]; ++z) {
    const Taps tz = taps_at(w, 0, z);
    for (int64_t y = 0; y < w.out[1]; ++y) {
      const Taps ty = taps_at(w, 1, y);
      for (int64_t x = 0; x < w.out[2]; ++x, ++o) {
        if ((w.taps() > 256 || o % 256 == 255) && loop_stops()) return;
        f(o, tz, ty, taps_at(w, 2, x));
      }
    }
  }
}
/// Calls f(i) for each element inside x of one window; i counts elements of the plane, ascending.
template <class F>
void for_each_tap(const Window& w, const Taps& tz, const Taps& ty, const Taps& tx, F f) {
  for (int64_t kz = tz.first; kz < tz.last; ++kz) {
    for (int64_t ky = ty.first; ky < ty.last; ++ky) {
      const int64_t row = ((tz.start + kz * w.dilation[0]) * w.in[1] + ty.start + ky * w.dilation[1]) * w.in[2];
      for (int64_t kx = tx.first; kx < tx.last; ++kx) f(row + tx.start + kx * w.dilation[2]);
    }
  }
}

/// About how long one plane takes.
inline double pool_nanoseconds(const Window& w) {
  return 2 * static_cast<double>(w.in_size()) + 2 * static_cast<double>(w.out_size()) * static_cast<double>(w.taps());
}

/// For means: elements [first, first + count) as real numbers, quantised ones as stored integer - zero, without the
/// scale: their sums are exact in any order.
void load_summands(const TensorView& t, int64_t first, int64_t count, double* to);
/// y[at] = sum / count, rounded once. Quantised: quantize(float32(float32(sum) * scale_x) / float32(count)). A mean of
/// nothing is NaN, quantised the zero point.
void store_mean(const TensorView& x, const TensorView& y, int64_t at, double sum, double count);

}  // namespace pinnace
