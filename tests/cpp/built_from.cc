// The test program says which commit it was built from, in its output and in its report: scripts/run_tests.py compares
// that with what is checked out.
#include <cstdio>

#include <gtest/gtest.h>

#include "build_commit.h"

namespace pinnace::testing {
namespace {

class BuiltFrom : public ::testing::Environment {
 public:
  void SetUp() override {
    std::printf("Built from %s\n", PINNACE_BUILT_FROM);
    ::testing::Test::RecordProperty("built_from", PINNACE_BUILT_FROM);
  }
};

[[maybe_unused]] ::testing::Environment* const kBuiltFrom = ::testing::AddGlobalTestEnvironment(new BuiltFrom);

}  // namespace
}  // namespace pinnace::testing
