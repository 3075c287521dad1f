// Python's view of <pinnace/operators.h>.
#pragma once

#include <pybind11/pybind11.h>

namespace pinnace::bindings {
/// Adds operators() and dtypes().
void add_operators(pybind11::module_& module);
}  // namespace pinnace::bindings
