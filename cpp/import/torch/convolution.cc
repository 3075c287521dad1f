// Convolutions, and resizing by interpolation.
#include "import/torch/mapping.h"

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

// upsample_{nearest,linear,bilinear,trilinear,bicubic}*: by sizes, or by factors, which then also place the samples
void map_upsample(Call& c) {
  const bool vec = c.overload() == "vec";
  const ValueId x = c.tensor(vec ? "input" : "self");
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
    bool exact = true;  // both given: the factors place the samples, and the sizes must be their rounding
    for (size_t i = 0; i < wanted.size() && i < factors.size(); ++i) {
      const Dim d = c.dim(x, static_cast<int64_t>(i) + 2);
      exact = exact && (!d.known() || !wanted[i].known ||
                        static_cast<int64_t>(static_cast<double>(d.size) * factors[i]) == wanted[i].integer);
    }
    if (!factors.empty() && (!exact || factors.size() != wanted.size()))
      return c.fail("scales that do not give the sizes");
  }
  if (!c.ok()) return;
  if ((factors.empty() ? wanted.size() : factors.size()) != spatial)
    return c.fail("upsample of another rank", str_cat(rank));
  std::string mode = "nearest", coordinates = align ? "align_corners" : "half_pixel", nearest;
  if (form == "linear" || form == "linear_aa") mode = "linear";
  if (form == "cubic" || form == "cubic_aa") mode = "cubic";
  if (form == "nearest") {
    coordinates = "asymmetric";
    nearest = "floor";
  } else if (form == "nearest_exact") {
    nearest = "round_prefer_ceil";
  }
  ValueId scales = kNoValue, sizes = kNoValue;
  if (!factors.empty()) {
    std::vector<float> all = {1, 1};
    for (double f : factors) all.push_back(static_cast<float>(f));
    scales = c.constant_floats(all, {static_cast<int64_t>(all.size())});
  } else {
    std::vector<Scalar> all = {c.size_of(x, 0), c.size_of(x, 1)};
    all.insert(all.end(), wanted.begin(), wanted.end());
    sizes = c.size_values(all);
  }
  std::vector<std::pair<std::string, Attr>> attrs = {{"coordinate_transformation_mode", coordinates}, {"mode", mode}};
  if (!nearest.empty()) attrs.emplace_back("nearest_mode", nearest);
  if (form.ends_with("_aa") && align) return c.fail("antialias with align_corners");
  if (form.ends_with("_aa")) {  // weights beyond the edge are left out, cubic ones are Pillow's
    attrs.emplace_back("antialias", int64_t{1});
    attrs.emplace_back("exclude_outside", int64_t{1});
    if (form == "cubic_aa") attrs.emplace_back("cubic_coeff_a", -0.5);
  }
  c.outputs(c.add_node("resize", {x, kNoValue, scales, sizes}, 1, std::move(attrs)));
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
