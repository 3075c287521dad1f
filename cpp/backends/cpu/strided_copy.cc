// Strided copies. Three kinds: runs of neighbours on both sides; planes whose neighbours lie along different loops on
// either side, which go in small squares; all else, element by element.
#include "backends/cpu/strided_copy.h"

#include <algorithm>
#include <cstring>

namespace pinnace {
namespace {

using F4 = float __attribute__((vector_size(16)));
F4 load(const float* p) {
  F4 v;
  std::memcpy(&v, p, sizeof v);
  return v;
}
void store(float* p, F4 v) {
  std::memcpy(p, &v, sizeof v);
}

/// 4 x 4 by moving registers.
inline void square(const float* from, ptrdiff_t from_row, float* to, ptrdiff_t to_row) {
  const F4 a = load(from), b = load(from + from_row), c = load(from + 2 * from_row), d = load(from + 3 * from_row);
  const F4 ab0 = __builtin_shufflevector(a, b, 0, 4, 1, 5), ab1 = __builtin_shufflevector(a, b, 2, 6, 3, 7);
  const F4 cd0 = __builtin_shufflevector(c, d, 0, 4, 1, 5), cd1 = __builtin_shufflevector(c, d, 2, 6, 3, 7);
  store(to, __builtin_shufflevector(ab0, cd0, 0, 1, 4, 5));
  store(to + to_row, __builtin_shufflevector(ab0, cd0, 2, 3, 6, 7));
  store(to + 2 * to_row, __builtin_shufflevector(ab1, cd1, 0, 1, 4, 5));
  store(to + 3 * to_row, __builtin_shufflevector(ab1, cd1, 2, 3, 6, 7));
}

template <class T>
void transpose(const T* from, ptrdiff_t from_row, T* to, ptrdiff_t to_row, int64_t rows, int64_t columns) {
  constexpr int64_t kBlock = 16;  // lines of both sides stay in the nearest cache
  for (int64_t i = 0; i < rows; i += kBlock) {
    const int64_t end = std::min(rows, i + kBlock);
    for (int64_t j = 0; j < columns; ++j) {
      for (int64_t k = i; k < end; ++k) to[j * to_row + k] = from[k * from_row + j];
    }
  }
}

/// One innermost loop that is not a run on both sides.
template <class T>
void line(const T* from, int64_t from_step, T* to, int64_t to_step, int64_t count) {
  if (to_step == 1 && from_step == 0) {
    std::fill_n(to, count, *from);
  } else {
    for (int64_t i = 0; i < count; ++i) to[i * to_step] = from[i * from_step];
  }
}

constexpr int64_t kChunk = 16384;  ///< elements of a task

/// The loops beside `skip`, as one number.
struct Outer {
  const CopyLoops& loops;
  uint32_t skip;
  int64_t count() const {
    int64_t n = 1;
    for (int d = 0; d < loops.rank; ++d) {
      if (!(skip >> d & 1)) n *= loops.size[d];
    }
    return n;
  }
  void at(int64_t i, int64_t* from, int64_t* to) const {
    *from = *to = 0;
    for (int d = 0; d < loops.rank; ++d) {
      if (skip >> d & 1) continue;
      *from += i % loops.size[d] * loops.from_step[d];
      *to += i % loops.size[d] * loops.to_step[d];
      i /= loops.size[d];
    }
  }
};

template <class T>
void copy(const KernelContext& context, const CopyLoops& loops, const T* from, T* to) {
  if (loops.rank == 0) {
    *to = *from;
    return;
  }
  const int64_t run = loops.size[0];
  // Neighbours in `from` lie along another loop: squares of the two.
  int along = 0;
  if (loops.to_step[0] == 1 && loops.from_step[0] != 1) {
    for (int d = 1; d < loops.rank; ++d) {
      if (loops.from_step[d] == 1) along = d;
    }
  }
  if (along > 0 && loops.from_step[0] > 0) {
    const Outer outer{loops, 1u | 1u << along};
    const int64_t columns = loops.size[along], planes = outer.count();
    // A task is some columns of `from`, whole rows of `to`: 64 columns are whole lines.
    const int64_t each = std::clamp<int64_t>(kChunk / run / 64 * 64, 64, std::max<int64_t>(64, columns));
    const int64_t pieces = (columns + each - 1) / each;
    const int64_t together = std::max<int64_t>(1, kChunk / (run * std::min(columns, each)));
    context.parallel((planes * pieces + together - 1) / together, [&](int64_t t) {
      for (int64_t u = t * together; u < std::min(planes * pieces, (t + 1) * together); ++u) {
        int64_t from_at, to_at;
        outer.at(u / pieces, &from_at, &to_at);
        const int64_t first = u % pieces * each, count = std::min(each, columns - first);
        const T* x = from + from_at + first;
        T* y = to + to_at + first * loops.to_step[along];
        if constexpr (sizeof(T) == 4) {
          transpose_floats(reinterpret_cast<const float*>(x), loops.from_step[0], reinterpret_cast<float*>(y),
                           loops.to_step[along], run, count);
        } else {
          transpose(x, loops.from_step[0], y, loops.to_step[along], run, count);
        }
      }
    });
    return;
  }
  const bool dense = loops.from_step[0] == 1 && loops.to_step[0] == 1;
  const Outer outer{loops, 1u};
  const int64_t lines = outer.count(), pieces = (run + kChunk - 1) / kChunk;
  const int64_t together = std::max<int64_t>(1, kChunk / run), groups = (lines + together - 1) / together;
  context.parallel(groups * pieces, [&](int64_t t) {
    const int64_t first = t % pieces * kChunk, count = std::min(kChunk, run - first);
    for (int64_t u = t / pieces * together; u < std::min(lines, (t / pieces + 1) * together); ++u) {
      int64_t from_at, to_at;
      outer.at(u, &from_at, &to_at);
      const T* x = from + from_at + first * loops.from_step[0];
      T* y = to + to_at + first * loops.to_step[0];
      if (dense) {
        std::memcpy(y, x, sizeof(T) * static_cast<size_t>(count));
      } else {
        line(x, loops.from_step[0], y, loops.to_step[0], count);
      }
    }
  });
}

}  // namespace

void transpose_floats(const float* from, ptrdiff_t from_row, float* to, ptrdiff_t to_row, int64_t rows,
                      int64_t columns) {
  constexpr int64_t kBlock = 16;  // rows whose lines are written in full
  for (int64_t first = 0; first < rows; first += kBlock) {
    const int64_t last = std::min(rows, first + kBlock);
    int64_t j = 0;
    for (; j + 4 <= columns; j += 4) {
      int64_t i = first;
      for (; i + 4 <= last; i += 4) square(from + i * from_row + j, from_row, to + j * to_row + i, to_row);
      for (; i < last; ++i) {
        for (int64_t k = j; k < j + 4; ++k) to[k * to_row + i] = from[i * from_row + k];
      }
    }
    for (; j < columns; ++j) {
      for (int64_t i = first; i < last; ++i) to[j * to_row + i] = from[i * from_row + j];
    }
  }
}

void strided_copy(const KernelContext& context, const CopyLoops& loops, const std::byte* from, std::byte* to,
                  size_t bytes) {
  switch (bytes) {
    case 1:
      return copy(context, loops, reinterpret_cast<const uint8_t*>(from), reinterpret_cast<uint8_t*>(to));
    case 2:
      return copy(context, loops, reinterpret_cast<const uint16_t*>(from), reinterpret_cast<uint16_t*>(to));
    case 4:
      return copy(context, loops, reinterpret_cast<const uint32_t*>(from), reinterpret_cast<uint32_t*>(to));
    default:
      return copy(context, loops, reinterpret_cast<const uint64_t*>(from), reinterpret_cast<uint64_t*>(to));
  }
}

}  // namespace pinnace
