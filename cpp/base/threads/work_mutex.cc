// Waiting by looking again and again: a system's own wait could neither end with the call nor run a signal's handler.
#include "base/threads/work_mutex.h"

#include <algorithm>
#include <chrono>
#include <thread>

#include "base/cancel.h"

namespace pinnace {
namespace {

/// Another address on each thread that lives.
const void* this_thread() {
  static thread_local char one;
  return &one;
}

constexpr std::chrono::microseconds kFirstPause{20}, kLongestPause{1000};

}  // namespace

bool WorkMutex::try_lock() {
  if (!mutex_.try_lock()) return false;
  thread_.store(this_thread(), std::memory_order_relaxed);
  return true;
}

void WorkMutex::unlock() {
  thread_.store(nullptr, std::memory_order_relaxed);
  mutex_.unlock();
}

Status WorkMutex::take(std::string_view work, bool anew) {
  const void* const self = this_thread();
  if (thread_.load(std::memory_order_relaxed) == self) {
    return invalid("this thread is at ", work,
                   " already: a signal handler, a handler of the log or an operator of the application cannot wait for "
                   "the call that it is called from");
  }
  for (auto pause = kFirstPause;; pause = std::min(2 * pause, kLongestPause)) {
    if (anew ? mutex_.try_lock_anew() : mutex_.try_lock()) break;
    if (!anew && mutex_.left_behind()) {
      return invalid("this process was forked while another thread was at ", work,
                     ", which is half done here: make a new session");
    }
    if (stopped()) return stop_status(str_cat("the wait for ", work, " on another thread"));
    std::this_thread::sleep_for(pause);
  }
  thread_.store(self, std::memory_order_relaxed);
  return {};
}

}  // namespace pinnace
