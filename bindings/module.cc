// The extension pinnace._core: one add_* per header of pinnace.
#include "built_from.h"
#include "errors.h"
#include "gil.h"
#include "interrupt.h"
#include "operators.h"
#include "testing.h"
#include "types.h"

PYBIND11_MODULE(_core, module) {
  module.doc() = "The C++ core of pinnace.";
  // Exception classes, operators and the GIL's state are one for the process.
  if (PyInterpreterState_Get() != PyInterpreterState_Main()) {
    throw pybind11::import_error("pinnace runs in the main interpreter alone, and this is a subinterpreter");
  }
  pinnace::bindings::add_exit(module);
  module.attr("built_from") = pinnace::bindings::built_from();
  pinnace::bindings::add_errors(module);
  pinnace::bindings::add_cancel(module);
  pinnace::bindings::add_operators(module);
  pinnace::bindings::add_custom_op(module);
  pinnace::bindings::add_program(module);
  pinnace::bindings::add_session(module);
  pinnace::bindings::add_model(module);
  pinnace::bindings::add_testing(module);
}
