// Steps that are run together, a few rows at a time: what one leaves is read by the next from a buffer of rows that
// stays in the second-level cache, and never lies in memory as a whole. An expansion and the depthwise
// convolution that follows it are such a pair.
#pragma once

#include <algorithm>
#include <array>
#include <cstring>
#include <span>
#include <vector>

#include "backends/cpu/plan/lower.h"
#include "base/cancel.h"

namespace pinnace::cpu {

/// Steps in one fused run, and inputs of one of them, at most.
inline constexpr size_t kFusedSteps = 4, kFusedInputs = 4;

/// A value between two steps of a fused run. Its rows, in memory, count its border too.
struct FusedValue {
  size_t offset = 0;  ///< of its buffer in a task's memory
  size_t row_bytes = 0, left_bytes = 0, right_bytes = 0;
  int64_t capacity = 0;  ///< rows that its buffer holds
  int64_t top = 0, height = 0, bottom = 0;
  uint8_t zero = 0;  ///< byte of the border
  RowWindow window;  ///< how its reader reads it
  int64_t rows() const { return top + height + bottom; }
};

/// Steps [first, last] of Lowered::nodes, each of which alone reads what the one before left.
struct FusedRun {
  int32_t first, last;
  std::vector<FusedValue> between;  ///< after every step but the last
  int64_t batch, height;            ///< of the last step's output
  int64_t block;                    ///< rows of the last step's output made at a time
  size_t task_bytes = 0;            ///< memory of one task
  /// Tasks that a run on `threads` threads is cut into.
  int64_t tasks(int threads) const { return std::min<int64_t>(threads, (batch * height + block - 1) / block); }
};

/// The fused runs that pay. Steps of different fused runs are different.
std::vector<FusedRun> find_fused_runs(const Lowered& lowered);

/// Runs task `task` of `tasks` in `memory`, FusedRun::task_bytes bytes: calls step(i, bases, first, last) for rows
/// [first, last), counted through all batch items, of what step FusedRun::first + i leaves. bases[i] is where value i
/// would begin in memory if it were whole: only the rows that are needed now can be touched.
template <class Step>
void run_fused_run(const FusedRun& fused_run, int64_t task, int64_t tasks, std::byte* memory, Step&& step) {
  const size_t count = fused_run.between.size();
  for (const FusedValue& value : fused_run.between) {
    for (int64_t row = 0; row < value.capacity; ++row) {
      std::byte* at = memory + value.offset + static_cast<size_t>(row) * value.row_bytes;
      std::memset(at, value.zero, value.left_bytes);
      std::memset(at + value.row_bytes - value.right_bytes, value.zero, value.right_bytes);
    }
  }
  const int64_t total = fused_run.batch * fused_run.height, end = total * (task + 1) / tasks;
  // Rows of each value that are in memory, [base, next), counted with its border; buffers begin with row `base`.
  std::array<int64_t, kFusedSteps> base, next;
  std::array<std::byte*, kFusedSteps> bases{};
  for (int64_t row = total * task / tasks, last; row < end; row = last) {
    const int64_t n = row / fused_run.height, done = row % fused_run.height;
    last = std::min({row + fused_run.block, end, (n + 1) * fused_run.height});
    if (loop_stops()) return;
    if (done == 0 || row == total * task / tasks) base.fill(0), next.fill(0);
    std::array<int64_t, kFusedSteps> from, to;
    from[count] = done;
    to[count] = last - n * fused_run.height;
    for (size_t i = count; i-- > 0;) {
      const FusedValue& value = fused_run.between[i];
      const int64_t offset = value.top - value.window.before;
      // Rows beyond the value and its border are not read (by a pool).
      const int64_t first = std::max<int64_t>(0, from[i + 1] * value.window.stride + offset);
      const int64_t behind = std::min(value.rows(), (to[i + 1] - 1) * value.window.stride + offset + value.window.span);
      std::byte* const buffer = memory + value.offset;
      const auto row_at = [&](int64_t r) { return buffer + static_cast<size_t>(r - base[i]) * value.row_bytes; };
      if (first >= next[i]) {
        base[i] = next[i] = first;
      } else if (behind - base[i] > value.capacity) {
        std::memmove(buffer, row_at(first), static_cast<size_t>(next[i] - first) * value.row_bytes);
        base[i] = first;
      }
      for (int64_t r = next[i]; r < behind; ++r) {
        if (r < value.top || r >= value.top + value.height) std::memset(row_at(r), value.zero, value.row_bytes);
      }
      from[i] = std::clamp<int64_t>(next[i] - value.top, 0, value.height);
      to[i] = std::clamp<int64_t>(behind - value.top, from[i], value.height);
      next[i] = std::max(next[i], behind);
      bases[i] = buffer - (n * value.rows() + base[i]) * static_cast<ptrdiff_t>(value.row_bytes);
    }
    for (size_t i = 0; i <= count; ++i) {
      const int64_t height = i < count ? fused_run.between[i].height : fused_run.height;
      if (from[i] < to[i]) step(i, bases.data(), n * height + from[i], n * height + to[i]);
    }
  }
}

}  // namespace pinnace::cpu
