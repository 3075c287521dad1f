// Reading: each rule in the order in which it protects the next. Writing: the one canonical layout.
#include "program/container.h"

#include <algorithm>
#include <cstring>

#include "base/cancel.h"
#include "base/hash.h"

namespace pinnace {
namespace {

/// The hash of header and table, taken as if the header's own field were 0.
uint64_t header_hash(FileHeader header, std::span<const std::byte> table) {
  header.hash = 0;
  Hasher hasher;
  hasher.add(std::as_bytes(std::span(&header, 1)));
  hasher.add(table);
  return hasher.digest();
}

Status check_version(const FileView& file, const FileHeader& header) {
  if (header.major == 0) return file.corrupt(8, "F-3", "format version 0.", header.minor, " never existed");
  if (header.major > kFormatMajor || (header.major == kFormatMajor && header.minor > kFormatMinor)) {
    return unsupported(file.name, ": the file is of format version ", header.major, ".", header.minor,
                       ", this library reads up to ", kFormatMajor, ".", kFormatMinor);
  }
  return {};
}

/// Bounds, order and alignment of section i, which follows `end`; then that the bytes between are zero.
Status check_place(const FileView& file, const SectionEntry& s, size_t i, uint64_t end) {
  const uint64_t entry = sizeof(FileHeader) + i * sizeof(SectionEntry);
  const uint64_t total = file.bytes.size();
  if (s.reserved != 0)
    return file.corrupt(entry + 4, "F-7", "reserved field of section ", i, " is ", s.reserved, ", not 0");
  const auto kind = static_cast<uint32_t>(s.kind);
  if (kind < 1 || kind > 5)
    return file.corrupt(entry, "F-8", "section ", i, " is of kind ", kind, ", kinds are 1 to 5");
  if (s.offset % kAlignment) {
    return file.corrupt(entry + 8, "F-9", "section ", i, " starts at ", s.offset, ", not a multiple of ", kAlignment);
  }
  if (s.offset < end) {
    return file.corrupt(entry + 8, "F-10", "section ", i, " starts at ", s.offset, ", before ", end,
                        " where what precedes it ends");
  }
  if (s.offset > total || s.bytes > total - s.offset) {
    return file.corrupt(entry + 16, "F-11", "section ", i, " spans ", s.bytes, " bytes from ", s.offset,
                        ", the file has ", total);
  }
  if (s.offset - end >= kAlignment) {
    return file.corrupt(end, "F-14", "section ", i, " starts at ", s.offset, ", ", s.offset - end,
                        " bytes after what precedes it; padding is shorter than ", kAlignment);
  }
  for (uint64_t at = end; at < s.offset; ++at) {
    if (file.bytes[at] != std::byte{0}) return file.corrupt(at, "F-14", "padding before section ", i, " is not zero");
  }
  return {};
}

Status check_counts(const FileView& file, std::span<const SectionEntry> sections) {
  for (SectionKind kind : {SectionKind::kGraph, SectionKind::kManifest, SectionKind::kWeights}) {
    const auto count = std::count_if(sections.begin(), sections.end(), [&](const auto& s) { return s.kind == kind; });
    if (count != 1) {
      return file.corrupt(sizeof(FileHeader), "F-8", "there are ", count, " sections '", section_name(kind),
                          "', must be 1");
    }
  }
  return {};
}

/// The section's bytes: where they may change, those of a copy.
Result<std::span<const std::byte>> settled(FileView& file, const SectionEntry& section) {
  const auto bytes = file.bytes.subspan(section.offset, section.bytes);
  if (!file.may_change) return bytes;
  PINNACE_ASSIGN(Buffer copy, Buffer::allocate(bytes.size(), str_cat("section '", section_name(section.kind), "'")));
  if (!bytes.empty()) std::memcpy(copy.data(), bytes.data(), bytes.size());
  file.copies.push_back({section.offset, std::move(copy)});
  const Buffer& kept = file.copies.back().bytes;
  return std::span<const std::byte>(kept.data(), kept.size());
}

}  // namespace

uint64_t FileView::offset_of(const void* place) const {
  const auto at = reinterpret_cast<uintptr_t>(place);
  for (const Copy& copy : copies) {
    const auto begin = reinterpret_cast<uintptr_t>(copy.bytes.data());
    if (at >= begin && at - begin < copy.bytes.size()) return copy.offset + (at - begin);
  }
  return at - reinterpret_cast<uintptr_t>(bytes.data());
}

const char* section_name(SectionKind kind) {
  switch (kind) {
    case SectionKind::kGraph:
      return "graph";
    case SectionKind::kManifest:
      return "manifest";
    case SectionKind::kWeights:
      return "weights";
    case SectionKind::kPayload:
      return "payload";
    case SectionKind::kPadding:
      return "padding";
  }
  return "unknown";
}

Status FileView::corrupt_of(uint64_t offset, std::string_view rule, const PartKind* kinds, const Part* parts) const {
  Status status =
      fail_with(Code::kCorruptFile, name, " at ", hex(offset), ": ", join_parts(kinds, parts), " (rule ", rule, ")");
  status.with_offset(static_cast<int64_t>(offset)).with_rule(std::string(rule));
  return status;
}

const SectionEntry& Container::only(SectionKind kind) const {
  return *std::find_if(sections.begin(), sections.end(), [&](const auto& s) { return s.kind == kind; });
}

Result<Container> read_container(FileView& file, Verify verify) {
  const uint64_t total = file.bytes.size();
  FileHeader header;
  // A short file with the wrong first bytes is no .pnc file; one with the right ones was cut off.
  const size_t compared = std::min<size_t>(total, sizeof kProgramMagic);
  if (total == 0 || std::memcmp(file.bytes.data(), kProgramMagic, compared) != 0) {
    return file.corrupt(
        0, "F-2",
        total == 0 ? "the file is empty" : "this is not a .pnc file: it does not start with 89 50 4e 43 0d 0a 1a 0a");
  }
  if (total < sizeof header)
    return file.corrupt(total, "F-1", "the file ends after ", total, " bytes, inside the header of ", sizeof header);
  std::memcpy(&header, file.bytes.data(), sizeof header);
  PINNACE_TRY(check_version(file, header));
  if (header.file_bytes != total) {
    return file.corrupt(16, "F-4", "the header says ", header.file_bytes, " bytes, the file has ", total);
  }
  const uint64_t table_end = sizeof header + uint64_t(header.sections) * sizeof(SectionEntry);
  if (header.sections > kMaxSections || table_end > total) {
    return file.corrupt(12, "F-5", header.sections, " sections are too many: at most ", kMaxSections,
                        ", and their table must lie in the file's ", total, " bytes");
  }
  Container container;
  container.file = file.bytes;
  container.verify = verify;
  container.sections.resize(header.sections);
  const auto table = std::as_writable_bytes(std::span(container.sections));
  if (!table.empty()) std::memcpy(table.data(), file.bytes.data() + sizeof header, table.size());
  if (const uint64_t found = header_hash(header, table); found != header.hash) {
    return file.corrupt(24, "F-6", "hash of header and section table is ", hex(found), ", recorded is ",
                        hex(header.hash));
  }
  for (uint64_t r : header.reserved) {
    if (r != 0) return file.corrupt(32, "F-7", "reserved bytes of the header are not 0");
  }
  container.stored = std::make_shared<const StoredFile>(StoredFile{file.name, file.bytes, file.descriptor});
  uint64_t end = table_end;
  for (size_t i = 0; i < container.sections.size(); ++i) {
    PINNACE_TRY(check_place(file, container.sections[i], i, end));
    end = container.sections[i].offset + container.sections[i].bytes;
  }
  if (end != total) return file.corrupt(end, "F-14", total - end, " bytes follow the last section");
  PINNACE_TRY(check_counts(file, container.sections));
  PINNACE_ASSIGN(container.graph, settled(file, container.only(SectionKind::kGraph)));
  PINNACE_ASSIGN(container.manifest, settled(file, container.only(SectionKind::kManifest)));
  for (const SectionEntry& s : container.sections) {
    if (verify != Verify::kFull && s.kind != SectionKind::kGraph && s.kind != SectionKind::kManifest) continue;
    PINNACE_TRY(check_hash(file, container, s));
  }
  return container;
}

Status check_hash(const FileView& file, const Container& container, const SectionEntry& s) {
  PINNACE_ASSIGN(const uint64_t found, hash_unless_stopped(container.bytes(s), section_name(s.kind)));
  if (found == s.hash) return {};
  return file.corrupt(s.offset, "F-13", "hash of section '", section_name(s.kind), "' is ", hex(found),
                      ", recorded is ", hex(s.hash));
}

uint64_t SectionContent::size() const {
  uint64_t bytes = padding;
  for (size_t i = 0; i < parts.size(); ++i) bytes = aligned_size(bytes) + parts[i].size();
  return bytes;
}

uint64_t container_size(std::span<const SectionContent> contents) {
  uint64_t end = sizeof(FileHeader) + contents.size() * sizeof(SectionEntry);
  for (const SectionContent& content : contents) end = aligned_size(end) + content.size();
  return end;
}

namespace {

/// Where each section lies; hashes as far as they are known.
Result<std::vector<SectionEntry>> place_sections(std::span<const SectionContent> contents) {
  if (contents.size() > kMaxSections) {
    return invalid("a file has at most ", kMaxSections, " sections, not ", contents.size());
  }
  std::vector<SectionEntry> table(contents.size());
  uint64_t end = sizeof(FileHeader) + table.size() * sizeof(SectionEntry);
  for (size_t i = 0; i < contents.size(); ++i) {
    table[i].kind = contents[i].kind;
    table[i].offset = aligned_size(end);
    table[i].bytes = contents[i].size();
    table[i].hash = contents[i].hash;
    end = table[i].offset + table[i].bytes;
  }
  assert(end == container_size(contents));
  return table;
}

void write_head(std::byte* to, std::span<const SectionEntry> table, uint64_t file_bytes) {
  FileHeader header;
  std::memcpy(header.magic, kProgramMagic, sizeof kProgramMagic);
  header.sections = static_cast<uint32_t>(table.size());
  header.file_bytes = file_bytes;
  header.hash = header_hash(header, std::as_bytes(table));
  std::memcpy(to, &header, sizeof header);
  if (!table.empty()) std::memcpy(to + sizeof header, table.data(), table.size_bytes());
}

}  // namespace

Result<Buffer> write_container(std::span<const SectionContent> contents) {
  PINNACE_ASSIGN(std::vector<SectionEntry> table, place_sections(contents));
  const uint64_t end = container_size(contents);
  PINNACE_ASSIGN(Buffer file, Buffer::allocate(end, "the bytes of a program"));
  uint64_t at = sizeof(FileHeader) + table.size() * sizeof(SectionEntry);  // all before is written last
  const auto append = [&](std::span<const std::byte> bytes, uint64_t offset) {
    std::memset(file.data() + at, 0, offset - at);
    if (!bytes.empty()) std::memcpy(file.data() + offset, bytes.data(), bytes.size());
    at = offset + bytes.size();
  };
  for (size_t i = 0; i < contents.size(); ++i) {
    append({}, table[i].offset);
    for (const auto part : contents[i].parts) {
      PINNACE_TRY(check_stopped("the writing of a program"));
      append(part, aligned_size(at));
    }
    append({}, table[i].offset + table[i].bytes);
    if (contents[i].hash_known) continue;
    PINNACE_ASSIGN(table[i].hash,
                   hash_unless_stopped({file.data() + table[i].offset, table[i].bytes}, "the writing of a program"));
  }
  write_head(file.data(), table, end);
  return file;
}

Result<ContainerPieces> lay_out_container(std::span<const SectionContent> contents) {
  static constexpr std::byte kZeros[kAlignment] = {};
  ContainerPieces made;
  PINNACE_ASSIGN(made.table, place_sections(contents));
  const uint64_t head_bytes = sizeof(FileHeader) + made.table.size() * sizeof(SectionEntry);
  PINNACE_ASSIGN(made.head, Buffer::allocate(head_bytes, "the header of a program"));
  uint64_t at = 0;
  const auto append = [&](std::span<const std::byte> bytes, uint64_t offset) {
    if (offset > at) made.pieces.emplace_back(kZeros, offset - at);
    if (!bytes.empty()) made.pieces.push_back(bytes);
    at = offset + bytes.size();
  };
  append({made.head.data(), head_bytes}, 0);
  for (size_t i = 0; i < contents.size(); ++i) {
    const SectionContent& content = contents[i];
    assert(content.padding == 0 && (content.hash_known || content.parts.size() == 1));
    append({}, made.table[i].offset);
    for (const auto part : content.parts) append(part, aligned_size(at));
    if (!content.hash_known) made.table[i].hash = hash64(content.parts[0]);
  }
  write_head(made.head.data(), made.table, at);
  return made;
}

}  // namespace pinnace
