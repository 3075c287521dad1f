// StepTeam: several threads walk through steps together, where each step needs all of the one before (the time loop of
// a recurrent operator). A barrier of a hundred nanoseconds instead of a job of the pool, about two microseconds, for
// every step.
#pragma once

#include <sched.h>

#include <algorithm>
#include <atomic>

#include "backends/cpu/kernel.h"

namespace pinnace::cpu {

/// Calls f(step, part) for part in [0, parts), for step in [0, steps): each once, and all of a step before any of the
/// next. Who is given `part` mostly does that part of every step, so that its data stays in the cache of one core.
///
/// The pool does not promise that all its threads come, or when: whoever waits does the parts of those who are not
/// there, or are late. One thread alone does everything. Waiting spins for microseconds, then gives the processor away.
/// Steps that have not begun are left out where loop_stops().
class StepTeam {
 public:
  static constexpr int kMost = 16;

  /// parts is brought into [1, kMost].
  StepTeam(int parts, int64_t steps) : parts_(std::clamp(parts, 1, kMost)), steps_(steps) {}

  int parts() const { return parts_; }

  template <class F>
  void run(const KernelContext& context, F&& f) {
    if (parts_ == 1) {
      for (int64_t step = 0; step < steps_ && !loop_stops(); ++step) f(step, 0);
      return;
    }
    context.parallel(parts_, [&](int64_t part) { walk(static_cast<int>(part), f); });
  }

 private:
  /// Spins before a part whose owner is here, but late, is taken from it: longer than parts of a step differ.
  static constexpr int kPatience = 200;
  static constexpr int kSpins = 2000;

  struct alignas(128) Part {
    std::atomic<int64_t> next{0};  ///< the first step in which nobody has taken it
    std::atomic<bool> owned{false};
  };

  template <class F>
  bool take(int part, int64_t step, F& f) {
    int64_t expected = step;
    if (!parts_list_[part].next.compare_exchange_strong(expected, step + 1, std::memory_order_acq_rel)) return false;
    f(step, part);
    done_.fetch_add(1, std::memory_order_acq_rel);
    return true;
  }

  template <class F>
  void walk(int own, F& f) {
    for (;;) {
      // Parts of a step begin when all of the step before are done: the count tells the step.
      const int64_t step = done_.load(std::memory_order_acquire) / parts_;
      if (step >= steps_ || loop_stops()) return;
      parts_list_[own].owned.store(true, std::memory_order_relaxed);
      take(own, step, f);
      for (int spins = 0; done_.load(std::memory_order_acquire) < (step + 1) * parts_; ++spins) {
        for (int part = 0; part < parts_; ++part) {
          Part& other = parts_list_[part];
          if (other.next.load(std::memory_order_relaxed) != step) continue;
          const bool owned = other.owned.load(std::memory_order_relaxed);
          if (owned && spins < kPatience) continue;
          // Until its owner shows up again, nobody waits for it.
          if (take(part, step, f) && owned) other.owned.store(false, std::memory_order_relaxed);
        }
        pause(spins);
      }
    }
  }

  static void pause(int spins) {
    if (spins >= kSpins) {
      sched_yield();  // the thread that is at work may be waiting for this processor
      return;
    }
#if defined(__x86_64__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    asm volatile("yield");
#endif
  }

  const int parts_;
  const int64_t steps_;
  Part parts_list_[kMost];
  alignas(128) std::atomic<int64_t> done_{0};
};

}  // namespace pinnace::cpu
