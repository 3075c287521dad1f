// Copies by strides, of which reference code is made, against index arithmetic: all orders of dimensions, whole and
// broken squares, each size of element, one thread and several.
#include "ops/move.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>

#include "base/status.h"
#include "base/threads/thread_pool.h"
#include "cases/run_case.h"

namespace pinnace::testing {
namespace {

/// What copy_transposed() says, element by element.
std::vector<std::byte> transposed(const std::vector<int64_t>& sizes, const std::vector<int>& perm,
                                  const std::vector<std::byte>& x, size_t bytes) {
  const size_t rank = sizes.size(), count = bytes ? x.size() / bytes : 0;
  std::vector<std::byte> y(x.size());
  std::vector<int64_t> index(rank);
  for (size_t i = 0; i < count; ++i) {  // element i of y
    size_t rest = i;
    for (size_t d = rank; d-- > 0;) {
      const auto size = static_cast<size_t>(sizes[static_cast<size_t>(perm[d])]);
      index[static_cast<size_t>(perm[d])] = static_cast<int64_t>(rest % size);
      rest /= size;
    }
    int64_t place = 0;
    for (size_t d = 0; d < rank; ++d) place = place * sizes[d] + index[d];
    std::copy_n(x.begin() + place * static_cast<ptrdiff_t>(bytes), bytes,
                y.begin() + static_cast<ptrdiff_t>(i * bytes));
  }
  return y;
}

TEST(Move, TransposedInEveryOrder) {
  const std::vector<std::vector<int64_t>> shapes = {
      {1},         {16, 16},       {17, 33},       {2, 100},       {100, 2},
      {3, 16, 17}, {1, 40, 1, 20}, {5, 1, 18, 31}, {3, 2, 17, 19}, {4, 0, 3}};
  ThreadPool pool;
  for (const std::vector<int64_t>& sizes : shapes) {
    const Shape shape(sizes.begin(), sizes.end());
    const auto count =
        static_cast<size_t>(std::accumulate(sizes.begin(), sizes.end(), int64_t{1}, std::multiplies<>()));
    std::vector<int> perm(sizes.size());
    std::iota(perm.begin(), perm.end(), 0);
    do {
      for (const size_t bytes : {1, 2, 4, 8}) {
        std::vector<std::byte> x(count * bytes), y(x.size());
        for (size_t i = 0; i < x.size(); ++i) x[i] = static_cast<std::byte>(i * 7 + i / 251);
        const std::vector<std::byte> wanted = transposed(sizes, perm, x, bytes);
        for (const Threads& threads : {Threads(), Threads(&pool, 3, 0)}) {
          std::fill(y.begin(), y.end(), std::byte{0});
          copy_transposed(threads, shape, perm, x.data(), y.data(), bytes);
          EXPECT_EQ(y, wanted) << ::testing::PrintToString(sizes) << " by " << ::testing::PrintToString(perm) << ", "
                               << bytes << " bytes";
        }
      }
    } while (std::next_permutation(perm.begin(), perm.end()));
  }
}

/// Backwards, and several times the same: steps of -1 and 0 beside one of 1 along another dimension.
TEST(Move, StepsThatAreNegativeOrZero) {
  std::vector<uint16_t> x(20 * 18), y(18 * 3 * 20);
  std::iota(x.begin(), x.end(), uint16_t{0});
  const Shape shape = {18, 3, 20};  // y[j, r, i] = x[19 - i, j]
  const int64_t from[] = {1, 0, -18}, to[] = {60, 20, 1};
  copy_strided(Threads(), shape, reinterpret_cast<const std::byte*>(x.data() + 19 * 18), from,
               reinterpret_cast<std::byte*>(y.data()), to, 2);
  for (int j = 0; j < 18; ++j) {
    for (int r = 0; r < 3; ++r) {
      for (int i = 0; i < 20; ++i) ASSERT_EQ(y[static_cast<size_t>((j * 3 + r) * 20 + i)], (19 - i) * 18 + j);
    }
  }
}

}  // namespace
}  // namespace pinnace::testing
