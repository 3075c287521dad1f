// Tests keep nothing in the cache folder of whoever runs them, and find nothing there.
#include <cstdlib>

#include <gtest/gtest.h>

namespace pinnace::testing {
namespace {

class NoUserCache : public ::testing::Environment {
 public:
  void SetUp() override { setenv("PINNACE_CACHE", "", 1); }
};

[[maybe_unused]] ::testing::Environment* const kNoUserCache = ::testing::AddGlobalTestEnvironment(new NoUserCache);

}  // namespace
}  // namespace pinnace::testing
