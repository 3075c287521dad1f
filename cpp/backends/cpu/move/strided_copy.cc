// Strided copies. Three kinds: runs of neighbours on both sides; planes whose neighbours lie along different loops on
// either side, which go in small squares; all else, element by element.
#include "backends/cpu/move/strided_copy.h"

#include <algorithm>
#include <cstring>

namespace pinnace::cpu {
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

/// x[0], y[0], x[1], y[1], ... of two rows, and the same backwards.
void zip(const float* x, const float* y, float* to, int64_t count) {
  int64_t i = 0;
  for (; i + 4 <= count; i += 4) {
    const F4 a = load(x + i), b = load(y + i);
    store(to + 2 * i, __builtin_shufflevector(a, b, 0, 4, 1, 5));
    store(to + 2 * i + 4, __builtin_shufflevector(a, b, 2, 6, 3, 7));
  }
  for (; i < count; ++i) to[2 * i] = x[i], to[2 * i + 1] = y[i];
}
void unzip(const float* from, float* x, float* y, int64_t count) {
  int64_t i = 0;
  for (; i + 4 <= count; i += 4) {
    const F4 a = load(from + 2 * i), b = load(from + 2 * i + 4);
    store(x + i, __builtin_shufflevector(a, b, 0, 2, 4, 6));
    store(y + i, __builtin_shufflevector(a, b, 1, 3, 5, 7));
  }
  for (; i < count; ++i) x[i] = from[2 * i], y[i] = from[2 * i + 1];
}

/// Elements of a plane whose rows lie so far apart that nothing but these instructions fetches the next ones: 1.8 ms
/// became 1.25 for 768 x 3072; below, they cost more than they save.
constexpr int64_t kFar = int64_t{1} << 20;

template <bool FAR>
void transpose_blocks(const float* from, ptrdiff_t from_row, float* to, ptrdiff_t to_row, int64_t rows,
                      int64_t columns) {
  if (rows == 2 && to_row == 2) return zip(from, from + from_row, to, columns);
  if (columns == 2 && from_row == 2) return unzip(from, to, to + to_row, rows);
  constexpr int64_t kBlock = 16;  // rows whose lines are written in full
  for (int64_t first = 0; first < rows; first += kBlock) {
    const int64_t last = std::min(rows, first + kBlock);
    int64_t j = 0;
    for (; j + 4 <= columns; j += 4) {
      if (FAR && last + kBlock <= rows) {
        for (int64_t i = last; j % 16 == 0 && i < last + kBlock; ++i) __builtin_prefetch(from + i * from_row + j);
        for (int64_t k = j; k < j + 4; ++k) __builtin_prefetch(to + k * to_row + last, 1);
      }
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

/// 16 x 16 bytes: four times, rows i and i + 8 by turns become rows 2 i and 2 i + 1.
inline void square(const uint8_t* from, ptrdiff_t from_row, uint8_t* to, ptrdiff_t to_row) {
  using B16 = uint8_t __attribute__((vector_size(16)));
  B16 rows[16];
  for (int i = 0; i < 16; ++i) std::memcpy(&rows[i], from + i * from_row, 16);
#pragma GCC unroll 4
  for (int round = 0; round < 4; ++round) {
    B16 next[16];
#pragma GCC unroll 8
    for (int i = 0; i < 8; ++i) {
      const B16 a = rows[i], b = rows[i + 8];
      next[2 * i] = __builtin_shufflevector(a, b, 0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23);
      next[2 * i + 1] = __builtin_shufflevector(a, b, 8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31);
    }
    std::memcpy(rows, next, sizeof rows);
  }
  for (int i = 0; i < 16; ++i) std::memcpy(to + i * to_row, &rows[i], 16);
}

void transpose(const uint8_t* from, ptrdiff_t from_row, uint8_t* to, ptrdiff_t to_row, int64_t rows, int64_t columns) {
  for (int64_t i = 0; i < rows; i += 16) {
    const int64_t end = std::min(rows, i + 16);
    int64_t j = 0;
    for (; j + 16 <= columns && i + 16 <= rows; j += 16)
      square(from + i * from_row + j, from_row, to + j * to_row + i, to_row);
    for (; j < columns; ++j) {
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
    [[maybe_unused]] const bool far = run * columns >= kFar;
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
          const auto* floats = reinterpret_cast<const float*>(x);
          auto* place = reinterpret_cast<float*>(y);
          const ptrdiff_t from_row = loops.from_step[0], to_row = loops.to_step[along];
          far ? transpose_blocks<true>(floats, from_row, place, to_row, run, count)
              : transpose_blocks<false>(floats, from_row, place, to_row, run, count);
        } else {
          transpose(x, loops.from_step[0], y, loops.to_step[along], run, count);
        }
      }
    });
    return;
  }
  const bool dense = loops.from_step[0] == 1 && loops.to_step[0] == 1;
  for_each_line(context, loops, kChunk, [&](int64_t from_at, int64_t to_at, int64_t count) {
    if (dense) {
      std::memcpy(to + to_at, from + from_at, sizeof(T) * static_cast<size_t>(count));
    } else {
      line(from + from_at, loops.from_step[0], to + to_at, loops.to_step[0], count);
    }
  });
}

}  // namespace

void transpose_floats(const float* from, ptrdiff_t from_row, float* to, ptrdiff_t to_row, int64_t rows,
                      int64_t columns) {
  transpose_blocks<false>(from, from_row, to, to_row, rows, columns);
}

void transpose_bytes(const uint8_t* from, ptrdiff_t from_row, uint8_t* to, ptrdiff_t to_row, int64_t rows,
                     int64_t columns) {
  transpose(from, from_row, to, to_row, rows, columns);
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

}  // namespace pinnace::cpu
