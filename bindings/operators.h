// Python's view of <pinnace/operators.h>.
#pragma once

#include <pybind11/pybind11.h>

namespace pinnace::bindings {
/// Adds operators() and run_graph_text().
void add_operators(pybind11::module_& module);
}  // namespace pinnace::bindings
