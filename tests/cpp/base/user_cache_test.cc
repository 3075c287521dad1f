// The user's cache folder: which variable names it, and when it is made.
#include "base/files/user_cache.h"

#include <sys/stat.h>

#include <cstdlib>
#include <filesystem>

#include <gtest/gtest.h>

#include "base/environment.h"
#include "cpp/program/program_fixture.h"

namespace pinnace::testing {
namespace {

namespace fs = std::filesystem;

class UserCache : public ::testing::Test {
 protected:
  void SetUp() override {
    unsetenv("PINNACE_CACHE");
    home_ = std::getenv("HOME") ? std::getenv("HOME") : "";
    unsetenv("XDG_CACHE_HOME");
  }
  void TearDown() override {
    pretend_foreign_environment(false);
    setenv("PINNACE_CACHE", "", 1);
    setenv("HOME", home_.c_str(), 1);
    unsetenv("XDG_CACHE_HOME");
  }
  std::string home_;
};

TEST_F(UserCache, IsNamedByVariables) {
  setenv("HOME", "/home/me", 1);
  EXPECT_EQ(user_cache_folder(), "/home/me/.cache/pinnace");
  setenv("XDG_CACHE_HOME", "/var/caches", 1);
  EXPECT_EQ(user_cache_folder(), "/var/caches/pinnace");
  setenv("XDG_CACHE_HOME", "caches", 1);  // the specification has relative paths ignored
  EXPECT_EQ(user_cache_folder(), "/home/me/.cache/pinnace");
  setenv("PINNACE_CACHE", "/elsewhere", 1);
  EXPECT_EQ(user_cache_folder(), "/elsewhere");
  for (const char* none : {"", "elsewhere"}) {
    setenv("PINNACE_CACHE", none, 1);
    EXPECT_EQ(user_cache_folder(), "") << none;
  }
  unsetenv("PINNACE_CACHE");
  unsetenv("XDG_CACHE_HOME");
  setenv("HOME", "", 1);
  EXPECT_EQ(user_cache_folder(), "");
  setenv("HOME", "/home/me", 1);
  pretend_foreign_environment(true);
  EXPECT_EQ(user_cache_folder(), "");
}

TEST_F(UserCache, IsMadeOnlyForWhatIsWritten) {
  const TemporaryFolder home;
  setenv("HOME", home.path().c_str(), 1);
  EXPECT_FALSE(open_user_cache(false).ok());
  EXPECT_TRUE(home.names().empty());
  EXPECT_TRUE(open_user_cache(true).ok());
  EXPECT_TRUE(open_user_cache(false).ok());
  for (const char* made : {".cache", ".cache/pinnace"}) {
    struct stat about = {};
    ASSERT_EQ(stat(home.file(made).c_str(), &about), 0);
    EXPECT_EQ(about.st_mode & 0777, 0700u);
  }
  ASSERT_EQ(chmod(home.file(".cache/pinnace").c_str(), 0777), 0);
  EXPECT_EQ(open_user_cache(true).status().rule(), kUntrusted);
}

TEST_F(UserCache, BuildsHaveNames) {
  EXPECT_NE(library_build(), "");
  EXPECT_EQ(library_build(), library_build());
}

}  // namespace
}  // namespace pinnace::testing
