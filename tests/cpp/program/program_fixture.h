// What the tests of .pnc files share: a small graph with every part of the format, temporary folders, and files taken
// apart and put together again with one thing changed and every hash right.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "program/container.h"
#include "program/format_generated.h"
#include "program/program_data.h"

namespace pinnace::testing {

/// A folder that goes with its contents.
class TemporaryFolder {
 public:
  TemporaryFolder();
  ~TemporaryFolder();
  const std::string& path() const { return path_; }
  std::string file(const std::string& name) const { return path_ + "/" + name; }
  /// Names in the folder, sorted.
  std::vector<std::string> names() const;

 private:
  std::string path_;
};

/// Symbols, quantisation per tensor and per axis, bounds, equal constants, a bool one, a state, sources.
Graph sample_graph();
/// The sample with metadata and two payloads, as write_program makes it.
std::vector<std::byte> sample_bytes();

std::vector<std::byte> to_vector(const Buffer& buffer);
Program load(std::span<const std::byte> bytes, Verify verify = Verify::kFull);

/// A file in parts that a test may change before write() puts them together, with hashes that are right.
struct FileParts {
  struct Section {
    SectionKind kind;
    std::vector<std::byte> bytes;
  };
  std::unique_ptr<format::ModelT> model;
  std::unique_ptr<format::ManifestT> manifest;
  std::vector<Section> sections;  ///< bytes of graph and manifest are ignored by write(): the tables count

  explicit FileParts(std::span<const std::byte> bytes);
  std::vector<std::byte> write() const;
};

/// Recomputes the hashes of sections (those that lie in the file) and of the header in place.
void refresh_hashes(std::vector<std::byte>& bytes);

}  // namespace pinnace::testing
