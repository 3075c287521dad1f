// ThreadPool: splits loops over a fixed number of threads. An object; one per process by default.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <type_traits>

#include "base/cancel.h"

namespace pinnace {

/// Processors that this process may run on (its affinity mask), at least 1.
int available_processors();

/// Threads are started when first needed and wait without spinning for long. Several callers may use one pool: each
/// call runs on its own thread and those workers that are free; where the system gives no more threads, on fewer. After
/// fork() the child starts threads of its own.
class ThreadPool {
  struct State;

 public:
  ThreadPool();
  ~ThreadPool();
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;

  /// The process's pool; never destroyed.
  static ThreadPool& shared();

  /// Calls f(i) for i in [0, tasks) on at most `threads` threads, the caller's included, and waits. Which thread runs
  /// which i is not fixed, so results must not depend on it. f must not call run of the same pool. Tasks that have not
  /// begun are left out where loop_stops(), see base/cancel.h.
  template <class F>
  void run(int64_t tasks, int threads, F&& f) {
    if (tasks <= 1 || threads <= 1) {
      for (int64_t i = 0; i < tasks; ++i) {
        if (i > 0 && loop_stops()) return;
        f(i);
      }
      return;
    }
    using Fn = std::remove_reference_t<F>;
    run_erased(
        tasks, threads, [](void* context, int64_t i) { (*static_cast<Fn*>(context))(i); },
        const_cast<void*>(static_cast<const void*>(&f)));
  }

  /// While one lives, jobs are expected: workers are woken, stay awake for milliseconds between jobs, and run on the
  /// processors that the thread which made the newest one may run on. A worker that
  /// the system wakes up may first wait for a processor for longer than a job takes. Not `awake`: the processors alone,
  /// for who would rather have workers sleep.
  class Attention {
   public:
    Attention(ThreadPool& pool, int threads, bool awake = true);
    ~Attention();
    Attention(const Attention&) = delete;
    Attention& operator=(const Attention&) = delete;

   private:
    State* state_;  // null: one thread alone
  };

  /// How many tasks workers, not callers, have run since the pool was made; for tests that threads are really used.
  int64_t tasks_run_by_workers() const;
  /// Attentions that keep workers awake now; for tests that these are left to sleep.
  int kept_awake_by() const;

 private:
  void run_erased(int64_t tasks, int threads, void (*f)(void*, int64_t), void* context);
  State& state();
  std::atomic<State*> state_;
};

}  // namespace pinnace
