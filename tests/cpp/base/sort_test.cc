// base/sort.h against the standard library, and its ends.
#include "base/sort.h"

#include <gtest/gtest.h>

#include <functional>
#include <numeric>
#include <random>
#include <vector>

namespace pinnace {
namespace {

std::vector<int64_t> numbers(int64_t count, const char* how, uint32_t seed) {
  std::vector<int64_t> all(static_cast<size_t>(count));
  std::iota(all.begin(), all.end(), 0);
  if (how[0] == 'r') std::shuffle(all.begin(), all.end(), std::mt19937(seed));
  if (how[0] == 'd') std::reverse(all.begin(), all.end());
  if (how[0] == 'o') std::rotate(all.begin(), all.begin() + count / 3, all.end());
  return all;
}

class Sorted : public ::testing::TestWithParam<const char*> {};

TEST_P(Sorted, AsTheStandardLibraryDoes) {
  for (const int64_t count : {0, 1, 2, 9, 1000, 32768, 32769, 40000, 300001}) {
    const std::vector<int64_t> given = numbers(count, GetParam(), 3);
    for (const bool falling : {false, true}) {
      const auto before = [falling](int64_t a, int64_t b) { return falling ? a > b : a < b; };
      std::vector<int64_t> want = given;
      std::sort(want.begin(), want.end(), before);
      std::vector<int64_t> got = given;
      sort_all(got.data(), got.data() + count, before);
      EXPECT_EQ(got, want) << count;
      for (const int64_t first : {int64_t{0}, std::min<int64_t>(count, 1), count / 2, count * 9 / 10, count}) {
        got = given;
        sort_first(got.data(), got.data() + first, got.data() + count, before);
        EXPECT_TRUE(std::equal(got.begin(), got.begin() + first, want.begin())) << first << " of " << count;
        got = given;
        select_nth(got.data(), got.data() + first, got.data() + count, before);
        if (first == count) continue;
        const int64_t nth = got[static_cast<size_t>(first)];
        EXPECT_EQ(nth, want[static_cast<size_t>(first)]) << first << " of " << count;
        EXPECT_TRUE(std::none_of(got.begin(), got.begin() + first, [&](int64_t x) { return before(nth, x); }));
        std::sort(got.begin(), got.end(), before);
        EXPECT_EQ(got, want);
      }
    }
  }
}
INSTANTIATE_TEST_SUITE_P(Numbers, Sorted, ::testing::Values("rising", "descending", "offset", "random"),
                         [](const auto& info) { return std::string(info.param); });

TEST(Sorting, EndsWithItsCallAtEachLook) {
  const std::vector<int64_t> given = numbers(200000, "random", 5);
  const auto run = [&](const auto& what, int64_t stop_at) {
    struct Count {
      int64_t looks = 0, stop_at;
    } count{.stop_at = stop_at};
    CancelScope scope(
        [](void* context) {
          auto* c = static_cast<Count*>(context);
          return ++c->looks == c->stop_at;
        },
        &count);
    CancelView::poll_at_every_look(scope);
    const LoopsMayStop may;
    std::vector<int64_t> values = given;
    what(values.data(), values.data() + values.size());
    if (stop_at) {
      EXPECT_EQ(count.looks, stop_at) << "nothing looks again";
      EXPECT_TRUE(stopped());
    }
    std::sort(values.begin(), values.end());  // nothing is lost or there twice
    EXPECT_EQ(values.size(), given.size());
    for (size_t i = 0; i < values.size(); ++i) EXPECT_EQ(values[i], static_cast<int64_t>(i));
    return count.looks;
  };
  const auto sort = [](int64_t* a, int64_t* b) { sort_all(a, b, std::less<>()); };
  const auto part = [](int64_t* a, int64_t* b) { sort_first(a, a + (b - a) / 2, b, std::less<>()); };
  const auto all = run(sort, 0);
  EXPECT_GT(all, 20);
  for (int64_t at = 1; at <= all; ++at) EXPECT_EQ(run(sort, at), at);
  const auto all_of_part = run(part, 0);
  for (int64_t at = 1; at <= all_of_part; ++at) EXPECT_EQ(run(part, at), at);
}

}  // namespace
}  // namespace pinnace
