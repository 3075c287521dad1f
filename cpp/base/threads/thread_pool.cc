// ThreadPool: one job at a time, cut into as many shares as threads. Who is done with its own share takes tasks from
// the others': a thread that lost its processor to a neighbour holds nobody up. A caller that finds the pool busy with
// another caller's job runs its tasks alone: two sessions at once gain nothing from queueing behind each other. Where a
// task throws (std::bad_alloc), no further one begins, and its exception is the caller's once all threads have left.
#include "base/threads/thread_pool.h"

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <cstring>
#include <exception>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

#include "base/exception_boundary.h"
#include "base/log.h"
#include "base/threads/processors.h"
#include "base/threads/thread.h"

namespace pinnace {

int available_processors() {
  const int own = Processors::of_this_thread().count();
  return own > 0 ? own : std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
}

namespace {

/// Looks at `ready` for about 50 us, as long as the next operator of a network may let one wait, then gives up. A
/// wake-up by the system costs about 20 us, a line of memory that another core has written 0.1 us.
template <class Ready>
bool spin(Ready ready) {
  for (int i = 0; i < 2000; ++i) {
    if (ready()) return true;
#if defined(__x86_64__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    asm volatile("yield");
#endif
  }
  return ready();
}

}  // namespace

struct ThreadPool::State {
  pid_t owner = getpid();
  std::mutex caller;            // held by the caller whose job is running
  std::vector<Thread> workers;  // changed by that caller
  Processors followed;          // by the workers; that caller's too

  std::mutex wanted_mutex;  // of `wanted`
  Processors wanted;        // of the thread that began to run last

  /// Tasks of one thread. The same share of every job goes to the same thread, which has what it needs in its own
  /// caches where neighbouring operators are cut alike.
  struct alignas(128) Share {
    std::atomic<int64_t> next{0};
    int64_t end = 0;
  };
  static constexpr int kShares = 64;

  // The job, written before `gate` opens and not again before it is closed and empty.
  Share shares[kShares];
  int share_count = 1;
  void (*f)(void*, int64_t) = nullptr;
  void* context = nullptr;
  CancelView call;

  // What a task of the job threw first, if one did: the caller's to rethrow when all have left.
  std::atomic<bool> failed{false};
  std::exception_ptr failure;

  /// Workers that may still join (times kPlace) and workers inside. One number, so that a worker that comes late joins
  /// the next job or none, never one whose caller has gone.
  static constexpr int64_t kPlace = 1 << 16;
  alignas(128) std::atomic<int64_t> gate{0};
  alignas(128) std::atomic<uint64_t> announced{0};  // jobs so far
  std::atomic<int> asleep{0};
  std::atomic<int> attention{0};  // callers that expect to have jobs soon
  std::atomic<bool> stop{false};
  std::atomic<int64_t> by_workers{0};
  std::mutex mutex;  // of sleepers
  std::condition_variable wake;

  bool join() {
    int64_t seen = gate.load(std::memory_order_relaxed);
    while (seen >= kPlace) {
      if (gate.compare_exchange_weak(seen, seen - kPlace + 1, std::memory_order_acquire)) return true;
    }
    return false;
  }

  /// Waits for `ready` for 5 ms while a job is expected, giving the processor away to whoever wants it.
  template <class Ready>
  bool linger(Ready ready) {
    const auto end = std::chrono::steady_clock::now() + std::chrono::milliseconds(5);
    while (attention.load(std::memory_order_relaxed) > 0 && std::chrono::steady_clock::now() < end) {
      std::this_thread::yield();
      if (spin(ready)) return true;
    }
    return false;
  }

  /// Tasks of share `own`, then what is left of the others; how many. After one that throws nobody begins another, and
  /// none where loop_stops().
  int64_t run_shares(int own) noexcept {
    int64_t done = 0;
    try {
      for (int k = 0; k < share_count; ++k) {
        Share& share = shares[(own + k) % share_count];
        for (int64_t i; (i = share.next.fetch_add(1, std::memory_order_relaxed)) < share.end; ++done) {
          if (loop_stops()) return done;
          f(context, i);
        }
      }
    } catch (...) {
      if (!failed.exchange(true)) failure = std::current_exception();
      for (int k = 0; k < share_count; ++k) shares[k].next.store(shares[k].end, std::memory_order_relaxed);
    }
    return done;
  }

  void work(int index) {
    uint64_t seen = 0;
    const auto news = [&] { return announced.load() != seen || stop.load(std::memory_order_relaxed); };
    for (;;) {
      if (!spin(news) && !linger(news)) {
        std::unique_lock lock(mutex);
        asleep.fetch_add(1);  // before looking again: the caller announces first and then looks for sleepers
        wake.wait(lock, news);
        asleep.fetch_sub(1);
      }
      if (stop.load(std::memory_order_relaxed)) return;
      seen = announced.load();
      if (!join()) continue;
      {
        const WorksFor same(call);
        by_workers.fetch_add(run_shares(index % share_count), std::memory_order_relaxed);
      }
      gate.fetch_sub(1, std::memory_order_release);
    }
  }

  /// Workers may run where the thread may that began to run last: a thread has what processors its maker had, which
  /// need not be those of who uses it.
  void follow() {
    std::lock_guard lock(wanted_mutex);
    if (wanted == followed || !wanted.known()) return;
    for (const Thread& worker : workers) wanted.give_to(worker);
    followed = wanted;
  }

  void announce() {
    announced.fetch_add(1);
    if (asleep.load() == 0) return;
    {
      std::lock_guard lock(mutex);
    }  // a worker between its look and its sleep holds it
    wake.notify_all();
  }
};

ThreadPool::ThreadPool() : state_(new State) {}

ThreadPool::~ThreadPool() {
  State& s = state();
  s.stop.store(true);
  s.announce();
  for (Thread& t : s.workers) t.join();
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

ThreadPool::Attention::Attention(ThreadPool& pool, int threads, bool awake)
    : state_(threads > 1 ? &pool.state() : nullptr) {
  if (!state_) return;
  const Processors own = Processors::of_this_thread();
  {
    std::lock_guard lock(state_->wanted_mutex);
    if (own.known()) state_->wanted = own;
  }
  if (!awake) {
    state_ = nullptr;
    return;
  }
  state_->attention.fetch_add(1);
  if (state_->asleep.load() > 0) state_->announce();  // no job: those who wake up find the gate closed
}

ThreadPool::Attention::~Attention() {
  if (state_) state_->attention.fetch_sub(1);
}

int64_t ThreadPool::tasks_run_by_workers() const {
  return state_.load()->by_workers.load();
}

int ThreadPool::kept_awake_by() const {
  return state_.load()->attention.load();
}

void ThreadPool::run_erased(int64_t tasks, int threads, void (*f)(void*, int64_t), void* context) {
  State& s = state();
  std::unique_lock caller(s.caller, std::try_to_lock);
  if (!caller.owns_lock()) {
    for (int64_t i = 0; i < tasks && !loop_stops(); ++i) f(context, i);
    return;
  }
  int helpers = static_cast<int>(std::min<int64_t>({threads, tasks, State::kShares})) - 1;
  while (static_cast<int>(s.workers.size()) < helpers) {
    // Whatever is not given, memory or a thread, the job is done by fewer.
    if (!exception_boundary([&] { return s.workers.reserve(State::kShares), true; }, false)) break;
    auto started = Thread::start([&s, index = static_cast<int>(s.workers.size()) + 1] { s.work(index); });
    if (!started.ok()) {
      static constinit std::atomic<bool> told{false};
      if (logs(LogLevel::kWarn) && !told.exchange(true, std::memory_order_relaxed)) {
        PINNACE_LOG_WARN("loops run on ", s.workers.size() + 1, " threads instead of ", helpers + 1, ": ",
                         started.status().message());
      }
      break;
    }
    s.workers.push_back(std::move(*started));
    s.followed = {};
  }
  helpers = std::min(helpers, static_cast<int>(s.workers.size()));
  s.follow();
  s.share_count = helpers + 1;
  for (int k = 0; k <= helpers; ++k) {
    s.shares[k].next.store(tasks * k / s.share_count, std::memory_order_relaxed);
    s.shares[k].end = tasks * (k + 1) / s.share_count;
  }
  s.f = f;
  s.context = context;
  s.call = CancelView::of_this_thread();
  s.gate.store(helpers * State::kPlace, std::memory_order_release);
  s.announce();
  s.run_shares(0);
  // Latecomers find the gate closed; those inside are at their last task.
  s.gate.fetch_and(State::kPlace - 1, std::memory_order_relaxed);
  const auto empty = [&] { return s.gate.load(std::memory_order_acquire) == 0; };
  while (!spin(empty)) std::this_thread::yield();  // a worker that lost its processor to a neighbour
  if (s.failed.load(std::memory_order_relaxed)) {
    s.failed.store(false, std::memory_order_relaxed);
    std::rethrow_exception(std::exchange(s.failure, nullptr));
  }
}

}  // namespace pinnace
