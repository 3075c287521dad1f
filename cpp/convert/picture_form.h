// What a Preprocessing says, checked: formats as data, and the arithmetic from luma and chroma to RGB.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include <pinnace/preprocess.h>

#include "base/status.h"

namespace pinnace {

/// A way in which a picture enters. Of planes, `channels` is what becomes of them.
struct PictureForm {
  std::string_view name;
  int channels;
  std::string_view order;  ///< "rgb", "bgr" or "grey", then "a" behind it for what is dropped
  bool planes;
  bool interleaved;  ///< chroma in one plane
  bool v_first;
};

/// Fields that contradict each other or have no meaning are kInvalidArgument naming field, rule and value. Whether the
/// model fits is not looked at.
Result<PictureForm> picture_form(const Preprocessing& how);

/// Whether a box is cut out before a resize.
bool cuts(const Preprocessing& how);
/// So many pixels a picture must have in height (0) or width (1), for what is cut out of it.
int64_t least_side(const Preprocessing& how, size_t side);
/// crop_ratio, of which so many are 1.
inline constexpr int64_t kCropUnit = 1'000'000;
int64_t crop_units(const Preprocessing& how);

/// R, G, B = luma * Y + (u, v) * (U, V) + offset of bytes Y, U, V, in units of 1 / 16384, which are whole numbers: so
/// that every sum is exact in float32, in any order and with or without fused multiply-add.
struct ChromaMatrix {
  int32_t luma;
  std::array<int32_t, 3> u, v, offset;
};
inline constexpr int32_t kChromaUnit = 16384;
/// From a name that picture_form() has accepted.
ChromaMatrix chroma_matrix(std::string_view name);
/// Weights of R, G and B in grey, of BT.601, likewise; their sum is one.
inline constexpr std::array<int32_t, 3> kGreyWeights = {4899, 9617, 1868};

}  // namespace pinnace
