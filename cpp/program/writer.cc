// Sections in the order graph, manifest, weights, payloads, padding; then the graph is read back from the new bytes, so
// that nothing is handed out that the reader would refuse.
#include "program/writer.h"

#include <algorithm>
#include <cstring>
#include <numeric>
#include <tuple>

#include "base/cancel.h"
#include "base/hash.h"
#include "program/decode.h"
#include "program/encode.h"
#include "program/footprint.h"

namespace pinnace {
namespace {

std::span<const std::byte> bytes_of(const flatbuffers::DetachedBuffer& buffer) {
  return std::as_bytes(std::span(buffer.data(), buffer.size()));
}

/// Sorted by key; the last of several with one key stays.
Status tidy(Metadata& metadata) {
  std::reverse(metadata.begin(), metadata.end());
  std::stable_sort(metadata.begin(), metadata.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
  const auto same_key = [](const auto& a, const auto& b) { return a.first == b.first; };
  metadata.erase(std::unique(metadata.begin(), metadata.end(), same_key), metadata.end());
  for (const auto& [key, value] : metadata) PINNACE_TRY(check_fact(key, value));
  if (metadata.size() > kMaxFacts) return invalid(metadata.size(), " metadata are too many, at most ", kMaxFacts);
  return {};
}

flatbuffers::DetachedBuffer encode_manifest(const Metadata& metadata, std::span<const Payload> payloads,
                                            std::span<const uint32_t> sections) {
  format::ManifestT manifest;
  for (const auto& [key, value] : metadata) {
    auto fact = std::make_unique<format::FactT>();
    fact->key = key;
    fact->value = value;
    manifest.facts.push_back(std::move(fact));
  }
  for (size_t i = 0; i < payloads.size(); ++i) {
    auto to = std::make_unique<format::PayloadT>();
    to->target = payloads[i].target;
    to->key = payloads[i].key;
    to->section = sections[i];
    manifest.payloads.push_back(std::move(to));
  }
  flatbuffers::FlatBufferBuilder builder;
  builder.Finish(format::Manifest::Pack(builder, &manifest));
  return builder.Release();
}

/// As a file has them: by target and key.
std::vector<Payload> in_order(std::span<const Payload> payloads) {
  std::vector<Payload> sorted(payloads.begin(), payloads.end());
  const auto order = [](const Payload& p) { return std::tie(p.target, p.key); };
  std::sort(sorted.begin(), sorted.end(), [&](const Payload& a, const Payload& b) { return order(a) < order(b); });
  return sorted;
}

/// The sections of so many payloads: those after graph, manifest and weights.
std::vector<uint32_t> payload_sections(size_t payloads) {
  std::vector<uint32_t> indices(payloads);
  std::iota(indices.begin(), indices.end(), 3u);
  return indices;
}

/// A graph of many nodes and few weights would break rule F-18: zeros at the end make the file as large as it must be.
void add_padding(std::vector<SectionContent>& sections, const format::Model& model) {
  const uint64_t needed = graph_footprint(model, UINT64_MAX);
  const uint64_t allowed = footprint_allowance(container_size(sections), sections[1].size());
  if (needed > allowed) sections.push_back({.kind = SectionKind::kPadding, .parts = {}, .padding = needed - allowed});
}

/// What the reader would refuse is the caller's mistake here.
Status read_back(const Buffer& file) {
  FileView view{.name = "the program", .bytes = {file.data(), file.size()}};
  const auto check = [&]() -> Status {
    PINNACE_ASSIGN(const Container container, read_container(view, Verify::kStructure));
    PINNACE_TRY(decode_manifest(view, container).status());
    return decode_graph(view, container, nullptr).status();
  };
  Status status = check();
  if (status.code() != Code::kCorruptFile) return status;
  Status invalid_graph(Code::kInvalidArgument, str_cat("the graph cannot be written: ", status.message()));
  return invalid_graph.with_rule(status.rule());
}

}  // namespace

Result<Buffer> write_program(const Graph& graph, Metadata metadata, std::span<const Payload> payloads) {
  PINNACE_TRY(verify(graph));
  PINNACE_TRY(tidy(metadata));
  const std::vector<Payload> sorted = in_order(payloads);
  PINNACE_ASSIGN(const EncodedGraph encoded, encode_graph(graph));
  PINNACE_TRY(check_stopped("the writing of a program"));
  const auto manifest = encode_manifest(metadata, sorted, payload_sections(sorted.size()));
  std::vector<SectionContent> sections;
  sections.push_back({.kind = SectionKind::kGraph, .parts = {bytes_of(encoded.model)}});
  sections.push_back({.kind = SectionKind::kManifest, .parts = {bytes_of(manifest)}});
  sections.push_back({.kind = SectionKind::kWeights, .parts = encoded.weights});
  for (const Payload& p : sorted) sections.push_back({.kind = SectionKind::kPayload, .parts = {p.bytes}});
  add_padding(sections, *flatbuffers::GetRoot<format::Model>(encoded.model.data()));
  PINNACE_ASSIGN(Buffer file, write_container(sections));
  PINNACE_TRY(read_back(file));
  return file;
}

Status write_payloads(Metadata metadata, std::span<const Payload> payloads,
                      const std::function<Status(std::span<const std::span<const std::byte>>)>& write) {
  PINNACE_TRY(tidy(metadata));
  const std::vector<Payload> sorted = in_order(payloads);
  Graph none;
  none.name = "payloads";
  PINNACE_ASSIGN(const EncodedGraph encoded, encode_graph(none));
  const auto manifest = encode_manifest(metadata, sorted, payload_sections(sorted.size()));
  std::vector<SectionContent> sections;
  sections.push_back({.kind = SectionKind::kGraph, .parts = {bytes_of(encoded.model)}});
  sections.push_back({.kind = SectionKind::kManifest, .parts = {bytes_of(manifest)}});
  sections.push_back({.kind = SectionKind::kWeights, .parts = {std::span<const std::byte>()}});
  for (const Payload& p : sorted) {
    PINNACE_ASSIGN(const uint64_t hash, hash_unless_stopped(p.bytes, "the hashing of packed weights"));
    sections.push_back({.kind = SectionKind::kPayload, .parts = {p.bytes}, .hash_known = true, .hash = hash});
  }
  PINNACE_ASSIGN(const ContainerPieces made, lay_out_container(sections));
  return write(made.pieces);
}

namespace {

/// A copy of a section of a program's file that still has its hash: a mapped file may have been written to since it was
/// opened. kCorruptFile.
Result<Buffer> checked_copy(const ProgramData& program, size_t wanted) {
  const FileSection& section = program.sections[wanted];
  PINNACE_ASSIGN(Buffer copy, Buffer::allocate(section.bytes.size(), "a section of a program"));
  if (!section.bytes.empty()) std::memcpy(copy.data(), section.bytes.data(), section.bytes.size());
  if (hash64({copy.data(), copy.size()}) == section.hash) return copy;
  uint64_t offset = sizeof(FileHeader) + program.sections.size() * sizeof(SectionEntry);
  for (size_t i = 0; i < wanted; ++i) offset = aligned_size(offset) + program.sections[i].bytes.size();
  const FileView file{.name = program.name, .bytes = section.bytes};
  return file.corrupt(aligned_size(offset), "F-13", "section '", section_name(static_cast<SectionKind>(section.kind)),
                      "' changed after the file was opened");
}

}  // namespace

Result<std::shared_ptr<const ProgramData>> with_other_metadata(const ProgramData& program, Metadata metadata) {
  PINNACE_TRY(tidy(metadata));
  if (program.sections.empty()) return invalid(program.name, ": the program is in no file that could have metadata");
  /// What the new program's file has of its own, and what keeps the rest.
  struct Owner {
    std::shared_ptr<const void> from;
    flatbuffers::DetachedBuffer manifest;
    Buffer head, graph;
  };
  auto owner = std::make_shared<Owner>();
  owner->from = program.owner;
  owner->manifest = encode_manifest(metadata, program.payloads, program.payload_sections);
  std::vector<SectionContent> contents;
  for (size_t i = 0; i < program.sections.size(); ++i) {  // payloads keep their places, which the manifest names
    const FileSection& section = program.sections[i];
    const auto kind = static_cast<SectionKind>(section.kind);
    if (kind == SectionKind::kManifest) {
      contents.push_back({.kind = kind, .parts = {bytes_of(owner->manifest)}});
      continue;
    }
    contents.push_back({.kind = kind, .parts = {section.bytes}, .hash_known = true, .hash = section.hash});
    if (kind != SectionKind::kGraph) continue;
    PINNACE_ASSIGN(owner->graph, checked_copy(program, i));
    contents.back().parts = {{owner->graph.data(), owner->graph.size()}};
  }
  PINNACE_ASSIGN(ContainerPieces made, lay_out_container(contents));
  owner->head = std::move(made.head);
  auto data = std::make_shared<ProgramData>();
  for (size_t i = 0; i < contents.size(); ++i) {
    data->sections.push_back({static_cast<uint32_t>(made.table[i].kind), contents[i].parts[0], made.table[i].hash});
  }
  data->owner = std::move(owner);
  data->file = FileBytes(std::move(made.pieces));
  data->name = program.name;
  data->graph = program.graph.clone();
  data->metadata = std::move(metadata);
  data->payloads = program.payloads;
  data->payload_sections = program.payload_sections;
  data->inputs = program.inputs;
  data->outputs = program.outputs;
  data->states = program.states;
  return std::shared_ptr<const ProgramData>(std::move(data));
}

}  // namespace pinnace
