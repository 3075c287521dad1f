// class Program and diff().
#include <pybind11/stl.h>

#include <pinnace/program.h>

#include "errors.h"
#include "file_path.h"
#include "interrupt.h"
#include "types.h"

namespace py = pybind11;

namespace pinnace::bindings {
namespace {

Verify verify_of(bool hashes) {
  return hashes ? Verify::kFull : Verify::kStructure;
}

Program open_program(const FilePath& path, bool verify_hashes, bool on_use) {
  return interruptible(
      [&] { return Program::open(path.bytes, verify_hashes && on_use ? Verify::kOnUse : verify_of(verify_hashes)); });
}

Program program_from_bytes(const py::bytes& bytes, bool verify_hashes) {
  const auto view = static_cast<std::string_view>(bytes);
  return interruptible([&] { return Program::from_bytes(std::as_bytes(std::span(view)), verify_of(verify_hashes)); });
}

py::bytes bytes_of(const Program& program) {
  const auto bytes = program.bytes();
  return py::bytes(reinterpret_cast<const char*>(bytes.data()), bytes.size());
}

py::typing::Dict<py::str, py::str> metadata_dict(const Program& program) {
  py::typing::Dict<py::str, py::str> d;
  for (const auto& [key, value] : program.metadata()) d[py::str(key)] = value;
  return d;
}

Rows state_dicts(const Program& program) {
  Rows all;
  for (const StateSpec& state : program.states()) all.append(spec_dict({state.name, state.type}));
  return all;
}

Rows payload_dicts(const Program& program) {
  Rows all;
  for (const PayloadInfo& p : program.payloads()) {
    all.append(py::dict(py::arg("target") = p.target, py::arg("key") = p.key, py::arg("bytes") = p.bytes));
  }
  return all;
}

Rows streamed_input_dicts(const Program& program) {
  Rows all;
  for (const StreamedInput& s : check(program.streamed_inputs())) {
    all.append(py::dict(py::arg("name") = s.name, py::arg("axis") = s.axis, py::arg("latency") = s.latency,
                        py::arg("multiple") = s.multiple, py::arg("tail") = s.tail));
  }
  return all;
}

Rows streamed_output_dicts(const Program& program) {
  Rows all;
  for (const StreamedOutput& s : check(program.streamed_outputs())) {
    all.append(py::dict(py::arg("name") = s.name, py::arg("axis") = s.axis, py::arg("up") = s.up,
                        py::arg("down") = s.down, py::arg("more") = s.more));
  }
  return all;
}

void save(const Program& program, const FilePath& path) {
  interruptible([&] { return program.save(path.bytes); });
}

}  // namespace

void add_program(py::module_& module) {
  py::class_<Program>(module, "Program", "What a .pnc file holds: immutable, shared, verified. See pinnace.Program.")
      .def_static("open", open_program, py::arg("path"), py::arg("verify_hashes") = true, py::arg("on_use") = false,
                  "Maps and verifies a .pnc file. FileError, CorruptFile, Unsupported.")
      .def_static("from_bytes", program_from_bytes, py::arg("bytes"), py::arg("verify_hashes") = true,
                  "As open, from bytes, which are copied.")
      .def_property_readonly("inputs", [](const Program& p) { return spec_dicts(p.inputs()); })
      .def_property_readonly("outputs", [](const Program& p) { return spec_dicts(p.outputs()); })
      .def_property_readonly("symbols", [](const Program& p) { return symbol_dicts(p.symbols()); })
      .def_property_readonly("states", state_dicts)
      .def_property_readonly("streamed_inputs", streamed_input_dicts)
      .def_property_readonly("streamed_outputs", streamed_output_dicts)
      .def_property_readonly("nodes", [](const Program& p) { return node_dicts(p.nodes(), p.symbols()); })
      .def_property_readonly("constants", [](const Program& p) { return constant_dicts(p.constants()); })
      .def_property_readonly("metadata", metadata_dict)
      .def_property_readonly("payloads", payload_dicts)
      .def(
          "without_payloads", [](const Program& p) { return interruptible([&] { return p.without_payloads(); }); },
          "The same program without what back ends stored in it.")
      .def(
          "try_shapes",
          [](const Program& p, const std::vector<std::vector<int64_t>>& shapes, bool details,
             const std::vector<const CustomOp*>& ops, const Contents& contents) {
            return trial_dict(
                interruptible([&] { return try_shapes(p, shapes, details, ops, input_contents(contents)); }));
          },
          py::arg("shapes"), py::arg("details") = false, py::arg("ops") = std::vector<const CustomOp*>{},
          py::arg("contents") = Contents{}, "As Model.try_shapes.")
      .def("text", &Program::text, py::arg("max_constant_bytes") = 64, "The graph's text form.")
      .def("bytes", bytes_of, "The file's bytes.")
      .def(
          "with_metadata",
          [](const Program& p, const std::map<std::string, std::string>& entries) {
            const std::vector<std::pair<std::string, std::string>> list(entries.begin(), entries.end());
            return interruptible([&] { return p.with_metadata(list); });
          },
          py::arg("entries"), "A program with these metadata entries more, or changed.")
      .def("save", save, py::arg("path"), "Writes the file atomically. FileError.");
  module.def("diff", &diff, py::arg("a"), py::arg("b"), py::arg("include_metadata") = true,
             "Differences between two programs, one line each.");
}

}  // namespace pinnace::bindings
