// Coordinates, rounding and filters of resize.
#include "ops/resize_map.h"

#include <algorithm>
#include <cmath>

namespace pinnace {
namespace {
template <class E, size_t N>
Result<E> choose(const NodeView& node, std::string_view attr, const std::pair<std::string_view, E> (&names)[N]) {
  const std::string_view given = node.attr_string(attr);
  std::string known;
  for (const auto& [name, value] : names) {
    if (name == given) return value;
    known += str_cat(known.empty() ? "" : ", ", name);
  }
  return node.error(attr, " is '", given, "', must be one of ", known);
}
}  // namespace

Result<ResizeSpec> resize_spec(const NodeView& node) {
  using C = ResizeCoordinates;
  using R = ResizeRounding;
  constexpr std::pair<std::string_view, ResizeMode> kModes[] = {
      {"nearest", ResizeMode::kNearest}, {"linear", ResizeMode::kLinear}, {"cubic", ResizeMode::kCubic}};
  constexpr std::pair<std::string_view, C> kCoordinates[] = {{"half_pixel", C::kHalfPixel},
                                                             {"half_pixel_symmetric", C::kHalfPixelSymmetric},
                                                             {"pytorch_half_pixel", C::kPytorchHalfPixel},
                                                             {"align_corners", C::kAlignCorners},
                                                             {"asymmetric", C::kAsymmetric},
                                                             {"tf_crop_and_resize", C::kTfCropAndResize}};
  constexpr std::pair<std::string_view, R> kRoundings[] = {{"round_prefer_floor", R::kRoundPreferFloor},
                                                           {"round_prefer_ceil", R::kRoundPreferCeil},
                                                           {"floor", R::kFloor},
                                                           {"ceil", R::kCeil}};
  ResizeSpec spec;
  PINNACE_ASSIGN(spec.mode, choose(node, "mode", kModes));
  PINNACE_ASSIGN(spec.coordinates, choose(node, "coordinate_transformation_mode", kCoordinates));
  PINNACE_ASSIGN(spec.rounding, choose(node, "nearest_mode", kRoundings));
  spec.antialias = node.attr_int("antialias") != 0;
  spec.exclude_outside = node.attr_int("exclude_outside") != 0;
  spec.cubic_a = node.attr_float("cubic_coeff_a");
  return spec;
}

float resize_coordinate(const ResizeSpec& spec, const ResizeAxis& a, int64_t i) {
  const auto x = static_cast<float>(i), in = static_cast<float>(a.in), out = static_cast<float>(a.out);
  switch (spec.coordinates) {
    case ResizeCoordinates::kPytorchHalfPixel:
      if (a.out <= 1) return 0;
      [[fallthrough]];
    case ResizeCoordinates::kHalfPixel:
      // Rounded once, as PyTorch's compiled kernels do it.
      if (a.step != 0) return static_cast<float>((static_cast<double>(x) + 0.5) * static_cast<double>(a.step) - 0.5);
      return (x + 0.5f) / a.scale - 0.5f;
    case ResizeCoordinates::kHalfPixelSymmetric: {
      const float adjustment = out / (a.scale * in);
      const float offset = in / 2 * (1 - adjustment);
      // In double: where nothing was cut off, places lie exactly between elements, and rounding would decide.
      return static_cast<float>(offset + (static_cast<double>(x) + 0.5) / a.scale - 0.5);
    }
    case ResizeCoordinates::kAlignCorners:
      return a.out <= 1 ? 0 : x * (in - 1) / (out - 1);
    case ResizeCoordinates::kAsymmetric:
      return a.step != 0 ? x * a.step : x / a.scale;
    default:
      return a.out <= 1 ? 0.5f * (a.roi_start + a.roi_end) * (in - 1)
                        : a.roi_start * (in - 1) + x * (a.roi_end - a.roi_start) * (in - 1) / (out - 1);
  }
}

bool resize_extrapolates(const ResizeSpec& spec, const ResizeAxis& axis, float x) {
  return spec.coordinates == ResizeCoordinates::kTfCropAndResize && !(x >= 0 && x <= static_cast<float>(axis.in - 1));
}

int64_t resize_nearest(const ResizeSpec& spec, const ResizeAxis& axis, float x) {
  float rounded = x;
  switch (spec.rounding) {
    case ResizeRounding::kRoundPreferFloor:
      rounded = std::ceil(x - 0.5f);
      break;
    case ResizeRounding::kRoundPreferCeil:
      rounded = axis.step != 0 ? std::floor(x + 0.5f) : std::round(x);  // the sum in float32: PyTorch's nearest-exact
      break;
    case ResizeRounding::kFloor:
      rounded = std::floor(x);
      break;
    default:
      rounded = std::ceil(x);
      break;
  }
  if (!(rounded > 0)) return 0;
  return rounded >= static_cast<float>(axis.in) ? axis.in - 1 : std::min(static_cast<int64_t>(rounded), axis.in - 1);
}

namespace {
double filter(const ResizeSpec& spec, double distance) {
  const double d = std::abs(distance), a = spec.cubic_a;
  if (spec.mode == ResizeMode::kLinear) return d < 1 ? 1 - d : 0;
  if (d < 1) return ((a + 2) * d - (a + 3)) * d * d + 1;
  return d < 2 ? ((a * d - 5 * a) * d + 8 * a) * d - 4 * a : 0;
}
}  // namespace

Result<ResizeTaps> resize_taps(const ResizeSpec& spec, const ResizeAxis& axis, std::string_view label) {
  // When it shrinks, an antialiased filter is stretched to cover all that an output element stands for.
  const double stretch = spec.antialias ? std::min(static_cast<double>(axis.scale), 1.0) : 1.0;
  const double reach = (spec.mode == ResizeMode::kLinear ? 1 : 2) / stretch;
  if (!(reach < 0x1p40)) return out_of_memory(label, " has a filter that reaches over ", reach, " elements");
  const int64_t count = 2 * static_cast<int64_t>(std::ceil(reach)) + 1;
  PINNACE_ASSIGN(auto index, Scratch<int64_t>::allocate(saturating_mul(axis.out, count), label));
  PINNACE_ASSIGN(auto weight, Scratch<double>::allocate(saturating_mul(axis.out, count), label));
  ResizeTaps taps{count, std::move(index), std::move(weight)};
  for (int64_t i = 0; i < axis.out; ++i) {
    const float raw = resize_coordinate(spec, axis, i);
    // Places to be extrapolated need no taps; the limit keeps conversions defined.
    const double x = std::clamp(std::isnan(raw) ? 0.0 : static_cast<double>(raw), -0x1p40, 0x1p40);
    const auto first = static_cast<int64_t>(std::ceil(x - reach));
    double sum = 0;
    for (int64_t k = 0; k < count; ++k) {
      const int64_t at = first + k, inside = std::clamp<int64_t>(at, 0, axis.in - 1);
      double w = filter(spec, (static_cast<double>(at) - x) * stretch);
      if (spec.exclude_outside && at != inside) w = 0;
      taps.index[i * count + k] = inside;
      taps.weight[i * count + k] = w;
      sum += w;
    }
    for (int64_t k = 0; k < count; ++k) {
      double& w = taps.weight[i * count + k];
      w = sum != 0 ? w / sum : 0;
    }
  }
  return taps;
}

}  // namespace pinnace
