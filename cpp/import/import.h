// What every importer gives and takes, and the list of importers. One folder per source format; each maps source
// operators to ours, one function per source operator, and reports everything it cannot map at once.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "graph/graph.h"
#include "ops/type_inference.h"

namespace pinnace {

struct TorchNnapiModel;

struct ImportOptions {
  std::vector<Symbol> symbols = {};             ///< overrides for open dimensions, by the source's name
  std::string model_name = {};                  ///< which model of an archive
  OpTable ops = {};                             ///< built-in operators and the application's
  std::vector<std::string> separate_dims = {};  ///< as in LoadOptions
};

struct Imported {
  Graph graph;                          ///< verified, types inferred
  std::vector<std::string> notes = {};  ///< what a user should know, one sentence each
};

/// A line of importers.inc.
struct Importer {
  std::string_view format;               ///< as Model::format() has it
  bool (*sniff)(std::string_view head);  ///< whether a file that begins so is of this format
  Result<Imported> (*import)(const std::string& path, const ImportOptions& options);
};

/// How many bytes of a file sniffers see, or all that it has.
inline constexpr size_t kSniffedBytes = 16;
/// The first bytes of a file. kFile; kCorruptFile: it is empty.
Result<std::string> sniffed_bytes(const std::string& path);
/// The first importer of the list that takes a file beginning with `head` for its own; the last one takes any.
const Importer& find_importer(std::string_view head);

#define IMPORTER(format, sniff, function) \
  bool sniff(std::string_view head);      \
  Result<Imported> function(const std::string& path, const ImportOptions& options);
#include "import/importers.inc"
#undef IMPORTER

/// Reads what PyTorch's own NNAPI converter made, for the input shapes that are given. Values that PyTorch keeps
/// channels last enter and leave channels first. kCorruptFile (offset in `serialized`); kInvalidArgument: shapes or
/// formats that do not fit; kUnsupported: an operation, or an attribute that is known only at run time.
Result<Imported> import_torch_nnapi(const TorchNnapiModel& source, const ImportOptions& options);

}  // namespace pinnace
