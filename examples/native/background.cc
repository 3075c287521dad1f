// Blurs the background behind a person, frame by frame: what a camera's callback does with a segmentation network.
// background net.pnc frames.bin HEIGHT WIDTH LUMA_STRIDE CHROMA_STRIDE made.bin
//
// The file holds NV21 frames as a camera's buffer has them: the luma plane, then the interleaved V and U, each row with
// its stride. The network's file was converted with the work on such a picture in its graph:
//   pn.load(net, x, preprocess=pn.preprocess((96, 96), mean, std, "nv21", picture=(480, 640), row_stride="open",
//                                            chroma_row_stride="open")).build().save("net.pnc")
// so that the two planes enter as they lie in memory, and a mask [1, 1, h, w] of 0 to 1 comes back. Written are RGB
// frames. After the first frame nothing is allocated, which this program counts and says.
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <vector>

#include <pinnace/pinnace.h>

// count_allocations.cc
size_t allocations();
bool allocations_are_counted();

namespace {

int fail(const pinnace::Status& status) {
  std::fprintf(stderr, "%s\n", status.message().c_str());
  return 1;
}

/// A picture as android.media.Image or AImage give it.
struct Frame {
  const uint8_t* luma;
  const uint8_t* chroma;  ///< V, U, V, U, ...
  int64_t luma_stride, chroma_stride;
};

uint8_t to_byte(float x) {
  return static_cast<uint8_t>(std::clamp(x + 0.5f, 0.0f, 255.0f));
}

class Background {
 public:
  Background(pinnace::Session session, int64_t height, int64_t width)
      : session_(std::move(session)), height_(height), width_(width) {
    const auto pixels = static_cast<size_t>(height * width);
    picture_.resize(pixels * 3);
    across_.resize(pixels * 3);
    blurred_.resize(pixels * 3);
    made_.resize(pixels * 3);
    inputs_.resize(2);
    for (pinnace::Tensor& input : inputs_) {
      input.type.dtype = pinnace::DType::kU8;
      input.type.shape.resize(2);
    }
    outputs_.resize(1);
    outputs_[0].type = session_.outputs()[0].type;
    mask_.resize(static_cast<size_t>(outputs_[0].type.elements()));
    outputs_[0].memory = {mask_.data(), mask_.size() * sizeof(float)};
  }

  /// The callback: borrows the frame until it returns.
  pinnace::Status on_frame(const Frame& frame) {
    enter(inputs_[0], frame.luma, height_, frame.luma_stride);
    enter(inputs_[1], frame.chroma, (height_ + 1) / 2, frame.chroma_stride);
    if (pinnace::Status status = session_.run(inputs_, outputs_); !status.ok()) return status;
    to_rgb(frame);
    blur();
    blend();
    return {};
  }

  const std::vector<uint8_t>& made() const { return made_; }

 private:
  /// The plane as it lies in memory; its stride is a size of the input.
  static void enter(pinnace::Tensor& input, const uint8_t* bytes, int64_t rows, int64_t stride) {
    input.type.shape[0] = rows;
    input.type.shape[1] = stride;
    input.memory = {const_cast<uint8_t*>(bytes), static_cast<size_t>(rows * stride)};
  }

  /// For the eye, by the full-range numbers of JPEG; the network has its own in the graph.
  void to_rgb(const Frame& f) {
    uint8_t* to = picture_.data();
    for (int64_t row = 0; row < height_; ++row) {
      const uint8_t *luma = f.luma + row * f.luma_stride, *chroma = f.chroma + row / 2 * f.chroma_stride;
      for (int64_t column = 0; column < width_; ++column, to += 3) {
        const float y = luma[column], v = chroma[column / 2 * 2] - 128.0f, u = chroma[column / 2 * 2 + 1] - 128.0f;
        to[0] = to_byte(y + 1.402f * v);
        to[1] = to_byte(y - 0.344f * u - 0.714f * v);
        to[2] = to_byte(y + 1.772f * u);
      }
    }
  }

  /// The mean of each row's and then each column's neighbours, by running sums.
  void blur() {
    for (int64_t row = 0; row < height_; ++row) {
      const int64_t at = row * width_ * 3;
      mean(picture_.data() + at, across_.data() + at, width_, 3);
    }
    for (int64_t column = 0; column < width_; ++column) {
      mean(across_.data() + column * 3, blurred_.data() + column * 3, height_, width_ * 3);
    }
  }

  static void mean(const uint8_t* from, uint8_t* to, int64_t count, int64_t step) {
    constexpr int64_t kRadius = 6;
    for (int64_t c = 0; c < 3; ++c) {
      int32_t sum = 0;
      const auto at = [&](int64_t i) { return from[std::clamp<int64_t>(i, 0, count - 1) * step + c]; };
      for (int64_t i = -kRadius; i <= kRadius; ++i) sum += at(i);
      for (int64_t i = 0; i < count; ++i) {
        to[i * step + c] = static_cast<uint8_t>(sum / (2 * kRadius + 1));
        sum += at(i + kRadius + 1) - at(i - kRadius);
      }
    }
  }

  /// The picture where the mask is 1, the blurred one where it is 0. The mask has the size that the network gives it.
  void blend() {
    const pinnace::Shape& shape = outputs_[0].type.shape;
    const int64_t mask_height = shape[2].size, mask_width = shape[3].size;
    for (int64_t row = 0; row < height_; ++row) {
      const float* line = mask_.data() + row * mask_height / height_ * mask_width;
      for (int64_t column = 0; column < width_; ++column) {
        const float person = line[column * mask_width / width_];
        const int64_t at = (row * width_ + column) * 3;
        for (int64_t c = at; c < at + 3; ++c) {
          const auto i = static_cast<size_t>(c);
          made_[i] = to_byte(static_cast<float>(picture_[i]) * person + static_cast<float>(blurred_[i]) * (1 - person));
        }
      }
    }
  }

  pinnace::Session session_;
  const int64_t height_, width_;
  std::vector<pinnace::Tensor> inputs_, outputs_;
  std::vector<float> mask_;
  std::vector<uint8_t> picture_, across_, blurred_, made_;
};

}  // namespace

int main(int argc, char** argv) {
  if (argc != 8) {
    std::fprintf(stderr, "usage: background net.pnc frames.bin HEIGHT WIDTH LUMA_STRIDE CHROMA_STRIDE made.bin\n");
    return 2;
  }
  const int64_t height = std::atoll(argv[3]), width = std::atoll(argv[4]);
  const int64_t luma_stride = std::atoll(argv[5]), chroma_stride = std::atoll(argv[6]);
  if (height < 1 || width < 1 || luma_stride < width || chroma_stride < (width + 1) / 2 * 2) {
    std::fprintf(stderr, "strides are at least a row of the picture's bytes\n");
    return 2;
  }
  std::ifstream file(argv[2], std::ios::binary);
  const std::vector<char> bytes{std::istreambuf_iterator<char>(file), {}};
  const int64_t luma_bytes = height * luma_stride, frame_bytes = luma_bytes + (height + 1) / 2 * chroma_stride;

  auto program = pinnace::Program::open(argv[1]);
  if (!program) return fail(program.status());
  auto session = pinnace::Session::create(*program, {.target = "cpu", .threads = 2});
  if (!session) return fail(session.status());
  const auto outputs = session->outputs();
  const bool fits = session->inputs().size() == 2 && outputs.size() == 1 && outputs[0].type.rank() == 4 &&
                    outputs[0].type.concrete() && outputs[0].type.dtype == pinnace::DType::kF32;
  if (!fits) {
    std::fprintf(stderr, "%s: must take two planes and give a mask [1, 1, h, w]\n", argv[1]);
    return 1;
  }
  Background background(std::move(*session), height, width);
  std::ofstream made(argv[7], std::ios::binary);
  size_t frames = 0, first = 0, later = 0;
  for (int64_t at = 0; at + frame_bytes <= static_cast<int64_t>(bytes.size()); at += frame_bytes, ++frames) {
    const auto* luma = reinterpret_cast<const uint8_t*>(bytes.data()) + at;
    const size_t before = allocations();
    const pinnace::Status status = background.on_frame({luma, luma + luma_bytes, luma_stride, chroma_stride});
    if (!status.ok()) return fail(status);
    (frames ? later : first) += allocations() - before;
    made.write(reinterpret_cast<const char*>(background.made().data()),
               static_cast<std::streamsize>(background.made().size()));
  }
  std::printf("%zu frames", frames);
  if (allocations_are_counted()) std::printf("; allocations: %zu in the first, %zu in all others", first, later);
  std::printf("\n");
  return 0;
}
