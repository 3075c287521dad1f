// Signals, class CancelToken, class CancelScope.
//
// Python's own handler in C only takes note of a signal; handlers in Python run on the main thread when it asks for
// them, which it does between instructions and here. On other threads asking does nothing.
#include "interrupt.h"

#include <pybind11/stl.h>

#include <cmath>
#include <memory>
#include <string>
#include <utility>

namespace py = pybind11;

namespace pinnace::bindings {
namespace {

thread_local Signals* signals_of_this_thread = nullptr;

/// A CancelScope for the length of a `with` block, in which the interpreter may use the GIL as it likes.
class ScopeBlock {
 public:
  explicit ScopeBlock(const CancelToken* cancel) : cancel_(cancel) {}
  ~ScopeBlock() {  // entered and never left: it stays its thread's
    [[maybe_unused]] const CancelScope* left = scope_.release();
  }
  void enter() {
    if (scope_) throw_status(Status(Code::kInvalidArgument, "this CancelScope is entered already"));
    scope_ = std::make_unique<CancelScope>(RunOptions{.cancel = cancel_});
    outer_ = std::exchange(innermost, this);
  }
  void exit(const py::object&, const py::object&, const py::object&) {
    if (innermost != this) {
      throw_status(Status(Code::kInvalidArgument, "CancelScopes are left on their thread, inner ones first"));
    }
    innermost = outer_;
    scope_.reset();
  }
  /// For waiting in Python. Cancelled: the token of a scope of this thread says so.
  static void check_cancelled(const std::string& where) {
    for (const ScopeBlock* scope = innermost; scope; scope = scope->outer_) {
      if (scope->cancel_ && scope->cancel_->cancelled()) {
        throw_status(Status(Code::kCancelled, "cancelled at " + where));
      }
    }
  }

 private:
  static inline thread_local ScopeBlock* innermost = nullptr;
  const CancelToken* cancel_;
  std::unique_ptr<CancelScope> scope_;
  ScopeBlock* outer_ = nullptr;
};

}  // namespace

Signals::Signals() : before_(std::exchange(signals_of_this_thread, this)), scope_(&Signals::poll, this) {}
Signals::~Signals() {
  signals_of_this_thread = before_;
}

bool Signals::poll(void* signals) {
  const WithGil gil;
  if (!gil.held()) return true;  // the interpreter ends
  std::optional<py::error_already_set>& raised = static_cast<Signals*>(signals)->raised_;
  if (PyErr_CheckSignals() != 0) {
    raised.emplace();  // takes the error off the thread
    return true;
  }
  try {
    deliver_log_meanwhile();
  } catch (py::error_already_set& error) {
    raised.emplace(error);
    return true;
  }
  return false;
}

void Signals::rethrow() {
  if (!raised_) return;
  py::error_already_set error = std::move(*raised_);
  raised_.reset();
  throw error;
}

bool Signals::keep(py::error_already_set& error) {
  Signals* const signals = signals_of_this_thread;
  if (!signals || error.matches(PyExc_Exception)) return false;
  if (!signals->raised_) signals->raised_.emplace(error);
  return true;
}

std::chrono::nanoseconds nanoseconds_of(const char* name, std::optional<double> seconds) {
  if (!seconds) return {};
  if (!(*seconds > 0)) {
    throw_status(Status(Code::kInvalidArgument, std::string(name) + " is " +
                                                    py::cast<std::string>(py::repr(py::float_(*seconds))) +
                                                    ", must be a number of seconds above 0, or None"));
  }
  constexpr double kCentury = 3.2e9;
  return std::chrono::nanoseconds(static_cast<int64_t>(std::ceil(std::min(*seconds, kCentury) * 1e9)));
}

RunOptions run_options(std::optional<double> timeout, const CancelToken* cancel) {
  return {.cancel = cancel, .timeout = nanoseconds_of("timeout", timeout)};
}

void add_cancel(py::module_& module) {
  py::class_<CancelToken>(module, "CancelToken",
                          "A request that work should stop: hand it to calls, then cancel() it from any thread.")
      .def(py::init<>())
      .def("cancel", &CancelToken::cancel, "Ends the calls that have it, and those that get it later, with Cancelled.")
      .def_property_readonly("cancelled", &CancelToken::cancelled, "True once cancel() was called.");
  py::class_<ScopeBlock>(module, "CancelScope", "For a `with` block, calls on this thread end when the token says so.")
      .def(py::init<const CancelToken*>(), py::arg("cancel") = py::none(), py::keep_alive<1, 2>())
      .def("__enter__",
           [](ScopeBlock& self) -> ScopeBlock& {
             self.enter();
             return self;
           })
      .def("__exit__", &ScopeBlock::exit, py::arg("type"), py::arg("value"), py::arg("traceback"));
  module.def("check_cancelled", &ScopeBlock::check_cancelled, py::arg("where"),
             "Raises Cancelled where the token of a CancelScope of this thread was cancelled.");
}

}  // namespace pinnace::bindings
