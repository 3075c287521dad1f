// What every importer gives and takes, and the list of importers. One folder per source format; each maps source
// operators to ours, one function per source operator, and reports everything it cannot map at once.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "graph/graph.h"
#include "ops/type_inference.h"

namespace pinnace {

struct TorchNnapiModel;
struct TorchProgram;

struct ImportOptions {
  std::vector<Symbol> symbols = {};             ///< overrides for dynamic dimensions, by the source's name
  std::string model_name = {};                  ///< which model of an archive
  OpTable ops = {};                             ///< built-in operators and the application's
  std::vector<std::string> separate_dims = {};  ///< as in LoadOptions
};

/// Memory of the caller's that constants lie in, and the hash64 that it had when it was imported.
struct LentBytes {
  std::string name;
  std::span<const std::byte> bytes;
  std::shared_ptr<const void> owner;
  uint64_t hash = 0;
};

struct Imported {
  Graph graph;                          ///< verified, types inferred
  std::vector<std::string> notes = {};  ///< what a user should know, one sentence each
  std::vector<LentBytes> lent = {};     ///< what must not be written to before the graph was
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

/// As the importer of torch.export.save's archives, from memory: the same checks and errors, named by program.name.
/// Weights that are dense and aligned are used where they lie; what becomes a state is copied.
Result<Imported> import_torch_program(const TorchProgram& program, const ImportOptions& options);

/// Reads what PyTorch's own NNAPI converter made, for the input shapes that are given. Values that PyTorch keeps
/// channels last enter and leave channels first. kCorruptFile (offset in `serialized`); kInvalidArgument: shapes or
/// formats that do not fit; kUnsupported: an operation, or an attribute that is known only at run time.
Result<Imported> import_torch_nnapi(const TorchNnapiModel& source, const ImportOptions& options);

}  // namespace pinnace
