// Scopes form a list from the inner to the outer one, whose head is the thread's. Each remembers why it ended, so that
// all threads agree from then on.
#include "base/cancel.h"

#include <time.h>

#include <cstdio>
#include <utility>

namespace pinnace {
namespace {

constinit thread_local CancelView this_thread;

/// Time for polls: exact to 10 ms, in a fifth of what the exact time takes where the system has such a clock.
std::chrono::nanoseconds coarse_now() {
#if defined(CLOCK_MONOTONIC_COARSE)
  timespec now;
  clock_gettime(CLOCK_MONOTONIC_COARSE, &now);
  return std::chrono::seconds(now.tv_sec) + std::chrono::nanoseconds(now.tv_nsec);
#else
  return std::chrono::steady_clock::now().time_since_epoch();
#endif
}

}  // namespace

std::chrono::steady_clock::time_point end_of(std::chrono::nanoseconds timeout) {
  using Clock = std::chrono::steady_clock;
  const auto now = Clock::now();
  return timeout < Clock::time_point::max() - now ? now + std::chrono::duration_cast<Clock::duration>(timeout)
                                                  : Clock::time_point::max();
}

CancelScope::CancelScope(const RunOptions& options) noexcept : CancelScope(options, nullptr, nullptr) {}
CancelScope::CancelScope(bool (*poll)(void*), void* context) noexcept : CancelScope(RunOptions(), poll, context) {}

CancelScope::CancelScope(const RunOptions& options, bool (*poll)(void*), void* context) noexcept
    : token_(options.cancel),
      timeout_(options.timeout),
      poll_(poll),
      context_(context),
      entered_(token_ || timeout_.count() != 0 || poll) {
  if (!entered_) return;
  if (timeout_.count() != 0) end_ = end_of(timeout_);
  if (poll_) {
    owner_ = pthread_self();
    next_poll_ = coarse_now() + poll_every_;
  }
  outer_ = std::exchange(this_thread.scope, this);
}

CancelScope::~CancelScope() {
  if (entered_) this_thread.scope = outer_;
}

CancelView CancelView::of_this_thread() {
  return this_thread;
}

void CancelView::poll_at_every_look(CancelScope& scope) {
  scope.poll_every_ = scope.next_poll_ = std::chrono::nanoseconds(0);
}

bool CancelView::look(CancelScope& scope) {
  using Why = CancelScope::Why;
  for (CancelScope* s = &scope; s; s = s->outer_) {
    if (s->why_.load(std::memory_order_relaxed) != Why::kGoesOn) return true;
    Why why = Why::kGoesOn;
    if (s->token_ && s->token_->cancelled()) {
      why = Why::kToken;
    } else if (s->timeout_.count() != 0 && std::chrono::steady_clock::now() >= s->end_) {
      why = Why::kTime;
    } else if (s->poll_ && pthread_equal(s->owner_, pthread_self())) {
      if (const std::chrono::nanoseconds now = coarse_now(); now >= s->next_poll_) {
        if (s->poll_(s->context_)) why = Why::kPoll;
        s->next_poll_ = coarse_now() + s->poll_every_;
      }
    }
    if (why == Why::kGoesOn) continue;
    Why before = Why::kGoesOn;
    s->why_.compare_exchange_strong(before, why, std::memory_order_relaxed);
    return true;
  }
  return false;
}

Status CancelView::status(const CancelScope* scope, std::string_view where) {
  using Why = CancelScope::Why;
  while (scope && scope->why_.load(std::memory_order_relaxed) == Why::kGoesOn) scope = scope->outer_;
  const Why why = scope ? scope->why_.load(std::memory_order_relaxed) : Why::kToken;
  if (why != Why::kTime) return fail_with(Code::kCancelled, "cancelled at ", where);
  char seconds[32];
  std::snprintf(seconds, sizeof seconds, "%g", std::chrono::duration<double>(scope->timeout_).count());
  return fail_with(Code::kCancelled, "timed out after ", seconds, " s at ", where);
}

bool stopped() {
  CancelScope* const scope = this_thread.scope;
  return scope && CancelView::look(*scope);
}

Status stop_status(std::string_view where) {
  return CancelView::status(this_thread.scope, where);
}

Status check_stopped(std::string_view where) {
  return stopped() ? stop_status(where) : Status();
}

LoopsMayStop::LoopsMayStop(bool may) : before_(std::exchange(this_thread.loops_may_stop, may)) {}
LoopsMayStop::~LoopsMayStop() {
  this_thread.loops_may_stop = before_;
}

bool loop_stops() {
  return this_thread.loops_may_stop && stopped();
}

WorksFor::WorksFor(CancelView view) : before_(std::exchange(this_thread, view)) {}
WorksFor::~WorksFor() {
  this_thread = before_;
}

}  // namespace pinnace
