// Thread: a thread of the system's, or a Status where it gives none; and the arithmetic that every thread of ours has.
#pragma once

#include <pthread.h>
#include <sys/types.h>

#include <functional>

#include "base/status.h"

namespace pinnace {

/// While one lives, this thread computes as IEEE 754 has it by default: results below the smallest normal number are
/// kept, sums are rounded to nearest, nothing traps. Programs change that for themselves (-ffast-math,
/// torch.set_flush_denormal), and new threads begin with what their maker has: without this, results would depend on
/// who computes them. A few nanoseconds.
class DefaultFloats {
 public:
  DefaultFloats();
  ~DefaultFloats();
  DefaultFloats(const DefaultFloats&) = delete;
  DefaultFloats& operator=(const DefaultFloats&) = delete;

 private:
  [[maybe_unused]] uint64_t before_ = 0;
};

/// std::thread ends the program where a thread cannot be had, which limits of a container make ordinary. Movable;
/// join() or detach() before it is destroyed or assigned to. In a forked child the threads of the parent do not exist:
/// join() returns at once there.
class Thread {
 public:
  Thread() = default;
  Thread(Thread&& other) noexcept;
  Thread& operator=(Thread&& other) noexcept;
  ~Thread();

  /// Runs `body` with DefaultFloats. kOutOfMemory: the system gives no more threads.
  static Result<Thread> start(std::function<void()> body);
  bool joinable() const { return joinable_; }
  /// Not from the thread itself.
  void join();
  /// The thread ends by itself; for who is that thread.
  void detach();
  bool is_this_thread() const { return joinable_ && pthread_equal(handle_, pthread_self()); }
  pthread_t handle() const { return handle_; }

 private:
  pthread_t handle_{};
  pid_t process_ = 0;  ///< that it runs in
  bool joinable_ = false;
};

}  // namespace pinnace
