// Long calls into the core: without the GIL, and ended by signals whose Python handlers raise, as Ctrl-C's does.
#pragma once

#include <pybind11/pybind11.h>

#include <optional>

#include <pinnace/cancel.h>

#include "errors.h"
#include "gil.h"
#include "log.h"

namespace pinnace::bindings {

/// Adds CancelToken and CancelScope to the module.
void add_cancel(pybind11::module_& module);

/// A time from Python's seconds, None is 0, more than a century is one. InvalidArgument names the argument that is not
/// a number above 0.
std::chrono::nanoseconds nanoseconds_of(const char* name, std::optional<double> seconds);

/// RunOptions from Python's arguments; the token is borrowed. InvalidArgument: see nanoseconds_of.
RunOptions run_options(std::optional<double> timeout, const CancelToken* cancel);

/// While it lives, the core's calls on this thread take note of signals: about every 50 ms their Python handlers run,
/// and if one raises, the call ends early. Messages of the core are delivered then too (log.h). Needs the GIL to be
/// made, and to rethrow.
class Signals {
 public:
  Signals();
  ~Signals();
  Signals(const Signals&) = delete;
  Signals& operator=(const Signals&) = delete;
  /// Raises what a handler raised.
  void rethrow();
  /// For functions of the application that the core calls: keeps an exception that is no error of theirs
  /// (KeyboardInterrupt, SystemExit) for the call that is under way on this thread, if there is one; kCancelled then.
  static bool keep(pybind11::error_already_set& error);

 private:
  static bool poll(void* signals);
  std::optional<pybind11::error_already_set> raised_;
  Signals* before_;
  CancelScope scope_;
};

/// f(), a Status or Result, without the GIL; its value, or the exception.
template <class F>
auto interruptible(F&& f) {
  Signals signals;
  auto result = [&] {
    const WithoutGil release;
    return f();
  }();
  deliver_log();
  signals.rethrow();
  return check(std::move(result));
}

}  // namespace pinnace::bindings
