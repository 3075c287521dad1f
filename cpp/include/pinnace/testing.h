// Entry points for pinnace's own tests: graphs and imported models without passes, compilation or a session, run by
// reference code. Not installed programs' business.
#pragma once

#include <span>
#include <string>
#include <vector>

#include <pinnace/tensor.h>

#pragma GCC visibility push(default)
namespace pinnace {

/// Bytes owned by the caller.
struct OwnedTensor {
  TensorType type;
  std::vector<std::byte> bytes;
};

/// Runs one operator by its reference code. `node` is the text form of a graph with one node or more whose inputs are
/// `inputs`, e.g. "graph \"t\" { input %x : f32[2] %y : f32[2] = relu(%x) output \"y\" %y }".
///
/// kInvalidArgument: the text does not parse, or types do not fit. Not fast: for tests and documentation.
Result<std::vector<OwnedTensor>> run_graph_text(std::string_view text, std::span<const Tensor> inputs);

/// Imports a model, .pt2 (a zip archive) or else ONNX, and gives the graph's text form, constants over 64 bytes as a
/// hash. Errors as Model::load.
Result<std::string> import_model_text(const std::string& path);

/// Imports a model, .pt2 or else ONNX, and runs it by reference code, as it was imported, once per entry of `steps`;
/// states are kept from step to step. A .pnc is run as it is.
///
/// steps    each: the inputs in the model's order, dense. Checked against the declared types.
/// Returns  the outputs of each step in order. Errors as Model::load and, for inputs that do not fit, kInvalidArgument.
Result<std::vector<std::vector<OwnedTensor>>> run_model_reference(const std::string& path,
                                                                  std::span<const std::vector<Tensor>> steps);

}  // namespace pinnace
#pragma GCC visibility pop
