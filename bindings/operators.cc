// operators() as dicts.
#include "operators.h"

#include <pinnace/operators.h>
#include <pybind11/stl.h>

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
}

}  // namespace pinnace::bindings
