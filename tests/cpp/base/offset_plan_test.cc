// Plans of random lifetimes: what is in use at one time lies apart, and nothing lies across two blocks.
#include "base/offset_plan.h"

#include <gtest/gtest.h>

#include <random>
#include <vector>

#include "base/memory.h"
#include "base/status.h"

namespace pinnace::testing {
namespace {

std::vector<Lifetime> random_lifetimes(std::mt19937& random, size_t count, size_t most) {
  std::vector<Lifetime> all(count);
  for (Lifetime& own : all) {
    own.bytes = random() % 8 == 0 ? 0 : random() % most + 1;
    own.first = static_cast<int32_t>(random() % 40);
    own.last = own.first + static_cast<int32_t>(random() % 10);
  }
  return all;
}

/// Empty, or what is wrong with the plan.
std::string fault(const std::vector<Lifetime>& all, const OffsetPlan& plan, size_t block) {
  size_t end = 0;
  for (size_t i = 0; i < all.size(); ++i) {
    const size_t at = plan.offsets[i], bytes = all[i].bytes;
    if (bytes == 0) {
      if (at != 0) return str_cat("an empty buffer lies at ", at);
      continue;
    }
    if (at % kAlignment != 0) return str_cat("a buffer lies at ", at);
    if (at / block != (at + bytes - 1) / block) return str_cat(bytes, " bytes at ", at, " lie across a block");
    end = std::max(end, at + aligned_size(bytes));
    for (size_t j = 0; j < i; ++j) {
      if (all[j].bytes == 0 || all[j].last < all[i].first || all[i].last < all[j].first) continue;
      if (plan.offsets[j] < at + bytes && at < plan.offsets[j] + all[j].bytes) return str_cat(i, " overlaps ", j);
    }
  }
  return end == plan.total ? "" : str_cat("the total is ", plan.total, ", must be ", end);
}

TEST(OffsetPlan, KeepsWhatIsInUseApart) {
  std::mt19937 random(20);
  for (int turn = 0; turn < 200; ++turn) {
    const auto all = random_lifetimes(random, random() % 60, 5000);
    EXPECT_EQ(fault(all, plan_offsets(all), kOneBlock), "") << turn;
  }
}

TEST(OffsetPlan, LaysNothingAcrossBlocks) {
  std::mt19937 random(21);
  size_t beyond = 0;
  for (int turn = 0; turn < 200; ++turn) {
    const auto all = random_lifetimes(random, random() % 60 + 20, 4096);
    for (const size_t block : {size_t{4096}, size_t{6400}, size_t{1} << 20}) {
      const OffsetPlan plan = plan_offsets(all, block);
      EXPECT_EQ(fault(all, plan, block), "") << turn;
      beyond += plan.total > block;
      if (plan.total <= block) {
        EXPECT_EQ(plan.offsets, plan_offsets(all).offsets) << "a block that holds all changes it";
      }
    }
  }
  EXPECT_GT(beyond, 300u);
}

TEST(OffsetPlan, UsesMemoryAgain) {
  const std::vector<Lifetime> chain = {{640, 0, 1}, {640, 1, 2}, {640, 2, 3}, {640, 3, 4}};
  EXPECT_EQ(plan_offsets(chain).total, 1280u);
  EXPECT_EQ(plan_offsets(chain, 640).total, 1280u);
}

}  // namespace
}  // namespace pinnace::testing
