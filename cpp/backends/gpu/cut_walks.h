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

/// Bytes [first, first + bytes) of what binding b saw. Whole blocks of 16: a kernel may load and store four elements.
inline void narrow(Step& s, size_t b, int64_t first, int64_t bytes) {
  Extent& w = s.windows[b];
  const size_t from = std::min(w.bytes, static_cast<size_t>(first));
  w.offset += from;
  w.bytes = std::min(w.bytes - from, (static_cast<size_t>(bytes) + 15) / 16 * 16);
}

/// What units take of a binding: unit i begins at i * step and takes `reach` bytes.
struct Walk {
  int64_t step = 0, reach = 0;
};
inline constexpr Walk kWhole{0, 0};
inline constexpr Walk kUnread{0, 16};  ///< something must be bound
constexpr Walk run(int64_t bytes) {
  return {bytes, bytes};
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
    all.push_back({units, [walks = std::move(walks), set = std::move(set)](Step& s, int64_t first, int64_t count) {
                     for (size_t b = 0; b < walks.size(); ++b) {
                       const Walk& w = walks[b];
                       if (w.reach) narrow(s, b, first * w.step, (count - 1) * w.step + w.reach);
                     }
                     set(s, first, count);
                   }});
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
void conv_rows(Cuts& c, int64_t bytes, int64_t taps, bool channels);

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
/// Batches, heads that share keys, then queries by sixteen.
void attention(Cuts& c);

}  // namespace pinnace::gpu::cut
