// What every importer gives and takes. One folder per source format; each maps source operators to ours, one function
// per source operator, and reports everything it cannot map at once.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "graph/graph.h"
#include "ops/infer.h"

namespace pinnace {

struct TorchNnapiModel;

struct ImportOptions {
  std::vector<Symbol> symbols;  ///< overrides for open dimensions, by the source's name
  std::string model_name;       ///< which model of an archive
  OpTable ops;                  ///< built-in operators and the application's
};

struct Imported {
  Graph graph;                     ///< verified, types inferred
  std::vector<std::string> notes;  ///< what a user should know, one sentence each
};

/// Reads an ONNX model. External data must lie in the model's folder; links on the way to
/// them must be relative and stay in it. They are mapped, not copied: like a program, they are to be replaced and not
/// rewritten while the model is in use.
/// kFile, kCorruptFile (offset where known), kConversion (nodes() has all that cannot be imported).
Result<Imported> import_onnx(const std::string& path, const ImportOptions& options);
/// Reads an archive of torch.export.save. Pickles in it are ignored, or refused where a weight needs one.
Result<Imported> import_torch(const std::string& path, const ImportOptions& options);
/// Reads what PyTorch's own NNAPI converter made, for the input shapes that are given. Values that PyTorch keeps
/// channels last enter and leave channels first. kCorruptFile (offset in `serialized`); kInvalidArgument: shapes or
/// formats that do not fit; kUnsupported: an operation, or an attribute that is known only at run time.
Result<Imported> import_torch_nnapi(const TorchNnapiModel& source, const ImportOptions& options);
/// Reads an NNAPI model that the host library dumped, or a case of conformance vectors, which have that form, for the
/// input shapes and the omitted inputs that the file has. Inputs whose values must be known before a run (axes, sizes,
/// strides) become constants of the file's values, which a note says. kFile; kCorruptFile; kInvalidArgument,
/// kUnsupported: an operation breaks a rule, or an attribute is known only at run time.
Result<Imported> import_nnapi_json(const std::string& path, const ImportOptions& options);

}  // namespace pinnace
