// Exception classes live as long as the process: their references are never given back.
#include "errors.h"

#include <exception>
#include <new>
#include <stdexcept>
#include <string>

namespace py = pybind11;

namespace pinnace::bindings {
namespace {

struct ErrorRow {
  Code code;
  const char* name;
  const char* doc;
};
constexpr ErrorRow kErrors[] = {
    {Code::kInvalidArgument, "InvalidArgument", "The call breaks a stated rule; nothing was changed."},
    {Code::kUnsupported, "Unsupported", "Legal, but not in this build or on this device; the text names the rule."},
    {Code::kCorruptFile, "CorruptFile", "Bytes break the format; `offset` and `rule` say where and which."},
    {Code::kOutOfMemory, "OutOfMemory", "Memory was not given; nothing was changed."},
    {Code::kDeviceLost, "DeviceLost", "The device is gone; make a new Session."},
    {Code::kCancelled, "Cancelled",
     "A token or a timeout ended the call, which had no effect; a Session can run again."},
    {Code::kConversion, "ConversionError",
     "The source model cannot be imported as a whole; `nodes` lists every reason."},
    {Code::kFile, "FileError", "A file could not be opened, read or written; the text has the path and the reason."},
    {Code::kVerification, "VerificationError", "The converted model does not match its source or itself."},
};

PyObject* error_class = nullptr;
PyObject* error_classes[std::size(kErrors)] = {};

PyObject* class_of(Code code) {
  for (size_t i = 0; i < std::size(kErrors); ++i) {
    if (kErrors[i].code == code) return error_classes[i];
  }
  return error_class;
}

PyObject* new_class(py::module_& module, const char* name, const char* doc, PyObject* base, PyObject* fields) {
  const std::string full = std::string("pinnace.") + name;
  PyObject* made = PyErr_NewExceptionWithDoc(full.c_str(), doc, base, fields);
  if (!made) throw py::error_already_set();
  module.attr(name) = py::handle(made);
  return made;
}

/// Names in a sentence may come from a file and need not be UTF-8.
py::str text_of(const std::string& bytes) {
  PyObject* text = PyUnicode_DecodeUTF8(bytes.data(), static_cast<Py_ssize_t>(bytes.size()), "backslashreplace");
  if (!text) throw py::error_already_set();
  return py::reinterpret_steal<py::str>(text);
}

/// As Python shows strings, which escapes what a terminal would act on.
py::str problem_text(const NodeProblem& p) {
  return py::str("NodeProblem(node={!r}, op={!r}, source={!r}, rule={!r}, value={!r}, module={!r})")
      .format(text_of(p.node), text_of(p.op), text_of(p.source), text_of(p.rule), text_of(p.value), text_of(p.module));
}

template <std::string NodeProblem::* field>
py::str field_text(const NodeProblem& problem) {
  return text_of(problem.*field);
}

}  // namespace

void add_errors(py::module_& module) {
  py::class_<NodeProblem>(module, "NodeProblem", "One node that could not be imported, compiled or placed.")
      .def(py::init<std::string, std::string, std::string, std::string, std::string, std::string>(), py::arg("node"),
           py::arg("op"), py::arg("source") = "", py::arg("rule") = "", py::arg("value") = "", py::arg("module") = "")
      .def_property_readonly("node", field_text<&NodeProblem::node>, "name in the source model")
      .def_property_readonly("op", field_text<&NodeProblem::op>, "operator as the source spells it")
      .def_property_readonly("source", field_text<&NodeProblem::source>, "'file.py:41', may be empty")
      .def_property_readonly("rule", field_text<&NodeProblem::rule>, "the rule that refuses it")
      .def_property_readonly("value", field_text<&NodeProblem::value>, "the offending value, may be empty")
      .def_property_readonly("module", field_text<&NodeProblem::module>,
                             "path of the submodule of a PyTorch model, 'layers.3.conv1'; may be empty")
      .def("__repr__", problem_text)
      .def(py::pickle(
          [](const NodeProblem& p) {
            return py::make_tuple(text_of(p.node), text_of(p.op), text_of(p.source), text_of(p.rule), text_of(p.value),
                                  text_of(p.module));
          },
          [](const py::tuple& state) {
            const auto field = [&](size_t i) { return state[i].cast<std::string>(); };
            return NodeProblem{field(0), field(1), field(2), field(3), field(4), field(5)};
          }));
  py::dict fields;  // so that an error raised from Python code has them too
  fields["offset"] = py::none();
  fields["rule"] = "";
  fields["nodes"] = py::tuple();
  error_class = new_class(module, "Error", "Base of every error that pinnace raises.", PyExc_Exception, fields.ptr());
  for (size_t i = 0; i < std::size(kErrors); ++i) {
    // Who catches Python's own MemoryError catches ours.
    py::tuple bases = py::make_tuple(py::handle(error_class));
    if (kErrors[i].code == Code::kOutOfMemory) {
      bases = py::make_tuple(py::handle(error_class), py::handle(PyExc_MemoryError));
    }
    error_classes[i] = new_class(module, kErrors[i].name, kErrors[i].doc, bases.ptr(), nullptr);
  }
  // What the bindings' own code, pybind11 or a public function without a Status could not allocate.
  py::register_local_exception_translator([](std::exception_ptr thrown) {  // NOLINT: the type that it takes
    try {
      if (thrown) std::rethrow_exception(thrown);
    } catch (const std::bad_alloc&) {
      PyErr_SetString(class_of(Code::kOutOfMemory), "the system gives no more memory");
    } catch (const std::length_error&) {
      PyErr_SetString(class_of(Code::kOutOfMemory), "the system gives no more memory");
    }
  });
}

void throw_status(const Status& status) {
  const py::handle type = class_of(status.code());
  py::object error = type(text_of(status.message()));
  if (status.offset() >= 0) error.attr("offset") = status.offset();
  error.attr("rule") = status.rule();
  py::list nodes;
  for (const NodeProblem& problem : status.nodes()) nodes.append(problem);
  error.attr("nodes") = nodes;
  PyErr_SetObject(type.ptr(), error.ptr());
  throw py::error_already_set();
}

}  // namespace pinnace::bindings
