// operators() as dicts, and graphs in text form run by reference code on numpy arrays.
#include "operators.h"

#include <pinnace/operators.h>
#include <pybind11/stl.h>

#include "arrays.h"
#include "errors.h"
#include "gil.h"
#include "types.h"

namespace py = pybind11;

namespace pinnace::bindings {
namespace {

py::dict input_dict(const OperatorInput& input) {
  py::list types;
  for (const DType dtype : input.types) types.append(std::string(dtype_name(dtype)));
  py::dict d;
  d["name"] = input.name;
  d["types"] = types;
  d["type_letter"] = input.type_letter ? std::string(1, input.type_letter) : std::string();
  d["optional"] = input.optional;
  d["variadic"] = input.variadic;
  return d;
}

py::dict attribute_dict(const OperatorAttribute& attribute) {
  py::dict d;
  d["name"] = attribute.name;
  d["kind"] = attribute.kind;
  d["required"] = attribute.required;
  d["default"] = attribute.default_value;
  return d;
}

Rows operator_dicts() {
  Rows all;
  for (const OperatorInfo& info : operators()) {
    py::list inputs, attributes;
    for (const OperatorInput& input : info.inputs) inputs.append(input_dict(input));
    for (const OperatorAttribute& attribute : info.attributes) attributes.append(attribute_dict(attribute));
    py::dict d;
    d["name"] = info.name;
    d["version"] = info.version;
    d["inputs"] = inputs;
    d["attributes"] = attributes;
    d["min_outputs"] = info.min_outputs;
    d["max_outputs"] = info.max_outputs;
    d["control_flow"] = info.control_flow;
    all.append(d);
  }
  return all;
}

Arrays run_text(const std::string& text, const py::sequence& arrays) {
  std::vector<BorrowedArray> borrowed;
  std::vector<Tensor> inputs;
  for (size_t i = 0; i < arrays.size(); ++i) {
    borrowed.push_back(borrow_array(arrays[i], "input " + std::to_string(i)));
    inputs.push_back(borrowed.back().tensor);
  }
  std::vector<OwnedTensor> outputs;
  {
    const auto run = [&] {
      const WithoutGil release;
      return run_graph_text(text, inputs);
    };
    outputs = check(run());
  }
  Arrays results;
  for (const OwnedTensor& output : outputs) results.append(array_of(output.type, output.bytes));
  return results;
}

}  // namespace

void add_operators(py::module_& module) {
  module.def(
      "operators", operator_dicts,
      "Every operator of this build, in alphabetical order, as a dict: name, version, inputs, attributes, min_outputs, "
      "max_outputs (-1: any number), control_flow.");
  module.def(
      "dtypes",
      [] {
        std::vector<std::string> names;
        for (int i = 0; i < kDTypeCount; ++i) names.emplace_back(dtype_name(static_cast<DType>(i)));
        return names;
      },
      "Names of all element types, which numpy or ml_dtypes has as well.");
  module.def("run_graph_text", run_text, py::arg("text"), py::arg("inputs"),
             "Runs a graph given in its text form by reference code.\n\n"
             "inputs: arrays in the order of the graph's inputs. Returns a list of arrays. Slow: for tests and "
             "documentation.\n"
             "InvalidArgument: the text does not parse, or types do not fit.");
}

}  // namespace pinnace::bindings
