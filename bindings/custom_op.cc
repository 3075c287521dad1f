// class CustomOp: an operator whose shape and reference functions are Python functions.
#include <pybind11/stl.h>

#include <cstring>

#include <pinnace/custom_op.h>

#include "arrays.h"
#include "errors.h"
#include "gil.h"
#include "interrupt.h"
#include "types.h"

namespace py = pybind11;

namespace pinnace::bindings {
namespace {

/// The sentence of the C++ or Python exception that is being handled; nothing leaves it, for the frames above are the
/// core's. An exception of Python's whose own text cannot be had has its type alone.
Status status_of_exception() noexcept {
  try {
    try {
      throw;
    } catch (py::error_already_set& error) {
      // One that is to end the program goes to the call that is under way.
      if (Signals::keep(error)) return Status(Code::kCancelled, "cancelled in a function of the application");
      const Code code = error.matches(PyExc_MemoryError) ? Code::kOutOfMemory : Code::kInvalidArgument;
      const auto name = py::cast<std::string>(py::str(error.type().attr("__name__")));
      try {
        return Status(code, name + ": " + py::cast<std::string>(py::str(error.value())));
      } catch (py::error_already_set&) {
        return Status(code, name);
      }
    } catch (const std::bad_alloc&) {
      return Status::no_memory();
    } catch (const std::exception& error) {
      return Status(Code::kInvalidArgument, error.what());
    }
  } catch (...) {
    return Status::no_memory();
  }
}

Status interpreter_ends() {
  return Status(Code::kCancelled, "the Python interpreter is shutting down");
}

py::dict attribute_dict(const CustomAttributes& attributes) {
  py::dict d;
  for (const auto& [name, text] : attributes) d[py::str(name)] = text;
  return d;
}

/// shape(inputs: list of (dtype, shape), attributes) -> list of (dtype, shape); unknown sizes are None.
Status call_shape(const py::function& f, std::span<const TensorType> inputs, const CustomAttributes& attributes,
                  std::span<TensorType> outputs) {
  const WithGil gil;
  if (!gil.held()) return interpreter_ends();
  try {
    py::list specs;
    for (const TensorType& type : inputs) {
      const py::dict d = spec_dict({"", type});
      py::list shape;
      for (const Dim& dim : type.shape)
        shape.append(dim.known() ? py::object(py::int_(dim.size)) : py::object(py::none()));
      specs.append(py::make_tuple(d["dtype"], py::tuple(shape)));
    }
    const auto made = py::list(call_python(f, py::make_tuple(specs, attribute_dict(attributes))));
    if (made.size() != outputs.size()) {
      return Status(Code::kInvalidArgument,
                    "gave " + std::to_string(made.size()) + " outputs, must give " + std::to_string(outputs.size()));
    }
    for (size_t i = 0; i < outputs.size(); ++i) {
      const auto [dtype, shape] = py::cast<std::pair<py::object, std::vector<std::optional<int64_t>>>>(made[i]);
      const py::array empty(py::dtype::from_args(dtype), std::vector<py::ssize_t>{0});
      outputs[i].dtype = borrow_array(empty, "output " + std::to_string(i)).tensor.type.dtype;
      outputs[i].shape.clear();
      for (const auto& size : shape) outputs[i].shape.push_back(size ? Dim(*size) : Dim());
    }
    return {};
  } catch (...) {
    return status_of_exception();
  }
}

/// reference(inputs: list of arrays, attributes) -> list of arrays of the types that shape gave.
Status call_reference(const py::function& f, std::span<const Tensor> inputs, const CustomAttributes& attributes,
                      std::span<const Tensor> outputs) {
  const WithGil gil;
  if (!gil.held()) return interpreter_ends();
  try {
    py::list arrays;
    for (const Tensor& t : inputs) {
      arrays.append(array_of(t.type, {static_cast<const std::byte*>(t.memory.host), t.memory.bytes}));
    }
    const auto made = py::list(call_python(f, py::make_tuple(arrays, attribute_dict(attributes))));
    if (made.size() != outputs.size()) {
      return Status(Code::kInvalidArgument,
                    "gave " + std::to_string(made.size()) + " outputs, must give " + std::to_string(outputs.size()));
    }
    for (size_t i = 0; i < outputs.size(); ++i) {
      const BorrowedArray b = borrow_array(made[i], "output " + std::to_string(i));
      if (b.tensor.type.dtype != outputs[i].type.dtype || b.tensor.type.shape != outputs[i].type.shape) {
        return Status(Code::kInvalidArgument, "output " + std::to_string(i) + " is " + to_string(b.tensor.type) +
                                                  ", the shape function gave " + to_string(outputs[i].type));
      }
      if (b.tensor.memory.bytes) std::memcpy(outputs[i].memory.host, b.tensor.memory.host, b.tensor.memory.bytes);
    }
    return {};
  } catch (...) {
    return status_of_exception();
  }
}

std::shared_ptr<py::function> held(py::function f) {
  return dropped_with_gil(std::make_unique<py::function>(std::move(f)));
}

std::unique_ptr<CustomOp> make_custom_op(const std::string& name, py::function shape, py::function reference,
                                         int outputs) {
  auto op = std::make_unique<CustomOp>();
  op->name = name;
  op->outputs = outputs;
  op->shape = [f = held(std::move(shape))](auto inputs, const auto& attributes, auto out) {
    return call_shape(*f, inputs, attributes, out);
  };
  op->reference = [f = held(std::move(reference))](auto inputs, const auto& attributes, auto out) {
    return call_reference(*f, inputs, attributes, out);
  };
  return op;
}

}  // namespace

void add_custom_op(py::module_& module) {
  py::class_<CustomOp>(module, "CustomOp", "An operator of the application. See pinnace.custom_op.")
      .def(py::init(&make_custom_op), py::arg("name"), py::arg("shape"), py::arg("reference"), py::arg("outputs") = 1)
      .def_property_readonly("name", [](const CustomOp& op) { return op.name; })
      .def_property_readonly("outputs", [](const CustomOp& op) { return op.outputs; });
}

}  // namespace pinnace::bindings
