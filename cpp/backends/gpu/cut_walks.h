// What the files of cuts share: windows of bindings, words of push constants, and the families that have files of their
// own. Numbers of words are places in a kernel's push constants.
#pragma once

#include <algorithm>
#include <cstring>
#include <optional>

#include "backends/gpu/cuts.h"

namespace pinnace::gpu::cut {

inline int64_t get(const Step& s, size_t word) {
  int32_t value;
  std::memcpy(&value, s.push.data() + 4 * word, 4);
  return value;
}
inline void put(Step& s, size_t word, int64_t value) {
  const auto narrow = static_cast<int32_t>(value);
  std::memcpy(s.push.data() + 4 * word, &narrow, 4);
}

/// Bytes [first, first + bytes) of what binding b saw.
inline void narrow(Step& s, size_t b, int64_t first, int64_t bytes) {
  Extent& w = s.windows[b];
  const size_t from = std::min(w.bytes, static_cast<size_t>(first));
  w.offset += from;
  w.bytes = std::min(w.bytes - from, static_cast<size_t>(bytes));
}

/// Binding b becomes a copy of the strip, of which `from` is counted from where its window begins.
inline void strip(Part& p, size_t b, Strip of) {
  of.from += static_cast<int64_t>(p.windows[b].offset);
  p.windows[b].bytes = static_cast<size_t>(of.count() * of.bytes);
  p.views[b].strip = of;
}
/// The same of `slices` that lie `apart`: `run` bytes of each, from `from` on.
inline void strip(Part& p, size_t b, int64_t from, int64_t slices, int64_t apart, int64_t run) {
  const int64_t bytes = (from | apart | run) % 4 == 0 ? 4 : 2;
  strip(p, b, {from, bytes, {1, 1, 1, 1, slices, run / bytes}, {0, 0, 0, 0, apart, bytes}});
}

/// What units take of a binding: unit i begins at i * step and takes `reach` bytes; of several slices that lie `apart`
/// the same of each.
struct Walk {
  int64_t step = 0, reach = 0, slices = 1, apart = 0;
};
inline constexpr Walk kWhole{};
inline constexpr Walk kUnread{0, 16};  ///< something must be bound
constexpr Walk run(int64_t bytes) {
  return {bytes, bytes};
}
/// A column of `slices` rows.
constexpr Walk column(int64_t bytes, int64_t slices, int64_t apart) {
  return {bytes, bytes, slices, apart};
}

class Cuts {
 public:
  explicit Cuts(const Step& step) : step_(step), s_(step.kernel.f16 ? 2 : 4) {}

  const Step& step() const { return step_; }
  int64_t word(size_t k) const { return get(step_, k); }
  int64_t spec(size_t k) const { return step_.kernel.spec[k]; }
  int64_t element() const { return s_; }     ///< bytes of an element in the storage type
  int64_t vector() const { return 4 * s_; }  ///< and of four
  int64_t groups(size_t d) const { return step_.groups[d]; }

  /// walks: one per binding. set: words and groups of a part.
  void add(int64_t units, std::vector<Walk> walks, std::function<void(Step&, int64_t first, int64_t count)> set) {
    if (units < 2) return;
    const bool copies = std::any_of(walks.begin(), walks.end(), [](const Walk& w) { return w.slices > 1; });
    all.push_back({units,
                   [walks = std::move(walks), set = std::move(set)](Part& p, int64_t first, int64_t count) {
                     for (size_t b = 0; b < walks.size(); ++b) {
                       const Walk& w = walks[b];
                       const int64_t bytes = (count - 1) * w.step + w.reach;
                       if (w.slices > 1) {
                         strip(p, b, first * w.step, w.slices, w.apart, bytes);
                       } else if (w.reach) {
                         narrow(p, b, first * w.step, bytes);
                         p.views[b].own = w.step == w.reach;
                       }
                     }
                     set(p, first, count);
                   },
                   copies});
  }

  /// Parts that are made of copies.
  void add_strips(int64_t units, std::function<void(Part&, int64_t first, int64_t count)> take) {
    if (units > 1) all.push_back({units, std::move(take), true});
  }

  std::vector<Cut> all;

 private:
  const Step& step_;
  int64_t s_;
};

/// Sets a count and the groups of a line of 64 invocations each.
inline void line(Step& s, size_t word, int64_t count) {
  put(s, word, count);
  s.groups = line_groups(count, 64);
}
inline void planes_in_z(Step& s, int64_t planes) {
  s.groups[2] = static_cast<uint32_t>(planes);
}

/// A window that begins with an element: it begins at or before it, where windows may, and the rest goes to a word.
inline void begin_at(Step& s, size_t b, size_t word, int64_t element, int64_t elements, int64_t bytes) {
  constexpr int64_t kLargestAlignment = 256;
  const int64_t from = element * bytes / kLargestAlignment * kLargestAlignment, rest = element - from / bytes;
  narrow(s, b, from, (rest + elements) * bytes);
  put(s, word, rest);
}

// ---- cuts_strips.cc

/// One dimension of windows and the words that say where it is; end_word: of where the padded input ends, 0 for none.
struct Line {
  int64_t in = 1, out = 1, taps = 1, stride = 1, pad = 0, dilation = 1;
  size_t in_word = 0, out_word = 0, pad_word = 0, end_word = 0;
  bool transposed = false;  ///< of the convolution whose transpose it is
};
/// Binding 0 is [planes_in, in...], results are [planes_out, out...], of elements of so many bytes.
struct Windows {
  int64_t bytes, planes_in, planes_out;
  std::array<Line, 3> lines;
  std::vector<size_t> results;
  std::optional<size_t> unread{};  ///< a binding that stands for none
};
/// Along every dimension. set: groups of a part of which dimension d has n outputs.
void window_strips(Cuts& c, const Windows& v, const std::function<void(Step&, size_t d, int64_t n)>& set);
/// d: 1 for rows, 2 for columns, of kernels whose words begin with H, W, OH, OW.
Line image_line(const Cuts& c, size_t d, int64_t taps, int64_t stride, size_t pad_word, size_t dilation_word,
                bool transposed = false);

/// A binding of [slices, inner]; slices of 0: it is not read or written.
struct Lane {
  size_t binding;
  int64_t slices, bytes;
};
/// Along `inner`, of which a part has n; set: words and groups.
void lane_strips(Cuts& c, int64_t inner, const std::vector<Lane>& all, std::function<void(Step&, int64_t n)> set);

// ---- cuts_images.cc

/// Planes of an image that are made one by one: H, W, OH, OW; the planes are groups along z. `blocks`: the word with
/// the number of planes of an image, where the last one differs.
void planes(Cuts& c, int64_t bytes, size_t result, std::optional<size_t> blocks);
/// One filter per channel: H, W, OH, OW, C4, then in floats the number of planes; constants of a plane in bytes.
void depthwise(Cuts& c, int64_t bytes, int64_t weights, int64_t numbers, int64_t count, bool floats);
void conv_image(Cuts& c, int64_t blocks);
void bytes_conv(Cuts& c);
void conv_pointwise(Cuts& c);
/// One output per invocation: images, and channels of outputs where all of them see all of the input.
void conv_rows(Cuts& c, int64_t bytes, bool transposed, bool floats);
void pool(Cuts& c);

// ---- cuts_products.cc

/// M, N, K, strides and offsets of matrices as gemm.comp has them. b by columns: `packed` of four, else single ones;
/// numbers: bytes that four columns have besides, 0 for none. y is the last binding.
struct ProductForm {
  int64_t bytes;
  bool packed, bias;
  int64_t packed_bytes, numbers;
  bool split;
};
void product(Cuts& c, const ProductForm& v);
/// The same of gemm_words.comp, with its zero points.
void product_of_words(Cuts& c);
/// Batches, heads that share keys, then queries by sixteen.
void attention(Cuts& c);

}  // namespace pinnace::gpu::cut
