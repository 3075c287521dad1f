// Where the elements of a resized axis come from: one formula for the operator and for every kernel that resizes.
// Coordinates and scales are in float32, in the order that resize_map.cc writes them, so that all implementations pick
// the same elements.
#pragma once

#include "ops/move.h"

namespace pinnace {

enum class ResizeMode : uint8_t { kNearest, kLinear, kCubic };
enum class ResizeCoordinates : uint8_t {
  kHalfPixel,           ///< (i + 0.5) / scale - 0.5, or (i + 0.5) * step - 0.5
  kHalfPixelSymmetric,  ///< the same, moved so that what rounding the size cut off is missing equally on both sides
  kPytorchHalfPixel,    ///< half pixel; 0 where out is 1
  kAlignCorners,        ///< i * (in - 1) / (out - 1); 0 where out is 1
  kAsymmetric,          ///< i / scale, or i * step
  kTfCropAndResize,     ///< the part [roi_start, roi_end] of the axis, corners aligned
};
enum class ResizeRounding : uint8_t { kRoundPreferFloor, kRoundPreferCeil, kFloor, kCeil };

/// The attributes of a resize node, checked.
struct ResizeSpec {
  ResizeMode mode = ResizeMode::kNearest;
  ResizeCoordinates coordinates = ResizeCoordinates::kHalfPixel;
  ResizeRounding rounding = ResizeRounding::kRoundPreferFloor;
  bool antialias = false;
  bool exclude_outside = false;
  double cubic_a = -0.75;
};
Result<ResizeSpec> resize_spec(const NodeView& node);

/// One axis that is resized. Sizes are positive.
struct ResizeAxis {
  int axis = 0;
  int64_t in = 1, out = 1;
  float scale = 1;
  float roi_start = 0, roi_end = 1;  ///< kTfCropAndResize only
  float step = 0;                    ///< if not 0, what places are multiplied by; scale is 1 / step then
  bool identity(const ResizeSpec& spec) const {
    return in == out && scale == 1 && (step == 0 || step == 1) &&
           spec.coordinates != ResizeCoordinates::kTfCropAndResize;
  }
};

/// The axes of a resize node whose sizes and scales are known, identities among them; with their regions, if those are
/// known too.
Result<std::vector<ResizeAxis>> resize_axes(const NodeView& node);

/// Place in the input of output place i; it may lie outside.
float resize_coordinate(const ResizeSpec& spec, const ResizeAxis& axis, int64_t i);
/// True for places that kTfCropAndResize fills with the extrapolation value.
bool resize_extrapolates(const ResizeSpec& spec, const ResizeAxis& axis, float coordinate);
/// Mode nearest: the input place of a coordinate, in [0, in).
int64_t resize_nearest(const ResizeSpec& spec, const ResizeAxis& axis, float coordinate);

/// Modes linear and cubic: out place i is the sum over k of weight[i * count + k] * in place index[i * count + k];
/// unused entries have weight 0 and index 0.
struct ResizeTaps {
  int64_t count;
  Scratch<int64_t> index;
  Scratch<double> weight;
};
Result<ResizeTaps> resize_taps(const ResizeSpec& spec, const ResizeAxis& axis, std::string_view label);

}  // namespace pinnace
