// A file that is rewritten while it is read, or while its program is in use: graph and manifest are what they were when
// they were checked, and no time of writing makes the reader crash.
#include <fcntl.h>
#include <unistd.h>
#include <atomic>
#include <cstring>
#include <random>
#include <thread>

#include <gtest/gtest.h>

#include "cpp/program/program_fixture.h"
#include "program/decode.h"

namespace pinnace::testing {
namespace {

/// Overwrites [offset, offset + bytes) of the file in place, as no writer of ours does.
void rewrite(const std::string& path, uint64_t offset, std::span<const std::byte> bytes) {
  const int fd = ::open(path.c_str(), O_WRONLY | O_CLOEXEC);
  ASSERT_GE(fd, 0);
  EXPECT_EQ(::pwrite(fd, bytes.data(), bytes.size(), static_cast<off_t>(offset)), static_cast<ssize_t>(bytes.size()));
  ::close(fd);
}

Buffer copy_of(std::span<const std::byte> original) {
  auto bytes = Buffer::allocate(original.size(), "a file");
  EXPECT_TRUE(bytes.ok());
  std::memcpy(bytes->data(), original.data(), original.size());
  return std::move(*bytes);
}

FileView changing(const Buffer& bytes) {
  FileView view{.name = "net.pnc", .bytes = {bytes.data(), bytes.size()}};
  view.may_change = true;
  return view;
}

TEST(ChangingFile, TablesGraphAndManifestAreReadOnce) {
  const std::vector<std::byte> original = sample_bytes();
  Buffer bytes = copy_of(original);
  FileView view = changing(bytes);
  const auto container = read_container(view, Verify::kFull);
  ASSERT_TRUE(container.ok()) << container.status().message();
  const SectionEntry weights = container->only(SectionKind::kWeights);
  // All but the weights, which stay where they are, becomes references to places far outside.
  std::memset(bytes.data(), 0x7f, weights.offset);
  const auto manifest = decode_manifest(view, *container);
  ASSERT_TRUE(manifest.ok()) << manifest.status().message();
  const auto decoded = decode_graph(view, *container, nullptr);
  ASSERT_TRUE(decoded.ok()) << decoded.status().message();
  const Program expected = load(original);
  EXPECT_EQ(manifest->metadata, expected.data().metadata);
  EXPECT_EQ(print(decoded->graph), print(expected.data().graph));
  EXPECT_EQ(container->only(SectionKind::kWeights).offset, weights.offset);
}

TEST(ChangingFile, OffsetsInMessagesAreThoseOfTheFile) {
  const std::vector<std::byte> original = sample_bytes();
  Buffer bytes = copy_of(original);
  FileView view = changing(bytes);
  const auto container = read_container(view, Verify::kFull);
  ASSERT_TRUE(container.ok()) << container.status().message();
  for (const SectionKind kind : {SectionKind::kGraph, SectionKind::kManifest, SectionKind::kWeights}) {
    const SectionEntry& section = container->only(kind);
    const auto content = container->bytes(section);
    EXPECT_EQ(content.data() == bytes.data() + section.offset, kind == SectionKind::kWeights) << section_name(kind);
    EXPECT_EQ(view.offset_of(content.data()), section.offset) << section_name(kind);
    EXPECT_EQ(view.offset_of(content.data() + content.size() - 1), section.offset + section.bytes - 1);
  }
}

TEST(ChangingFile, AProgramKeepsItsGraphWhenItsFileIsRewritten) {
  TemporaryFolder folder;
  const std::string path = folder.file("net.pnc");
  const std::vector<std::byte> original = sample_bytes();
  ASSERT_TRUE(load(original).save(path).ok());
  const auto program = Program::open(path);
  ASSERT_TRUE(program.ok()) << program.status().message();
  const std::string before = program->text(0);
  const std::vector<std::byte> garbage(program->data().file.size() / 2, std::byte{0x7f});
  rewrite(path, 0, garbage);
  EXPECT_EQ(program->text(0), before);
  EXPECT_EQ(program->nodes().size(), load(original).nodes().size());
  // What takes the file's bytes again checks them again.
  EXPECT_EQ(program->with_metadata("key", "value").status().code(), Code::kCorruptFile);
}

TEST(ChangingFile, NoMomentOfWritingCrashesTheReader) {
  TemporaryFolder folder;
  const std::string path = folder.file("net.pnc");
  const std::vector<std::byte> original = sample_bytes();
  ASSERT_TRUE(load(original).save(path).ok());
  std::atomic<bool> done = false;
  std::thread writer([&] {
    std::mt19937 random(7);
    while (!done) {  // the length stays: a file that is cut short ends the process, which the threat model says
      const uint64_t at = random() % (original.size() - 8);
      const uint64_t noise = (uint64_t(random()) << 32) | random();
      rewrite(path, at, std::as_bytes(std::span(&noise, 1)));
      rewrite(path, at, std::span(original).subspan(at, 8));
    }
  });
  int opened = 0, refused = 0;
  for (int i = 0; i < 2000; ++i) {
    const auto program = Program::open(path);
    if (program.ok()) {
      ++opened;
      EXPECT_FALSE(program->text(0).empty());
    } else {
      ++refused;
      EXPECT_TRUE(program.status().code() == Code::kCorruptFile || program.status().code() == Code::kUnsupported)
          << program.status().message();
    }
  }
  done = true;
  writer.join();
  EXPECT_GT(opened, 0);
  RecordProperty("opened", opened);
  RecordProperty("refused", refused);
}

}  // namespace
}  // namespace pinnace::testing
