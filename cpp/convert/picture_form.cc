// Checks of a Preprocessing, and its matrices. From luma Y' and colour differences Cb, Cr (ITU-R BT.601-7,
// section 2.5.1 and BT.709-6, section 3): with Kr and Kb the weights of R and B in luma, and Kg what is left,
//   R = Y' + 2 (1 - Kr) Cr    B = Y' + 2 (1 - Kb) Cb    G = (Y' - Kr R - Kb B) / Kg
// Bytes of full range (JFIF) are Y' * 255 and 128 + 255 * C; of limited range 16 + 219 * Y' and 128 + 224 * C.
#include "convert/picture_form.h"

#include <algorithm>
#include <cmath>
#include <span>
#include <vector>

#include "base/exception_boundary.h"
#include "base/text.h"

namespace pinnace {
namespace {

constexpr PictureForm kForms[] = {
    {"rgb", 3, "rgb", false, false, false},   {"bgr", 3, "bgr", false, false, false},
    {"rgba", 4, "rgba", false, false, false}, {"bgra", 4, "bgra", false, false, false},
    {"grey", 1, "grey", false, false, false}, {"nv21", 3, "rgb", true, true, true},
    {"nv12", 3, "rgb", true, true, false},    {"i420", 3, "rgb", true, false, false},
};

struct Primaries {
  std::string_view name;
  double red, blue;
  bool limited;
};
constexpr Primaries kMatrices[] = {
    {"bt601_full", 0.299, 0.114, false}, {"bt601", 0.299, 0.114, true}, {"bt709", 0.2126, 0.0722, true}};

constexpr int64_t kLargestSide = 1 << 16, kLargestStride = 1 << 24;

template <class... Parts>
Status refuse(const Preprocessing& how, const Parts&... parts) {
  return invalid("preprocessing of '", how.name, "': ", parts...);
}

Status one_of(const Preprocessing& how, std::string_view field, std::string_view value,
              std::span<const std::string_view> known) {
  if (std::find(known.begin(), known.end(), value) != known.end()) return {};
  std::string list;
  for (std::string_view k : known) list += str_cat(list.empty() ? "" : k == known.back() ? " or " : ", ", k);
  return refuse(how, field, " must be ", list, ", is '", value, "'");
}

std::string text_of(const std::vector<int64_t>& numbers) {
  std::string text;
  for (int64_t n : numbers) text += str_cat(text.empty() ? "" : "x", n);
  return text;
}

/// Sides of a picture or of a box: positive, at most kLargestSide.
Status check_sides(const Preprocessing& how, std::string_view field, std::span<const int64_t> sides) {
  for (int64_t side : sides) {
    if (side < 1 || side > kLargestSide) return refuse(how, field, ": a side is 1 to ", kLargestSide, ", is ", side);
  }
  return {};
}

Status check_crops(const Preprocessing& how) {
  const bool by_ratio = how.crop_ratio != 1;
  const int ways = !how.crop_box.empty() + !how.crop_size.empty() + by_ratio + how.crop_to_aspect;
  if (ways > 1) return refuse(how, "crop_box, crop_size, crop_ratio and crop_to_aspect: one of them, are ", ways);
  if (!how.crop_box.empty()) {
    if (how.crop_box.size() != 4) {
      return refuse(how, "crop_box has top, left, height and width, is ", how.crop_box.size(), " numbers");
    }
    for (int i = 0; i < 2; ++i) {
      const int64_t at = how.crop_box[static_cast<size_t>(i)];
      if (at < 0 || at > kLargestSide) {
        return refuse(how, "crop_box begins at 0 to ", kLargestSide, ", ", i ? "left" : "top", " is ", at);
      }
    }
    PINNACE_TRY(check_sides(how, "crop_box", std::span(how.crop_box).subspan(2)));
  }
  if (!how.crop_size.empty() && how.crop_size.size() != 2) {
    return refuse(how, "crop_size has height and width, is ", how.crop_size.size(), " numbers");
  }
  PINNACE_TRY(check_sides(how, "crop_size", how.crop_size));
  if (!(how.crop_ratio >= 1e-4 && how.crop_ratio <= 1)) {
    return refuse(how, "crop_ratio is at least 0.0001 and at most 1, is ", how.crop_ratio);
  }
  if (how.crop_to_aspect && how.size.size() != 2) {
    return refuse(how, "crop_to_aspect takes the ratio of size's height and width, size has ", how.size.size(),
                  " numbers");
  }
  return {};
}

Status check_resize(const Preprocessing& how) {
  if (how.size.size() > 2) {
    return refuse(how, "size has height and width, or the shorter side, is ", how.size.size(), " numbers");
  }
  PINNACE_TRY(check_sides(how, "size", how.size));
  constexpr std::string_view kModes[] = {"bilinear", "nearest", "nearest_exact"};
  PINNACE_TRY(one_of(how, "resize", how.resize, kModes));
  if (how.center_crop.empty()) return {};
  if (how.center_crop.size() != 2) {
    return refuse(how, "center_crop has height and width, is ", how.center_crop.size(), " numbers");
  }
  PINNACE_TRY(check_sides(how, "center_crop", how.center_crop));
  if (how.size.empty()) return refuse(how, "center_crop cuts what was resized, size is not given: see crop_size");
  for (size_t i = 0; i < 2; ++i) {
    const int64_t side = how.size[std::min(i, how.size.size() - 1)];
    if (how.center_crop[i] > side) {
      return refuse(how, "center_crop ", text_of(how.center_crop), " is larger than size ", text_of(how.size));
    }
  }
  return {};
}

Status check_stride(const Preprocessing& how, std::string_view field, int64_t stride, int64_t least) {
  if (stride == Preprocessing::kDense) return {};
  if (stride < Preprocessing::kOpen || stride > kLargestStride) {
    return refuse(how, field, " is 1 to ", kLargestStride, " bytes, kDense or kOpen, is ", stride);
  }
  if (how.width == Preprocessing::kOpen) {
    return refuse(how, field, " with gaps needs a known width: rows do not say where their pixels end");
  }
  if (stride != Preprocessing::kOpen && stride < least) {
    return refuse(how, field, " is at least a row of ", least, " bytes, is ", stride);
  }
  return {};
}

Status check_planes(const Preprocessing& how, const PictureForm& form) {
  const bool open = how.height == Preprocessing::kOpen || how.width == Preprocessing::kOpen;
  if (how.cut_last_row && open) return refuse(how, "cut_last_row needs a known height and width");
  const int64_t half = (how.width + 1) / 2;
  if (form.planes) {
    if (how.input_layout != "nhwc")
      return refuse(how, "input_layout is of pictures without planes, not of ", form.name);
    if (form.interleaved ? how.pixel_stride != 1 : how.pixel_stride != 1 && how.pixel_stride != 2) {
      return refuse(how, "pixel_stride is ", form.interleaved ? "1" : "1 or 2", " for ", form.name, ", is ",
                    how.pixel_stride);
    }
    if (how.pixel_stride != 1 && how.chroma_row_stride == Preprocessing::kDense) {
      return refuse(how, "pixel_stride ", how.pixel_stride, " needs a chroma_row_stride: rows have gaps");
    }
    PINNACE_TRY(check_stride(how, "row_stride", how.row_stride, how.width));
    return check_stride(how, "chroma_row_stride", how.chroma_row_stride,
                        form.interleaved ? 2 * half : how.pixel_stride * (half - 1) + 1);
  }
  if (how.chroma_row_stride != Preprocessing::kDense) {
    return refuse(how, "chroma_row_stride is of planes, not of ", form.name);
  }
  if (how.pixel_stride != 1) return refuse(how, "pixel_stride is of planes, not of ", form.name);
  if (how.input_layout == "nchw" && (how.row_stride != Preprocessing::kDense || how.cut_last_row)) {
    return refuse(how, "row_stride and cut_last_row are of input_layout nhwc, it is nchw");
  }
  return check_stride(how, "row_stride", how.row_stride, how.width * form.channels);
}

Status check_numbers(const Preprocessing& how) {
  if (!(how.scale > 0) || !(how.scale <= 1e30) || how.scale < 1e-30) {
    return refuse(how, "scale is a positive number, is ", how.scale);
  }
  const size_t channels = how.output == "grey" ? 1 : 3;
  const auto check_list = [&](std::string_view field, const std::vector<double>& list, bool positive) -> Status {
    if (list.size() > 1 && list.size() != channels) {
      return refuse(how, field, " has ", list.size(), " numbers, ", how.output, " has ", channels, " channels");
    }
    for (double x : list) {
      if (!std::isfinite(x) || std::fabs(x) > 1e30 || (positive && !(x >= 1e-30))) {
        return refuse(how, field, positive ? " is positive, is " : " is a finite number, is ", x);
      }
    }
    return {};
  };
  PINNACE_TRY(check_list("mean", how.mean, false));
  return check_list("std", how.std, true);
}

std::string text_of(const Preprocessing& how) {
  const auto side = [](int64_t n) { return n == Preprocessing::kOpen ? std::string("open") : str_cat(n); };
  const auto list = [](const std::vector<double>& numbers) {
    std::string text;
    for (double x : numbers) text += str_cat(text.empty() ? "" : ",", x);
    return text;
  };
  std::string text = str_cat("input ", how.input, ", ", side(how.height), "x", side(how.width));
  const auto say = [&](std::string_view what, const std::string& value) { text += str_cat("; ", what, " ", value); };
  if (how.input_layout != "nhwc") say("input_layout", how.input_layout);
  if (how.row_stride) say("row_stride", side(how.row_stride));
  if (how.chroma_row_stride) say("chroma_row_stride", side(how.chroma_row_stride));
  if (how.pixel_stride != 1) say("pixel_stride", str_cat(how.pixel_stride));
  if (how.cut_last_row) text += "; cut_last_row";
  if (how.input == "nv21" || how.input == "nv12" || how.input == "i420") say("matrix", how.matrix);
  if (!how.crop_box.empty()) say("crop_box", text_of(how.crop_box));
  if (!how.crop_size.empty()) say("crop_size", text_of(how.crop_size));
  if (how.crop_ratio != 1) say("crop_ratio", str_cat(how.crop_ratio));
  if (how.crop_to_aspect) text += "; crop_to_aspect";
  if (!how.size.empty()) {
    say("size", text_of(how.size));
    say("resize", how.resize == "bilinear" && how.antialias ? "bilinear, antialias" : how.resize);
  }
  if (!how.center_crop.empty()) say("center_crop", text_of(how.center_crop));
  say("output", how.output);
  say("scale", str_cat(how.scale));
  if (!how.mean.empty()) say("mean", list(how.mean));
  if (!how.std.empty()) say("std", list(how.std));
  say("output_layout", how.output_layout);
  return text;
}

}  // namespace

Result<PictureForm> picture_form(const Preprocessing& how) {
  if (how.name.empty()) return invalid("preprocessing: the name of its input is empty");
  std::vector<std::string_view> names;
  for (const PictureForm& f : kForms) names.push_back(f.name);
  PINNACE_TRY(one_of(how, "input", how.input, names));
  const PictureForm form =
      *std::find_if(std::begin(kForms), std::end(kForms), [&](const PictureForm& f) { return f.name == how.input; });
  constexpr std::string_view kLayouts[] = {"nhwc", "nchw"}, kOrders[] = {"rgb", "bgr", "grey"};
  PINNACE_TRY(one_of(how, "input_layout", how.input_layout, kLayouts));
  PINNACE_TRY(one_of(how, "output_layout", how.output_layout, kLayouts));
  PINNACE_TRY(one_of(how, "output", how.output, kOrders));
  constexpr std::string_view kNames[] = {kMatrices[0].name, kMatrices[1].name, kMatrices[2].name};
  PINNACE_TRY(one_of(how, "matrix", how.matrix, kNames));
  for (const int64_t side : {how.height, how.width}) {
    if (side != Preprocessing::kOpen) PINNACE_TRY(check_sides(how, "height and width", std::span(&side, 1)));
  }
  PINNACE_TRY(check_planes(how, form));
  PINNACE_TRY(check_crops(how));
  PINNACE_TRY(check_resize(how));
  PINNACE_TRY(check_numbers(how));
  return form;
}

bool cuts(const Preprocessing& how) {
  return !how.crop_box.empty() || !how.crop_size.empty() || how.crop_ratio != 1 || how.crop_to_aspect;
}

int64_t crop_units(const Preprocessing& how) {
  return std::llround(how.crop_ratio * static_cast<double>(kCropUnit));
}

int64_t least_side(const Preprocessing& how, size_t side) {
  if (!how.crop_box.empty()) return how.crop_box[side] + how.crop_box[side + 2];
  if (!how.crop_size.empty()) return how.crop_size[side];
  if (how.crop_ratio != 1) return (kCropUnit + crop_units(how) - 1) / crop_units(how);
  // The other side times the ratio, rounded down, is 1 or more.
  if (how.crop_to_aspect) return (how.size[side] + how.size[1 - side] - 1) / how.size[1 - side];
  return 1;
}

ChromaMatrix chroma_matrix(std::string_view name) {
  const Primaries& p =
      *std::find_if(std::begin(kMatrices), std::end(kMatrices), [&](const Primaries& m) { return m.name == name; });
  const double green = 1 - p.red - p.blue;
  const double luma = p.limited ? 255.0 / 219 : 1, chroma = p.limited ? 255.0 / 224 : 1;
  const auto units = [](double x) { return static_cast<int32_t>(std::lround(x * kChromaUnit)); };
  ChromaMatrix m{};
  m.luma = units(luma);
  m.v = {units(2 * (1 - p.red) * chroma), units(-2 * (1 - p.red) * p.red / green * chroma), 0};
  m.u = {0, units(-2 * (1 - p.blue) * p.blue / green * chroma), units(2 * (1 - p.blue) * chroma)};
  for (size_t i = 0; i < 3; ++i) m.offset[i] = -128 * (m.u[i] + m.v[i]) - (p.limited ? 16 * m.luma : 0);
  return m;
}

Result<std::string> describe(const Preprocessing& how) {
  return exception_boundary([&]() -> Result<std::string> {
    PINNACE_TRY(picture_form(how).status());
    return text_of(how);
  });
}

}  // namespace pinnace
