// Threads: how reference code shares out its work. Only outer parts of the outputs that do not depend on each other are
// divided and every sum keeps its order, so neither results nor errors depend on the number of threads.
#pragma once

#include <algorithm>
#include <type_traits>
#include <vector>

#include "base/status.h"
#include "base/thread_pool.h"

namespace pinnace {

/// The threads that a node's reference code may use. Borrows the pool; cheap to copy.
class Threads {
 public:
  /// The caller's thread alone.
  Threads() = default;
  /// At most `count` threads of `pool`, the caller's included; a null pool is the caller alone.
  Threads(ThreadPool* pool, int count) : pool_(pool), count_(pool ? std::max(count, 1) : 1) {}
  int count() const { return count_; }

  /// Calls f(first, last) for ranges that together are [0, total), some at the same time, and waits; for nothing if
  /// total is 0. Ranges start at multiples of `grain`. `cost` is about how many nanoseconds one item takes: work that
  /// would give less than kLeastNanoseconds to a range is not divided that far.
  ///
  /// f gives nothing, or a Status and then the first error inside its range: the result is the error of the first range
  /// that has one, the same for any number of threads. Scratch that f writes belongs inside f. f must not use these
  /// threads itself: what it calls gets Threads() or nest().inner.
  template <class F>
  std::invoke_result_t<F&, int64_t, int64_t> ranges(int64_t total, double cost, F&& f, int64_t grain = 1) const {
    using Answer = std::invoke_result_t<F&, int64_t, int64_t>;
    if (total <= 0) return Answer();
    const int64_t blocks = (total - 1) / grain + 1, parts = parts_of(blocks, cost * static_cast<double>(total));
    if (parts == 1) return f(int64_t{0}, total);
    const auto start = [&](int64_t i) {
      return i == parts ? total : (blocks / parts * i + std::min(i, blocks % parts)) * grain;
    };
    if constexpr (std::is_void_v<Answer>) {
      pool_->run(parts, count_, [&](int64_t i) { f(start(i), start(i + 1)); });
    } else {
      std::vector<Status> answers(static_cast<size_t>(parts));
      pool_->run(parts, count_, [&](int64_t i) { answers[static_cast<size_t>(i)] = f(start(i), start(i + 1)); });
      for (Status& answer : answers) {
        if (!answer.ok()) return std::move(answer);
      }
      return {};
    }
  }

  /// For two nested loops, of which only one can be divided: the threads of each. One step of the outer loop takes
  /// about `outer_cost` nanoseconds and has `inner_count` independent parts.
  struct Nested;
  Nested nest(int64_t outer_count, double outer_cost, int64_t inner_count) const;

  static constexpr double kLeastNanoseconds = 30e3;  ///< waking a sleeping thread takes about 10 us

 private:
  /// Some more ranges than threads, because ranges do not all take equally long.
  static constexpr int64_t kRangesPerThread = 4;
  int64_t parts_of(int64_t blocks, double nanoseconds) const {
    if (count_ == 1) return 1;
    const double worth = nanoseconds / kLeastNanoseconds;
    const int64_t most = std::min(blocks, kRangesPerThread * count_);
    return worth < static_cast<double>(most) ? std::max<int64_t>(1, static_cast<int64_t>(worth)) : most;
  }

  ThreadPool* pool_ = nullptr;
  int count_ = 1;
};

struct Threads::Nested {
  Threads outer, inner;
};
inline Threads::Nested Threads::nest(int64_t outer_count, double outer_cost, int64_t inner_count) const {
  constexpr double kLong = 1e6;  // steps of a millisecond: dividing them balances better than dividing the outer loop
  const bool inside = inner_count > 1 && (outer_count < kRangesPerThread * count_ || outer_cost > kLong);
  return inside ? Nested{Threads(), *this} : Nested{*this, Threads()};
}

}  // namespace pinnace
