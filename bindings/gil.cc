// What is under way is counted, so that the interpreter's end can wait for it.
#include "gil.h"

#include <cxxabi.h>
#include <pthread.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <csignal>
#include <thread>
#include <vector>

#include "log.h"

namespace py = pybind11;

namespace pinnace::bindings {
namespace {

/// What the end waits for at most: a Python function that takes longer is left to itself.
constexpr std::chrono::seconds kLongest{5};

std::atomic<bool> closed{false};  // no more Python functions are called from our threads
std::atomic<int> inside{0};       // scopes of WithGil, on all threads
thread_local int inside_here = 0;
// The thread that shuts the interpreter down, which may hold the GIL to the end. Written before `closed`.
pthread_t ending;
std::vector<std::weak_ptr<Run>> runs;  // with the GIL

/// Sleeps until the process is gone.
[[noreturn]] void park() {
  sigset_t all;
  sigfillset(&all);
  pthread_sigmask(SIG_BLOCK, &all, nullptr);  // signals are for threads that can act on them
  for (;;) ::pause();
}

bool interpreter_ends() {
#if PY_VERSION_HEX >= 0x030d0000
  return Py_IsFinalizing() || !Py_IsInitialized();
#else
  return _Py_IsFinalizing() || !Py_IsInitialized();
#endif
}

bool this_thread_ends_it() {
  return closed.load(std::memory_order_acquire) && pthread_equal(ending, pthread_self());
}

/// Calls f, which may lose the GIL and want it back. pthread_exit, by which Python ends threads in its last moments,
/// goes no further than this.
template <class F>
auto parked_at_exit(F f) {
#if defined(__GLIBCXX__)
  try {
    return f();
  } catch (abi::__forced_unwind&) {
    park();
  }
#else
  return f();
#endif
}

/// With the GIL, before the interpreter goes away.
void end_runs() {
  ending = pthread_self();
  closed.store(true, std::memory_order_release);
  std::vector<std::shared_ptr<Run>> left;
  for (const std::weak_ptr<Run>& known : runs) {
    if (auto run = known.lock()) left.push_back(std::move(run));
  }
  for (const auto& run : left) run->cancel();
  const WithoutGil released;
  const auto until = std::chrono::steady_clock::now() + kLongest;
  const auto busy = [&] {
    return inside.load(std::memory_order_acquire) > inside_here ||
           std::any_of(left.begin(), left.end(), [](const auto& run) { return !run->done(); });
  };
  while (busy() && std::chrono::steady_clock::now() < until) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  for (auto& run : left) {
    if (!run->done()) new std::shared_ptr<Run>(std::move(run));  // never waited for
  }
}

/// What is to happen once the interpreter is about to shut down.
void end() {
  end_runs();
  end_log();
}

/// In a forked child, where only this thread is left.
void begin_child() {
  inside.store(inside_here);
  runs.clear();
  begin_log_of_child();
}

}  // namespace

WithoutGil::~WithoutGil() {
  if (interpreter_ends() && !this_thread_ends_it()) park();
  parked_at_exit([&] { PyEval_RestoreThread(state_); });
}

WithGil::WithGil() {
  inside.fetch_add(1);
  ++inside_here;
  // The end looks at `inside` after it has closed: one of the two sees the other.
  held_ = !closed.load() || (this_thread_ends_it() && Py_IsInitialized());
  if (held_) {
    state_ = parked_at_exit([] { return PyGILState_Ensure(); });
  } else {
    --inside_here;
    inside.fetch_sub(1);
  }
}

WithGil::~WithGil() {
  if (!held_) return;
  PyGILState_Release(state_);
  --inside_here;
  inside.fetch_sub(1, std::memory_order_release);
}

py::object call_python(const py::function& f, const py::tuple& args) {
  PyObject* const made = parked_at_exit([&] { return PyObject_CallObject(f.ptr(), args.ptr()); });
  if (!made) throw py::error_already_set();
  return py::reinterpret_steal<py::object>(made);
}

std::shared_ptr<Run> until_exit(Run run) {
  std::erase_if(runs, [](const std::weak_ptr<Run>& known) { return known.expired(); });
  try {
    runs.reserve(runs.size() + 1);
    auto shared = std::make_shared<Run>(std::move(run));
    runs.push_back(shared);  // has its place
    return shared;
  } catch (...) {
    run.cancel();
    const WithoutGil released;  // its thread may want the GIL to end
    const Run gone = std::move(run);
    throw;
  }
}

void drop(std::shared_ptr<Run> run) {
  if (!run) return;
  if (closed.load() && !run->done()) {
    new std::shared_ptr<Run>(std::move(run));  // never waited for
    return;
  }
  const WithoutGil released;
  run.reset();
}

void add_exit(py::module_&) {
  py::module_::import("atexit").attr("register")(py::cpp_function(&end));
  if (py::object os = py::module_::import("os"); py::hasattr(os, "register_at_fork")) {
    os.attr("register_at_fork")(py::arg("after_in_child") = py::cpp_function(&begin_child));
  }
}

}  // namespace pinnace::bindings
