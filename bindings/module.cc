// The extension pinnace._core: one add_* per header of pinnace.
#include "errors.h"
#include "operators.h"

PYBIND11_MODULE(_core, module) {
  module.doc() = "The C++ core of pinnace.";
  pinnace::bindings::add_errors(module);
  pinnace::bindings::add_operators(module);
}
