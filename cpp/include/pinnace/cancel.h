// How a call ends before its work is done: CancelToken asks for it, RunOptions of one run and CancelScope of any calls
// say by which token, or after which time.
#pragma once

#include <pthread.h>

#include <atomic>
#include <chrono>
#include <cstdint>

#pragma GCC visibility push(default)
namespace pinnace {

/// A request that work should stop. It can be handed to any number of calls, on any threads, and stays cancelled once
/// it is. Whoever hands it over keeps it alive until those calls have returned. It owns nothing, so it may be a global
/// variable that a signal handler uses.
class CancelToken {
 public:
  constexpr CancelToken() noexcept = default;
  CancelToken(const CancelToken&) = delete;
  CancelToken& operator=(const CancelToken&) = delete;
  /// From any thread, and from a signal handler.
  void cancel() noexcept { asked_.store(true, std::memory_order_relaxed); }
  bool cancelled() const noexcept { return asked_.load(std::memory_order_relaxed); }

 private:
  std::atomic<bool> asked_{false};
};

/// When a run is to end early. It then gives kCancelled, its outputs are unspecified, state is unchanged, and the
/// session can be used as before. Runs look often enough to end within a few tens of milliseconds; exceptions are one
/// call of an application's own operator and one submission to a device, which are waited for.
struct RunOptions {
  /// Null: none.
  const CancelToken* cancel = nullptr;
  /// From the call on; 0: as long as it takes.
  std::chrono::nanoseconds timeout{0};
};

/// While it lives, every call that its thread makes ends with kCancelled once `options` say so, the calls that take no
/// RunOptions too: Program::open, Model::load, Model::build, Session::create. Such a call has then no effect, and
/// leaves no file behind. Scopes nest, and the first that ends its calls counts. To be destroyed by the thread that
/// made it, in reverse order.
class CancelScope {
 public:
  explicit CancelScope(const RunOptions& options) noexcept;
  /// Its thread's calls also ask `poll(context)`, about every 50 ms and on this thread alone, and end if it gives true.
  /// For hosts that take note of signals on one thread only, such as Python. It may be called with locks of the library
  /// held, so it must not wait for a thread that waits for this one.
  CancelScope(bool (*poll)(void*), void* context) noexcept;
  ~CancelScope();
  CancelScope(const CancelScope&) = delete;
  CancelScope& operator=(const CancelScope&) = delete;

 private:
  friend struct CancelView;  // base/cancel.h
  CancelScope(const RunOptions& options, bool (*poll)(void*), void* context) noexcept;

  enum class Why : uint8_t { kGoesOn, kToken, kTime, kPoll };
  const CancelToken* token_;
  std::chrono::nanoseconds timeout_;
  std::chrono::steady_clock::time_point end_;  ///< if timeout_ is not 0
  bool (*poll_)(void*);
  void* context_;
  pthread_t owner_{};
  std::chrono::nanoseconds poll_every_{50'000'000};
  std::chrono::nanoseconds next_poll_{0};  ///< the owner's alone
  CancelScope* outer_ = nullptr;
  bool entered_;  ///< false: there is nothing to look at
  std::atomic<Why> why_{Why::kGoesOn};
};

}  // namespace pinnace
#pragma GCC visibility pop
