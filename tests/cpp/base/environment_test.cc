// The environment of a process with rights that its caller lacks: no variable is seen there.
#include "base/environment.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <string>

#include "base/cpu_features.h"
#include "cpp/scratch_folder.h"

namespace {

namespace fs = std::filesystem;

constexpr const char* kName = "PINNACE_TEST_ENVIRONMENT";

TEST(Environment, VariablesAreSeenOnlyWhereTheyAreTheUsersOwn) {
  setenv(kName, "value", 1);
  EXPECT_FALSE(pinnace::has_foreign_environment());
  EXPECT_STREQ(pinnace::environment(kName), "value");
  pinnace::pretend_foreign_environment(true);
  EXPECT_TRUE(pinnace::has_foreign_environment());
  EXPECT_EQ(pinnace::environment(kName), nullptr);
  setenv("PINNACE_CPU_ISA", "no such set", 1);
  EXPECT_EQ(pinnace::cpu_isa_problem(), "") << "nobody looks at it";
  pinnace::pretend_foreign_environment(false);
  EXPECT_NE(pinnace::cpu_isa_problem(), "");
  unsetenv("PINNACE_CPU_ISA");
  unsetenv(kName);
  EXPECT_EQ(pinnace::environment(kName), nullptr);
}

/// Run as a copy of this program that the system starts with another group than its caller's.
TEST(Environment, InASetGroupIdProgramNoneIsSeen) {
  constexpr const char* kMark = "PINNACE_TEST_SET_GROUP_ID";
  if (std::getenv(kMark)) {
    EXPECT_NE(getegid(), getgid());
    EXPECT_TRUE(pinnace::has_foreign_environment());
    EXPECT_EQ(pinnace::environment(kMark), nullptr);
    _exit(HasFailure() ? 1 : 0);  // a leak checker cannot look into such a process
  }
  constexpr gid_t kNobody = 65534;
  const fs::path copy = pinnace::testing::scratch_folder() / ("environment_test_" + std::to_string(getpid()));
  struct statvfs system = {};
  ASSERT_EQ(statvfs(copy.parent_path().c_str(), &system), 0);
  if (geteuid() != 0 || (system.f_flag & (ST_NOSUID | ST_NOEXEC)) != 0 || getegid() == kNobody) {
    GTEST_SKIP() << "needs root and a file system that heeds the bit";
  }
  fs::copy_file("/proc/self/exe", copy, fs::copy_options::overwrite_existing);
  ASSERT_EQ(chown(copy.c_str(), 0, kNobody), 0);
  ASSERT_EQ(chmod(copy.c_str(), 02755), 0);
  const pid_t pid = fork();
  ASSERT_GE(pid, 0);
  if (pid == 0) {
    setenv(kMark, "1", 1);
    unsetenv("GTEST_TOTAL_SHARDS");
    unsetenv("GTEST_SHARD_INDEX");
    execl(copy.c_str(), "pinnace_tests", "--gtest_filter=Environment.InASetGroupIdProgramNoneIsSeen", "--gtest_brief=1",
          nullptr);
    _exit(127);
  }
  int status = -1;
  waitpid(pid, &status, 0);
  fs::remove(copy);
  EXPECT_EQ(status, 0);
}

}  // namespace
