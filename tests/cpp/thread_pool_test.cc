// ThreadPool: every task runs once, whoever calls, however often; workers that sleep come back.
#include "base/thread_pool.h"

#include <gtest/gtest.h>

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

}  // namespace
}  // namespace pinnace
