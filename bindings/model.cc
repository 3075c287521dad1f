// class Model and passes().
#include <pybind11/stl.h>

#include <map>

#include <pinnace/model.h>

#include "arrays.h"
#include "errors.h"
#include "file_path.h"
#include "interrupt.h"
#include "keeps_argument.h"
#include "types.h"

namespace py = pybind11;

namespace pinnace::bindings {
namespace {

using SymbolTuple = std::tuple<std::string, int64_t, std::optional<int64_t>, int64_t>;
using DimNameTuple = std::tuple<size_t, size_t, std::string>;
using Shapes = std::vector<std::vector<int64_t>>;
using NamedArrays = std::vector<std::pair<std::string, py::object>>;

LoadOptions load_options(const std::vector<std::string>& disabled_passes, bool check_passes,
                         const std::vector<SymbolTuple>& symbols, const std::string& model_name,
                         const std::vector<const CustomOp*>& ops, const std::vector<DimNameTuple>& dim_names) {
  LoadOptions options;
  options.disabled_passes = disabled_passes;
  options.check_passes = check_passes;
  for (const auto& [name, min, max, multiple_of] : symbols) {
    options.symbols.push_back({name, min, max.value_or(Symbol::kUnbounded), multiple_of});
  }
  for (const auto& [input, dim, name] : dim_names) options.dim_names.push_back({input, dim, name});
  options.model_name = model_name;
  options.ops = ops;
  return options;
}

/// Borrows the examples, which live as long as the result.
std::vector<BorrowedArray> add_examples(LoadOptions& options, const NamedArrays& examples) {
  std::vector<BorrowedArray> arrays;
  for (const auto& [name, array] : examples) {
    arrays.push_back(borrow_array(array, name.empty() ? "an example" : "example '" + name + "'"));
    options.examples.emplace_back(name, arrays.back().tensor);
  }
  return arrays;
}

Model load(const FilePath& path, const std::vector<std::string>& disabled_passes, bool check_passes,
           const std::vector<SymbolTuple>& symbols, const std::string& model_name,
           const std::vector<const CustomOp*>& ops, const std::vector<DimNameTuple>& dim_names,
           const NamedArrays& examples, const std::vector<std::string>& separate_dims) {
  LoadOptions options = load_options(disabled_passes, check_passes, symbols, model_name, ops, dim_names);
  options.separate_dims = separate_dims;
  const std::vector<BorrowedArray> arrays = add_examples(options, examples);
  return interruptible([&] { return Model::load(path.bytes, options); });
}

Model parse(const std::string& text, const std::vector<std::string>& disabled_passes, bool check_passes,
            const std::vector<const CustomOp*>& ops) {
  const LoadOptions options = load_options(disabled_passes, check_passes, {}, "", ops, {});
  return interruptible([&] { return Model::parse(text, options); });
}

std::span<const std::byte> bytes_of(const py::buffer_info& info) {
  return {static_cast<const std::byte*>(info.ptr), static_cast<size_t>(info.size * info.itemsize)};
}

/// Parts are bytes or other one-dimensional buffers. Each is held, so that it stays where it is, as long as the model.
Model load_torch_program(const std::string& name, const NamedArrays& parts,
                         const std::vector<std::string>& disabled_passes, bool check_passes,
                         const std::vector<SymbolTuple>& symbols, const std::vector<const CustomOp*>& ops,
                         const std::vector<DimNameTuple>& dim_names, const NamedArrays& examples,
                         const std::string& model_name) {
  LoadOptions options = load_options(disabled_passes, check_passes, symbols, model_name, ops, dim_names);
  const std::vector<BorrowedArray> arrays = add_examples(options, examples);
  TorchProgram source{name, {}};
  for (const auto& [part, object] : parts) {
    if (!PyObject_CheckBuffer(object.ptr())) {
      throw_status(Status(Code::kInvalidArgument, "part '" + part + "' is not a row of bytes"));
    }
    auto held = std::make_unique<py::buffer_info>(py::reinterpret_borrow<py::buffer>(object).request());
    if (held->ndim != 1 || (held->shape[0] > 1 && held->strides[0] != held->itemsize)) {
      throw_status(Status(Code::kInvalidArgument, "part '" + part + "' is not a row of bytes"));
    }
    const std::span<const std::byte> bytes = bytes_of(*held);
    source.parts.push_back({part, bytes, dropped_with_gil(std::move(held))});
  }
  return interruptible([&] { return Model::load_torch_program(source, options); });
}

Model load_torch_nnapi(const py::array& serialized, const std::vector<py::array>& weights,
                       const std::vector<std::vector<uint32_t>>& input_dims, const std::vector<int>& input_formats,
                       const std::vector<int>& output_formats, const std::vector<std::string>& disabled_passes,
                       bool check_passes, const std::vector<const CustomOp*>& ops) {
  const LoadOptions options = load_options(disabled_passes, check_passes, {}, "", ops, {});
  const auto dense = [](const py::array& array) { return py::array::ensure(array, py::array::c_style); };
  std::vector<py::array> held = {dense(serialized)};
  for (const py::array& weight : weights) held.push_back(dense(weight));
  TorchNnapiModel source{bytes_of(held[0].request()), {}, input_dims, input_formats, output_formats};
  for (size_t i = 1; i < held.size(); ++i) source.weights.push_back(bytes_of(held[i].request()));
  return interruptible([&] { return Model::load_torch_nnapi(source, options); });
}

Rows check_rows(const Model& model, const std::vector<std::string>& targets) {
  Rows rows;
  for (const CheckRow& r : interruptible([&] { return model.check(targets); })) {
    py::dict d;
    d["node"] = r.node;
    d["op"] = r.op;
    d["source"] = r.source;
    d["module"] = r.module;
    d["target"] = r.target;
    d["supported"] = r.supported;
    d["rule"] = r.rule;
    d["value"] = r.value;
    d["rewrite"] = r.rewrite;
    d["bytes_copied"] = r.bytes_copied;
    rows.append(d);
  }
  return rows;
}

Program build(const Model& model, const std::vector<std::string>& targets,
              const std::map<std::string, std::string>& metadata) {
  BuildOptions options;
  options.targets = targets;
  options.metadata.assign(metadata.begin(), metadata.end());
  return interruptible([&] { return model.build(options); });
}

/// A dict of fields by their names in C++.
Preprocessing preprocessing_of(const py::dict& fields) {
  Preprocessing how;
  const auto set = [](const py::handle& value, auto& field) { field = py::cast<std::decay_t<decltype(field)>>(value); };
  for (const auto& [key, value] : fields) {
    const auto name = py::cast<std::string>(key);
    const auto is = [&name](const char* field) { return name == field; };
    if (is("name")) {
      set(value, how.name);
    } else if (is("input")) {
      set(value, how.input);
    } else if (is("input_layout")) {
      set(value, how.input_layout);
    } else if (is("height")) {
      set(value, how.height);
    } else if (is("width")) {
      set(value, how.width);
    } else if (is("row_stride")) {
      set(value, how.row_stride);
    } else if (is("chroma_row_stride")) {
      set(value, how.chroma_row_stride);
    } else if (is("pixel_stride")) {
      set(value, how.pixel_stride);
    } else if (is("cut_last_row")) {
      set(value, how.cut_last_row);
    } else if (is("matrix")) {
      set(value, how.matrix);
    } else if (is("crop_box")) {
      set(value, how.crop_box);
    } else if (is("crop_size")) {
      set(value, how.crop_size);
    } else if (is("crop_ratio")) {
      set(value, how.crop_ratio);
    } else if (is("crop_to_aspect")) {
      set(value, how.crop_to_aspect);
    } else if (is("size")) {
      set(value, how.size);
    } else if (is("resize")) {
      set(value, how.resize);
    } else if (is("antialias")) {
      set(value, how.antialias);
    } else if (is("center_crop")) {
      set(value, how.center_crop);
    } else if (is("output")) {
      set(value, how.output);
    } else if (is("scale")) {
      set(value, how.scale);
    } else if (is("mean")) {
      set(value, how.mean);
    } else if (is("std")) {
      set(value, how.std);
    } else if (is("output_layout")) {
      set(value, how.output_layout);
    } else {
      throw_status(Status(Code::kInvalidArgument, "preprocessing has no field '" + name + "'"));
    }
  }
  return how;
}

Rows pass_report_dicts(const Model& model) {
  Rows rows;
  for (const PassReport& r : model.pass_reports()) {
    py::dict d;
    d["pass"] = r.pass;
    d["changes"] = r.changes;
    d["milliseconds"] = r.milliseconds;
    d["largest_error"] = r.largest_error;
    rows.append(d);
  }
  return rows;
}

}  // namespace

void add_model(py::module_& module) {
  py::class_<Model>(module, "Model", "An imported and optimised graph. See pinnace.Model.")
      .def_static("load", load, py::arg("path"), py::arg("disabled_passes") = std::vector<std::string>{},
                  py::arg("check_passes") = false, py::arg("symbols") = std::vector<SymbolTuple>{},
                  py::arg("model_name") = "", py::arg("ops") = std::vector<const CustomOp*>{},
                  py::arg("dim_names") = std::vector<DimNameTuple>{}, py::arg("examples") = NamedArrays{},
                  py::arg("separate_dims") = std::vector<std::string>{}, KeepsArgument<6>(),
                  "Loads .onnx, .pt2, .pnc or an NNAPI model's .json. symbols: (name, min, max or None, multiple_of) "
                  "per dynamic dimension. "
                  "dim_names: (input, dimension, its new name). examples: (name, or \"\" for all in order, array). "
                  "separate_dims: names of dimensions of an ONNX file that are not one and the same.")
      .def_static(
          "format_of", [](const FilePath& path) { return interruptible([&] { return Model::format_of(path.bytes); }); },
          py::arg("path"), "The format that load() would take a file for, by its first bytes.")
      .def_static(
          "load_torch_program", load_torch_program, py::arg("name"), py::arg("parts"),
          py::arg("disabled_passes") = std::vector<std::string>{}, py::arg("check_passes") = false,
          py::arg("symbols") = std::vector<SymbolTuple>{}, py::arg("ops") = std::vector<const CustomOp*>{},
          py::arg("dim_names") = std::vector<DimNameTuple>{}, py::arg("examples") = NamedArrays{},
          py::arg("model_name") = "", py::keep_alive<0, 6>(),
          "From the parts that torch.export.save would write: (name in the archive, its bytes). Weights are used "
          "where they lie; build() raises InvalidArgument if they were written to. Else as load.")
      .def_static("load_torch_nnapi", load_torch_nnapi, py::arg("serialized"), py::arg("weights"),
                  py::arg("input_dims"), py::arg("input_formats"), py::arg("output_formats"),
                  py::arg("disabled_passes") = std::vector<std::string>{}, py::arg("check_passes") = false,
                  py::arg("ops") = std::vector<const CustomOp*>{}, KeepsArgument<8>(),
                  "From the parts of PyTorch's NnapiModule; arrays are read as bytes and copied.")
      .def_static("parse", parse, py::arg("text"), py::arg("disabled_passes") = std::vector<std::string>{},
                  py::arg("check_passes") = false, py::arg("ops") = std::vector<const CustomOp*>{}, KeepsArgument<4>(),
                  "From the text form of a graph.")
      .def_property_readonly("inputs", [](const Model& m) { return spec_dicts(m.inputs()); })
      .def_property_readonly("outputs", [](const Model& m) { return spec_dicts(m.outputs()); })
      .def_property_readonly("symbols", [](const Model& m) { return symbol_dicts(m.symbols()); })
      .def_property_readonly("nodes", [](const Model& m) { return node_dicts(m.nodes(), m.symbols()); })
      .def_property_readonly("constants", [](const Model& m) { return constant_dicts(m.constants()); })
      .def_property_readonly(
          "notes", [](const Model& m) { return std::vector<std::string>(m.notes().begin(), m.notes().end()); })
      .def_property_readonly("pass_reports", pass_report_dicts)
      .def_property_readonly(
          "merged",
          [](const Model& m) {
            return std::vector<std::pair<std::string, std::string>>(m.merged().begin(), m.merged().end());
          },
          "(name of a node that became a part of another, that one's name), as it happened.")
      .def_property_readonly("format", [](const Model& m) { return m.format(); })
      .def("text", &Model::text, py::arg("max_constant_bytes") = 64)
      .def("check", check_rows, py::arg("targets"), "One dict per node and target.")
      .def(
          "try_shapes",
          [](const Model& m, const Shapes& shapes, bool details, const Contents& contents) {
            return trial_dict(interruptible([&] { return m.try_shapes(shapes, details, input_contents(contents)); }));
          },
          py::arg("shapes"), py::arg("details") = false, py::arg("contents") = Contents{},
          "What the shape rules say at these shapes of the inputs, in order, where inputs of these places have these "
          "integers: {\"fits\", \"inferred\": nodes whose rules hold, \"failure\"}; with details also \"nodes\": "
          "(name, op, inputs, outputs, whole-number attributes), and "
          "\"values\": name -> (dtype, sizes or None, contents or None, range of floats or None).")
      .def(
          "with_ranges",
          [](const Model& m, const std::vector<SymbolTuple>& ranges) {
            const LoadOptions options = load_options({}, false, ranges, "", {}, {});
            return interruptible([&] { return m.with_ranges(options.symbols); });
          },
          py::arg("ranges"), KeepsArgument<1>(),
          "The same model with narrower ranges of dynamic dimensions: (name, min, max or None, multiple_of).")
      .def(
          "with_names",
          [](const Model& m, const std::vector<std::string>& inputs, const std::vector<std::string>& outputs) {
            return interruptible([&] { return m.with_names(inputs, outputs); });
          },
          py::arg("inputs"), py::arg("outputs"), KeepsArgument<1>(),
          "The same model with these names of its inputs and outputs, all of them in order.")
      .def(
          "streamed",
          [](const Model& m, const std::vector<std::pair<std::string, int>>& streams) {
            std::vector<StreamAxis> axes;
            for (const auto& [input, axis] : streams) axes.push_back({input, axis});
            return interruptible([&] { return m.streamed(axes); });
          },
          py::arg("streams"), KeepsArgument<1>(), "The model for chunks of these inputs along these axes.")
      .def_property_readonly(
          "facts",
          [](const Model& m) { return std::map<std::string, std::string>(m.facts().begin(), m.facts().end()); })
      .def(
          "preprocessed",
          [](const Model& m, const py::dict& fields, const std::string& input) {
            const Preprocessing how = preprocessing_of(fields);
            return interruptible([&] { return m.preprocessed(how, input); });
          },
          py::arg("how"), py::arg("input") = "", KeepsArgument<1>(),
          "The model that makes one of its inputs of a picture; `how` has fields of C++'s Preprocessing.")
      .def("build", build, py::arg("targets"), py::arg("metadata") = std::map<std::string, std::string>{});
  module.def(
      "describe_preprocessing",
      [](const py::dict& fields) {
        const Preprocessing how = preprocessing_of(fields);
        return interruptible([&] { return describe(how); });
      },
      py::arg("how"), "What the fields say, on one line; InvalidArgument where they cannot be.");
  module.def("passes", &passes, "(name, summary) of every pass, in the order in which they run.");
}

}  // namespace pinnace::bindings
