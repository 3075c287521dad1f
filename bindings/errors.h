// Status to Python: the exception classes of pinnace and the one function that raises them.
#pragma once

#include <pybind11/pybind11.h>

#include <pinnace/status.h>

namespace pinnace::bindings {

/// Adds Error and its subclasses, one per code, to the module.
void add_errors(pybind11::module_& module);

/// Raises the exception of the status's code: message as text, and attributes `offset` (int or None), `rule` (str) and
/// `nodes` (list of NodeProblem). The status must be a failure. Needs the GIL.
[[noreturn]] void throw_status(const Status& status);

inline void check(const Status& status) {
  if (!status.ok()) throw_status(status);
}
template <class T>
T check(Result<T> result) {
  if (!result.ok()) throw_status(result.status());
  return std::move(*result);
}

}  // namespace pinnace::bindings
