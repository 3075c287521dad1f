// ProgramData: what a verified .pnc file holds, as the parts of pinnace see it. Program is a shared pointer to one.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <pinnace/program.h>

#include "graph/graph.h"

namespace pinnace {

/// The first bytes of every .pnc file. No text starts like that, and whatever changes line ends or bit 7 damages it.
inline constexpr uint8_t kProgramMagic[8] = {0x89, 'P', 'N', 'C', '\r', '\n', 0x1a, '\n'};

using Metadata = std::vector<std::pair<std::string, std::string>>;

/// Bytes that a back end stored: packed weights, a compiled model. Removing one changes speed, never a result beyond
/// the stated bounds; a back end checks them as it would a file.
struct Payload {
  std::string target;  ///< "cpu:avx2"
  std::string key;     ///< the back end's own name for it; unique for the target
  std::span<const std::byte> bytes;
  std::shared_ptr<const StoredBytes> stored;  ///< the same bytes, to be checked before use; null: made just now
};

/// A file's bytes, in pieces that follow each other: a program with other metadata shares what did not change with the
/// one that it was made from.
class FileBytes {
 public:
  FileBytes() = default;
  explicit FileBytes(std::vector<std::span<const std::byte>> pieces);

  std::span<const std::span<const std::byte>> pieces() const { return pieces_; }
  uint64_t size() const { return size_; }
  /// All of them in a row. Of several pieces the first call makes a copy, which stays; std::bad_alloc where there is no
  /// memory for it. Thread-safe.
  std::span<const std::byte> whole() const;

 private:
  struct Joined;
  std::vector<std::span<const std::byte>> pieces_;
  uint64_t size_ = 0;
  std::shared_ptr<Joined> joined_;  ///< of several pieces
};

/// One section of the file, in the order of its table (container.h).
struct FileSection {
  uint32_t kind = 0;
  std::span<const std::byte> bytes;
  uint64_t hash = 0;  ///< as the table has it
};

/// Immutable once it is in a Program. Constants, payloads and `file` point into what `owner` keeps alive: a mapped
/// file or a Buffer.
struct ProgramData {
  std::shared_ptr<const void> owner;
  FileBytes file;                     ///< empty if the program was never written
  std::vector<FileSection> sections;  ///< of `file`
  std::string name;                   ///< of the file, for messages: "net.pnc"
  int descriptor = -1;                ///< of the file that it is mapped from, which `owner` keeps open; -1: it is none
  Graph graph;
  Metadata metadata;                       ///< sorted by key
  std::vector<Payload> payloads;           ///< sorted by target and key
  std::vector<uint32_t> payload_sections;  ///< of each payload: index in `sections`
  std::vector<TensorSpec> inputs, outputs;
  std::vector<StateSpec> states;
};

/// Program::from_bytes without the copy.
Result<Program> program_of(std::string name, Buffer bytes, Verify verify);

}  // namespace pinnace
