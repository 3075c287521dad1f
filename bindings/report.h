// The report of a device.
#pragma once

#include <pybind11/pybind11.h>

namespace pinnace::bindings {

/// Adds run_report() and built_from to the module.
void add_report(pybind11::module_& module);

}  // namespace pinnace::bindings
