// Scales and zero points given as tensors, per tensor, per index of an axis, or per block of an axis: which of them an
// element takes. Shared by quantize_linear and dequantize_linear.
#pragma once

#include "ops/element.h"

namespace pinnace {

/// Element types that tensors can be quantised to.
inline constexpr DTypes kQuantized =
    kI8 | kU8 | kPackedInts | dtypes(DType::kI16, DType::kU16) | (kSmallFloats & ~dtypes(DType::kF8E8M0));
/// Element types of scales.
inline constexpr DTypes kScales = kF32 | kF16 | kBF16 | dtypes(DType::kF8E8M0);
/// Scale k; of quantize_linear it may be i32.
double load_scale(const TensorView& scale, int64_t k);

/// Checks input 1 (scale) and input 2 (zero point, optional) of a node with attributes axis and block_size against
/// input 0, as far as sizes are known:
///   per tensor  scale has one element and rank 0 or 1
///   per axis    block_size 0; scale is [size of the axis]
///   per block   block_size B > 0; scale has x's shape, but ceil(size / B) along the axis
/// The zero point has the scale's shape.
Status check_scale(const NodeView& node);

/// Maps the index of an element of input 0 to that of its scale; types are concrete and passed check_scale.
class ScaleIndex {
 public:
  explicit ScaleIndex(const NodeView& node);
  int64_t operator()(int64_t i) const {
    if (inner_ == 0) return 0;
    const int64_t at = i / inner_ % size_;
    return block_ == 0 ? at : (i / (inner_ * size_) * blocks_ + at / block_) * inner_ + i % inner_;
  }

 private:
  int64_t inner_ = 0;  ///< elements between neighbours along the axis; 0: per tensor
  int64_t size_ = 1, block_ = 0, blocks_ = 1;
};

}  // namespace pinnace
