// A header of five words of 64 bits, little-endian as all of pinnace's bytes, then each state's bytes: a signature that
// no text begins with, the version of this form, the program, the number of bytes, and their hash. The program is known
// by the hash of its graph section, which covers nodes, types and the hashes of weights, and leaves out what changes no
// state: metadata and payloads.
#include "runtime/saved_states.h"

#include <bit>
#include <cstring>

#include "base/hash.h"
#include "program/container.h"

namespace pinnace {
namespace {

struct Header {
  uint8_t magic[8] = {0x89, 'P', 'N', 'S', '\r', '\n', 0x1a, '\n'};
  uint64_t version = 1;
  uint64_t program = 0;
  uint64_t bytes = 0;
  uint64_t hash = 0;  ///< of all bytes, with this field 0
};
static_assert(sizeof(Header) == 40 && std::endian::native == std::endian::little);

uint64_t identity(const ProgramData& program) {
  for (const FileSection& section : program.sections) {
    if (section.kind == static_cast<uint32_t>(SectionKind::kGraph)) return section.hash;
  }
  return 0;
}

uint64_t hash_of(Header header, std::span<const std::byte> bytes) {
  header.hash = 0;
  Hasher hasher;
  hasher.add(std::as_bytes(std::span(&header, 1)));
  hasher.add(bytes);
  return hasher.digest();
}

Header header_for(const ProgramData& program, const SessionStates& states) {
  Header header;
  header.program = identity(program);
  header.bytes = sizeof header;
  for (size_t i = 0; i < states.size(); ++i) header.bytes += states.bytes(i);
  return header;
}

}  // namespace

std::vector<std::byte> saved_states(const ProgramData& program, const SessionStates& states) {
  Header header = header_for(program, states);
  std::vector<std::byte> saved(header.bytes);
  std::byte* to = saved.data() + sizeof header;
  for (size_t i = 0; i < states.size(); ++i) {
    if (const size_t bytes = states.bytes(i)) std::memcpy(to, states.view(i).bytes, bytes);
    to += states.bytes(i);
  }
  header.hash = hash_of(header, std::span(saved).subspan(sizeof header));
  std::memcpy(saved.data(), &header, sizeof header);
  return saved;
}

Result<std::span<const std::byte>> checked_states(const ProgramData& program, const SessionStates& states,
                                                  std::span<const std::byte> saved) {
  const auto corrupt = [](int64_t offset, const std::string& text) {
    Status status(Code::kCorruptFile, str_cat("saved state: ", text));
    status.with_offset(offset);
    return status;
  };
  const Header want = header_for(program, states);
  Header header;
  if (saved.size() < sizeof header || std::memcmp(saved.data(), want.magic, sizeof want.magic) != 0) {
    return corrupt(0, str_cat(saved.size(), " bytes that do not begin as one"));
  }
  std::memcpy(&header, saved.data(), sizeof header);
  if (header.version != want.version) {
    return unsupported("saved state: its form is of version ", header.version, ", this build reads ", want.version);
  }
  if (header.bytes != saved.size()) {
    return corrupt(24, str_cat("has ", saved.size(), " bytes, ", header.bytes, " were saved"));
  }
  const std::span<const std::byte> bytes = saved.subspan(sizeof header);
  if (hash_of(header, bytes) != header.hash) return corrupt(32, "its bytes do not match their hash");
  if (header.program != want.program || header.bytes != want.bytes) {
    return invalid("the state was saved by a session of another program than '", program.graph.name, "'");
  }
  return bytes;
}

}  // namespace pinnace
