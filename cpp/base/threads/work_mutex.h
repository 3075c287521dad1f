// A lock over work that takes seconds, such as packing weights: waiting for it ends as its call does, and never becomes
// a wait for oneself.
#pragma once

#include <atomic>
#include <string_view>
#include <utility>

#include "base/process.h"
#include "base/status.h"

namespace pinnace {

/// A ProcessMutex that is held while weights are packed, plans made or kernels compiled. Not recursive.
class WorkMutex {
 public:
  /// Waits for other threads of this process and looks at stopped() (base/cancel.h) meanwhile. `work`, for texts, is
  /// what is done under the lock: "the packing of weights". After a failure nothing is locked.
  ///
  /// kCancelled: the call ended while it waited. kInvalidArgument: this thread holds it already, for a signal
  /// handler, a handler of the log or an operator of the application makes this call in the middle of another; or it
  /// was held when this process was forked, so that what it guards may be half changed.
  [[nodiscard]] Status lock(std::string_view work) { return take(work, false); }
  /// Where what it guards is written anew by whoever holds it: one that was left behind by a fork counts as free.
  [[nodiscard]] Status lock_anew(std::string_view work) { return take(work, true); }
  /// Without waiting; false: somebody holds it, this thread maybe.
  [[nodiscard]] bool try_lock();
  void unlock();
  /// Whether a thread holds it that stayed behind in the parent.
  bool left_behind() const { return mutex_.left_behind(); }

 private:
  Status take(std::string_view work, bool anew);
  ProcessMutex mutex_;
  std::atomic<const void*> thread_{nullptr};  // that holds it; null: none
};

/// Holds one for a scope, if status() is OK.
class WorkLock {
 public:
  WorkLock(WorkMutex& mutex, std::string_view work) : mutex_(mutex), status_(mutex.lock(work)) {}
  ~WorkLock() {
    if (status_.ok()) mutex_.unlock();
  }
  WorkLock(const WorkLock&) = delete;
  WorkLock& operator=(const WorkLock&) = delete;
  const Status& status() const { return status_; }

 protected:
  WorkLock(WorkMutex& mutex, Status status) : mutex_(mutex), status_(std::move(status)) {}

 private:
  WorkMutex& mutex_;
  const Status status_;
};
/// The same by lock_anew().
class WorkLockAnew : public WorkLock {
 public:
  WorkLockAnew(WorkMutex& mutex, std::string_view work) : WorkLock(mutex, mutex.lock_anew(work)) {}
};

}  // namespace pinnace
