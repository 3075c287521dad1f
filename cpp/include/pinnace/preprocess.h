// What a model's input is made of, where that is a picture as a camera or a decoder gives it: Model::preprocessed()
// puts this work in front of a model, as nodes of its graph. Host library only.
//
//   Preprocessing camera{.input = "nv21", .height = 480, .width = 640, .size = {224, 224}, .mean = {0.485, 0.456,
//   0.406}}; Model whole = *model.preprocessed(camera);     // takes image.y and image.uv
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <pinnace/status.h>

#pragma GCC visibility push(default)
namespace pinnace {

/// The steps in the order in which they happen; each but the first may be left out. Up to the conversion all is bytes
/// and defined to the bit, see docs/preprocessing.md.
struct Preprocessing {
  /// Strides: no gaps between rows; open, which each run says by the size of its input.
  static constexpr int64_t kDense = 0, kOpen = -1;

  /// Name of the new input, and how those of a picture of several planes begin: "image", or "image.y" and "image.uv".
  std::string name = "image";

  /// What the bytes are: "rgb", "bgr", "rgba", "bgra", "grey"; or planes, with a colour for each 2 x 2 pixels: "nv21"
  /// (V before U), "nv12" (U before V), "i420".
  std::string input = "rgb";
  /// "nhwc": a pixel's bytes together; "nchw": a plane for each channel. Of a picture without planes.
  std::string input_layout = "nhwc";
  /// Of the picture in pixels; kOpen: each run says it.
  int64_t height = kOpen, width = kOpen;
  /// Bytes from one row to the next: of the pixels or of the luma plane, and of the chroma planes. Other than kDense
  /// only where the width is known; then the picture is an input [rows, stride], and only one picture enters.
  int64_t row_stride = kDense, chroma_row_stride = kDense;
  /// Of the planes of "i420": bytes from one number of a chroma plane to the next, 1 or 2.
  int64_t pixel_stride = 1;
  /// True: each plane enters as the bytes from its first to its last pixel, so that nothing is read behind the last
  /// row; that is how android.media.Image.Plane has them. Height and width have to be known. Open strides follow from
  /// the number of bytes.
  bool cut_last_row = false;
  /// From luma and chroma to RGB: "bt601_full" (JPEG's, what Android's cameras give), "bt601" or "bt709", whose luma is
  /// 16 to 235. ITU-R BT.601-7, BT.709-6; JFIF.
  std::string matrix = "bt601_full";

  /// At most one of these four. {top, left, height, width}; {height, width} of a box in the middle; the part of each
  /// side that such a box has, rounded to a millionth; or the largest box in the middle with the sides' ratio of
  /// `size`.
  std::vector<int64_t> crop_box = {}, crop_size = {};
  double crop_ratio = 1;
  bool crop_to_aspect = false;

  /// {height, width}, or {the shorter side}, to which the other keeps its ratio, rounded down. Empty: not resized.
  std::vector<int64_t> size = {};
  /// "bilinear", "nearest" (the place rounded down), "nearest_exact" (the nearest middle of a pixel), as
  /// torch.nn.functional.interpolate has them.
  std::string resize = "bilinear";
  /// Where bilinear shrinks, its filter widens to all that a pixel stands for.
  bool antialias = true;
  /// {height, width} of a box in the middle that is cut out of what was resized.
  std::vector<int64_t> center_crop = {};

  /// "rgb", "bgr" or "grey". Of a grey picture, three equal channels or one; of another, grey is its luma by BT.601.
  std::string output = "rgb";
  /// (byte * scale - mean) / std; of one number or one for each channel, in the order of `output`; empty: 0 and 1.
  double scale = 1.0 / 255;
  std::vector<double> mean = {}, std = {};
  /// "nchw" or "nhwc": of the model's input.
  std::string output_layout = "nchw";
};

/// All that it says, on one line. kInvalidArgument: a field has no meaning, or two contradict each other; names the
/// field, the rule and the value. Model::preprocessed() checks the same first.
Result<std::string> describe(const Preprocessing& how);

}  // namespace pinnace
#pragma GCC visibility pop
