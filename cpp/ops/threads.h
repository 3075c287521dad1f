// Threads: how reference code shares out its work. Only outer parts of the outputs that do not depend on each other are
// divided and every sum keeps its order, so neither results nor errors depend on the number of threads.
#pragma once

#include <algorithm>
#include <type_traits>

#include "base/status.h"
#include "base/threads/thread_pool.h"

namespace pinnace {

/// The threads that a node's reference code may use. Borrows the pool; cheap to copy.
class Threads {
 public:
  /// The caller's thread alone.
  Threads() = default;
  static constexpr double kLeastNanoseconds = 30e3;  ///< waking a sleeping thread takes about 10 us
  /// At most `count` threads of `pool`, the caller's included; a null pool is the caller alone. `least`: nanoseconds
  /// that one range should take; 0 divides whatever can be divided, for tests.
  Threads(ThreadPool* pool, int count, double least = kLeastNanoseconds)
      : pool_(pool), count_(pool ? std::max(count, 1) : 1), least_(least) {}
  int count() const { return count_; }

  /// Calls f(first, last) for ranges that together are [0, total), some at the same time, and waits; for nothing if
  /// total is 0. Ranges start at multiples of `grain`. `cost` is about how many nanoseconds one item takes: work that
  /// would give a range less than kLeastNanoseconds is not divided that far.
  ///
  /// Ranges that have not begun are left out where loop_stops() (base/cancel.h). So that this is asked often, work of
  /// more than a few milliseconds is cut into many ranges, for one thread too.
  ///
  /// f gives nothing, or a Status and then the first error inside its range: the result is the error of the first range
  /// that has one, the same for any number of threads. Scratch that f writes belongs inside f. f must not use these
  /// threads itself: what it calls gets Threads() or nest().inner.
  template <class F>
  std::invoke_result_t<F&, int64_t, int64_t> ranges(int64_t total, double cost, F&& f, int64_t grain = 1) const {
    using Answer = std::invoke_result_t<F&, int64_t, int64_t>;
    using Function = std::remove_reference_t<F>;
    void* context = const_cast<void*>(static_cast<const void*>(&f));
    if constexpr (std::is_void_v<Answer>) {
      divide(total, cost, grain, context,
             [](void* c, int64_t first, int64_t last) { (*static_cast<Function*>(c))(first, last); });
    } else {
      return divide_checked(total, cost, grain, context, [](void* c, int64_t first, int64_t last) -> Status {
        return (*static_cast<Function*>(c))(first, last);
      });
    }
  }

  /// For two nested loops, of which only one can be divided: the threads of each. One step of the outer loop takes
  /// about `outer_cost` nanoseconds and has `inner_count` independent parts.
  struct Nested;
  Nested nest(int64_t outer_count, double outer_cost, int64_t inner_count) const;

 private:
  struct Division;
  Division division(int64_t total, double cost, int64_t grain) const;
  void divide(int64_t total, double cost, int64_t grain, void* context, void (*f)(void*, int64_t, int64_t)) const;
  Status divide_checked(int64_t total, double cost, int64_t grain, void* context,
                        Status (*f)(void*, int64_t, int64_t)) const;

  ThreadPool* pool_ = nullptr;
  int count_ = 1;
  double least_ = kLeastNanoseconds;
};

struct Threads::Nested {
  Threads outer, inner;
};

}  // namespace pinnace
