// Graphs in text form, and importers, run by reference code on numpy arrays, for tests in Python.
#include "testing.h"

#include <pinnace/testing.h>
#include <pybind11/stl.h>

#include "arrays.h"
#include "errors.h"
#include "gil.h"
#include "types.h"

namespace py = pybind11;

namespace pinnace::bindings {
namespace {
Arrays run_text(const std::string& text, const py::sequence& arrays) {
  std::vector<BorrowedArray> borrowed;
  std::vector<Tensor> inputs;
  for (size_t i = 0; i < arrays.size(); ++i) {
    borrowed.push_back(borrow_array(arrays[i], "input " + std::to_string(i)));
    inputs.push_back(borrowed.back().tensor);
  }
  const auto run = [&] {
    const WithoutGil release;
    return run_graph_text(text, inputs);
  };
  Arrays results;
  for (const OwnedTensor& output : check(run())) results.append(array_of(output.type, output.bytes));
  return results;
}

py::typing::List<Arrays> run_model(const std::string& path, const py::sequence& steps) {
  std::vector<BorrowedArray> borrowed;
  std::vector<std::vector<Tensor>> inputs;
  for (const py::handle step : steps) {
    std::vector<Tensor> tensors;
    for (const py::handle array : py::cast<py::sequence>(step)) {
      borrowed.push_back(borrow_array(array, "input " + std::to_string(tensors.size())));
      tensors.push_back(borrowed.back().tensor);
    }
    inputs.push_back(std::move(tensors));
  }
  const auto run = [&] {
    const WithoutGil release;
    return run_model_reference(path, inputs);
  };
  py::typing::List<Arrays> results;
  for (const std::vector<OwnedTensor>& outputs : check(run())) {
    Arrays arrays;
    for (const OwnedTensor& output : outputs) arrays.append(array_of(output.type, output.bytes));
    results.append(arrays);
  }
  return results;
}
}  // namespace

void add_testing(py::module_& module) {
  module.def("run_graph_text", run_text, py::arg("text"), py::arg("inputs"),
             "Runs a graph given in its text form by reference code.\n\n"
             "inputs: arrays in the order of the graph's inputs. Returns a list of arrays. Slow: for tests and "
             "documentation.\n"
             "InvalidArgument: the text does not parse, or types do not fit.");
  module.def(
      "run_model_reference", run_model, py::arg("path"), py::arg("steps"),
      "Imports a .pt2 or ONNX model, or opens a .pnc, and runs it by reference code once per step, a list of arrays in "
      "the order of its inputs; states are kept from step to step. Returns one list of arrays per step. For tests.");
  module.def(
      "import_model_text", [](const std::string& path) { return check(import_model_text(path)); }, py::arg("path"),
      "Imports a .pt2 or ONNX model and gives its graph's text form. For tests.");
}

}  // namespace pinnace::bindings
