// Program: what a .pnc file holds, mapped, verified and immutable. See docs/file_format.md for the bytes.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <pinnace/tensor.h>

#pragma GCC visibility push(default)
namespace pinnace {

struct ProgramData;  // program/program_data.h

/// When the hashes of weights and payloads are checked; everything else always is when a file is opened. kFull: all of
/// them at once. kOnUse: each constant and payload before it is first used, so that what no session reads never leaves
/// the disk; a session that meets a damaged one is not created. kStructure: not at all.
enum class Verify : uint8_t { kFull, kOnUse, kStructure };

/// One node of the portable graph, for reports. Nested graphs follow their node; `path` tells them apart
/// ("loop1.body").
struct NodeInfo {
  std::string name;
  std::string op;
  std::string path;                 ///< names of the enclosing nodes and branches, empty at the top
  std::string source;               ///< "net.py:41", may be empty
  std::string module;               ///< "layers.3.conv1", may be empty
  std::vector<std::string> inputs;  ///< value names, empty string for a left-out input
  std::vector<std::string> outputs;
  std::vector<TensorType> output_types;
};

/// What a back end stored in a file: packed weights, a compiled model.
struct PayloadInfo {
  std::string target;  ///< "cpu:avx2"
  std::string key;
  int64_t bytes = 0;
};

/// A value that a session keeps between runs.
struct StateSpec {
  std::string name;
  TensorType type;
};

/// An input that runs take in chunks, of a program whose model was loaded with `stream` (docs/streaming.md). Sizes are
/// numbers of its elements along `axis`; all inputs of a program have the same.
struct StreamedInput {
  std::string name;
  int axis = 0;          ///< along which chunks are cut
  int64_t latency = 0;   ///< by how many elements the outputs are delayed; a multiple of `multiple`
  int64_t multiple = 1;  ///< every chunk's size is a multiple of it
  int64_t tail = 0;      ///< how many zeros Session::finish() runs on; 0: it runs nothing
};

/// An output of such a program. For T elements of the input the network's output has T * up / down + more elements
/// along `axis`. Chunk by chunk it is delayed by latency * up / down elements, which are zeros at the front.
struct StreamedOutput {
  std::string name;
  int axis = 0;
  int64_t up = 1, down = 1, more = 0;
};

/// Immutable and cheap to copy: copies share one mapping, which the last one closes. Safe to use from many threads.
class Program {
 public:
  /// Maps a .pnc file and verifies every field before its first use.
  ///
  /// kFile: it cannot be read. kCorruptFile: byte offset and rule, here or, for weights and payloads with
  /// Verify::kOnUse, when a session is created. kUnsupported: format or operator version newer than
  /// this library, or an operator not in this build; both sides are named.
  /// Weights stay in the mapping: memory grows with nodes, not with weights. Do not change the file while it is open;
  /// replacing it (save() does) is safe.
  static Result<Program> open(const std::string& path, Verify verify = Verify::kOnUse);
  /// As open, from bytes, which are copied.
  static Result<Program> from_bytes(std::span<const std::byte> bytes, Verify verify = Verify::kFull);

  /// In order; types may hold symbols.
  std::span<const TensorSpec> inputs() const;
  std::span<const TensorSpec> outputs() const;
  std::span<const Symbol> symbols() const;
  std::span<const StateSpec> states() const;
  /// Inputs that runs take in chunks, in order; none: a run takes the whole. kCorruptFile: the metadata have them in
  /// another form than they are written in.
  Result<std::vector<StreamedInput>> streamed_inputs() const;
  /// The outputs of such a program, in order. kCorruptFile likewise.
  Result<std::vector<StreamedOutput>> streamed_outputs() const;
  /// All nodes in execution order.
  std::vector<NodeInfo> nodes() const;
  /// Weights and other constants: the graph's own, then those of nested graphs, whose names may appear again.
  std::vector<TensorSpec> constants() const;
  /// Facts recorded at conversion, sorted by key: "producer", "source", "verified.cpu", … Values are one line of text.
  std::span<const std::pair<std::string, std::string>> metadata() const;
  std::vector<PayloadInfo> payloads() const;
  /// The graph's text form. Constants over max_constant_bytes are printed as a hash.
  std::string text(size_t max_constant_bytes = 64) const;
  /// The file's bytes. Saving and loading them again gives the same bytes.
  std::span<const std::byte> bytes() const;
  /// A program with one more, or a changed, metadata entry.
  Result<Program> with_metadata(const std::string& key, const std::string& value) const;
  /// The same with several, for which the file is written once.
  Result<Program> with_metadata(std::span<const std::pair<std::string, std::string>> entries) const;

  /// The same program without what back ends stored in it: smaller, slower to prepare, the same results.
  Result<Program> without_payloads() const;

  /// Writes the file atomically: to a temporary file beside it, flushed, then renamed. Whatever fails, a file that was
  /// there before stays whole. kFile with the system's reason.
  Status save(const std::string& path) const;

  /// What the parts of pinnace see; applications have no use for it.
  const ProgramData& data() const { return *data_; }
  explicit Program(std::shared_ptr<const ProgramData> data) : data_(std::move(data)) {}

 private:
  std::shared_ptr<const ProgramData> data_;
};

/// Differences between two programs, one line each, in graph order; empty if they are equal in everything but payloads
/// and metadata. `include_metadata` adds those.
std::vector<std::string> diff(const Program& a, const Program& b, bool include_metadata = true);

}  // namespace pinnace
#pragma GCC visibility pop
