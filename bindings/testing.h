// Python's view of <pinnace/testing.h>.
#pragma once

#include <pybind11/pybind11.h>

namespace pinnace::bindings {
/// Adds run_graph_text(), and the runs and texts of models as they were imported.
void add_testing(pybind11::module_& module);
}  // namespace pinnace::bindings
