// Resizing of images, bilinear and by the nearest neighbour.
#include <algorithm>
#include <cmath>

#include "nnapi/mapping.h"
#include "ops/resize_map.h"
#include "ops/work.h"

namespace pinnace::nnapi {
namespace {

/// Places are worked out in float32, which counts no further.
constexpr int64_t kLongestAxis = int64_t{1} << 24;
/// Nanoseconds for the place of one row or column: by two formulas, and stored.
constexpr double kPlaceWork = 20;

struct Resized {
  ValueId x;
  bool nchw = false, align = false, half = false;
  int64_t in[2], out[2];  ///< height, width
};

/// A wanted size, or a factor of the present one.
Result<int64_t> wanted_size(Call& call, size_t i, int64_t in) {
  if (call.operand(i).type == OperandCode::kInt32) return call.integer(i);
  PINNACE_ASSIGN(double factor, call.real(i));
  const float size = std::floor(static_cast<float>(in) * static_cast<float>(factor));
  if (!(size >= 1 && size <= 0x1p31f)) return call.error("factor ", factor, " of ", in, " gives no size");
  return static_cast<int64_t>(size);
}

Result<Resized> read_resize(Call& call) {
  Resized r{};
  PINNACE_ASSIGN(r.x, call.in(0));
  PINNACE_ASSIGN(r.nchw, call.flag(3));
  PINNACE_ASSIGN(r.align, call.flag(4));
  PINNACE_ASSIGN(r.half, call.flag(5));
  if (r.align && r.half) return call.error("align_corners and half_pixel_centers exclude each other");
  if (call.rank(r.x) != 4) return call.error("takes an image, was given ", call.type(r.x));
  for (int a : {0, 1}) {
    PINNACE_ASSIGN(r.in[a], call.size(r.x, (r.nchw ? 2 : 1) + a));
    PINNACE_ASSIGN(r.out[a], wanted_size(call, a == 1 ? 1 : 2, r.in[a]));
    if (r.out[a] > kLongestAxis) return call.error("a size of ", r.out[a], " is more than ", kLongestAxis);
    if (r.in[a] < 1 || r.out[a] < 1) return call.error("a size of ", r.in[a], " cannot become ", r.out[a]);
  }
  if (r.out[0] * r.out[1] > UINT32_MAX)
    return call.error(r.out[0], " x ", r.out[1], " is larger than an operand can be");
  return r;
}

/// NNAPI's place of output element i of an axis, mode nearest.
int64_t nearest_place(const Resized& r, int a, int64_t i) {
  const auto in = static_cast<float>(r.in[a]), out = static_cast<float>(r.out[a]);
  const float scale = r.align && r.out[a] > 1 ? (in - 1) / (out - 1) : in / out;
  const float at = (static_cast<float>(i) + (r.half ? 0.5f : 0.0f)) * scale;
  return std::clamp<int64_t>(static_cast<int64_t>(r.align ? std::round(at) : std::floor(at)), 0, r.in[a] - 1);
}

/// True if our resize with these attributes takes the same places: it rounds coordinates at other steps.
bool agrees(const Resized& r, int a, const ResizeSpec& spec) {
  const ResizeAxis axis{a, r.in[a], r.out[a], static_cast<float>(r.out[a]) / static_cast<float>(r.in[a])};
  for (int64_t i = 0; i < r.out[a]; ++i) {
    if (resize_nearest(spec, axis, resize_coordinate(spec, axis, i)) != nearest_place(r, a, i)) return false;
  }
  return true;
}

Result<ValueId> emit_resize(Call& call, const Resized& r, Attrs attrs) {
  PINNACE_ASSIGN(ValueId x, call.to_nchw(r.x, r.nchw));
  PINNACE_ASSIGN(ValueId sizes, call.constant_ints({r.out[0], r.out[1]}));
  attrs.emplace_back("axes", std::vector<int64_t>{2, 3});
  attrs.emplace_back("coordinate_transformation_mode", std::string(r.align  ? "align_corners"
                                                                   : r.half ? "half_pixel"
                                                                            : "asymmetric"));
  PINNACE_ASSIGN(ValueId y,
                 call.emit("resize", {x, kNoValue, kNoValue, sizes}, std::move(attrs), call.type(r.x).quantization));
  return call.from_nchw(y, r.nchw);
}

}  // namespace

Status map_resize_bilinear(Call& call) {
  PINNACE_ASSIGN(Resized r, read_resize(call));
  // A single element with aligned corners is not at a corner with NNAPI, but both take element 0.
  PINNACE_ASSIGN(ValueId y, emit_resize(call, r, {{"mode", std::string("linear")}}));
  return call.finish(0, y);
}

Status map_resize_nearest_neighbor(Call& call) {
  PINNACE_ASSIGN(Resized r, read_resize(call));
  ResizeSpec spec;
  spec.coordinates = r.align  ? ResizeCoordinates::kAlignCorners
                     : r.half ? ResizeCoordinates::kHalfPixel
                              : ResizeCoordinates::kAsymmetric;
  spec.rounding = r.align || r.half ? ResizeRounding::kRoundPreferCeil : ResizeRounding::kFloor;
  if (!AheadBudget::spend(kPlaceWork * static_cast<double>(r.out[0] + r.out[1]))) {
    return call.error("working out the places of ", r.out[0], " x ", r.out[1],
                      " elements is more than is computed ahead of a run");
  }
  ValueId y = r.x;
  if (agrees(r, 0, spec) && agrees(r, 1, spec)) {
    const bool floor = spec.rounding == ResizeRounding::kFloor;
    PINNACE_ASSIGN(y, emit_resize(call, r, {{"nearest_mode", std::string(floor ? "floor" : "round_prefer_ceil")}}));
    return call.finish(0, y);
  }
  for (int a : {0, 1}) {
    PINNACE_ASSIGN(auto places, Scratch<int64_t>::allocate(r.out[a], "places of a resized axis"));
    for (int64_t i = 0; i < r.out[a]; ++i) places[i] = nearest_place(r, a, i);
    PINNACE_ASSIGN(ValueId indices, call.constant_ints(places.span()));
    PINNACE_ASSIGN(y, call.emit("gather", {y, indices}, {{"axis", int64_t{(r.nchw ? 2 : 1) + a}}}));
  }
  return call.finish(0, y);
}

}  // namespace pinnace::nnapi
