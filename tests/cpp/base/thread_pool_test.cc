// ThreadPool: every task runs once, whoever calls, however often; workers that sleep come back.
#include "base/threads/thread_pool.h"

#include <gtest/gtest.h>
#include <sched.h>

#include <chrono>
#include <thread>
#include <vector>

namespace pinnace {
namespace {

TEST(ThreadPool, RunsEveryTaskOnceForSeveralCallers) {
  ThreadPool pool;
  std::atomic<int> wrong{0};
  const auto call = [&](int id) {
    for (int round = 0; round < 5000; ++round) {
      const int64_t tasks = 1 + (round * 7 + id) % 9;
      std::atomic<int64_t> sum{0};
      pool.run(tasks, 1 + round % 4, [&](int64_t i) { sum.fetch_add(i + 1); });
      if (sum.load() != tasks * (tasks + 1) / 2) wrong.fetch_add(1);
      // Long enough that workers give up looking and sleep.
      if (round % 500 == 0) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
  };
  std::vector<std::thread> callers;
  for (int id = 0; id < 3; ++id) callers.emplace_back(call, id);
  for (std::thread& t : callers) t.join();
  EXPECT_EQ(wrong.load(), 0);
}

TEST(ThreadPool, WorkersTakePart) {
  ThreadPool pool;
  const auto slow = [](int64_t) { std::this_thread::sleep_for(std::chrono::milliseconds(2)); };
  pool.run(16, 2, slow);
  const int64_t first = pool.tasks_run_by_workers();
  EXPECT_GT(first, 0);
  std::this_thread::sleep_for(std::chrono::milliseconds(20));  // asleep by now
  pool.run(16, 2, slow);
  EXPECT_GT(pool.tasks_run_by_workers(), first);
}

/// Until `enough` rounds went as they should, or 20 s are over: neighbours on the machine may spoil some.
template <class Round>
int rounds_as_wanted(int enough, Round round) {
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(20);
  int good = 0;
  while (good < enough && std::chrono::steady_clock::now() < end) good += round();
  return good;
}

#if defined(__linux__)
// A thread has the processors that its maker had: those of the first caller would be everyone's for ever.
TEST(ThreadPool, WorkersRunWhereTheirCallerMay) {
  cpu_set_t all;
  ASSERT_EQ(sched_getaffinity(0, sizeof all, &all), 0);
  if (CPU_COUNT(&all) < 2) GTEST_SKIP() << "one processor";
  ThreadPool pool;
  const auto processors_of_worker = [&] {
    const ThreadPool::Attention attention(pool, 2);
    std::atomic<int> found = 0;
    const auto caller = std::this_thread::get_id();
    for (int turn = 0; turn < 100 && found == 0; ++turn) {
      pool.run(8, 2, [&](int64_t) {
        std::this_thread::sleep_for(std::chrono::milliseconds(2));
        if (std::this_thread::get_id() != caller) found = available_processors();
      });
    }
    return found.load();
  };
  std::thread([&] {
    cpu_set_t one;
    CPU_ZERO(&one);
    for (int i = 0; i < CPU_SETSIZE && CPU_COUNT(&one) == 0; ++i) {
      if (CPU_ISSET(i, &all)) CPU_SET(i, &one);
    }
    ASSERT_EQ(sched_setaffinity(0, sizeof one, &one), 0);
    EXPECT_EQ(processors_of_worker(), 1);
  }).join();
  EXPECT_EQ(processors_of_worker(), CPU_COUNT(&all));
}
#endif

TEST(ThreadPool, AShareStaysWithItsThread) {
  ThreadPool pool;
  const ThreadPool::Attention attention(pool, 2);
  EXPECT_EQ(rounds_as_wanted(5,
                             [&] {
                               std::thread::id by[8];
                               pool.run(8, 2, [&](int64_t i) {
                                 by[i] = std::this_thread::get_id();
                                 std::this_thread::sleep_for(std::chrono::milliseconds(1));
                               });
                               return by[0] == std::this_thread::get_id() && by[7] != by[0] && by[3] == by[0] &&
                                      by[4] == by[7];
                             }),
            5);
}

TEST(ThreadPool, MoreThreadsThanSharesAreNotUsed) {
  ThreadPool pool;
  std::atomic<int> runs{0};
  pool.run(1000, 500, [&](int64_t) { runs.fetch_add(1); });
  EXPECT_EQ(runs.load(), 1000);
}

/// Workers wait for the next job for milliseconds where one is expected: jobs after a pause longer than they spin find
/// them awake. Asleep, they would be late for most jobs as short as these.
TEST(ThreadPool, AttentionKeepsWorkersAwake) {
  ThreadPool pool;
  const auto pause = [](int64_t microseconds) {
    const auto end = std::chrono::steady_clock::now() + std::chrono::microseconds(microseconds);
    while (std::chrono::steady_clock::now() < end) {
    }
  };
  const ThreadPool::Attention attention(pool, 2);
  if (available_processors() < 2) GTEST_SKIP() << "one processor";
  EXPECT_EQ(rounds_as_wanted(20,
                             [&] {
                               const int64_t before = pool.tasks_run_by_workers();
                               pool.run(4, 2, [&](int64_t) { pause(50); });
                               const bool shared = pool.tasks_run_by_workers() > before;
                               pause(500);
                               return shared;
                             }),
            20);
}

}  // namespace
}  // namespace pinnace
