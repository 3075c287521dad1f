// Copies between strided arrays of any element type, by element size: what transpose, slice, expand, concat and split
// come down to. No allocation; work is split over the run's threads.
#pragma once

#include <algorithm>

#include "backends/cpu/kernel.h"

namespace pinnace::cpu {

/// Sizes and strides of at most kMost dimensions, without allocation.
struct Dims {
  static constexpr int kMost = 8;
  int rank = 0;
  int64_t size[kMost], stride[kMost];
  explicit Dims(const TensorType& type) : rank(type.rank()) {
    int64_t step = 1;
    for (int d = rank; d-- > 0; step *= size[d]) {
      size[d] = type.shape[static_cast<size_t>(d)].size;
      stride[d] = step;
    }
  }
};
/// True if elements of that type are whole bytes, and its dimensions fit Dims.
inline bool movable(const TensorType& type) {
  return type.rank() <= Dims::kMost && dtype_bits(type.dtype) >= 8;
}

/// Nested loops, innermost first: element (i0, i1, ...) of `to` at sum(i * to_step) is that of `from` at sum(i *
/// from_step). Steps are in elements and may be 0 or negative (from_step).
struct CopyLoops {
  static constexpr int kMost = Dims::kMost;
  int rank = 0;
  int64_t size[kMost], from_step[kMost], to_step[kMost];

  /// Adds the next outer loop; one that goes on where the last ends is merged with it, one of size 1 is nothing. False
  /// if there are too many.
  bool add(int64_t n, int64_t from, int64_t to) {
    if (n == 1) return true;
    if (rank > 0 && from == from_step[rank - 1] * size[rank - 1] && to == to_step[rank - 1] * size[rank - 1]) {
      size[rank - 1] *= n;
      return true;
    }
    if (rank == kMost) return false;
    size[rank] = n;
    from_step[rank] = from;
    to_step[rank++] = to;
    return true;
  }
};

/// Nested loops over operands that are broadcast to one shape, innermost first; a step of 0 repeats.
template <int OPERANDS>
struct BroadcastLoops {
  static constexpr int kMost = Dims::kMost;
  int rank = 0;
  int64_t size[kMost], step[OPERANDS][kMost];

  /// False if there are too many. Shapes are concrete and broadcast.
  bool set(const Shape* const (&shapes)[OPERANDS]) {
    size_t dims = 0;
    for (const Shape* s : shapes) dims = std::max(dims, s->size());
    int64_t stride[OPERANDS];
    std::fill_n(stride, OPERANDS, 1);
    for (size_t i = 0; i < dims; ++i) {
      int64_t n = 1, own[OPERANDS], next[OPERANDS];
      for (int k = 0; k < OPERANDS; ++k) {
        const Shape& s = *shapes[k];
        own[k] = i < s.size() ? s[s.size() - 1 - i].size : 1;
        if (own[k] != 1) n = own[k];
      }
      if (n == 1) continue;
      bool merges = rank > 0;
      for (int k = 0; k < OPERANDS; ++k) {
        next[k] = own[k] == 1 ? 0 : stride[k];
        stride[k] *= own[k];
        merges = merges && next[k] == step[k][rank - 1] * size[rank - 1];
      }
      if (merges) {
        size[rank - 1] *= n;
        continue;
      }
      if (rank == kMost) return false;
      size[rank] = n;
      for (int k = 0; k < OPERANDS; ++k) step[k][rank] = next[k];
      ++rank;
    }
    return true;
  }
};

/// f(from, to, count) for pieces of the innermost loops, from and to being the places of a piece's first element; a
/// piece and a task have about `chunk` elements.
template <class F>
void for_each_line(const KernelContext& context, const CopyLoops& loops, int64_t chunk, F f) {
  const int64_t run = loops.rank > 0 ? loops.size[0] : 1;
  int64_t lines = 1;
  for (int d = 1; d < loops.rank; ++d) lines *= loops.size[d];
  const int64_t from_step = loops.rank > 0 ? loops.from_step[0] : 0, to_step = loops.rank > 0 ? loops.to_step[0] : 0;
  const int64_t pieces = (run + chunk - 1) / chunk, together = std::max<int64_t>(1, chunk / run);
  context.parallel((lines + together - 1) / together * pieces, [&](int64_t t) {
    const int64_t first = t % pieces * chunk, count = std::min(chunk, run - first), begin = t / pieces * together;
    int64_t index[CopyLoops::kMost], rest = begin, from = first * from_step, to = first * to_step;
    for (int d = 1; d < loops.rank; ++d) {
      index[d] = rest % loops.size[d];
      rest /= loops.size[d];
      from += index[d] * loops.from_step[d];
      to += index[d] * loops.to_step[d];
    }
    for (int64_t line = begin; line < std::min(lines, begin + together); ++line) {
      f(from, to, count);
      for (int d = 1; d < loops.rank; ++d) {
        from += loops.from_step[d];
        to += loops.to_step[d];
        if (++index[d] < loops.size[d]) break;
        from -= index[d] * loops.from_step[d];
        to -= index[d] * loops.to_step[d];
        index[d] = 0;
      }
    }
  });
}

/// Elements of 1, 2, 4 or 8 bytes. from and to point at index 0 of every loop and do not overlap.
void strided_copy(const KernelContext& context, const CopyLoops& loops, const std::byte* from, std::byte* to,
                  size_t bytes);

/// to[j * to_row + i] = from[i * from_row + j] for i in [0, rows), j in [0, columns).
void transpose_floats(const float* from, ptrdiff_t from_row, float* to, ptrdiff_t to_row, int64_t rows,
                      int64_t columns);
void transpose_bytes(const uint8_t* from, ptrdiff_t from_row, uint8_t* to, ptrdiff_t to_row, int64_t rows,
                     int64_t columns);

}  // namespace pinnace::cpu
