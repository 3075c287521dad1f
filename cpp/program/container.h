// The container of a .pnc file: a fixed header, a table of sections, sections at multiples of 64. Knows no graph.
// docs/file_format.md has the bytes and the rules, and which file checks each; a rule's number stands beside its check.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include <pinnace/program.h>

#include "base/files/stored_bytes.h"
#include "base/memory.h"
#include "program/program_data.h"

namespace pinnace {

// Headers and weights are used in place, in the order in which they are stored.
static_assert(std::endian::native == std::endian::little, "a .pnc file is little-endian and is mapped, not converted");

/// A file of a newer version is refused. A newer minor version reads all older ones; a newer major version may not.
inline constexpr uint16_t kFormatMajor = 1, kFormatMinor = 1;
/// Constants of at most so many bytes are checked when a file is opened, and stand before the others: they are read
/// while a plan is made.
inline constexpr size_t kCheckedAtOnce = 4096;
/// More than this many sections are refused: 32 bytes each, read before any hash is known to be right.
inline constexpr uint32_t kMaxSections = 4096;

struct FileHeader {
  uint8_t magic[8] = {};
  uint16_t major = kFormatMajor;
  uint16_t minor = kFormatMinor;
  uint32_t sections = 0;
  uint64_t file_bytes = 0;
  uint64_t hash = 0;  ///< of this header with hash 0, followed by the section table
  uint64_t reserved[4] = {};
};
static_assert(sizeof(FileHeader) == 64);

enum class SectionKind : uint32_t { kGraph = 1, kManifest = 2, kWeights = 3, kPayload = 4, kPadding = 5 };
const char* section_name(SectionKind kind);

struct SectionEntry {
  SectionKind kind = SectionKind::kGraph;
  uint32_t reserved = 0;
  uint64_t offset = 0;  ///< from the file's start, a multiple of 64
  uint64_t bytes = 0;
  uint64_t hash = 0;  ///< hash64 of the bytes
};
static_assert(sizeof(SectionEntry) == 32);

/// The name of a file in messages, and its first byte: what every refusal needs.
struct FileView {
  std::string name;
  std::span<const std::byte> bytes;
  int descriptor = -1;  ///< of the MappedFile that they are
  /// Others may write the bytes, which are a mapped file's: what is checked and then relied on is copied before.
  bool may_change = false;

  /// A section as it was when the file was opened.
  struct Copy {
    uint64_t offset = 0;
    Buffer bytes;
  };
  std::vector<Copy> copies;

  /// kCorruptFile "net.pnc at 0x1f40: <parts> (rule F-12)".
  template <class... Parts>
  [[gnu::always_inline]] Status corrupt(uint64_t offset, std::string_view rule, const Parts&... parts) const {
    return with_parts([&](const PartKind* kinds, const Part* list) { return corrupt_of(offset, rule, kinds, list); },
                      parts...);
  }
  /// The offset in the file of something that lies in its bytes or in a copy of them.
  uint64_t offset_of(const void* place) const;

 private:
  [[gnu::cold]] Status corrupt_of(uint64_t offset, std::string_view rule, const PartKind* kinds,
                                  const Part* parts) const;
};

/// The sections of a file that keeps rules F-1 to F-14. Spans point into the file, or into the copies of its FileView.
struct Container {
  std::vector<SectionEntry> sections;
  std::span<const std::byte> file;
  Verify verify = Verify::kFull;             ///< what was checked, and what is left to decode_graph
  std::shared_ptr<const StoredFile> stored;  ///< what constants and payloads are pieces of
  std::span<const std::byte> graph, manifest;

  std::span<const std::byte> bytes(const SectionEntry& section) const {
    if (section.kind == SectionKind::kGraph) return graph;
    if (section.kind == SectionKind::kManifest) return manifest;
    return file.subspan(section.offset, section.bytes);
  }
  /// The only section of a kind of which there is exactly one: kGraph, kManifest, kWeights.
  const SectionEntry& only(SectionKind kind) const;
};

/// Checks header, table, gaps, and the hashes of graph and manifest; those of all other sections too with
/// Verify::kFull. Of bytes that may change, header, table, graph and manifest are read once: the last two into
/// `file.copies`. kCorruptFile; kUnsupported for a newer version; kOutOfMemory. `file.bytes` start at a multiple of 64.
Result<Container> read_container(FileView& file, Verify verify);
/// Rule F-13 for one section.
Status check_hash(const FileView& file, const Container& container, const SectionEntry& section);

/// A section to be written. Its hash may be known already (of a file that was read), else it is taken.
struct SectionContent {
  SectionKind kind;
  /// Parts that follow each other, each padded with zeros to a multiple of 64 unless it is the last.
  std::vector<std::span<const std::byte>> parts;
  uint64_t padding = 0;  ///< of a kPadding section: how many zeros
  bool hash_known = false;
  uint64_t hash = 0;

  uint64_t size() const;
};

/// The bytes of the file that write_container gives.
uint64_t container_size(std::span<const SectionContent> sections);
/// Lays the sections out in the given order and writes header and table. The same sections give the same bytes.
Result<Buffer> write_container(std::span<const SectionContent> sections);

/// The same file without copying what is in the sections.
struct ContainerPieces {
  Buffer head;                                     ///< header and table
  std::vector<std::span<const std::byte>> pieces;  ///< the file: `head`, then the sections' parts and zeros between
  std::vector<SectionEntry> table;
};
/// kInvalidArgument: too many sections. None has `padding`; those of several parts have a known hash.
Result<ContainerPieces> lay_out_container(std::span<const SectionContent> sections);

}  // namespace pinnace
