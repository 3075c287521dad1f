// resize as RESIZE_BILINEAR or RESIZE_NEAREST_NEIGHBOR where those take the same places, else by products of matrices.
#include "ops/resize_map.h"

#include <cmath>

#include "backends/nnapi/rewrites/rewrites.h"
#include "backends/nnapi/steps/floats.h"
#include "backends/nnapi/steps/shape.h"

namespace pinnace::nnapi_client {
namespace {

/// NNAPI's two flags, of feature level 4.
struct Flags {
  bool align = false, half_pixel = false;
};

/// Where output place i comes from, by NNAPI's formula in float32.
float place_of(const ResizeAxis& a, const Flags& f, int64_t i) {
  const auto in = static_cast<float>(a.in), out = static_cast<float>(a.out), at = static_cast<float>(i);
  const float scale = f.align && a.out > 1 ? (in - 1) / (out - 1) : in / out;
  return f.half_pixel ? (at + 0.5f) * scale : at * scale;
}

bool same_places(const ResizeSpec& spec, const ResizeAxis& a, const Flags& f) {
  for (int64_t i = 0; i < a.out; ++i) {
    const float ours = resize_coordinate(spec, a, i), theirs = place_of(a, f, i);
    if (spec.mode == ResizeMode::kNearest) {
      const auto nearest = static_cast<int64_t>(f.align ? std::round(theirs) : std::floor(theirs));
      if (resize_nearest(spec, a, ours) != std::clamp<int64_t>(nearest, 0, a.in - 1)) return false;
      continue;
    }
    // What lies beyond the edge takes the edge in both.
    const auto edge = static_cast<float>(a.in - 1);
    const float want = std::clamp(ours, 0.0f, edge), is = std::clamp(f.half_pixel ? theirs - 0.5f : theirs, 0.0f, edge);
    if (std::fabs(want - is) > 1e-5f * static_cast<float>(a.in)) return false;
  }
  return true;
}

}  // namespace

Status lower_resize(NodeLowering& n) {
  const TensorType& x_type = n.in_type(0);
  if (x_type.rank() != 4) return n.refuse(Rule::kSpatial, to_string(x_type));
  for (int i : {2, 3}) {
    if (n.has(i) && !n.constant(i)) return n.refuse(Rule::kConstant, "the sizes");
  }
  PINNACE_ASSIGN(const ResizeSpec spec, resize_spec(n.view()));
  PINNACE_ASSIGN(const std::vector<ResizeAxis> axes, resize_axes(n.view()));
  const bool same_quantization = !x_type.quantized() || *x_type.quantization == *n.out_type().quantization;
  const bool nearest = spec.mode == ResizeMode::kNearest;
  const bool plain = spec.mode != ResizeMode::kCubic && !spec.exclude_outside && !(spec.antialias && !nearest) &&
                     spec.coordinates != ResizeCoordinates::kTfCropAndResize;
  const Flags forms[] = {{false, false}, {true, false}, {false, true}};
  for (const Flags& f : forms) {
    const int needed = f.align || f.half_pixel ? 4 : nearest ? 3 : 1;
    if (!plain || n.feature_level() < needed) continue;
    bool same = true;
    for (const ResizeAxis& a : axes)
      same &= a.identity(spec) ? (a.axis < 2 || same_places(spec, a, f)) : a.axis >= 2 && same_places(spec, a, f);
    if (!same) continue;
    PINNACE_ASSIGN(OperandId x, n.in(0, Layout::kChannelsLast));
    PINNACE_ASSIGN(const OperandId stored, n.out(0, Layout::kChannelsLast));
    OperandId y = stored;
    if (!same_quantization) {
      PINNACE_ASSIGN(x, as_floats(n, x));
      y = floats_for(n, y);
    }
    const auto height = static_cast<int32_t>(n.operand(y).dims[1]), width = static_cast<int32_t>(n.operand(y).dims[2]);
    std::vector<OperandId> inputs = {x, n.scalar(width), n.scalar(height)};
    if (nearest || needed == 4) inputs.push_back(n.flag(false));
    if (needed == 4) {
      inputs.push_back(n.flag(f.align));
      inputs.push_back(n.flag(f.half_pixel));
    }
    PINNACE_TRY(n.add(nearest ? Op::RESIZE_NEAREST_NEIGHBOR : Op::RESIZE_BILINEAR, std::move(inputs), y));
    return store_floats(n, y, stored);
  }
  PINNACE_ASSIGN(const OperandId x, n.in(0));
  PINNACE_ASSIGN(const OperandId y, n.out());
  PINNACE_ASSIGN(const OperandId floats, as_floats(n, x));
  const OperandId to = floats_for(n, y);
  PINNACE_TRY(resize_by_product(n, floats, to));
  return store_floats(n, to, y);
}

}  // namespace pinnace::nnapi_client
