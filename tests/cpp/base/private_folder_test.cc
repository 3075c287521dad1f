// PrivateFolder: what is not the user's alone is neither read nor written, and the reason is told.
#include "base/files/private_folder.h"

#include <sys/stat.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>
#include <fstream>

#include <gtest/gtest.h>

#include "cpp/scratch_folder.h"

namespace {

namespace fs = std::filesystem;
using pinnace::PrivateFolder;

constexpr uid_t kNobody = 65534;

class PrivateFolderTest : public ::testing::Test {
 protected:
  const fs::path base = pinnace::testing::scratch_folder() / ("private_folder_" + std::to_string(getpid()));
  const fs::path folder = base / "cache";
  void SetUp() override {
    fs::remove_all(base);
    fs::create_directories(base);
    ASSERT_EQ(mkdir(folder.c_str(), 0700), 0);
  }
  void TearDown() override { fs::remove_all(base); }

  static mode_t mode_of(const fs::path& path) {
    struct stat about = {};
    EXPECT_EQ(lstat(path.c_str(), &about), 0) << path;
    return about.st_mode & 0777;
  }
  /// The sentence of a refusal; empty if there is none.
  static std::string refusal(const fs::path& path) {
    const auto opened = PrivateFolder::open(path);
    return opened.ok() ? "" : opened.status().message();
  }
  static std::string refusal_of_file(const PrivateFolder& in, const char* name) {
    const auto file = in.read(name);
    return file.ok() ? "" : file.status().message();
  }
};

std::span<const std::byte> bytes_of(const char* text) {
  return std::as_bytes(std::span(text, std::strlen(text)));
}
std::string text_of(const pinnace::PrivateFile& file) {
  return {reinterpret_cast<const char*>(file.bytes().data()), file.bytes().size()};
}

TEST_F(PrivateFolderTest, WhatIsWrittenIsReadAndIsTheUsersAlone) {
  const mode_t before = umask(0);
  const auto opened = PrivateFolder::open(folder);
  ASSERT_TRUE(opened.ok()) << opened.status().message();
  EXPECT_TRUE(opened->write("a", bytes_of("text")).ok());
  umask(before);
  EXPECT_EQ(mode_of(folder / "a"), 0600u);
  auto first = opened->read("a");
  ASSERT_TRUE(first.ok()) << first.status().message();
  EXPECT_TRUE(opened->write("a", bytes_of("another")).ok());
  EXPECT_EQ(text_of(**first), "text") << "bytes stay when another file takes the name";
  EXPECT_EQ(text_of(**opened->read("a")), "another");
  EXPECT_EQ(std::distance(fs::directory_iterator(folder), fs::directory_iterator()), 1) << "nothing else is left";
}

TEST_F(PrivateFolderTest, AFolderIsMadeForTheUserAlone) {
  const mode_t before = umask(0);
  EXPECT_EQ(refusal((base / "new").string() + "/"), "");
  umask(before);
  EXPECT_EQ(mode_of(base / "new"), 0700u);
  EXPECT_NE(refusal(base / "no" / "parent").find("No such file or directory"), std::string::npos);
}

TEST_F(PrivateFolderTest, FoldersThatOthersCanWriteAreRefused) {
  for (const mode_t mode : {0700, 0755, 0711, 0500}) {
    ASSERT_EQ(chmod(folder.c_str(), mode), 0);
    EXPECT_EQ(refusal(folder), "") << mode;
  }
  for (const mode_t mode : {0770, 0720, 0702, 0777, 01777}) {
    ASSERT_EQ(chmod(folder.c_str(), mode), 0);
    EXPECT_NE(refusal(folder).find("others than its owner can write it"), std::string::npos) << mode;
    EXPECT_EQ(PrivateFolder::open(folder).status().rule(), pinnace::kUntrusted);
  }
}

TEST_F(PrivateFolderTest, LinksAndOtherThingsAreRefused) {
  fs::create_directory_symlink(folder, base / "link");
  EXPECT_NE(refusal(base / "link").find("it is a link"), std::string::npos);
  EXPECT_NE(refusal((base / "link").string() + "//").find("it is a link"), std::string::npos);
  std::ofstream(base / "file") << "text";
  EXPECT_NE(refusal(base / "file").find("it is no folder"), std::string::npos);
  EXPECT_NE(refusal(""), "");
}

TEST_F(PrivateFolderTest, FilesThatOthersCanWriteAndLinksAreNotRead) {
  const auto opened = PrivateFolder::open(folder);
  ASSERT_TRUE(opened.ok());
  ASSERT_TRUE(opened->write("a", bytes_of("text")).ok());
  for (const mode_t mode : {0600, 0644, 0444}) {
    ASSERT_EQ(chmod((folder / "a").c_str(), mode), 0);
    EXPECT_EQ(refusal_of_file(*opened, "a"), "") << mode;
  }
  for (const mode_t mode : {0660, 0620, 0602, 0666}) {
    ASSERT_EQ(chmod((folder / "a").c_str(), mode), 0);
    EXPECT_NE(refusal_of_file(*opened, "a").find("others than its owner can write it"), std::string::npos) << mode;
  }
  ASSERT_EQ(chmod((folder / "a").c_str(), 0600), 0);
  fs::create_symlink("a", folder / "link");
  EXPECT_NE(refusal_of_file(*opened, "link").find("it is a link"), std::string::npos);
  ASSERT_EQ(mkfifo((folder / "pipe").c_str(), 0600), 0);
  EXPECT_NE(refusal_of_file(*opened, "pipe").find("not a regular file"), std::string::npos);
  fs::create_directory(folder / "folder");
  EXPECT_NE(refusal_of_file(*opened, "folder").find("directory"), std::string::npos);
  EXPECT_NE(opened->read("none").status().rule(), pinnace::kUntrusted) << "that nothing is there is no distrust";
  // A link is replaced, and what it names stays as it is.
  ASSERT_TRUE(opened->write("link", bytes_of("new")).ok());
  EXPECT_FALSE(fs::is_symlink(folder / "link"));
  EXPECT_EQ(text_of(**opened->read("a")), "text");
}

TEST_F(PrivateFolderTest, WhatIsOthersIsRefused) {
  if (geteuid() != 0) GTEST_SKIP() << "only root can give files away";
  const auto opened = PrivateFolder::open(folder);
  ASSERT_TRUE(opened.ok());
  ASSERT_TRUE(opened->write("a", bytes_of("text")).ok());
  ASSERT_EQ(chown((folder / "a").c_str(), kNobody, kNobody), 0);
  EXPECT_NE(refusal_of_file(*opened, "a").find("belongs to user 65534"), std::string::npos);
  ASSERT_EQ(chown(folder.c_str(), kNobody, kNobody), 0);
  EXPECT_NE(refusal(folder).find("belongs to user 65534"), std::string::npos);
}

TEST_F(PrivateFolderTest, TheFolderThatWasLookedAtIsTheOneThatIsUsed) {
  const auto opened = PrivateFolder::open(folder);
  ASSERT_TRUE(opened.ok());
  fs::rename(folder, base / "moved");
  ASSERT_EQ(mkdir(folder.c_str(), 0700), 0);
  ASSERT_TRUE(opened->write("a", bytes_of("text")).ok());
  EXPECT_TRUE(fs::exists(base / "moved" / "a"));
  EXPECT_FALSE(fs::exists(folder / "a"));
}

}  // namespace
