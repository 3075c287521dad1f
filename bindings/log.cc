// Delivery to Python's `logging`, set_log_level(), log_to_stderr(), log().
//
// The GIL is given up wherever a line is written or the sink is changed, which waits for lines that are being written:
// who reads stderr at its other end may be a thread of this process.
#include "log.h"

#include <chrono>
#include <deque>
#include <new>
#include <optional>
#include <string>
#include <utility>

#include "errors.h"
#include "gil.h"

namespace py = pybind11;

namespace pinnace::bindings {
namespace {

using Seconds = std::chrono::duration<double>;

/// Longest time that a call spends on messages at its end: with a slow handler and threads that log much, the rest
/// waits for later calls, so that no call hands over what all others say.
constexpr Seconds kAtEnd{0.1};
/// The same in the middle of a call, where others may wait for it, and whose time limit goes on.
constexpr Seconds kMeanwhile{0.005};
/// At the end of the interpreter.
constexpr Seconds kLast{5};

bool delivering = false;   // with the GIL: another thread is at it, whose handler gave the GIL up
bool uses_stderr = false;  // PINNACE_LOG or log_to_stderr() asked for it

/// pinnace.log._deliver, as long as the process: references are never given back.
PyObject* receiver = nullptr;

/// Taken and not delivered yet, in order. With the GIL. As long as the process: threads may be left when it ends.
std::deque<LogMessage>& undelivered = *new std::deque<LogMessage>;

void deliver(const LogMessage& message) {
  if (!receiver) return;
  // A thread may lose the GIL in it, and come back when the interpreter is gone.
  const auto to = py::reinterpret_borrow<py::function>(receiver);
  const double time = std::chrono::duration<double>(message.time.time_since_epoch()).count();
  const py::object handled = call_python(to, py::make_tuple(log_level_name(message.level), message.text, time));
  if (!handled.is(py::bool_(false)) || uses_stderr) return;  // on stderr it stands already
  const WithoutGil release;
  print_log(message.level, message.text);
}

/// What PINNACE_LOG named; None: nothing.
py::object deliver_to(const py::function& function) {
  receiver = function.inc_ref().ptr();
  const std::optional<LogLevel> given = environment_log_level();
  return given ? py::object(py::str(log_level_name(*given))) : py::none();
}

LogLevel level_of(const std::string& name) {
  return check(log_level_from_name(name));
}

void set_level(const std::string& name) {
  const LogLevel level = level_of(name);
  const auto set = [&] {
    const WithoutGil release;
    Status status = uses_stderr ? log_to_stderr(level) : Status();
    return status.ok() ? keep_log(level) : status;
  };
  check(set());
}

void write_to_stderr(const std::string& name) {
  check(log_level_from_name(name));
  uses_stderr = true;
  set_level(name);
}

void write(const std::string& level, const std::string& text) {
  const LogLevel number = level_of(level);
  const WithoutGil release;
  write_log(number, text);
}

void log(const std::string& level, const std::string& text) {
  write(level, text);
  deliver_log();
}

/// What waits, and then what is kept when that is done, for about so long. More is taken only where nothing waits: so
/// what is kept has its bound, and a slow handler does not make messages pile up here.
void deliver_for(Seconds time) {
  std::deque<LogMessage>& waiting = undelivered;
  if (delivering || (waiting.empty() && !log_is_kept())) return;
  struct Delivering {
    Delivering() { delivering = true; }
    ~Delivering() { delivering = false; }
  } const mark;
  const auto end = std::chrono::steady_clock::now() + time;
  try {
    bool taken = false;
    while (std::chrono::steady_clock::now() < end) {
      if (waiting.empty()) {
        if (std::exchange(taken, true)) break;
        for (LogMessage& message : take_log()) waiting.push_back(std::move(message));
        if (waiting.empty()) break;
      }
      const LogMessage message = std::move(waiting.front());
      waiting.pop_front();  // whatever its handler raises: the others wait for the next call
      try {
        deliver(message);
      } catch (py::error_already_set& error) {
        if (!error.matches(PyExc_Exception)) throw;
        error.discard_as_unraisable("a message of pinnace");
      }
    }
  } catch (const std::bad_alloc&) {  // fails no call: the messages wait for the next one, or are lost
  }
}

}  // namespace

void deliver_log() {
  deliver_for(kAtEnd);
}

void deliver_log_meanwhile() {
  deliver_for(kMeanwhile);
}

void end_log() {
  {
    const WithoutGil release;
    static_cast<void>(keep_log(LogLevel::kOff));
  }
  deliver_for(kLast);
}

void begin_log_of_child() {
  delivering = false;
  undelivered.clear();
  static_cast<void>(take_log());
}

void add_log(py::module_& module) {
  const std::optional<LogLevel> given = environment_log_level();
  uses_stderr = given.has_value();
  {
    const WithoutGil release;
    check(keep_log(given.value_or(LogLevel::kWarn)));
  }
  module.def("deliver_log_to", deliver_to, py::arg("function"),
             "Has function(level, text, seconds since 1970) called with the GIL, False if nobody took the text. Gives "
             "PINNACE_LOG's level.");
  module.def("set_log_level", set_level, py::arg("level"), "See pinnace.set_log_level.");
  module.def("log_to_stderr", write_to_stderr, py::arg("level"),
             "As PINNACE_LOG: messages are written to stderr as they arise, and delivered as well.");
  module.def("log", log, py::arg("level"), py::arg("text"), "A message of the package's own.");
  module.def("write_log", write, py::arg("level"), py::arg("text"), "The same, delivered with the next call.");
  module.def("deliver_log", deliver_log, "Delivers what waits, as the end of a call does.");
}

}  // namespace pinnace::bindings
