// Convolutions, and resizing by interpolation.
#include <algorithm>
#include <cmath>

#include "import/torch/mapping.h"
#include "ops/resize_map.h"

namespace pinnace::torch_import {
namespace {

using Ints = std::vector<int64_t>;

// conv1d..3d, conv_transpose1d..3d, convolution; x [N, C, ...] or without N
void map_convolution(Call& c) {
  ValueId x = c.tensor("input");
  const ValueId weight = c.tensor("weight"), bias = c.optional_tensor("bias");
  const int rank = c.rank(weight);
  if (rank < 3 || (c.rank(x) != rank && c.rank(x) != rank - 1))
    return c.fail("convolution of these ranks", str_cat(c.rank(x), " and ", rank));
  const auto spatial = static_cast<size_t>(rank - 2);
  const bool transposed = c.parameter() == "transposed" || c.boolean("transposed", false);
  const int64_t group = c.integer("groups", 1);
  const Ints stride = c.ints("stride", spatial, 1), dilation = c.ints("dilation", spatial, 1);
  const Ints output_padding = c.ints("output_padding", spatial, 0);
  Ints pads;
  const Argument* padding = c.argument("padding");
  if (padding && padding->kind == ArgumentKind::kString) {
    Ints high;
    for (size_t i = 0; i < spatial; ++i) {
      const Dim kernel = c.dim(weight, static_cast<int64_t>(i) + 2);
      if (!kernel.known()) return c.fail("a kernel of symbolic size");
      const int64_t total = padding->text == "same" ? dilation[i] * (kernel.size - 1) : 0;
      pads.push_back(total / 2);
      high.push_back(total - total / 2);
    }
    if (padding->text != "same" && padding->text != "valid") return c.fail("padding", padding->text);
    pads.insert(pads.end(), high.begin(), high.end());
  } else {
    pads = c.ints("padding", spatial, 0);
    pads.insert(pads.end(), pads.begin(), pads.begin() + static_cast<ptrdiff_t>(spatial));
  }
  const bool single = c.rank(x) == rank - 1;
  if (single) x = c.unsqueeze(x, {0});
  const auto unless = [](const Ints& list, int64_t usual) {
    for (int64_t n : list) {
      if (n != usual) return list;
    }
    return Ints();
  };
  std::vector<std::pair<std::string, Attr>> attrs = {
      {"dilations", unless(dilation, 1)}, {"group", group}, {"pads", unless(pads, 0)}, {"strides", unless(stride, 1)}};
  if (transposed) attrs.emplace_back("output_padding", unless(output_padding, 0));
  ValueId y = c.add_node(transposed ? "conv_transpose" : "conv", {x, weight, bias}, 1, std::move(attrs))[0];
  c.output(single ? c.squeeze(y, {0}) : y);
}

/// One axis of an interpolation.
struct Resampled {
  int64_t axis;
  Dim in;
  Scalar out;         ///< if sizes are given
  double factor = 0;  ///< 0: the sizes say it
  int64_t least(const Session& session) const {
    return in.known() ? in.size : in.symbol >= 0 ? session.symbols[static_cast<size_t>(in.symbol)].min : 0;
  }
};

/// torch's size of an axis by its factor; emitted where the axis is dynamic.
Scalar multiplied(Call& c, ValueId x, const Resampled& a) {
  if (a.in.known()) {
    const double size = static_cast<double>(a.in.size) * a.factor;
    if (size >= 0 && size < 0x1p62) return Scalar::of_int(static_cast<int64_t>(size));
    c.fail("interpolation to a negative size or one beyond memory", str_cat(a.in.size, " * ", a.factor));
    return {};
  }
  const ValueId size = c.cast(c.size_of(x, a.axis).value, DType::kF64);
  return Scalar::of_value(Scalar::Kind::kInt,
                          c.cast(c.add("mul", {size, c.constant(a.factor, DType::kF64)}), DType::kI64));
}

/// Where torch's nearest interpolation takes elements from. Its general kernels take place
///   min(floor(float32(k * step)), in - 1), of nearest-exact floor(float32(float32((k + 0.5) * step - 0.5) + 0.5)),
/// with step = 1 / factor or in / out in float32, of f64 in double. Other kernels, here those of pixels, have float32
/// always, floor(float32((k + 0.5) * step)) of nearest-exact, and otherwise take k where out is in, and k / 2 where out
/// is 2 * in, whatever the factor. They serve images of more than three channels that stand channels last, and those of
/// at most 128 rows and columns together.
struct NearestRule {
  enum class Pixels : uint8_t { kNo, kYes, kIfSmall };
  bool exact = false, wide = false;  ///< wide: f64
  Pixels pixels = Pixels::kNo;

  /// The places of an axis whose sizes are known; kIfSmall must be settled.
  std::vector<int64_t> places(int64_t in, int64_t out, double factor) const {
    const bool by_pixel = pixels == Pixels::kYes;
    std::vector<int64_t> list(static_cast<size_t>(out));
    const double wide_step = factor != 0 ? 1 / factor : static_cast<double>(in) / static_cast<double>(out);
    const float step = factor != 0 ? static_cast<float>(1 / factor) : static_cast<float>(in) / static_cast<float>(out);
    const double by = wide && !by_pixel ? wide_step : static_cast<double>(step);
    for (int64_t k = 0; k < out; ++k) {
      const double at = static_cast<double>(k) + (exact ? 0.5 : 0);
      const bool twice = exact && !wide && !by_pixel;
      const float rounded = twice ? static_cast<float>(at * by - 0.5) + 0.5f : static_cast<float>(at * by);
      int64_t place = static_cast<int64_t>(std::floor(rounded));
      if (by_pixel && !exact && (out == in || out == 2 * in)) place = out == in ? k : k / 2;
      list[static_cast<size_t>(k)] = std::min(place, in - 1);
    }
    return list;
  }

  /// The same computed by the graph: i64 [out]. `in` and `out` without dimensions; small, a bool, for kIfSmall.
  ValueId emit(Call& c, ValueId in, ValueId out, double factor, ValueId small) const {
    const ValueId k = c.add("range", {c.constant_int(0), out, c.constant_int(1)});
    const auto places_of = [&](DType dtype, bool twice) {
      ValueId step =
          factor != 0 ? c.constant(1 / factor, dtype) : c.add("div", {c.cast(in, dtype), c.cast(out, dtype)});
      const DType sums = twice ? DType::kF64 : dtype;
      ValueId at = c.cast(k, sums);
      if (exact) at = c.add("add", {at, c.constant(0.5, sums)});
      at = c.add("mul", {at, c.cast(step, sums)});
      if (twice) at = c.add("sub", {at, c.constant(0.5, sums)});
      at = c.cast(at, DType::kF32);
      if (twice) at = c.add("add", {at, c.constant(0.5, DType::kF32)});
      return c.add("min", {c.cast(c.add("floor", {at}), DType::kI64), c.add("sub", {in, c.constant_int(1)})});
    };
    const ValueId general = places_of(wide ? DType::kF64 : DType::kF32, exact && !wide);
    if (pixels == Pixels::kNo) return general;
    ValueId by_pixel = wide || exact ? places_of(DType::kF32, false) : general;
    if (!exact) {
      const ValueId twice = c.add("equal", {out, c.add("add", {in, in})});
      by_pixel = c.add("where", {twice, c.add("div", {k, c.constant_int(2)}), by_pixel});
      by_pixel = c.add("where", {c.add("equal", {out, in}), k, by_pixel});
    }
    return pixels == Pixels::kYes ? by_pixel : c.add("where", {small, by_pixel, general});
  }

  /// True if our resize, with float32 steps, may take other places somewhere in the axis' range.
  bool differs(const Session& session, const Resampled& a) const {
    int exponent = 0;
    if (a.factor != 0 && std::frexp(a.factor, &exponent) == 0.5) return false;  // a power of two: nothing is rounded
    if (wide || (exact && pixels != Pixels::kNo)) return true;
    if (exact || pixels == Pixels::kNo || a.factor == 0) return false;
    const auto least = static_cast<double>(std::max<int64_t>(2, a.least(session)));  // one place is the first anyway
    const double size = std::floor(least * a.factor);
    return size == least || size == 2 * least;
  }
};

/// True of images and volumes of more than three channels, the channels of a pixel side by side; as far as sizes are
/// known, without gaps.
bool channels_last(const TensorMeta& meta) {
  const size_t rank = meta.sizes.size();
  if (rank < 4 || meta.strides.size() != rank || !meta.sizes[1].expression.empty() || meta.sizes[1].value < 4)
    return false;
  int64_t expected = 1;
  for (size_t i = rank; i > 1; --i) {  // the channels first, then the width, the height
    const size_t d = i == rank ? 1 : i;
    const SizeDef &size = meta.sizes[d], &stride = meta.strides[d];
    if (stride.expression.empty() && size.value != 1 && stride.value != expected) return false;
    if (!stride.expression.empty() || !size.expression.empty() ||
        __builtin_mul_overflow(expected, size.value, &expected))
      return i != rank;
  }
  return true;
}

constexpr int64_t kMostPlaces = int64_t{1} << 24;  // float32 counts no further

/// True if resize of known sizes with these steps (0: none, places are divided by a scale) takes those places.
bool takes(const ResizeSpec& spec, const Resampled& a, float step, const std::vector<int64_t>& places) {
  const auto out = static_cast<int64_t>(places.size());
  ResizeAxis axis{.in = a.in.size, .out = out, .scale = static_cast<float>(out) / static_cast<float>(a.in.size)};
  if (step != 0) axis.scale = 1 / step;
  axis.step = step;
  const bool same = axis.identity(spec);
  for (int64_t k = 0; k < out; ++k) {
    const int64_t place = same ? k : resize_nearest(spec, axis, resize_coordinate(spec, axis, k));
    if (place != places[static_cast<size_t>(k)]) return false;
  }
  return true;
}

using NodeAttrs = std::vector<std::pair<std::string, Attr>>;

/// resize along these axes: by sizes where they are given, by factors.
ValueId add_resize(Call& c, ValueId x, const std::vector<Resampled>& axes, NodeAttrs attrs, bool by_factors) {
  Ints numbers;
  std::vector<Scalar> sizes;
  std::vector<double> factors;
  for (const Resampled& a : axes) {
    numbers.push_back(a.axis);
    if (!a.out.is(-1)) sizes.push_back(a.out);
    factors.push_back(a.factor);
  }
  attrs.emplace_back("axes", numbers);
  if (by_factors) attrs.emplace_back("factors", factors);
  const ValueId wanted = sizes.empty() ? kNoValue : c.size_values(sizes);
  return c.add_node("resize", {x, kNoValue, kNoValue, wanted}, 1, std::move(attrs))[0];
}

void map_nearest(Call& c, ValueId x, const TensorMeta* meta, bool exact, std::vector<Resampled> axes) {
  ResizeSpec spec;
  spec.coordinates = exact ? ResizeCoordinates::kHalfPixel : ResizeCoordinates::kAsymmetric;
  spec.rounding = exact ? ResizeRounding::kRoundPreferCeil : ResizeRounding::kFloor;
  const NodeAttrs attrs = {{"coordinate_transformation_mode", std::string(exact ? "half_pixel" : "asymmetric")},
                           {"nearest_mode", std::string(exact ? "round_prefer_ceil" : "floor")}};
  NearestRule rule{.exact = exact, .wide = c.dtype_of(x) == DType::kF64};
  const bool last = meta && channels_last(*meta);
  if (axes.size() >= 2 && last) rule.pixels = NearestRule::Pixels::kYes;
  if (axes.size() == 2 && !last) rule.pixels = NearestRule::Pixels::kIfSmall;
  bool known = true;
  std::vector<Scalar> sizes;
  for (const Resampled& a : axes) {
    const bool given = !a.out.is(-1);
    known = known && a.in.known() && (!given || a.out.known);
    sizes.push_back(given          ? a.out
                    : a.in.known() ? multiplied(c, x, a)
                                   : Scalar::of_value(Scalar::Kind::kInt, kNoValue));
    known =
        known && sizes.back().known && a.in.size > 0 && sizes.back().integer > 0 && sizes.back().integer <= kMostPlaces;
  }
  if (!c.ok()) return;
  if (known) {
    if (rule.pixels == NearestRule::Pixels::kIfSmall) {
      const bool small = sizes[0].integer + sizes[1].integer <= 128;
      rule.pixels = small ? NearestRule::Pixels::kYes : NearestRule::Pixels::kNo;
    }
    std::vector<Ints> places;
    bool plain = true, stepped = true;
    for (size_t i = 0; i < axes.size(); ++i) {
      const Resampled& a = axes[i];
      places.push_back(rule.places(a.in.size, sizes[i].integer, a.factor));
      const float step = a.factor != 0 ? static_cast<float>(1 / a.factor)
                                       : static_cast<float>(a.in.size) / static_cast<float>(sizes[i].integer);
      plain = plain && takes(spec, a, 0, places[i]);
      stepped = stepped && takes(spec, a, step, places[i]);
    }
    if (plain) {
      for (size_t i = 0; i < axes.size(); ++i) axes[i].out = sizes[i];
      return c.output(add_resize(c, x, axes, attrs, false));
    }
    if (stepped) return c.output(add_resize(c, x, axes, attrs, true));
    for (size_t i = 0; i < axes.size(); ++i) x = c.gather(x, c.constant_ints(places[i]), axes[i].axis);
    return c.output(x);
  }
  const Session& session = c.builder().session;
  if (std::none_of(axes.begin(), axes.end(), [&](const Resampled& a) { return rule.differs(session, a); })) {
    return c.output(add_resize(c, x, axes, attrs, true));
  }
  Scalar sum = Scalar::of_int(0);
  for (size_t i = 0; i < axes.size(); ++i) {
    if (!sizes[i].known && sizes[i].value == kNoValue) sizes[i] = multiplied(c, x, axes[i]);
    sum = c.add_sizes(sum, sizes[i]);
  }
  const auto whole = [&](const Scalar& s) { return c.as_tensor({kNoValue, s}, DType::kI64); };
  const ValueId small = c.add("less_or_equal", {whole(sum), c.constant_int(128)});
  const ValueId from = x;
  for (size_t i = 0; i < axes.size(); ++i) {
    const ValueId in = whole(c.size_of(from, axes[i].axis));
    x = c.gather(x, rule.emit(c, in, whole(sizes[i]), axes[i].factor, small), axes[i].axis);
  }
  c.output(x);
}

// upsample_{nearest,linear,bilinear,trilinear,bicubic}*: by sizes, or by factors, which then also place the samples
void map_upsample(Call& c) {
  const bool vec = c.overload() == "vec";
  const char* input = vec ? "input" : "self";
  const ValueId x = c.tensor(input);
  const std::string_view form = c.parameter();
  const bool align = c.boolean("align_corners", false);
  const int rank = c.rank(x);
  const auto spatial = static_cast<size_t>(rank < 2 ? 0 : rank - 2);
  std::vector<double> factors;
  std::vector<Scalar> wanted;
  if (vec) {
    if (c.given("scale_factors")) {
      factors = c.floats("scale_factors");
    } else {
      wanted = c.sizes("output_size");
    }
  } else {
    wanted = c.sizes("output_size");
    for (const char* name : {"scales", "scales_d", "scales_h", "scales_w"}) {
      if (c.given(name)) factors.push_back(c.number(name, 1));
    }
  }
  if (!c.ok()) return;
  const auto fits = [&](size_t count) { return count == 0 || count == spatial; };
  if (!fits(factors.size()) || !fits(wanted.size()) || factors.size() + wanted.size() == 0)
    return c.fail("upsample of another rank", str_cat(rank));
  std::vector<Resampled> axes;
  for (size_t i = 0; i < spatial; ++i) {
    const auto axis = static_cast<int64_t>(i) + 2;
    axes.push_back(
        {axis, c.dim(x, axis), wanted.empty() ? Scalar::of_int(-1) : wanted[i], factors.empty() ? 0 : factors[i]});
  }
  if (form.starts_with("nearest")) return map_nearest(c, x, c.meta_of(input), form == "nearest_exact", std::move(axes));
  NodeAttrs attrs = {{"coordinate_transformation_mode", std::string(align ? "align_corners" : "half_pixel")},
                     {"mode", std::string(form.starts_with("linear") ? "linear" : "cubic")}};
  if (form.ends_with("_aa") && align) return c.fail("antialias with align_corners");
  if (form.ends_with("_aa")) {  // weights beyond the edge are left out, cubic ones are Pillow's
    attrs.emplace_back("antialias", int64_t{1});
    attrs.emplace_back("exclude_outside", int64_t{1});
    if (form == "cubic_aa") attrs.emplace_back("cubic_coeff_a", -0.5);
  }
  c.output(add_resize(c, x, axes, std::move(attrs), !factors.empty()));
}

void map_grid_sample(Call& c) {
  const ValueId x = c.tensor("input"), grid = c.tensor("grid");
  static constexpr const char* kModes[] = {"linear", "nearest", "cubic"};
  static constexpr const char* kPaddings[] = {"zeros", "border", "reflection"};
  const int64_t mode = c.integer("interpolation_mode"), padding = c.integer("padding_mode");
  if (mode < 0 || mode > 2 || padding < 0 || padding > 2)
    return c.fail("interpolation or padding mode", str_cat(mode, ", ", padding));
  c.output(c.add("grid_sample", {x, grid},
                 {{"align_corners", c.boolean("align_corners", false)},
                  {"mode", kModes[mode]},
                  {"padding_mode", kPaddings[padding]}}));
}

constexpr Mapping kMappings[] = {
    {"aten._upsample_bicubic2d_aa", map_upsample, "cubic_aa"},
    {"aten._upsample_bilinear2d_aa", map_upsample, "linear_aa"},
    {"aten._upsample_nearest_exact1d", map_upsample, "nearest_exact"},
    {"aten._upsample_nearest_exact2d", map_upsample, "nearest_exact"},
    {"aten._upsample_nearest_exact3d", map_upsample, "nearest_exact"},
    {"aten.conv1d", map_convolution, ""},
    {"aten.conv2d", map_convolution, ""},
    {"aten.conv3d", map_convolution, ""},
    {"aten.conv_transpose1d", map_convolution, "transposed"},
    {"aten.conv_transpose2d", map_convolution, "transposed"},
    {"aten.conv_transpose3d", map_convolution, "transposed"},
    {"aten.convolution", map_convolution, ""},
    {"aten.grid_sampler", map_grid_sample, ""},
    {"aten.grid_sampler_2d", map_grid_sample, ""},
    {"aten.grid_sampler_3d", map_grid_sample, ""},
    {"aten.upsample_bicubic2d", map_upsample, "cubic"},
    {"aten.upsample_bilinear2d", map_upsample, "linear"},
    {"aten.upsample_linear1d", map_upsample, "linear"},
    {"aten.upsample_nearest1d", map_upsample, "nearest"},
    {"aten.upsample_nearest2d", map_upsample, "nearest"},
    {"aten.upsample_nearest3d", map_upsample, "nearest"},
    {"aten.upsample_trilinear3d", map_upsample, "linear"},
};
static_assert(sorted(kMappings));

}  // namespace

std::span<const Mapping> convolution_mappings() {
  return kMappings;
}

}  // namespace pinnace::torch_import
