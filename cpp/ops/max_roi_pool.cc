// max_roi_pool: boxes of x, each divided into bins whose largest elements are taken.
//   x              [N, C, H, W]  floats
//   rois           [R, 5]  as x: image, x1, y1, x2, y2; the corners times spatial_scale in elements of x, both included
//   pooled_shape   ints, required: rows and columns of bins, h and w
//   spatial_scale  float, default 1
//   y              [R, C, h, w]  as x
// Corners are rounded to the nearest element, halves away from zero; a box is at least 1 wide and high. Row i of the
// bins takes the elements from floor(i * height / h) up to ceil((i + 1) * height / h) of the box, as far as x has them;
// a bin without elements is 0. NaN stays NaN. Places are computed in float32 (f64: double). Corners beyond 2^30 and
// images that x lacks are errors. Source: ONNX MaxRoiPool, opset 22.
#include <algorithm>
#include <cmath>

#include "ops/element.h"

namespace pinnace {
namespace {
Result<TensorType> max_roi_pool_type(const NodeView& node) {
  const TensorType &x = node.input(0), &rois = node.input(1);
  const std::span<const int64_t> bins = node.attr_ints("pooled_shape");
  if (x.rank() != 4) return node.error("x must be [N,C,H,W], is ", x);
  if (rois.rank() != 2 || (rois.shape[1].known() && rois.shape[1].size != 5)) {
    return node.error("rois must be [R,5], are ", rois);
  }
  if (bins.size() != 2 || bins[0] < 1 || bins[1] < 1) return node.error("pooled_shape must be two positive numbers");
  return TensorType{x.dtype, {rois.shape[0], x.shape[1], bins[0], bins[1]}, nullptr};
}

/// First and last + 1 element of each bin along one direction.
template <class F>
class Bins {
 public:
  Bins(F first, F last, int64_t bins, int64_t size) : start_(static_cast<int64_t>(first)), size_(size) {
    bin_ = std::max<F>(last - first + 1, 1) / static_cast<F>(bins);
  }
  std::pair<int64_t, int64_t> operator()(int64_t i) const {
    const auto from = static_cast<int64_t>(std::floor(static_cast<F>(i) * bin_));
    const auto to = static_cast<int64_t>(std::ceil(static_cast<F>(i + 1) * bin_));
    return {std::clamp<int64_t>(start_ + from, 0, size_), std::clamp<int64_t>(start_ + to, 0, size_)};
  }

 private:
  int64_t start_, size_;
  F bin_;
};

template <class T>
Status pool(const NodeView& node, const TensorView& x, const TensorView& rois, const TensorView& y) {
  using F = std::conditional_t<std::is_same_v<T, double>, double, float>;
  constexpr F kMost = 1 << 30;
  const int64_t images = x.dim(0), channels = x.dim(1), height = x.dim(2), width = x.dim(3);
  const int64_t rows = y.dim(2), cols = y.dim(3);
  const auto scale = static_cast<F>(node.attr_float("spatial_scale"));
  const double cost =
      static_cast<double>(channels) * (50 * static_cast<double>(rows * cols) + static_cast<double>(height * width));
  return node.threads().ranges(rois.dim(0), cost, [&](int64_t begin, int64_t end) -> Status {
    T* to = y.data<T>() + begin * channels * rows * cols;
    for (int64_t r = begin; r < end; ++r) {
      const auto value = [&](int64_t i) { return static_cast<F>(widen(rois.data<T>()[5 * r + i])); };
      if (!(value(0) >= 0 && value(0) < static_cast<F>(images))) {
        return node.error("image ", value(0), " of box ", r, " is outside [0,", images, ")");
      }
      F corner[4];
      for (int i = 0; i < 4; ++i) {
        corner[i] = std::round(value(i + 1) * scale);
        if (!(std::abs(corner[i]) <= kMost)) return node.error("corner ", corner[i], " of box ", r, " is out of range");
      }
      const Bins<F> across(corner[0], corner[2], cols, width), down(corner[1], corner[3], rows, height);
      const T* image = x.data<T>() + static_cast<int64_t>(value(0)) * channels * height * width;
      for (int64_t c = 0; c < channels; ++c) {
        if (c % 8 == 7 && loop_stops()) return {};
        const T* from = image + c * height * width;
        for (int64_t row = 0; row < rows; ++row) {
          for (int64_t col = 0; col < cols; ++col) {
            const auto [top, bottom] = down(row);
            const auto [left, right] = across(col);
            T most{};
            for (int64_t h = top; h < bottom; ++h) {
              for (int64_t w = left; w < right; ++w) {
                const T element = from[h * width + w];
                most = h == top && w == left ? element : larger(most, element);
              }
            }
            *to++ = most;
          }
        }
      }
    }
    return {};
  });
}

Status max_roi_pool_reference(const NodeView& node, std::span<const TensorView> in, std::span<const TensorView> out) {
  return visit_float(out[0].dtype(), [&](auto zero) { return pool<decltype(zero)>(node, in[0], in[1], out[0]); });
}
}  // namespace

PINNACE_OP(max_roi_pool){
    .name = "max_roi_pool",
    .inputs = {{"x", kFloats, 'T'}, {"rois", kFloats, 'T'}},
    .attrs = {required_attr("pooled_shape", AttrKind::kInts), float_attr("spatial_scale", 1)},
    .type = max_roi_pool_type,
    .reference = max_roi_pool_reference,
    .work = Work::kPair,
};
}  // namespace pinnace
