// A test that needs an environment of its own: its body runs in a child process, which is this program with that test
// alone, so that what a library reads once is read anew.
#pragma once

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <string>
#include <vector>

/// Usage: `if (Child child({"NAME=value"}); child.here()) { ...body...; return; }`, or look at `errors` afterwards.
class Child {
 public:
  explicit Child(std::vector<std::string> environment) {
    if (here_) return;
    const auto* test = ::testing::UnitTest::GetInstance()->current_test_info();
    const std::string filter = std::string("--gtest_filter=") + test->test_suite_name() + "." + test->name();
    environment.push_back(std::string(kMark) + "=1");
    int ends[2];
    EXPECT_EQ(pipe(ends), 0);
    const pid_t pid = fork();
    EXPECT_GE(pid, 0);
    if (pid == 0) {
      unsetenv("GTEST_TOTAL_SHARDS");  // this one test is all of the child, and its only shard
      unsetenv("GTEST_SHARD_INDEX");
      for (std::string& variable : environment) putenv(variable.data());
      dup2(ends[1], STDERR_FILENO);
      dup2(ends[1], STDOUT_FILENO);
      close(ends[0]);
      execl("/proc/self/exe", "pinnace_tests", filter.c_str(), "--gtest_brief=1", nullptr);
      _exit(127);
    }
    close(ends[1]);
    char text[4096];
    for (ssize_t n; (n = read(ends[0], text, sizeof text)) > 0;) output.append(text, static_cast<size_t>(n));
    close(ends[0]);
    int status = 0;
    waitpid(pid, &status, 0);
    EXPECT_EQ(status, 0) << output;
    EXPECT_TRUE(says("1 test from 1 test suite ran")) << output;
  }
  /// True in the child process.
  bool here() const { return here_; }
  bool says(const std::string& line) const { return output.find(line) != std::string::npos; }

  std::string output = {};  ///< what the child wrote to standard output and error

 private:
  static constexpr const char* kMark = "PINNACE_TEST_CHILD";
  const bool here_ = std::getenv(kMark) != nullptr;
};
