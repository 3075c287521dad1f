// Damaged and hostile files: one test per rule that breaks only that rule, every truncation, every bit, seeded damage
// under right hashes, and files made to take more memory or time than they are worth.
#include <cmath>
#include <cstring>
#include <functional>
#include <random>
#include <set>

#include <gtest/gtest.h>

#include "base/hash.h"
#include "cases/parse_case.h"
#include "cpp/guarded.h"
#include "cpp/program/program_fixture.h"
#include "program/decode.h"
#include "program/writer.h"

namespace pinnace::testing {
namespace {

using Bytes = std::vector<std::byte>;

template <class T>
void poke(Bytes& bytes, size_t at, T value) {
  std::memcpy(bytes.data() + at, &value, sizeof value);
}

// Offsets of the header's fields, as docs/file_format.md has them.
constexpr size_t kMajorAt = 8, kMinorAt = 10, kSectionsAt = 12, kLengthAt = 16, kHeaderHashAt = 24, kReservedAt = 32;
/// Field `field` (0 kind, 4 reserved, 8 offset, 16 bytes, 24 hash) of section i.
constexpr size_t entry_at(size_t i, size_t field) {
  return 64 + 32 * i + field;
}
// The sample's sections.
constexpr size_t kGraph = 0, kManifest = 1, kWeights = 2, kFirstPayload = 3, kSecondPayload = 4;

SectionEntry entry_of(const Bytes& bytes, size_t i) {
  SectionEntry entry;
  std::memcpy(&entry, bytes.data() + entry_at(i, 0), sizeof entry);
  return entry;
}

/// One way to break one rule: in the bytes (whose hashes are put right afterwards unless the rule is about them), or in
/// the tables.
struct Damage {
  const char* rule;
  const char* says;  ///< part of the sentence
  std::function<void(Bytes&)> bytes;
  std::function<void(FileParts&)> parts;
  bool keep_hashes = false;
};

Damage in_bytes(const char* rule, const char* says, std::function<void(Bytes&)> change, bool keep_hashes = false) {
  return {rule, says, std::move(change), nullptr, keep_hashes};
}
Damage in_model(const char* rule, const char* says, std::function<void(format::ModelT&)> change) {
  return {rule, says, nullptr, [change](FileParts& parts) { change(*parts.model); }};
}
Damage in_manifest(const char* rule, const char* says, std::function<void(FileParts&)> change) {
  return {rule, says, nullptr, std::move(change)};
}

format::ValueT& value(format::ModelT& m, std::string_view name) {
  for (auto& v : m.graphs[0]->values) {
    if (m.strings[v->name] == name) return *v;
  }
  ADD_FAILURE() << name;
  return *m.graphs[0]->values[0];
}
format::NodeT& node(format::ModelT& m, std::string_view name) {
  for (auto& n : m.graphs[0]->nodes) {
    if (m.strings[n->name] == name) return *n;
  }
  ADD_FAILURE() << name;
  return *m.graphs[0]->nodes[0];
}
uint32_t add_string(format::ModelT& m, std::string text) {
  m.strings.push_back(std::move(text));
  return static_cast<uint32_t>(m.strings.size() - 1);
}
format::AttrT& add_attr(format::NodeT& n, uint32_t name, format::AttrKind kind) {
  n.attrs.push_back(std::make_unique<format::AttrT>());
  n.attrs.back()->name = name;
  n.attrs.back()->kind = kind;
  return *n.attrs.back();
}
/// A graph that no rule objects to but those about nesting.
std::unique_ptr<format::GraphT> empty_graph() {
  return std::make_unique<format::GraphT>();
}

std::vector<Damage> all_damage() {
  std::vector<Damage> all;
  // ---- container
  all.push_back(in_bytes("F-1", "inside the header of 64", [](Bytes& b) { b.resize(40); }, true));
  all.push_back(in_bytes("F-2", "this is not a .pnc file", [](Bytes& b) { b[1] = std::byte{'Q'}; }));
  all.push_back(in_bytes("F-2", "the file is empty", [](Bytes& b) { b.clear(); }, true));
  all.push_back(in_bytes("F-3", "version 0.1 never existed", [](Bytes& b) { poke<uint16_t>(b, kMajorAt, 0); }));
  all.push_back(in_bytes("F-4", "the header says", [](Bytes& b) { poke<uint64_t>(b, kLengthAt, b.size() + 1); }));
  all.push_back(in_bytes(
      "F-5", "sections are too many", [](Bytes& b) { poke<uint32_t>(b, kSectionsAt, kMaxSections + 1); }, true));
  all.push_back(in_bytes("F-5", "sections are too many", [](Bytes& b) { poke<uint32_t>(b, kSectionsAt, 1000); }, true));
  all.push_back(
      in_bytes("F-6", "hash of header and section table", [](Bytes& b) { poke<uint64_t>(b, kHeaderHashAt, 1); }, true));
  all.push_back(
      in_bytes("F-6", "hash of header and section table", [](Bytes& b) { b[entry_at(0, 24)] ^= std::byte{1}; }, true));
  all.push_back(in_bytes("F-7", "reserved bytes of the header", [](Bytes& b) { b[kReservedAt + 31] = std::byte{1}; }));
  all.push_back(in_bytes("F-7", "reserved field of section 2", [](Bytes& b) { b[entry_at(2, 4)] = std::byte{1}; }));
  all.push_back(in_bytes("F-8", "is of kind 6", [](Bytes& b) { poke<uint32_t>(b, entry_at(kFirstPayload, 0), 6); }));
  all.push_back(in_bytes("F-8", "is of kind 0", [](Bytes& b) { poke<uint32_t>(b, entry_at(kFirstPayload, 0), 0); }));
  all.push_back(in_bytes("F-8", "there are 2 sections 'weights'",
                         [](Bytes& b) { poke<uint32_t>(b, entry_at(kFirstPayload, 0), 3); }));
  all.push_back(
      in_bytes("F-8", "there are 0 sections 'graph'", [](Bytes& b) { poke<uint32_t>(b, entry_at(kGraph, 0), 5); }));
  all.push_back(in_bytes("F-9", "not a multiple of 64",
                         [](Bytes& b) { poke<uint64_t>(b, entry_at(kWeights, 8), entry_of(b, kWeights).offset + 8); }));
  all.push_back(in_bytes("F-10", "before",
                         [](Bytes& b) { poke<uint64_t>(b, entry_at(kWeights, 8), entry_of(b, kGraph).offset); }));
  all.push_back(
      in_bytes("F-10", "section 0 starts at 64", [](Bytes& b) { poke<uint64_t>(b, entry_at(kGraph, 8), 64); }));
  all.push_back(
      in_bytes("F-11", "the file has", [](Bytes& b) { poke<uint64_t>(b, entry_at(kSecondPayload, 16), 1 << 20); }));
  all.push_back(in_bytes("F-11", "the file has",
                         [](Bytes& b) { poke<uint64_t>(b, entry_at(kSecondPayload, 16), UINT64_MAX - 63); }));
  all.push_back(in_bytes("F-11", "the file has",
                         [](Bytes& b) { poke<uint64_t>(b, entry_at(kSecondPayload, 8), UINT64_MAX - 63); }));
  for (size_t section : {kGraph, kManifest, kWeights, kFirstPayload, kSecondPayload}) {
    all.push_back(in_bytes(
        "F-13", "hash of section",
        [section](Bytes& b) { b[entry_of(b, section).offset + entry_of(b, section).bytes - 1] ^= std::byte{0x10}; },
        true));
  }
  all.push_back(in_bytes("F-14", "is not zero", [](Bytes& b) { b[entry_of(b, kWeights).offset - 1] = std::byte{1}; }));
  all.push_back(in_bytes("F-14", "64 bytes after what precedes it", [](Bytes& b) {
    const SectionEntry last = entry_of(b, kSecondPayload);
    b.insert(b.begin() + static_cast<ptrdiff_t>(last.offset), 64, std::byte{0});
    poke<uint64_t>(b, entry_at(kSecondPayload, 8), last.offset + 64);
    poke<uint64_t>(b, kLengthAt, b.size());
    // The payload before ends on a multiple of 64, so that only the length of the gap is wrong.
    poke<uint64_t>(b, entry_at(kFirstPayload, 16), last.offset - entry_of(b, kFirstPayload).offset);
  }));
  all.push_back(in_bytes("F-14", "1 bytes follow the last section", [](Bytes& b) {
    b.push_back(std::byte{0});
    poke<uint64_t>(b, kLengthAt, b.size());
  }));
  all.push_back(
      in_bytes("F-15", "'graph'", [](Bytes& b) { poke<uint32_t>(b, entry_of(b, kGraph).offset, 0x7ffffff0); }));
  all.push_back(in_bytes("F-15", "'manifest'", [](Bytes& b) { poke<uint32_t>(b, entry_of(b, kManifest).offset, 0); }));
  // ---- lists of the root
  all.push_back(in_model("F-16", "there is no graph", [](auto& m) { m.graphs.clear(); }));
  all.push_back(in_model("F-20", "is not UTF-8", [](auto& m) { m.strings[m.graphs[0]->name] = "\xed\xa0\x80"; }));
  all.push_back(in_model("F-21", "the name of a tensor is string 4000", [](auto& m) { value(m, "a").name = 4000; }));
  all.push_back(in_model("F-21", "the name of a graph", [](auto& m) { m.graphs[0]->name = 4000; }));
  all.push_back(in_model("F-21", "the name of a node", [](auto& m) { node(m, "first").name = 4000; }));
  all.push_back(in_model("F-21", "the source file of a node", [](auto& m) { node(m, "first").file = 4000; }));
  all.push_back(in_model("F-21", "the module of a node", [](auto& m) { node(m, "first").module_path = 4000; }));
  all.push_back(in_model("F-21", "the name of an operator", [](auto& m) { m.operators[0]->name = 4000; }));
  all.push_back(in_model("F-21", "the name of a symbol", [](auto& m) { m.symbols[0]->name = 4000; }));
  all.push_back(in_model("F-21", "the name of a state", [](auto& m) { m.graphs[0]->states[0]->name = 4000; }));
  all.push_back(in_model("F-21", "the name of an output", [](auto& m) { m.graphs[0]->output_names[1] = 4000; }));
  all.push_back(in_model("F-21", "the name of an attribute", [](auto& m) { node(m, "shaped").attrs[0]->name = 4000; }));
  all.push_back(in_model("F-21", "a string of an attribute", [](auto& m) {
    add_attr(node(m, "shaped"), 0, format::AttrKind::Strings).strings = {0, 4000};
  }));
  all.push_back(in_model("F-22", "has element type 25", [](auto& m) { value(m, "a").dtype = 25; }));
  all.push_back(in_model("F-23", "has 1 bounds for 2 dimensions", [](auto& m) { value(m, "a").shape_max = {-1}; }));
  all.push_back(in_model("F-23", "has bound -2 on dimension 0", [](auto& m) { value(m, "y").shape_max[0] = -2; }));
  all.push_back(in_model("F-23", "has bound 5 on dimension 1", [](auto& m) { value(m, "y").shape_max[1] = 5; }));
  all.push_back(in_model("F-24", "has symbol 2 as dimension 0", [](auto& m) { value(m, "a").shape[0] = -4; }));
  all.push_back(in_model("F-24", "has symbol", [](auto& m) { value(m, "a").shape[0] = INT64_MIN; }));
  all.push_back(in_model("F-25", "is of version 0", [](auto& m) { m.operators[0]->version = 0; }));
  all.push_back(in_model("F-25", "names are not empty", [](auto& m) { m.operators[0]->name = 0; }));
  all.push_back(in_model("F-26", "symbol 0 'batch'", [](auto& m) { m.symbols[0]->min = -1; }));
  all.push_back(in_model("F-26", "has range [2, 1]", [](auto& m) { m.symbols[0]->max = 1; }));
  all.push_back(in_model("F-26", "in steps of 0", [](auto& m) { m.symbols[0]->multiple_of = 0; }));
  all.push_back(in_model("F-27", "0 scales and 0 zero points", [](auto& m) {
    m.quantizations[0]->scales.clear();
    m.quantizations[0]->zero_points.clear();
  }));
  all.push_back(
      in_model("F-27", "2 scales and 1 zero points", [](auto& m) { m.quantizations[1]->zero_points.pop_back(); }));
  all.push_back(in_model("F-27", "without an axis", [](auto& m) { m.quantizations[0]->block = 2; }));
  all.push_back(in_model("F-27", "axis -2", [](auto& m) { m.quantizations[0]->axis = -2; }));
  all.push_back(in_model("F-27", "2 scales for axis -1", [](auto& m) { m.quantizations[1]->axis = -1; }));
  all.push_back(in_model("F-27", "block -1", [](auto& m) { m.quantizations[1]->block = -1; }));
  all.push_back(in_model("F-27", "has scale nan", [](auto& m) { m.quantizations[0]->scales[0] = std::nanf(""); }));
  all.push_back(in_model("F-27", "has scale -1", [](auto& m) { m.quantizations[0]->scales[0] = -1; }));
  all.push_back(
      in_model("F-28", "larger than memory can be", [](auto& m) { value(m, "a").shape = {INT64_MAX / 64, 0, 3}; }));
  all.push_back(
      in_model("F-29", "has quantisation 2, the file has 2", [](auto& m) { value(m, "r").quantization = 2; }));
  all.push_back(in_model("F-29", "has quantisation -2", [](auto& m) { value(m, "r").quantization = -2; }));
  all.push_back(in_model("F-30", "only integers are", [](auto& m) { value(m, "a").quantization = 0; }));
  all.push_back(in_model("F-30", "along axis 7 and rank 2", [](auto& m) { m.quantizations[1]->axis = 7; }));
  all.push_back(in_model("F-30", "its shape needs 3", [](auto& m) { m.quantizations[1]->axis = 1; }));
  all.push_back(in_model("F-30", "its shape needs 4", [](auto& m) {
    m.quantizations[1]->axis = 1;
    m.quantizations[1]->block = 2;
  }));
  // ---- constants
  all.push_back(in_model("F-12", "tensor 1 'w1' spans [64000, 64016) of section 'weights', which has 336 bytes",
                         [](auto& m) { *value(m, "w1").constant = format::Span(64000, 16); }));
  all.push_back(in_model("F-12", "spans [64, 18446744073709551615)",
                         [](auto& m) { *value(m, "w1").constant = format::Span(64, UINT64_MAX); }));
  all.push_back(in_model("F-12", "state 'counter'",
                         [](auto& m) { *m.graphs[0]->states[0]->initial = format::Span(UINT64_MAX, 16); }));
  all.push_back(in_model("F-31", "starts at 8", [](auto& m) { *value(m, "w1").constant = format::Span(8, 16); }));
  all.push_back(in_model("F-32", "has 12 bytes stored, its type is float32[4]",
                         [](auto& m) { *value(m, "w1").constant = format::Span(0, 12); }));
  all.push_back(in_model("F-32", "its type is float32[batch,4]",
                         [](auto& m) { value(m, "a").constant = std::make_unique<format::Span>(0, 16); }));
  all.push_back({"F-33", "is bool and holds 2", nullptr, [](FileParts& p) {
                   p.sections[kWeights].bytes[value(*p.model, "flags").constant->offset() + 1] = std::byte{2};
                 }});
  all.push_back(in_model("F-50", "the 16 bytes of a constant do not have the hash that is recorded",
                         [](auto& m) { value(m, "w1").hash ^= 1; }));
  // ---- nodes
  all.push_back(in_model("F-34", "an input of a node is tensor 99", [](auto& m) { node(m, "first").inputs[0] = 99; }));
  all.push_back(in_model("F-34", "an input of a node is tensor -2", [](auto& m) { node(m, "first").inputs[0] = -2; }));
  all.push_back(
      in_model("F-34", "an output of a node is tensor -1", [](auto& m) { node(m, "first").outputs[0] = -1; }));
  all.push_back(in_model("F-34", "input is tensor -1", [](auto& m) { m.graphs[0]->inputs[0] = -1; }));
  all.push_back(in_model("F-34", "output is tensor 99", [](auto& m) { m.graphs[0]->outputs[0] = 99; }));
  all.push_back(in_model("F-34", "the input of a state", [](auto& m) { m.graphs[0]->states[0]->input = 99; }));
  all.push_back(in_model("F-34", "the output of a state", [](auto& m) { m.graphs[0]->states[0]->output = -1; }));
  all.push_back(in_model("F-35", "has operator 9, the file has 3", [](auto& m) { node(m, "first").op = 9; }));
  all.push_back(in_model("F-36", "is from line -1", [](auto& m) { node(m, "first").line = -1; }));
  all.push_back(in_model("F-37", "is of kind 7",
                         [](auto& m) { node(m, "shaped").attrs[0]->kind = static_cast<format::AttrKind>(7); }));
  all.push_back(in_model("F-38", "holds 2 ints", [](auto& m) { node(m, "shaped").attrs[0]->ints = {1, 2}; }));
  all.push_back(in_model("F-38", "holds 0 ints", [](auto& m) { node(m, "shaped").attrs[0]->ints.clear(); }));
  all.push_back(in_model("F-38", "1 floats", [](auto& m) { node(m, "shaped").attrs[0]->floats = {1}; }));
  all.push_back(in_model("F-38", "1 strings", [](auto& m) { node(m, "shaped").attrs[0]->strings = {0}; }));
  all.push_back(in_model("F-38", "is of kind floats and holds 1 ints",
                         [](auto& m) { node(m, "shaped").attrs[0]->kind = format::AttrKind::Floats; }));
  all.push_back(in_model("F-38", "and graph 1", [](auto& m) { node(m, "shaped").attrs[0]->graph = 1; }));
  all.push_back(in_model("F-39", "is graph 0 in graph 0",
                         [](auto& m) { add_attr(node(m, "shaped"), 0, format::AttrKind::Graph); }));
  all.push_back(in_model("F-39", "is graph 1 in graph 0",
                         [](auto& m) { add_attr(node(m, "shaped"), 0, format::AttrKind::Graph).graph = 1; }));
  all.push_back(in_model("F-39", "belong to no other node", [](auto& m) {
    m.graphs.push_back(empty_graph());
    add_attr(node(m, "shaped"), 0, format::AttrKind::Graph).graph = 1;
    add_attr(node(m, "first"), 0, format::AttrKind::Graph).graph = 1;
  }));
  all.push_back(in_model("F-40", "graph 1 is nested in no node", [](auto& m) { m.graphs.push_back(empty_graph()); }));
  all.push_back(in_model("F-41", "has 2 outputs and 1 names", [](auto& m) { m.graphs[0]->output_names.pop_back(); }));
  all.push_back(in_model("F-42", "nested 201 deep", [](auto& m) {
    for (int i = 0; i < 201; ++i) {
      m.graphs.push_back(empty_graph());
      auto holder = std::make_unique<format::NodeT>();
      add_attr(*holder, 0, format::AttrKind::Graph).graph = static_cast<uint32_t>(m.graphs.size() - 1);
      m.graphs[m.graphs.size() - 2]->nodes.push_back(std::move(holder));
    }
  }));
  // ---- manifest
  all.push_back(
      in_manifest("F-20", "a text of the manifest", [](FileParts& p) { p.manifest->payloads[0]->key = "\x80"; }));
  all.push_back(in_manifest("F-43", "4097 metadata are too many", [](FileParts& p) {
    p.manifest->facts.clear();
    for (int i = 0; i < 4097; ++i) {
      p.manifest->facts.push_back(std::make_unique<format::FactT>());
      p.manifest->facts.back()->key = std::to_string(10000 + i);
    }
  }));
  all.push_back(
      in_manifest("F-44", "a key of the metadata is empty", [](FileParts& p) { p.manifest->facts[0]->key.clear(); }));
  all.push_back(in_manifest("F-44", "control character", [](FileParts& p) { p.manifest->facts[0]->value = "a\nb"; }));
  all.push_back(
      in_manifest("F-45", "keys ascend", [](FileParts& p) { std::swap(p.manifest->facts[0], p.manifest->facts[1]); }));
  all.push_back(
      in_manifest("F-45", "keys ascend", [](FileParts& p) { p.manifest->facts[1]->key = p.manifest->facts[0]->key; }));
  all.push_back(in_manifest("F-45", "targets and keys ascend",
                            [](FileParts& p) { std::swap(p.manifest->payloads[0], p.manifest->payloads[1]); }));
  all.push_back(in_manifest("F-46", "is section 9", [](FileParts& p) { p.manifest->payloads[1]->section = 9; }));
  all.push_back(in_manifest("F-46", "is section 2", [](FileParts& p) { p.manifest->payloads[1]->section = 2; }));
  all.push_back(in_manifest("F-46", "is section 3", [](FileParts& p) { p.manifest->payloads[1]->section = 3; }));
  all.push_back(in_manifest("F-47", "section 4 is a payload", [](FileParts& p) { p.manifest->payloads.pop_back(); }));
  // ---- the whole
  all.push_back(in_model("F-48", "read before it is made",
                         [](auto& m) { std::swap(m.graphs[0]->nodes[0], m.graphs[0]->nodes[1]); }));
  all.push_back(in_model("F-48", "", [](auto& m) { value(m, "a").name = value(m, "b").name; }));
  all.push_back(in_model("F-49", "takes at most 1 inputs", [](auto& m) { node(m, "clamp").inputs.push_back(0); }));
  all.push_back(in_model("F-49", "has no attribute 'beta'",
                         [](auto& m) { add_attr(node(m, "clamp"), add_string(m, "beta"), format::AttrKind::Ints); }));
  return all;
}

TEST(ProgramCorruption, EveryRuleIsBrokenAloneAndNamed) {
  const Bytes sample = sample_bytes();
  // Rules that need a file made by hand have tests of their own below.
  std::set<std::string> seen = {"F-17", "F-18", "F-19"};
  for (const Damage& damage : all_damage()) {
    SCOPED_TRACE(str_cat(damage.rule, ": ", damage.says));
    Bytes bytes = sample;
    if (damage.parts) {
      FileParts parts(sample);
      damage.parts(parts);
      bytes = parts.write();
    } else {
      damage.bytes(bytes);
      if (!damage.keep_hashes) refresh_hashes(bytes);
    }
    const auto read = Program::from_bytes(bytes);
    EXPECT_EQ(read.status().code(), Code::kCorruptFile) << read.status().message();
    EXPECT_EQ(read.status().rule(), damage.rule) << read.status().message();
    EXPECT_NE(read.status().message().find(damage.says), std::string::npos) << read.status().message();
    EXPECT_GE(read.status().offset(), 0);
    EXPECT_LE(read.status().offset(), static_cast<int64_t>(bytes.size()));
    EXPECT_NE(read.status().message().find(str_cat("(rule ", damage.rule, ")")), std::string::npos);
    seen.insert(damage.rule);
  }
  for (int rule = 1; rule <= 50; ++rule) EXPECT_TRUE(seen.contains(str_cat("F-", rule))) << "no test breaks F-" << rule;
}

TEST(ProgramCorruption, PartsPutTogetherAgainAreTheFile) {
  const Bytes sample = sample_bytes();
  EXPECT_EQ(FileParts(sample).write(), sample) << "otherwise the damage above would not be alone";
  Bytes refreshed = sample;
  refresh_hashes(refreshed);
  EXPECT_EQ(refreshed, sample);
}

TEST(ProgramCorruption, TheOffsetIsThePlaceOfTheDamage) {
  Bytes bytes = sample_bytes();
  const uint64_t at = entry_of(bytes, kWeights).offset - 1;
  bytes[at] = std::byte{1};
  EXPECT_EQ(Program::from_bytes(bytes).status().offset(), static_cast<int64_t>(at));
}

TEST(ProgramCorruption, NewerFormatsAreNotCorrupt) {
  for (const size_t field : {kMajorAt, kMinorAt}) {
    Bytes bytes = sample_bytes();
    poke<uint16_t>(bytes, field, 7);
    const auto read = Program::from_bytes(bytes);  // before the hash: the layout of a newer header is not known
    EXPECT_EQ(read.status().code(), Code::kUnsupported);
    const char* version = field == kMajorAt ? "7.1" : "1.7";
    EXPECT_EQ(read.status().message(),
              str_cat("program: the file is of format version ", version, ", this library reads up to 1.1"));
  }
}

TEST(ProgramCorruption, StructureAloneSkipsOnlyTheHashesOfContents) {
  for (const size_t section : {kGraph, kManifest, kWeights, kFirstPayload}) {
    Bytes bytes = sample_bytes();
    bytes[entry_of(bytes, section).offset + 1] ^= std::byte{1};
    EXPECT_FALSE(Program::from_bytes(bytes, Verify::kFull).ok());
    const bool contents = section == kWeights || section == kFirstPayload;
    EXPECT_EQ(Program::from_bytes(bytes, Verify::kStructure).ok(), contents) << section;
  }
}

TEST(ProgramCorruption, EveryTruncationIsRefused) {
  const Bytes sample = sample_bytes();
  for (size_t length = 0; length < sample.size(); ++length) {
    const auto read = Program::from_bytes(std::span(sample).first(length));
    ASSERT_EQ(read.status().code(), Code::kCorruptFile) << length;
  }
  for (size_t extra : {1, 64, 1000}) {
    Bytes longer = sample;
    longer.resize(sample.size() + extra);
    EXPECT_EQ(Program::from_bytes(longer).status().rule(), "F-4");
  }
}

TEST(ProgramCorruption, EveryFlippedBitIsRefused) {
  Bytes bytes = sample_bytes();
  for (size_t bit = 0; bit < bytes.size() * 8; ++bit) {
    bytes[bit / 8] ^= std::byte(1 << bit % 8);
    const auto read = Program::from_bytes(bytes);
    ASSERT_FALSE(read.ok()) << "bit " << bit << " of byte " << bit / 8;
    ASSERT_TRUE(read.status().code() == Code::kCorruptFile || read.status().code() == Code::kUnsupported);
    bytes[bit / 8] ^= std::byte(1 << bit % 8);
  }
  EXPECT_TRUE(Program::from_bytes(bytes).ok());
}

/// Whoever forges a file puts its hashes right: the rules must hold on their own. What is accepted must be usable.
TEST(ProgramCorruption, DamageUnderRightHashesNeverCrashes) {
  const Bytes sample = sample_bytes();
  const unsigned seed = 20240611;
  std::mt19937 random(seed);
  int accepted = 0;
  for (int round = 0; round < 4000; ++round) {
    Bytes bytes = sample;
    const size_t section = round % 4 == 0 ? kManifest : kGraph;
    const SectionEntry entry = entry_of(bytes, section);
    for (uint32_t edits = 1 + random() % 3; edits > 0; --edits) {
      const size_t at = entry.offset + random() % entry.bytes;
      switch (random() % 4) {
        case 0:
          bytes[at] ^= std::byte(1 << random() % 8);
          break;
        case 1:
          bytes[at] = std::byte(random());
          break;
        case 2:
          bytes[at] = std::byte(random() % 2 ? 0xff : 0);
          break;
        default: {  // a whole word: an offset, a length, an index
          const size_t word = entry.offset + random() % (entry.bytes / 4) * 4;
          constexpr uint32_t kWords[] = {0, 1, 4, 64, 0x7fffffff, 0x80000000, 0xffffffff, 0xfffffffe};
          poke<uint32_t>(bytes, word, random() % 2 ? kWords[random() % 8] : uint32_t(random() % (2 * entry.bytes)));
        }
      }
    }
    refresh_hashes(bytes);
    const auto read = Program::from_bytes(bytes);
    if (!read.ok()) {
      const Code code = read.status().code();
      ASSERT_TRUE(code == Code::kCorruptFile || code == Code::kUnsupported) << read.status().message();
      continue;
    }
    ++accepted;
    ASSERT_TRUE(verify(read->data().graph).ok());
    (void)read->text();
    (void)read->nodes();
    (void)diff(*read, *read);
    ASSERT_TRUE(write_program(read->data().graph, read->data().metadata, read->data().payloads).ok())
        << "seed " << seed;
  }
  RecordProperty("accepted", accepted);
  EXPECT_GT(accepted, 0) << "harmless damage, in a name for instance, is accepted";
  EXPECT_LT(accepted, 3000);
}

// ------------------------------------------------------------------------- more memory or time than a file is worth

using Builder = flatbuffers::FlatBufferBuilder;

/// A file around a Model that was built by hand, with right hashes.
Bytes file_around(Builder& builder, const std::string& weights = {}) {
  FileParts sample(sample_bytes());
  Builder manifest;
  manifest.Finish(format::CreateManifest(manifest));
  const SectionContent contents[] = {
      {.kind = SectionKind::kGraph, .parts = {std::as_bytes(std::span(builder.GetBufferPointer(), builder.GetSize()))}},
      {.kind = SectionKind::kManifest,
       .parts = {std::as_bytes(std::span(manifest.GetBufferPointer(), manifest.GetSize()))}},
      {.kind = SectionKind::kWeights, .parts = {std::as_bytes(std::span(weights))}}};
  return to_vector(*write_container(contents));
}

template <class T>
std::vector<T> repeated(T item, size_t count) {
  return std::vector<T>(count, item);
}

struct Hostile {
  const char* name;
  const char* rule;  ///< null: any answer
  std::function<void(Builder&)> build;
};

constexpr size_t kMany = 500'000;  // references of four bytes: files of about 2 MB
/// So long that as many tables could be in the file.
const std::string kBallast(4 << 20, 'b');

void finish(Builder& b, std::vector<flatbuffers::Offset<format::Graph>> graphs, std::vector<std::string> strings = {""},
            flatbuffers::Offset<flatbuffers::Vector<flatbuffers::Offset<format::Operator>>> ops = 0) {
  const auto names = b.CreateVectorOfStrings(strings);
  const auto list = b.CreateVector(graphs);
  b.Finish(format::CreateModel(b, names, ops, 0, 0, list));
}

const Hostile kHostile[] = {
    {"one node with many inputs, many times", "F-18",
     [](Builder& b) {
       const auto inputs = b.CreateVector(repeated<int32_t>(0, 10000));
       const auto node = format::CreateNode(b, 0, 0, inputs);
       const auto nodes = b.CreateVector(repeated(node, kMany));
       finish(b, {format::CreateGraph(b, 0, 0, nodes)}, {"", kBallast});
     }},
    {"more nodes than there can be", "F-15",
     [](Builder& b) {
       const auto nodes = b.CreateVector(repeated(format::CreateNode(b), kMany));
       finish(b, {format::CreateGraph(b, 0, 0, nodes)});
     }},
    {"one tensor of a large rank, many times", "F-18",
     [](Builder& b) {
       const auto shape = b.CreateVector(repeated<int64_t>(1, 20000));
       const auto value = format::CreateValue(b, 0, 0, shape);
       const auto values = b.CreateVector(repeated(value, kMany));
       finish(b, {format::CreateGraph(b, 0, values)}, {"", kBallast});
     }},
    {"one tensor that is an output many times", "F-18",
     [](Builder& b) {
       const auto shape = b.CreateVector(repeated<int64_t>(1, 20000));
       const auto values = b.CreateVector(repeated(format::CreateValue(b, 0, 0, shape), 1));
       const auto ids = b.CreateVector(repeated<int32_t>(0, kMany));
       const auto names = b.CreateVector(repeated<uint32_t>(0, kMany));
       finish(b, {format::CreateGraph(b, 0, values, 0, 0, ids, names)});
     }},
    {"a long name for every tensor", "F-18",
     [](Builder& b) {
       std::vector<flatbuffers::Offset<format::Value>> values;
       for (int i = 0; i < 20000; ++i) values.push_back(format::CreateValue(b, 1));
       const auto list = b.CreateVector(values);
       finish(b, {format::CreateGraph(b, 0, list)}, {"", std::string(1 << 20, 'n')});
     }},
    {"a long string in every attribute", "F-18",
     [](Builder& b) {
       const auto strings = b.CreateVector(repeated<uint32_t>(1, kMany));
       const auto attrs =
           b.CreateVector(repeated(format::CreateAttr(b, 0, format::AttrKind::Strings, 0, 0, strings), 1));
       const auto nodes = b.CreateVector(repeated(format::CreateNode(b, 0, 0, 0, 0, attrs), 1));
       finish(b, {format::CreateGraph(b, 0, 0, nodes)}, {"", std::string(1 << 20, 's')});
     }},
    {"a long name that nodes mention as an input", "F-18",
     [](Builder& b) {
       const auto values = b.CreateVector(repeated(format::CreateValue(b, 1), 1));
       const auto inputs = b.CreateVector(repeated<int32_t>(0, 100000));
       const auto nodes = b.CreateVector(repeated(format::CreateNode(b, 0, 0, inputs), 1));
       finish(b, {format::CreateGraph(b, 0, values, nodes)}, {"", std::string(1 << 20, 'n')});
     }},
    {"graphs of graphs of one node", "F-15",
     [](Builder& b) {
       const auto attrs = b.CreateVector(repeated(format::CreateAttr(b), 1000));
       const auto nodes = b.CreateVector(repeated(format::CreateNode(b, 0, 0, 0, 0, attrs), 1000));
       finish(b, repeated(format::CreateGraph(b, 0, 0, nodes), 1000));
     }},
    {"one long string, many times", "F-19",
     [](Builder& b) {
       const auto text = b.CreateString(std::string(1 << 20, 'x'));
       const auto strings = b.CreateVector(repeated(text, 100'000));
       const auto graphs = b.CreateVector(repeated(format::CreateGraph(b), 1));
       b.Finish(format::CreateModel(b, strings, 0, 0, 0, graphs));
     }},
    {"one quantisation, many times", "F-18",
     [](Builder& b) {
       const auto scales = b.CreateVector(repeated(1.0f, 20000));
       const auto zeros = b.CreateVector(repeated<int32_t>(0, 20000));
       const auto list = b.CreateVector(repeated(format::CreateQuantization(b, scales, zeros, 0), 100'000));
       const auto strings = b.CreateVectorOfStrings(std::vector<std::string>{"", kBallast});
       const auto graphs = b.CreateVector(repeated(format::CreateGraph(b), 1));
       b.Finish(format::CreateModel(b, strings, 0, 0, list, graphs));
     }},
    {"one operator, many times", "F-18",
     [](Builder& b) {
       const auto ops = b.CreateVector(repeated(format::CreateOperator(b), kMany));
       finish(b, {format::CreateGraph(b)}, {"", kBallast}, ops);
     }},
    {"as many small tensors as fit", nullptr,
     [](Builder& b) {
       std::vector<flatbuffers::Offset<format::Value>> values;
       for (int i = 0; i < 60000; ++i) values.push_back(format::CreateValue(b));
       const auto list = b.CreateVector(values);
       finish(b, {format::CreateGraph(b, 0, list)});
     }},
    {"as many small nodes as fit", nullptr,
     [](Builder& b) {
       std::vector<flatbuffers::Offset<format::Node>> nodes;
       for (int i = 0; i < 40000; ++i) nodes.push_back(format::CreateNode(b));
       const auto list = b.CreateVector(nodes);
       const auto ops = b.CreateVector(repeated(format::CreateOperator(b, 1), 1));
       finish(b, {format::CreateGraph(b, 0, 0, list)}, {"", "relu"}, ops);
     }},
    {"a wide list of metadata-like strings", nullptr,
     [](Builder& b) {
       const auto text = b.CreateString("");
       const auto strings = b.CreateVector(repeated(text, 4 * kMany));
       const auto graphs = b.CreateVector(repeated(format::CreateGraph(b), 1));
       b.Finish(format::CreateModel(b, strings, 0, 0, 0, graphs));
     }},
};

/// The bound of a file's reader.
Allowance allowance_of(size_t file_bytes) {
  return {.memory = 2 * static_cast<int64_t>(file_bytes) + (16 << 20), .seconds = kSanitized ? 10.0 : 1.0};
}

TEST(ProgramCorruption, HostileFilesTakeBoundedMemoryAndTime) {
  for (const Hostile& hostile : kHostile) {
    SCOPED_TRACE(hostile.name);
    Builder builder;
    hostile.build(builder);
    const Bytes bytes = file_around(builder);
    const Status status = Program::from_bytes(bytes).status();
    EXPECT_FALSE(status.ok());
    if (hostile.rule) {
      EXPECT_EQ(status.rule(), hostile.rule) << status.message();
    }
    const Observed seen = run_guarded(1, allowance_of(bytes.size()), [&](size_t, const auto&) {
      return Program::from_bytes(bytes).ok() ? "is accepted" : "";
    });
    EXPECT_EQ(seen.failure, "") << bytes.size() << " bytes in the file";
  }
}

/// Truncations, and flips with right and with wrong hashes, one after the other: what any of them takes is seen.
TEST(ProgramCorruption, DamageTakesBoundedMemoryAndTime) {
  const Bytes sample = sample_bytes();
  constexpr size_t kFlips = 2000;
  const auto damaged = [&](size_t i) {
    Bytes bytes = sample;
    if (i >= 2 * kFlips) return bytes.resize(i - 2 * kFlips), bytes;
    Random random(test_seed() * 31337 + i);
    // Hashes are put right by what the header says: a forger leaves that alone.
    const int64_t first = i < kFlips ? 0 : sizeof(FileHeader) * 8;
    const auto bit = static_cast<size_t>(random.integer(first, static_cast<int64_t>(bytes.size()) * 8 - 1));
    bytes[bit / 8] ^= std::byte(1 << bit % 8);
    if (i >= kFlips) refresh_hashes(bytes);
    return bytes;
  };
  const Observed seen = run_guarded(2 * kFlips + sample.size(), allowance_of(sample.size()),
                                    [&](size_t i, const auto& accept) -> std::string {
                                      const auto read = Program::from_bytes(damaged(i));
                                      if (read.ok()) accept();
                                      return read.ok() && (i < kFlips || i >= 2 * kFlips) ? "is accepted" : "";
                                    });
  EXPECT_EQ(seen.failure, "") << "seed " << test_seed();
  EXPECT_GT(seen.accepted, 0u) << "under right hashes a name or a weight may be anything";
  EXPECT_LT(seen.accepted, kFlips / 2);
}

TEST(ProgramCorruption, GraphsOfManyNodesAreWrittenSoThatTheyCanBeRead) {
  Graph g;
  g.name = "deep";
  ValueId last = g.add_input("x", {DType::kF32, {4}, nullptr});
  for (int i = 0; i < 30000; ++i) {
    const ValueId next = g.add_value(str_cat("layers.", i, ".activation/output"), {DType::kF32, {4}, nullptr});
    g.add_node("relu", 1, str_cat("layers.", i, ".activation"), {last}, {next})->source = {"net.py", i, "layers"};
    last = next;
  }
  g.add_output("y", last);
  const auto bytes = write_program(g, {}, {});
  ASSERT_TRUE(bytes.ok()) << bytes.status().message();
  const Bytes file = to_vector(*bytes);
  const Program program = load(file);
  EXPECT_EQ(program.nodes().size(), 30000u);
  EXPECT_EQ(entry_of(file, 3).kind, SectionKind::kPadding);
  EXPECT_EQ(to_vector(*write_program(program.data().graph, {}, {})), file);
  const Observed seen = run_guarded(1, allowance_of(file.size()), [&](size_t, const auto&) {
    return Program::from_bytes(file).ok() ? "" : "is refused";
  });
  EXPECT_EQ(seen.failure, "");
}

/// FlatBuffers' verifier asks only that the length of a list is aligned. A list of four-byte elements read as one of
/// eight lies at a multiple of eight, or four beside it, as what stands before it is long.
TEST(ProgramCorruption, ListsOfEightByteElementsMustBeAligned) {
  int refused = 0;
  for (size_t length : {2, 3}) {
    Builder b;
    b.CreateString("what is made first stands last: so twice the list's length is still in the section");
    const auto words = b.CreateVector(repeated<int32_t>(0, 2));
    b.CreateVector(repeated<int32_t>(0, length));  // moves what stands after it by four bytes
    const flatbuffers::Offset<flatbuffers::Vector<int64_t>> as_ints(words.o);
    const auto attrs = b.CreateVector(repeated(format::CreateAttr(b, 0, format::AttrKind::Ints, as_ints), 1));
    const auto nodes = b.CreateVector(repeated(format::CreateNode(b, 0, 0, 0, 0, attrs), 1));
    const auto ops = b.CreateVector(repeated(format::CreateOperator(b, 1), 1));
    finish(b, {format::CreateGraph(b, 0, 0, nodes)}, {"", "relu"}, ops);
    const Status status = Program::from_bytes(file_around(b)).status();
    refused += status.rule() == "F-17";
  }
  EXPECT_EQ(refused, 1);
}

TEST(ProgramCorruption, NestingOf200IsAccepted) {
  auto inner = std::make_shared<Graph>();
  inner->name = "innermost";
  for (int i = 0; i < 200; ++i) {
    auto outer = std::make_shared<Graph>();
    outer->name = "level";
    outer->add_node("mylib.hold", 1, "hold", {}, {})->set_attr("body", GraphPtr(inner));
    inner = outer;
  }
  const auto bytes = write_program(*inner, {}, {});
  ASSERT_TRUE(bytes.ok()) << bytes.status().message();
  EXPECT_EQ(load(to_vector(*bytes)).nodes().size(), 200u);
}

}  // namespace
}  // namespace pinnace::testing
