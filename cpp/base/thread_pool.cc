// ThreadPool: one job at a time, workers take task numbers from a shared counter. A caller that finds the pool busy
// with another caller's job runs its tasks alone: two sessions at once gain nothing from queueing behind each other.
#include "base/thread_pool.h"

#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <condition_variable>
#include <mutex>
#include <thread>
#include <vector>

namespace pinnace {

int available_processors() {
  cpu_set_t set;
  if (sched_getaffinity(0, sizeof set, &set) == 0) return std::max(1, CPU_COUNT(&set));
  return std::max(1u, std::thread::hardware_concurrency());
}

struct ThreadPool::State {
  pid_t owner = getpid();
  std::mutex caller;  // held by the caller whose job is running
  std::mutex mutex;   // guards all below
  std::condition_variable wake, finished;
  std::vector<std::thread> workers;
  uint64_t generation = 0;
  int wanted = 0;   // workers that may still join the current job
  int running = 0;  // workers inside the current job
  bool stop = false;
  int64_t tasks = 0;
  void (*f)(void*, int64_t) = nullptr;
  void* context = nullptr;
  alignas(128) std::atomic<int64_t> next{0};
  alignas(128) std::atomic<uint64_t> announced{0};  // generation, for workers that spin
  std::atomic<int64_t> by_workers{0};

  void work() {
    uint64_t seen = 0;
    for (;;) {
      // A network's next operator usually follows within microseconds: look for it before sleeping (a wake-up by futex
      // costs about 20 us).
      for (int spin = 0; spin < 2000 && announced.load(std::memory_order_acquire) == seen; ++spin) {
#if defined(__x86_64__)
        __builtin_ia32_pause();
#endif
      }
      std::unique_lock lock(mutex);
      wake.wait(lock, [&] { return stop || generation != seen; });
      if (stop) return;
      seen = generation;
      if (wanted == 0) continue;
      --wanted;
      ++running;
      lock.unlock();
      int64_t done = 0;
      for (int64_t i; (i = next.fetch_add(1, std::memory_order_relaxed)) < tasks; ++done) f(context, i);
      by_workers.fetch_add(done, std::memory_order_relaxed);
      lock.lock();
      if (--running == 0) finished.notify_one();
    }
  }
};

ThreadPool::ThreadPool() : state_(new State) {}

ThreadPool::~ThreadPool() {
  State& s = state();
  {
    std::lock_guard lock(s.mutex);
    s.stop = true;
  }
  s.wake.notify_all();
  for (std::thread& t : s.workers) t.join();
  delete &s;
}

ThreadPool& ThreadPool::shared() {
  static ThreadPool* const pool = new ThreadPool;  // never destroyed: threads may still run at exit
  return *pool;
}

ThreadPool::State& ThreadPool::state() {
  State* s = state_.load(std::memory_order_acquire);
  if (s->owner == getpid()) return *s;
  // In a forked child the workers do not exist and the locks may be held for ever: start over and leave the old state
  // be.
  auto* fresh = new State;
  if (state_.compare_exchange_strong(s, fresh)) return *fresh;
  delete fresh;
  return *s;
}

int64_t ThreadPool::tasks_run_by_workers() const {
  return state_.load()->by_workers.load();
}

void ThreadPool::run_erased(int64_t tasks, int threads, void (*f)(void*, int64_t), void* context) {
  State& s = state();
  std::unique_lock caller(s.caller, std::try_to_lock);
  if (!caller.owns_lock()) {
    for (int64_t i = 0; i < tasks; ++i) f(context, i);
    return;
  }
  const int helpers = static_cast<int>(std::min<int64_t>(threads, tasks)) - 1;
  {
    std::lock_guard lock(s.mutex);
    while (static_cast<int>(s.workers.size()) < helpers) s.workers.emplace_back([&s] { s.work(); });
    s.tasks = tasks;
    s.f = f;
    s.context = context;
    s.next.store(0, std::memory_order_relaxed);
    s.wanted = helpers;
    ++s.generation;
    s.announced.store(s.generation, std::memory_order_release);
  }
  s.wake.notify_all();
  for (int64_t i; (i = s.next.fetch_add(1, std::memory_order_relaxed)) < tasks;) f(context, i);
  std::unique_lock lock(s.mutex);
  s.wanted = 0;  // latecomers find nothing
  s.finished.wait(lock, [&] { return s.running == 0; });
}

}  // namespace pinnace
