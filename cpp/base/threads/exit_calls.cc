// atexit() as often as libraries are opened: its functions are called in reverse order, among the libraries' own. Those
// of a library that another thread is opening at that moment come before all of ours, so exit() has to be met earlier:
// it first ends the objects of its own thread, which is the main one as a rule.
#include "base/threads/exit_calls.h"

#include <pthread.h>
#include <unistd.h>

#include <atomic>
#include <cassert>
#include <cstdlib>

namespace pinnace {
namespace {

constexpr int kMost = 4;
constinit std::atomic<void (*)()> calls[kMost] = {};

constinit thread_local bool stops_before = false;

void make_calls() {
  for (const auto& call : calls) {
    if (void (*f)() = call.load()) f();
  }
}

bool is_main_thread() {
#if defined(__APPLE__)
  return pthread_main_np() != 0;
#else
  return ::gettid() == ::getpid();
#endif
}

/// Of the main thread.
struct CallsAtItsEnd {
  bool wanted = false;
  ~CallsAtItsEnd() {
    if (wanted) make_calls();
  }
};
thread_local CallsAtItsEnd calls_at_its_end;

}  // namespace

void call_at_exit(void (*f)()) {
  if (is_main_thread()) calls_at_its_end.wanted = true;
  for (auto& call : calls) {
    void (*there)() = nullptr;
    if (call.compare_exchange_strong(there, f)) {
      static_cast<void>(std::atexit(make_calls));  // without memory, there is none
      return;
    }
    if (there == f) return;
  }
  assert(false);
}

void renew_exit_calls() {
  if (stops_before) static_cast<void>(std::atexit(make_calls));  // without memory, an earlier one has to do
}

StopsBeforeLibraries::StopsBeforeLibraries() {
  stops_before = true;
}
StopsBeforeLibraries::~StopsBeforeLibraries() {
  stops_before = false;
}

}  // namespace pinnace
