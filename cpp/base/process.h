// What a process shares, in a way that a forked child can live with. fork() copies memory as it is in that moment: a
// lock that another thread holds then stays locked in the child for ever, over data that may be half changed.
#pragma once

#include <sys/types.h>
#include <unistd.h>

#include <atomic>
#include <cstdint>

namespace pinnace {

/// A mutex that knows which process holds it, so that a forked child can tell that the holder was left behind in the
/// parent, where a std::mutex would wait for ever. For locks that are static, and those that are held for long.
class ProcessMutex {
 public:
  /// False: it was held when this process was forked. Nothing was locked, and what it guards may be half changed.
  [[nodiscard]] bool lock() { return take(true, false); }
  /// The same without waiting: false also if another thread holds it.
  [[nodiscard]] bool try_lock() { return take(false, false); }
  /// The same, but one that was left behind counts as free.
  [[nodiscard]] bool try_lock_anew() { return take(false, true); }
  /// Where what it guards is written anew by whoever holds it: one that was left behind counts as free.
  void lock_anew() { static_cast<void>(take(true, true)); }
  void unlock() {
    holder_.store(0, std::memory_order_release);
    holder_.notify_one();
  }
  /// Whether a thread holds it that was left behind in the parent.
  bool left_behind() const {
    const pid_t holder = holder_.load(std::memory_order_relaxed);
    return holder != 0 && holder != ::getpid();
  }

 private:
  bool take(bool wait, bool anew) {
    const pid_t process = ::getpid();
    for (;;) {
      pid_t seen = 0;
      if (holder_.compare_exchange_strong(seen, process, std::memory_order_acquire)) return true;
      if (seen != process) {
        if (!anew) return false;
        if (holder_.compare_exchange_strong(seen, process, std::memory_order_acquire)) return true;
        continue;
      }
      if (!wait) return false;
      holder_.wait(seen, std::memory_order_relaxed);
    }
  }
  std::atomic<pid_t> holder_{0};  // 0: nobody
};

/// Holds one for a scope.
class ProcessLock {
 public:
  explicit ProcessLock(ProcessMutex& mutex) : mutex_(mutex), held_(mutex.lock()) {}
  ~ProcessLock() {
    if (held_) mutex_.unlock();
  }
  ProcessLock(const ProcessLock&) = delete;
  ProcessLock& operator=(const ProcessLock&) = delete;
  /// False as lock() is: the mutex was held when this process was forked.
  bool held() const { return held_; }

 private:
  ProcessMutex& mutex_;
  const bool held_;
};
/// The same by lock_anew().
class ProcessLockAnew {
 public:
  explicit ProcessLockAnew(ProcessMutex& mutex) : mutex_(mutex) { mutex.lock_anew(); }
  ~ProcessLockAnew() { mutex_.unlock(); }
  ProcessLockAnew(const ProcessLockAnew&) = delete;
  ProcessLockAnew& operator=(const ProcessLockAnew&) = delete;

 private:
  ProcessMutex& mutex_;
};

/// A registry or cache with its lock, one for each process: a forked child goes on with the parent's unless that was
/// locked in the moment of the fork; then it gets an empty one, and the old one is left be. Made when first asked for,
/// never destroyed: threads may still run at exit. Constant-initialised, so a static one needs no guard, which a fork
/// could leave locked as well.
template <class T>
class PerProcess {
  struct Entry {
    ProcessMutex mutex;
    T value{};
  };

 public:
  class Locked {
   public:
    explicit Locked(Entry* entry) : entry_(entry) {}
    ~Locked() { entry_->mutex.unlock(); }
    Locked(const Locked&) = delete;
    Locked& operator=(const Locked&) = delete;
    T& operator*() const { return entry_->value; }
    T* operator->() const { return &entry_->value; }

   private:
    Entry* entry_;
  };

  constexpr PerProcess() = default;
  /// Waits for other threads of this process. Not recursive.
  Locked lock() {
    Entry* seen = entry_.load(std::memory_order_acquire);
    for (;;) {
      if (seen && seen->mutex.lock()) return Locked(seen);
      auto* const fresh = new Entry;
      if (entry_.compare_exchange_strong(seen, fresh, std::memory_order_acq_rel)) {
        seen = fresh;
      } else {
        delete fresh;  // another thread was first
      }
    }
  }

 private:
  std::atomic<Entry*> entry_{nullptr};
};

}  // namespace pinnace
