// The sample graph in text, and files in parts.
#include "cpp/program/program_fixture.h"

#include <dirent.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>

#include <gtest/gtest.h>

#include "base/hash.h"
#include "program/writer.h"

namespace pinnace::testing {

TemporaryFolder::TemporaryFolder() {
  const char* base = std::getenv("TMPDIR");
  path_ = std::string(base ? base : "/tmp") + "/pinnace_test_XXXXXX";
  EXPECT_NE(::mkdtemp(path_.data()), nullptr) << path_;
}

TemporaryFolder::~TemporaryFolder() {
  for (const std::string& name : names()) ::unlink(file(name).c_str());
  ::rmdir(path_.c_str());
}

std::vector<std::string> TemporaryFolder::names() const {
  std::vector<std::string> all;
  DIR* folder = ::opendir(path_.c_str());
  if (!folder) return all;
  while (const dirent* entry = ::readdir(folder)) {
    const std::string name = entry->d_name;
    if (name != "." && name != "..") all.push_back(name);
  }
  ::closedir(folder);
  std::sort(all.begin(), all.end());
  return all;
}

Graph sample_graph() {
  Graph g;
  g.name = "sample";
  g.symbols = {{"batch", 2, 16, 2}, {"time", 0, Symbol::kUnbounded, 1}};
  const ValueId x = g.add_input("x", {DType::kF32, {Dim::of_symbol(0), 4}, nullptr});
  const std::vector<float> ones = {1, -0.0f, 3, 4};
  const ValueId w1 = *g.add_constant_of<float>("w1", DType::kF32, {4}, ones);
  const ValueId w2 = *g.add_constant_of<float>("w2", DType::kF32, {4}, ones);
  const std::vector<uint8_t> flags = {1, 0, 1};
  g.add_constant("flags", {DType::kBool, {3}, nullptr}, *Constant::copy_of(flags.data(), flags.size()));
  const ValueId a = g.add_value("a", {DType::kF32, {Dim::of_symbol(0), 4}, nullptr});
  const ValueId b = g.add_value("b", {DType::kF32, {Dim::of_symbol(0), 4}, nullptr});
  g.add_node("add", 1, "first", {x, w1}, {a})->source = {"net.py", 41, "layers.0"};
  g.add_node("add", 1, "second", {a, w2}, {b});
  // A quantised branch: per tensor in, per axis as a constant.
  const auto per_tensor = std::make_shared<const Quantization>(Quantization{{0.5f}, {3}, -1, 0});
  const auto per_axis = std::make_shared<const Quantization>(Quantization{{0.5f, 0.25f}, {0, 0}, 0, 0});
  const ValueId q = g.add_input("q", {DType::kU8, {2, 3}, per_tensor});
  const ValueId r = g.add_value("r", {DType::kU8, {2, 3}, per_tensor});
  g.add_node("relu", 1, "clamp", {q}, {r});
  const std::vector<int8_t> weights = {1, 2, 3, 4, 5, 6};
  g.add_constant("qw", {DType::kI8, {2, 3}, per_axis}, *Constant::copy_of(weights.data(), weights.size()));
  // A state that is added to and kept.
  const ValueId old = g.add_value("old", {DType::kI64, {2}, nullptr});
  const ValueId now = g.add_value("now", {DType::kI64, {2}, nullptr});
  const std::vector<int64_t> zero = {0, 0}, step = {1, 2};
  const ValueId one = *g.add_constant_of<int64_t>("one", DType::kI64, {2}, step);
  g.add_node("add", 1, "count", {old, one}, {now});
  g.states.push_back({"counter", old, now, *Constant::copy_of(zero.data(), 16)});
  const std::vector<int64_t> shape = {-1, 2, 2};
  const ValueId to = *g.add_constant_of<int64_t>("to", DType::kI64, {3}, shape);
  const ValueId y = g.add_value("y", {DType::kF32, {Dim::unknown(16), 2, 2}, nullptr});
  Node* reshape = g.add_node("reshape", 1, "shaped", {b, to}, {y});
  reshape->set_attr("allowzero", int64_t(1));
  g.add_output("out", y);
  g.add_output("clamped", r);
  return g;
}

std::vector<std::byte> sample_bytes() {
  const std::string packed = "packed weights",
                    more = "other bytes, longer than sixty-four, so that they end behind one line";
  const Payload payloads[] = {{"vulkan", "pipelines", std::as_bytes(std::span(more))},
                              {"cpu:avx2", "gemm", std::as_bytes(std::span(packed))}};
  auto bytes = write_program(sample_graph(), {{"source", "net.pt2"}, {"producer", "pinnace"}}, payloads);
  EXPECT_TRUE(bytes.ok()) << bytes.status().message();
  return to_vector(*bytes);
}

std::vector<std::byte> to_vector(const Buffer& buffer) {
  return {buffer.data(), buffer.data() + buffer.size()};
}

Program load(std::span<const std::byte> bytes, Verify verify) {
  auto program = Program::from_bytes(bytes, verify);
  EXPECT_TRUE(program.ok()) << program.status().message();
  return *program;
}

FileParts::FileParts(std::span<const std::byte> bytes) {
  FileHeader header;
  std::memcpy(&header, bytes.data(), sizeof header);
  for (uint32_t i = 0; i < header.sections; ++i) {
    SectionEntry entry;
    std::memcpy(&entry, bytes.data() + sizeof header + i * sizeof entry, sizeof entry);
    const auto content = bytes.subspan(entry.offset, entry.bytes);
    sections.push_back({entry.kind, {content.begin(), content.end()}});
    if (entry.kind == SectionKind::kGraph) model.reset(flatbuffers::GetRoot<format::Model>(content.data())->UnPack());
    if (entry.kind == SectionKind::kManifest) {
      manifest.reset(flatbuffers::GetRoot<format::Manifest>(content.data())->UnPack());
    }
  }
}

namespace {
std::span<const std::byte> bytes_of(const flatbuffers::FlatBufferBuilder& builder) {
  return std::as_bytes(std::span(builder.GetBufferPointer(), builder.GetSize()));
}
}  // namespace

std::vector<std::byte> FileParts::write() const {
  flatbuffers::FlatBufferBuilder graph_builder, manifest_builder;
  graph_builder.Finish(format::Model::Pack(graph_builder, model.get()));
  manifest_builder.Finish(format::Manifest::Pack(manifest_builder, manifest.get()));
  std::vector<SectionContent> contents;
  for (const Section& s : sections) {
    SectionContent content{.kind = s.kind, .parts = {s.bytes}};
    if (s.kind == SectionKind::kGraph) content.parts = {bytes_of(graph_builder)};
    if (s.kind == SectionKind::kManifest) content.parts = {bytes_of(manifest_builder)};
    contents.push_back(content);
  }
  auto file = write_container(contents);
  EXPECT_TRUE(file.ok());
  return to_vector(*file);
}

void refresh_hashes(std::vector<std::byte>& bytes) {
  FileHeader header;
  std::memcpy(&header, bytes.data(), sizeof header);
  const size_t table = header.sections * sizeof(SectionEntry);
  for (uint32_t i = 0; i < header.sections; ++i) {
    std::byte* at = bytes.data() + sizeof header + i * sizeof(SectionEntry);
    SectionEntry entry;
    std::memcpy(&entry, at, sizeof entry);
    if (entry.offset > bytes.size() || entry.bytes > bytes.size() - entry.offset) continue;
    entry.hash = hash64({bytes.data() + entry.offset, entry.bytes});
    std::memcpy(at, &entry, sizeof entry);
  }
  header.hash = 0;
  std::memcpy(bytes.data(), &header, sizeof header);
  header.hash = hash64({bytes.data(), sizeof header + table});
  std::memcpy(bytes.data(), &header, sizeof header);
}

}  // namespace pinnace::testing
