// Opening by paths: regular files only, nothing waits, and paths from a file stay in their folder; text for terminals.
#include "base/files/open_file.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <map>

#include "base/files/beneath.h"
#include "base/files/mapped_file.h"
#include "base/threads/thread.h"
#include "base/utf8.h"
#include "cpp/scratch_folder.h"

namespace pinnace::testing {
namespace {

class OpenFile : public ::testing::Test {
 protected:
  void SetUp() override {
    const auto* test = ::testing::UnitTest::GetInstance()->current_test_info();
    top_ = scratch_folder() / str_cat("pinnace_open_", ::getpid(), "_", test->name());
    std::filesystem::create_directories(top_ / "model" / "sub");
    write("outside", "secret");
    write("model/data", "inside");
    write("model/sub/more", "deeper");
    ::mkfifo((top_ / "model" / "pipe").c_str(), 0600);
    link("../data", "model/sub/back");
    link("sub", "model/same");
    link("same/back", "model/twice");
    link("../outside", "model/out");
    link("..", "model/up");
    link(top_ / "model" / "data", "model/absolute");
    link("loop", "model/loop");
    link("nowhere", "model/dangling");
    link("/proc/self/root", "model/magic");
  }
  void TearDown() override { std::filesystem::remove_all(top_); }
  void write(const std::string& name, const std::string& text) { std::ofstream(top_ / name) << text; }
  void link(const std::filesystem::path& target, const std::string& name) {
    std::filesystem::create_symlink(target, top_ / name);
  }
  static std::string contents(const RegularFile& file) {
    std::string text(static_cast<size_t>(file.bytes), '\0');
    EXPECT_EQ(::pread(file.descriptor.get(), text.data(), text.size(), 0), static_cast<ssize_t>(text.size()));
    return text;
  }
  std::filesystem::path top_;
};

TEST_F(OpenFile, OpensRegularFilesOnly) {
  const auto file = open_regular(top_ / "model" / "data");
  ASSERT_TRUE(file.ok()) << file.status().message();
  EXPECT_EQ(contents(*file), "inside");
  EXPECT_TRUE(open_regular(top_ / "model" / "twice").ok()) << "links of the caller's are followed";
  for (const std::string name : {"model", "model/pipe", "model/none", "model/loop", "/dev/zero", "/dev/tty"}) {
    const auto refused = open_regular(name[0] == '/' ? name : (top_ / name).string());
    ASSERT_FALSE(refused.ok()) << name;
    EXPECT_EQ(refused.status().code(), Code::kFile);
    EXPECT_NE(refused.status().message().find(name), std::string::npos) << refused.status().message();
  }
  EXPECT_FALSE(open_regular(std::string("a\0b", 3)).ok());
}

TEST_F(OpenFile, PathsFromFilesStayInTheFolder) {
  const auto folder = Folder::of_file(top_ / "model" / "net.onnx");
  ASSERT_TRUE(folder.ok()) << folder.status().message();
  for (const auto lookup : {Folder::Lookup::kBySystem, Folder::Lookup::kByHand}) {
    SCOPED_TRACE(static_cast<int>(lookup));
    for (const auto& [location, text] : std::map<std::string, std::string>{{"data", "inside"},
                                                                           {"./data", "inside"},
                                                                           {"sub//more", "deeper"},
                                                                           {"sub/../data", "inside"},
                                                                           {"sub/back", "inside"},
                                                                           {"same/more", "deeper"},
                                                                           {"twice", "inside"}}) {
      const auto file = folder->open_beneath(location, lookup);
      ASSERT_TRUE(file.ok()) << location << ": " << file.status().message();
      EXPECT_EQ(contents(*file), text);
    }
    for (const std::string location :
         {"", "/", "..", "../outside", "out", "up/outside", "absolute", "sub/../../outside", "magic/etc/passwd", ".",
          "sub", "sub/", "pipe", "up", "same/../../outside"}) {
      const auto file = folder->open_beneath(location, lookup);
      ASSERT_FALSE(file.ok()) << location;
      if (location != "sub/") {
        EXPECT_EQ(file.status().code(), Code::kCorruptFile) << file.status().message();
      }
    }
    for (const std::string location : {"none", "loop", "dangling", "data/below", "none/../data"}) {
      const auto file = folder->open_beneath(location, lookup);
      ASSERT_FALSE(file.ok()) << location;
      EXPECT_EQ(file.status().code(), Code::kFile) << file.status().message();
    }
    EXPECT_FALSE(folder->open_beneath(std::string("data\0x", 6), lookup).ok());
    EXPECT_FALSE(folder->open_beneath(std::string(100'000, 'a'), lookup).ok());
  }
}

// Somebody exchanges a folder for a link to the outside, again and again, while a file in it is opened.
TEST_F(OpenFile, ChangesOnTheWayDoNotLeadOutside) {
  write("more", "secret");
  const auto folder = Folder::open(top_ / "model");
  ASSERT_TRUE(folder.ok());
  std::atomic<bool> stop = false;
  std::atomic<int> exchanged = 0;
  link("..", "model/other");
  auto exchanging = Thread::start([&] {
    const std::string sub = top_ / "model" / "sub", other = top_ / "model" / "other", third = top_ / "model" / "third";
    while (!stop) {
      ::rename(sub.c_str(), third.c_str()), ::rename(other.c_str(), sub.c_str());
      ::rename(sub.c_str(), other.c_str()), ::rename(third.c_str(), sub.c_str());
      ++exchanged;
    }
  });
  ASSERT_TRUE(exchanging.ok());
  int opened = 0;
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(30);
  const auto enough = [&] { return opened >= 100 && exchanged >= 100; };
  for (unsigned i = 0; i < 4000 || (!enough() && std::chrono::steady_clock::now() < end); ++i) {
    const auto lookup = i % 2 ? Folder::Lookup::kByHand : Folder::Lookup::kBySystem;
    const auto file = folder->open_beneath("sub/more", lookup);
    if (!file.ok()) continue;
    ++opened;
    EXPECT_EQ(contents(*file), "deeper");
  }
  stop = true;
  exchanging->join();
  EXPECT_GE(opened, 100);
  EXPECT_GE(exchanged, 100);
}

TEST_F(OpenFile, MappedBytesOutliveTheirFile) {
  auto file = open_regular(top_ / "model" / "data");
  ASSERT_TRUE(file.ok());
  const auto mapped = MappedBytes::of(*file, "data");
  ASSERT_TRUE(mapped.ok());
  *file = RegularFile{};
  std::filesystem::remove(top_ / "model" / "data");
  EXPECT_EQ(std::string(reinterpret_cast<const char*>((*mapped)->bytes().data()), (*mapped)->bytes().size()), "inside");
  write("empty", "");
  auto empty = open_regular(top_ / "empty");
  ASSERT_TRUE(empty.ok());
  const auto nothing = MappedBytes::of(*empty, "empty");
  ASSERT_TRUE(nothing.ok());
  EXPECT_TRUE((*nothing)->bytes().empty());
}

TEST(Printable, ShowsWhatATerminalWouldActOn) {
  EXPECT_EQ(printable("conv/größe 模型 😀 \\x"), "conv/größe 模型 😀 \\x");
  EXPECT_EQ(printable(std::string("a\x1b[2J\n\t\0b\x7f", 10)), "a\\x1b[2J\\n\\t\\x00b\\x7f");
  EXPECT_EQ(printable("\xc2\x9b"
                      "1m"),
            "\\x9b1m");
  EXPECT_EQ(printable("\xe2\x80\xae"
                      "exe"),
            "\\u202eexe");
  EXPECT_EQ(printable("\xf3\xa0\x81\x81"), "\\U000e0041");
  EXPECT_EQ(printable("\xff\xc3"), "\\xff\\xc3");
  EXPECT_EQ(printable_message("2 nodes:\n  a\n  b\nc\n"), "2 nodes:\n  a\n  b\\nc\\n");
  EXPECT_TRUE(is_printable_message("2 nodes:\n  a"));
}

TEST(Printable, SentencesOfStatusAre) {
  const Status status = invalid("input '\x1b]0;owned\x07' is missing");
  const Status copy = status;
  EXPECT_EQ(copy.with_prefix("\x1b: ").message(), "\\x1b: input '\\x1b]0;owned\\x07' is missing");
  EXPECT_EQ(status.message(), "input '\\x1b]0;owned\\x07' is missing");
  EXPECT_EQ(&copy.message(), &status.message());
  EXPECT_EQ(Status().message(), "");
  EXPECT_EQ(Status::no_memory().message(), "the system gives no more memory");
}

}  // namespace
}  // namespace pinnace::testing
