// top_k of float32. An element is one number of 64 bits, its order above its index, so that the first k are the k least
// of numbers that all differ. Few are kept from a pass over the line; only those are sorted, many by their digits.
#include <algorithm>
#include <cstring>

#include "backends/cpu/kernel.h"
#include "backends/cpu/pace.h"
#include "base/sort.h"
#include "ops/move.h"

namespace pinnace::cpu {
namespace {

/// So few are kept in order all the time; from kByDigits on, digits sort faster than comparisons do.
constexpr int64_t kFew = 32, kByDigits = 256;

/// Bits that ascend as elements come: 0 and -0 are equal, and so is one NaN to another, the largest of all.
inline uint32_t order_of(float x, bool largest) {
  uint32_t bits;
  x += 0.0f;  // -0 becomes 0
  std::memcpy(&bits, &x, sizeof bits);
  const uint32_t ascending = x != x ? UINT32_MAX : bits & 0x80000000u ? ~bits : bits | 0x80000000u;
  return largest ? ~ascending : ascending;
}
inline uint64_t entry_of(float x, int64_t index, bool largest) {
  return uint64_t{order_of(x, largest)} << 32 | static_cast<uint64_t>(index);
}

/// A thread's memory for lines of n elements.
struct LineScratch {
  uint64_t *entries, *other;
  float* line;
  static int64_t bytes(int64_t n) { return static_cast<int64_t>(aligned_size(static_cast<size_t>(n) * 20)); }
  LineScratch(std::byte* at, int64_t n)
      : entries(reinterpret_cast<uint64_t*>(at)), other(entries + n), line(reinterpret_cast<float*>(other + n)) {}
};

/// Entries in ascending order of their upper halves, equal ones as they were; gives back which memory they are in.
/// Null: the run is to end.
uint64_t* sort_by_digits(uint64_t* entries, uint64_t* other, int64_t count) {
  constexpr int kDigits = 4;
  uint32_t counts[kDigits][256] = {};
  Pace pace(1);
  for (int64_t i = 0; i < count; ++i) {
    if (pace.stops()) return nullptr;
    for (int d = 0; d < kDigits; ++d) ++counts[d][entries[i] >> (32 + 8 * d) & 255];
  }
  for (int d = 0; d < kDigits; ++d) {
    uint32_t* places = counts[d];
    if (places[entries[0] >> (32 + 8 * d) & 255] == count) continue;  // the same digit everywhere
    uint32_t place = 0;
    for (int v = 0; v < 256; ++v) place += std::exchange(places[v], place);
    for (int64_t i = 0; i < count; ++i) {
      if (pace.stops()) return nullptr;
      other[places[entries[i] >> (32 + 8 * d) & 255]++] = entries[i];
    }
    std::swap(entries, other);
  }
  return entries;
}

/// True if one of 16 elements may come before `bound`.
bool some_before(const float* x, float bound, bool largest) {
  using Four = float __attribute__((vector_size(16)));
  using Ints = int32_t __attribute__((vector_size(16)));
  const Four all = {bound, bound, bound, bound};
  Ints after = {-1, -1, -1, -1};
  for (int64_t j = 0; j < 16; j += 4) {
    Four v;
    std::memcpy(&v, x + j, sizeof v);
    after &= largest ? v <= all : v >= all;  // false for NaN
  }
  return (after[0] & after[1] & after[2] & after[3]) == 0;
}

/// f(entry) for elements of x from `first` on of which bound() does not tell that they come too late.
template <class Bound, class F>
void for_candidates(const float* x, int64_t first, int64_t n, bool largest, Bound bound, F f) {
  for (int64_t i = first; i < n;) {
    const int64_t end = std::min(n, i + 16);
    if (end == i + 16 && !some_before(x + i, bound(), largest)) {
      i = end;
      continue;
    }
    for (; i < end; ++i) f(entry_of(x[i], i, largest));
  }
}

/// The k first entries of the line in order, for few: each is put in its place.
void few_entries(const float* x, int64_t n, int64_t k, bool largest, uint64_t* kept) {
  std::fill_n(kept, k, UINT64_MAX);
  const auto insert = [&](uint64_t entry) {
    if (entry >= kept[k - 1]) return;
    int64_t at = k - 1;
    for (; at > 0 && kept[at - 1] > entry; --at) kept[at] = kept[at - 1];
    kept[at] = entry;
  };
  for (int64_t i = 0; i < k; ++i) insert(entry_of(x[i], i, largest));
  for_candidates(x, k, n, largest, [&] { return x[kept[k - 1] & UINT32_MAX]; }, insert);
}

/// The same for any k: n > 0, k > 0. Null: the run is to end.
const uint64_t* first_entries(const float* x, int64_t n, int64_t k, bool largest, const LineScratch& scratch) {
  uint64_t* kept = scratch.entries;
  if (k <= kFew) {
    few_entries(x, n, k, largest, kept);
    return kept;
  }
  // What is kept is cut down to k whenever there is no more room; then no later element counts that is not before the
  // last of them.
  const int64_t room = std::min(n, std::max(2 * k, k + 64));
  int64_t count = 0;
  uint64_t last = UINT64_MAX;
  for (int64_t i = 0; i < room; ++i) kept[count++] = entry_of(x[i], i, largest);
  const auto cut = [&] {
    select_nth(kept, kept + (k - 1), kept + count, std::less{});
    count = k;
    last = kept[k - 1];
  };
  if (room < n) cut();
  for_candidates(
      x, room, n, largest, [&] { return x[last & UINT32_MAX]; },
      [&](uint64_t entry) {
        if (entry >= last) return;
        kept[count++] = entry;
        if (count == room) cut();
      });
  if (count > k) cut();
  if (k < kByDigits) {
    std::sort(kept, kept + k);
    return kept;
  }
  if (k < n) {
    // Sorting by digits keeps the order of equal elements, which must be that of their indices.
    count = 0;
    for (int64_t i = 0; i < n; ++i) {
      const uint64_t entry = entry_of(x[i], i, largest);
      kept[count] = entry;
      count += entry <= last;
    }
  }
  return sort_by_digits(kept, scratch.other, k);
}

AxisView axis_of(const KernelNode& node, const TensorType& x) {
  const auto axis = node.axis(node.attr_int("axis"), x.rank());
  assert(axis.ok());
  return view_axis(x.shape, *axis);
}

bool takes(const KernelNode& node) {
  if (node.input(0).elements() == 0) return false;
  return node.axis(node.attr_int("axis"), node.input(0).rank()).ok() && axis_of(node, node.input(0)).size <= INT32_MAX;
}

int64_t scratch_bytes(const KernelNode& node, int threads) {
  const AxisView v = axis_of(node, node.input(0));
  return LineScratch::bytes(v.size + 1) * std::min<int64_t>(threads, std::max<int64_t>(1, v.outer * v.inner));
}

Status run(const KernelNode& node, const KernelContext& context, std::span<const TensorView> in,
           std::span<const TensorView> out) {
  const AxisView v = axis_of(node, *in[0].type);
  const bool largest = node.attr_int("largest") != 0;
  const int64_t k = load_index(in[1], 0), lines = v.outer * v.inner;
  if (k < 0 || k > v.size) return node.error("k is ", k, ", outside an axis of size ", v.size);
  if (k == 0 || lines == 0) return {};
  const int64_t tasks = std::min<int64_t>(context.threads, lines);
  context.parallel(tasks, [&](int64_t t) {
    const LineScratch scratch(context.scratch + t * LineScratch::bytes(v.size + 1), v.size + 1);
    for (int64_t line = lines * t / tasks; line < lines * (t + 1) / tasks && !loop_stops(); ++line) {
      const int64_t o = line / v.inner, i = line % v.inner;
      const float* x = in[0].data<float>() + o * v.size * v.inner + i;
      if (v.inner > 1) {
        for (int64_t n = 0; n < v.size; ++n) scratch.line[n] = x[n * v.inner];
        x = scratch.line;
      }
      const uint64_t* first = first_entries(x, v.size, k, largest, scratch);
      if (!first) return;
      float* values = out[0].data<float>() + o * k * v.inner + i;
      int64_t* indices = out[1].data<int64_t>() + o * k * v.inner + i;
      for (int64_t n = 0; n < k; ++n) {
        const auto index = static_cast<int64_t>(first[n] & UINT32_MAX);
        values[n * v.inner] = x[index];
        indices[n * v.inner] = index;
      }
    }
  });
  return {};
}

}  // namespace

extern const CpuKernel top_k_f32_generic;
const CpuKernel top_k_f32_generic = {.takes = takes, .scratch_bytes = scratch_bytes, .run = run};

}  // namespace pinnace::cpu
