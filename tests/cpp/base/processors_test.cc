// Sets of processors, and the slowest kind by files that stand in for the system's.
#include "base/threads/processors.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <map>
#include <vector>

#include "base/threads/thread_pool.h"
#include "cpp/scratch_folder.h"

namespace pinnace {
namespace {

#if defined(__linux__)

/// The processors that this thread may run on, by number.
std::vector<int> own_numbers() {
  cpu_set_t set;
  std::vector<int> numbers;
  if (sched_getaffinity(0, sizeof set, &set) != 0) return numbers;
  for (int i = 0; i < CPU_SETSIZE; ++i) {
    if (CPU_ISSET(static_cast<size_t>(i), &set)) numbers.push_back(i);
  }
  return numbers;
}

class SlowestProcessors : public ::testing::Test {
 protected:
  SlowestProcessors() : folder_(testing::scratch_folder() / str_cat("pinnace_processors_", getpid())) {}
  ~SlowestProcessors() override { std::filesystem::remove_all(folder_); }

  /// `content` of a file of a processor.
  void write(int processor, const std::string& file, const std::string& content) {
    const auto path = folder_ / str_cat("cpu", processor) / file;
    std::filesystem::create_directories(path.parent_path());
    std::ofstream(path) << content;
  }
  std::string slowest() { return Processors::slowest(folder_.string()).text(); }

  std::filesystem::path folder_;
};

TEST_F(SlowestProcessors, AreFoundByCapacityThenByFrequency) {
  const std::vector<int> own = own_numbers();
  if (own.size() < 2) GTEST_SKIP() << "one processor";
  EXPECT_EQ(slowest(), "any");  // no files
  for (const int i : own) write(i, "cpufreq/cpuinfo_max_freq", i == own[0] ? "1800000\n" : "2400000\n");
  EXPECT_EQ(slowest(), str_cat(own[0]));
  for (const int i : own) write(i, "cpu_capacity", i == own[1] ? "250\n" : "1024\n");
  EXPECT_EQ(slowest(), str_cat(own[1]));  // capacity counts cycles and what is done in one
  for (const int i : own) write(i, "cpu_capacity", "1024\n");
  EXPECT_EQ(slowest(), str_cat(own[0]));  // alike by capacity
  for (const int i : own) write(i, "cpufreq/cpuinfo_max_freq", "1800000\n");
  EXPECT_EQ(slowest(), "any");
  for (const int i : own) write(i, "cpu_capacity", "much\n");  // what is no number says nothing
  EXPECT_EQ(slowest(), "any");
}

TEST(Processors, AreCheckedBeforeTheyAreUsed) {
  const std::vector<int> own = own_numbers();
  ASSERT_FALSE(own.empty());
  EXPECT_TRUE(Processors::check({}).ok());
  EXPECT_TRUE(Processors::check(own).ok());
  for (const std::vector<int>& wrong :
       {std::vector{-1}, {CPU_SETSIZE}, {INT32_MAX}, {INT32_MIN}, {own.back() + 1}, {own[0], own[0]}}) {
    const Status status = Processors::check(wrong);
    EXPECT_EQ(status.code(), Code::kInvalidArgument);
    EXPECT_NE(status.message().find(str_cat("processor ", wrong.back())), std::string::npos) << status.message();
  }
  EXPECT_FALSE(Processors(std::span<const int>()).known());
  EXPECT_FALSE(Processors(std::vector{-1, CPU_SETSIZE}).known());
  EXPECT_EQ(Processors(own), Processors::of_this_thread());
  EXPECT_EQ(Processors(std::vector{0, 1, 2, 5, 7, 8}).text(), "0-2,5,7-8");
}

TEST(Processors, AreGivenBack) {
  const Processors before = Processors::of_this_thread();
  const Processors one(std::vector{own_numbers().back()});
  {
    const StaysOn stays(one);
    EXPECT_EQ(Processors::of_this_thread(), one);
    const StaysOn nowhere(Processors{});
    EXPECT_EQ(Processors::of_this_thread(), one);
  }
  EXPECT_EQ(Processors::of_this_thread(), before);
  {
    const StaysOn gone(
        Processors(std::vector{CPU_SETSIZE - 1}));  // refused by the system: the thread stays where it is
    EXPECT_EQ(Processors::of_this_thread(), before);
  }
  EXPECT_EQ(Processors::of_this_thread(), before);
}

#endif

}  // namespace
}  // namespace pinnace
