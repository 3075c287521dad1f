// From the FlatBuffers of a file to Graph and manifest. Every field is checked here, by the rules F-12 and F-15 to F-47
// of docs/file_format.md; what it means to be a graph is left to verify(), what it means to be a node to the schemas.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "program/container.h"
#include "program/format_generated.h"

namespace pinnace {

/// Nested graphs deeper than this are refused: verify(), print() and the runtime recurse.
inline constexpr int kMaxGraphDepth = 200;

/// More metadata than that are refused.
inline constexpr uint32_t kMaxFacts = 4096;

/// An operator that the file's nodes use.
struct FileOperator {
  std::string name;
  int32_t version = 1;
  bool application = false;  ///< not built into pinnace: a session is given it
};

struct DecodedGraph {
  Graph graph;
  std::vector<FileOperator> operators;
  bool unhashed = false;  ///< there are constants without a hash of their own
};

/// Constants point into the file, and `owner` keeps it alive. kCorruptFile; kOutOfMemory. The graph has not been
/// verified.
Result<DecodedGraph> decode_graph(const FileView& file, const Container& container, std::shared_ptr<const void> owner);

struct Manifest {
  Metadata metadata;
  std::vector<Payload> payloads;
  std::vector<uint32_t> payload_sections;  ///< of each payload: index in the section table
};
/// Metadata are lines of text: kInvalidArgument for an empty key, control characters, or bytes that are not UTF-8.
Status check_fact(std::string_view key, std::string_view value);
Result<Manifest> decode_manifest(const FileView& file, const Container& container);

}  // namespace pinnace
