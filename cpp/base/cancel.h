// What code that may take long asks: whether the call that it works for is to end (pinnace/cancel.h). The answer is the
// thread's, so it need not be handed down; a ThreadPool hands it to its workers.
#pragma once

#include <string_view>

#include <pinnace/cancel.h>

#include "base/status.h"

namespace pinnace {

/// Whether what this thread works on is to end. Once true, it stays true on every thread that works for the same call.
/// 10 ns, 25 ns more with a timeout: for steps of a microsecond and more.
bool stopped();

/// kCancelled with the reason: "cancelled at conv 'stem'", "timed out after 0.5 s at conv 'stem'". Only if stopped().
Status stop_status(std::string_view where);

/// stop_status() if stopped().
Status check_stopped(std::string_view where);

/// The end of a timeout that begins now, or as far as the clock goes.
std::chrono::steady_clock::time_point end_of(std::chrono::nanoseconds timeout);

/// While one lives, loops that this thread runs (ThreadPool, Threads, StridedLoop) leave out what they have not begun
/// once stopped(). Their results are then incomplete: whoever makes one looks at stopped() before it uses or keeps any
/// of them. Code between such loops must not take addresses from what an earlier one computed without doing the same.
class LoopsMayStop {
 public:
  /// false: they may not, as in calls that an application's operator makes while it runs.
  explicit LoopsMayStop(bool may = true);
  ~LoopsMayStop();
  LoopsMayStop(const LoopsMayStop&) = delete;
  LoopsMayStop& operator=(const LoopsMayStop&) = delete;

 private:
  bool before_;
};

/// Asked by those loops: whether to leave out the rest.
bool loop_stops();

/// What a thread works for, to be handed to others that work for the same call.
struct CancelView {
  CancelScope* scope = nullptr;
  bool loops_may_stop = false;

  static CancelView of_this_thread();
  static bool look(CancelScope& scope);
  /// For tests that end a call at each of the places where it looks. The scope must be this thread's.
  static void poll_at_every_look(CancelScope& scope);
  static Status status(const CancelScope* scope, std::string_view where);
};

/// For a scope, this thread works for the same call as the thread that `view` is of.
class WorksFor {
 public:
  explicit WorksFor(CancelView view);
  ~WorksFor();
  WorksFor(const WorksFor&) = delete;
  WorksFor& operator=(const WorksFor&) = delete;

 private:
  CancelView before_;
};

}  // namespace pinnace
