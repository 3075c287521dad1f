// Python's view of <pinnace/testing.h>.
#pragma once

#include <pybind11/pybind11.h>

namespace pinnace::bindings {
/// Adds run_onnx_reference() and import_onnx_text().
void add_testing(pybind11::module_& module);
}  // namespace pinnace::bindings
