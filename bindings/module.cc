// The extension pinnace._core: one add_* per header of pinnace.
#include "errors.h"
#include "gil.h"
#include "interrupt.h"
#include "log.h"
#include "operators.h"
#include "report.h"
#include "testing.h"
#include "types.h"

PYBIND11_MODULE(_core_of_main, module) {
  module.doc() = "The C++ core of pinnace.";
  pinnace::bindings::add_exit(module);
  pinnace::bindings::add_report(module);
  pinnace::bindings::add_errors(module);
  pinnace::bindings::add_log(module);
  pinnace::bindings::add_cancel(module);
  pinnace::bindings::add_operators(module);
  pinnace::bindings::add_custom_op(module);
  pinnace::bindings::add_program(module);
  pinnace::bindings::add_session(module);
  pinnace::bindings::add_model(module);
  pinnace::bindings::add_quantize(module);
  pinnace::bindings::add_testing(module);
}

// Exception classes, operators and the thread states by which threads of ours take the GIL are one for the process.
// Asked before pybind11 is: to take the GIL by the main interpreter's state, as it does, would wait for ever here.
PyMODINIT_FUNC PyInit__core() {
  if (PyInterpreterState_Get() != PyInterpreterState_Main()) {
    PyErr_SetString(PyExc_ImportError, "pinnace runs in the main interpreter alone, and this is a subinterpreter");
    return nullptr;
  }
  return PyInit__core_of_main();
}
