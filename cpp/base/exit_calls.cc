// atexit() as often as libraries are opened: its functions are called in reverse order, among the libraries' own.
#include "base/exit_calls.h"

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

}  // namespace

void call_at_exit(void (*f)()) {
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
