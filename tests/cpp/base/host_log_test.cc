// The host library's log: lines that spdlog writes to stderr, messages that are kept, PINNACE_LOG, and forks.
#include <pinnace/host_log.h>

#include <gtest/gtest.h>

#include <regex>
#include <string>
#include <thread>

#include <pinnace/model.h>

#include "base/environment.h"
#include "base/log.h"
#include "cpp/child_process.h"
#include "cpp/forks.h"

namespace pinnace {
namespace {

class HostLog : public ::testing::Test {
 protected:
  void TearDown() override {
    EXPECT_TRUE(log_to_stderr(LogLevel::kOff).ok());
    EXPECT_TRUE(keep_log(LogLevel::kOff).ok());
    take_log();
    EXPECT_TRUE(set_log_sink(nullptr).ok());
  }
};

TEST_F(HostLog, WritesLinesToStderr) {
  ASSERT_TRUE(log_to_stderr(LogLevel::kInfo).ok());
  EXPECT_EQ(stderr_log_level(), LogLevel::kInfo);
  ::testing::internal::CaptureStderr();
  PINNACE_LOG_DEBUG("a decision");
  PINNACE_LOG_INFO("a phase of '{}' %s");
  write_log(LogLevel::kError, "the host's own");
  ASSERT_TRUE(log_to_stderr(LogLevel::kOff).ok());
  PINNACE_LOG_ERROR("nobody wants it");
  print_log(LogLevel::kTrace, "in any case");
  const std::string written = ::testing::internal::GetCapturedStderr();
  const std::string begin = R"(\d\d:\d\d:\d\d\.\d{3} \d+ )";
  EXPECT_TRUE(
      std::regex_match(written, std::regex(begin + "info pinnace: a phase of '\\{\\}' %s\n" + begin +
                                           "error pinnace: the host's own\n" + begin + "trace pinnace: in any case\n")))
      << written;
}

TEST_F(HostLog, KeepsMessagesInOrderUntilTheyAreTaken) {
  ASSERT_TRUE(keep_log(LogLevel::kWarn).ok());
  EXPECT_FALSE(log_is_kept());
  PINNACE_LOG_WARN("one");
  PINNACE_LOG_INFO("not wanted");
  std::thread([] { PINNACE_LOG_ERROR("two"); }).join();
  EXPECT_TRUE(log_is_kept());
  const auto kept = take_log();
  EXPECT_FALSE(log_is_kept());
  ASSERT_EQ(kept.size(), 2u);
  EXPECT_EQ(kept[0].level, LogLevel::kWarn);
  EXPECT_EQ(kept[0].text, "one");
  EXPECT_EQ(kept[1].level, LogLevel::kError);
  EXPECT_EQ(kept[1].text, "two");
  EXPECT_TRUE(take_log().empty());
}

TEST_F(HostLog, KeepsBoundedMemoryAndCountsTheRest) {
  ASSERT_TRUE(keep_log(LogLevel::kInfo).ok());
  const std::string text(4000, 'x');
  for (int i = 0; i < 6000; ++i) PINNACE_LOG_INFO(text);
  const auto kept = take_log();
  EXPECT_LT(kept.size(), 4300u);
  EXPECT_GT(kept.size(), 4000u);
  EXPECT_EQ(kept.back().level, LogLevel::kWarn);
  EXPECT_EQ(kept.back().text, std::to_string(6001 - kept.size()) +
                                  " messages were dropped: nobody took those before "
                                  "them in time");
}

TEST_F(HostLog, TellsOfAConversion) {
  ASSERT_TRUE(keep_log(LogLevel::kDebug).ok());
  const auto model = Model::parse(R"(graph "g" {
    input %x : f32[2,4]
    %a : f32[2,4] = identity(%x)
    %y : f32[2,4] = relu(%a)
    output "y" %y
  })");
  ASSERT_TRUE(model.ok()) << model.status().message();
  ASSERT_TRUE(model->build(BuildOptions{.targets = {"cpu"}}).ok());
  std::string all;
  for (const LogMessage& message : take_log()) all += message.text + "\n";
  EXPECT_NE(all.find("pass cancel_identities, round 1: 1 changes, in "), std::string::npos) << all;
  EXPECT_NE(all.find("passes: 2 nodes became 1, in "), std::string::npos) << all;
  EXPECT_NE(all.find("built for cpu: "), std::string::npos) << all;
}

TEST_F(HostLog, AChildOfAProcessThatIsLoggingLogs) {
  ASSERT_TRUE(keep_log(LogLevel::kInfo).ok());
  std::atomic<bool> stop{false};
  std::thread busy([&] {
    while (!stop.load()) {
      PINNACE_LOG_INFO("from the parent");
      if (log_is_kept()) take_log();
    }
  });
  for (int i = 0; i < 20; ++i) {
    const int status = testing::in_child([] {
      take_log();
      PINNACE_LOG_INFO("from the child");
      const auto kept = take_log();
      return kept.size() == 1 && kept[0].text == "from the child" ? 0 : 1;
    });
    EXPECT_EQ(status, 0);
  }
  stop = true;
  busy.join();
}

TEST_F(HostLog, TheEnvironmentTurnsStderrOn) {
  const Child child({"PINNACE_LOG=debug"});
  if (child.here()) {
    EXPECT_EQ(stderr_log_level(), LogLevel::kDebug);
    PINNACE_LOG_DEBUG("said in the child");
    return;
  }
  EXPECT_TRUE(child.says(" debug pinnace: said in the child\n")) << child.output;
}

TEST_F(HostLog, AnEnvironmentThatNamesNoLevelIsAnError) {
  const Child child({"PINNACE_LOG=loud"});
  if (child.here()) {
    EXPECT_EQ(stderr_log_level(), LogLevel::kWarn);
    return;
  }
  EXPECT_TRUE(child.says(" error pinnace: PINNACE_LOG: log level 'loud' is not one of trace, ")) << child.output;
}

}  // namespace
}  // namespace pinnace
