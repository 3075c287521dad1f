// StepTeam: every part of every step once, in order, with all of a pool's threads, with one, and with a pool that is
// busy elsewhere.
#include "backends/cpu/recurrent/step_team.h"

#include <gtest/gtest.h>

#include <chrono>
#include <thread>
#include <vector>

namespace pinnace::cpu {
namespace {

/// Walks and counts what was done wrong.
int wrongs(ThreadPool& pool, int threads, int parts, int64_t steps, bool slow) {
  KernelContext context;
  context.pool = &pool;
  context.threads = threads;
  std::vector<std::atomic<int>> done(static_cast<size_t>(steps));
  std::atomic<int> wrong{0};
  StepTeam team(parts, steps);
  team.run(context, [&](int64_t step, int part) {
    if (step > 0 && done[static_cast<size_t>(step - 1)].load() != team.parts()) wrong.fetch_add(1);
    if (part < 0 || part >= team.parts()) wrong.fetch_add(1);
    if (slow && (step * 7 + part) % 5 == 0) std::this_thread::sleep_for(std::chrono::microseconds(300));
    done[static_cast<size_t>(step)].fetch_add(1);
  });
  for (const auto& count : done) wrong.fetch_add(count.load() != team.parts());
  return wrong.load();
}

TEST(StepTeam, DoesEveryPartOnceAndInOrder) {
  ThreadPool pool;
  for (int threads : {1, 2, 3, 5}) {
    for (int parts : {0, 1, 2, 3, 16, 99}) {
      EXPECT_EQ(wrongs(pool, threads, parts, 300, false), 0) << threads << " threads, " << parts << " parts";
      EXPECT_EQ(wrongs(pool, threads, parts, 20, true), 0) << threads << " threads, " << parts << " parts";
    }
  }
  EXPECT_EQ(wrongs(pool, 2, 2, 0, false), 0);
}

TEST(StepTeam, SeveralCallersShareAPool) {
  ThreadPool pool;
  std::atomic<int> wrong{0};
  std::vector<std::thread> callers;
  for (int i = 0; i < 3; ++i) {
    callers.emplace_back([&, i] {
      for (int round = 0; round < 30; ++round)
        wrong.fetch_add(wrongs(pool, 3, 2 + (round + i) % 3, 50, round % 9 == 0));
    });
  }
  for (std::thread& t : callers) t.join();
  EXPECT_EQ(wrong.load(), 0);
}

}  // namespace
}  // namespace pinnace::cpu
