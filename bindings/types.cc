// Conversions of types and nodes to dicts and lists.
#include "types.h"

#include <pybind11/stl.h>

#include "arrays.h"

namespace py = pybind11;

namespace pinnace::bindings {
namespace {

py::list shape_list(const Shape& shape) {
  py::list sizes;
  for (const Dim& d : shape) {
    if (d.known()) {
      sizes.append(d.size);
    } else if (d.symbol >= 0) {
      sizes.append(py::make_tuple(d.symbol));
    } else {
      sizes.append(py::none());
    }
  }
  return sizes;
}

py::object quantization_dict(const TensorType& type) {
  if (!type.quantized()) return py::none();
  py::dict d;
  d["scales"] = type.quantization->scales;
  d["zero_points"] = type.quantization->zero_points;
  d["axis"] = type.quantization->axis;
  d["block"] = type.quantization->block;
  return d;
}

}  // namespace

py::dict spec_dict(const TensorSpec& spec) {
  py::dict d;
  d["name"] = spec.name;
  d["dtype"] = numpy_dtype(spec.type.dtype);
  d["shape"] = shape_list(spec.type.shape);
  d["quantization"] = quantization_dict(spec.type);
  return d;
}

Rows spec_dicts(std::span<const TensorSpec> specs) {
  Rows all;
  for (const TensorSpec& spec : specs) all.append(spec_dict(spec));
  return all;
}

Rows constant_dicts(std::span<const TensorSpec> specs) {
  Rows all;
  for (const TensorSpec& spec : specs) {
    py::dict d = spec_dict(spec);
    d["bytes"] = spec.type.bytes();
    all.append(d);
  }
  return all;
}

Rows symbol_dicts(std::span<const Symbol> symbols) {
  Rows all;
  for (const Symbol& s : symbols) {
    py::dict d;
    d["name"] = s.name;
    d["min"] = s.min;
    d["max"] = s.max == Symbol::kUnbounded ? py::object(py::none()) : py::object(py::int_(s.max));
    d["multiple_of"] = s.multiple_of;
    all.append(d);
  }
  return all;
}

Rows node_dicts(const std::vector<NodeInfo>& nodes, std::span<const Symbol> symbols) {
  Rows all;
  for (const NodeInfo& node : nodes) {
    py::list types;
    for (const TensorType& type : node.output_types) types.append(to_string(type, symbols));
    py::dict d;
    d["name"] = node.name;
    d["op"] = node.op;
    d["path"] = node.path;
    d["source"] = node.source;
    d["module"] = node.module;
    d["inputs"] = node.inputs;
    d["outputs"] = node.outputs;
    d["output_types"] = types;
    all.append(d);
  }
  return all;
}

std::vector<InputContents> input_contents(const Contents& contents) {
  std::vector<InputContents> all;
  for (const auto& [input, values] : contents) all.push_back({input, values});
  return all;
}

py::dict trial_dict(const ShapeTrial& trial) {
  py::dict d;
  d["fits"] = trial.fits;
  d["inferred"] = trial.inferred;
  d["failure"] = trial.failure;
  py::list nodes;
  for (const NodeAt& node : trial.nodes) {
    py::dict attrs;
    for (const auto& [name, value] : node.attrs) attrs[py::str(name)] = value;
    nodes.append(py::make_tuple(node.name, node.op, node.inputs, node.outputs, attrs, node.multiply_adds));
  }
  py::dict values;
  for (const ValueAt& value : trial.values) {
    py::list sizes;
    for (const Dim& dim : value.type.shape) sizes.append(dim.known() ? py::object(py::int_(dim.size)) : py::none());
    py::object contents = py::none();
    if (value.known) contents = py::cast(value.contents);
    const py::object range = value.range ? py::cast(*value.range) : py::none();
    values[py::str(value.name)] = py::make_tuple(std::string(dtype_name(value.type.dtype)), sizes, contents, range);
  }
  d["nodes"] = nodes;
  d["values"] = values;
  return d;
}

}  // namespace pinnace::bindings
