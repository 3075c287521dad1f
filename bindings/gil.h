// The GIL around calls of the core, and the end of the interpreter.
//
// Threads of ours may want the GIL when the interpreter is shutting down: a run whose operator is a Python function, a
// daemon thread that comes back from a call. Python then ends such a thread with pthread_exit, which unwinds through
// C++ frames that cannot be unwound, and ends the process. Two things keep that from happening. When the interpreter is
// about to shut down, runs are cancelled and waited for, and Python functions are called no more. Whoever comes later
// all the same sleeps until the process is gone, as Python 3.14 does it.
#pragma once

#include <pybind11/pybind11.h>

#include <memory>

#include <pinnace/session.h>

namespace pinnace::bindings {

/// The GIL is given up for a scope.
class WithoutGil {
 public:
  WithoutGil() : state_(PyEval_SaveThread()) {}
  ~WithoutGil();
  WithoutGil(const WithoutGil&) = delete;
  WithoutGil& operator=(const WithoutGil&) = delete;

 private:
  PyThreadState* state_;
};

/// The GIL is taken for a scope, on any thread. Not so once the interpreter is shutting down: held() is to be asked,
/// and where it is false no Python object may be touched.
class WithGil {
 public:
  WithGil();
  ~WithGil();
  WithGil(const WithGil&) = delete;
  WithGil& operator=(const WithGil&) = delete;
  bool held() const { return held_; }

 private:
  bool held_ = false;
  PyGILState_STATE state_{};
};

/// f(*args), with the GIL, on a thread that may be one of ours. Throws what Python raised.
pybind11::object call_python(const pybind11::function& f, const pybind11::tuple& args);

/// A Python object that threads without the GIL may drop. What is dropped after the interpreter's end is leaked.
template <class T>
std::shared_ptr<T> dropped_with_gil(std::unique_ptr<T> object) {
  return {object.release(), [](T* p) {
            if (const WithGil gil; gil.held()) delete p;
          }};
}

/// A run that the end of the interpreter cancels and waits for.
std::shared_ptr<Run> until_exit(Run run);
/// Drops one: waits for the run, without the GIL; not after the interpreter's end.
void drop(std::shared_ptr<Run> run);

/// Registers what is to happen at exit and after a fork.
void add_exit(pybind11::module_& module);

}  // namespace pinnace::bindings
