// Metal kernels run by softmetal, in three orders and three simd widths, against plain loops; mutants of them are
// caught, each for what is wrong with it.
#include <gtest/gtest.h>

#include "cases/parse_case.h"
#include "cpp/gpu/softmetal_cases.h"

namespace pinnace {
namespace {

constexpr SoftmetalOrder kOrders[] = {kSoftmetalForward, kSoftmetalReverse, kSoftmetalShuffled};
constexpr uint32_t kWidths[] = {8, 32, 64};

uint32_t test_seed_32() {
  return static_cast<uint32_t>(testing::test_seed());
}

std::vector<softmetal::Execution> executions() {
  std::vector<softmetal::Execution> all;
  for (const SoftmetalOrder order : kOrders) {
    for (const uint32_t width : kWidths) all.push_back({order, test_seed_32(), width, true});
  }
  return all;
}

std::string described(const softmetal::Execution& e) {
  return str_cat("order ", static_cast<int>(e.order), ", width ", e.simd_width, ", seed ", e.seed);
}

class Softmetal : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!softmetal_test_kernels()) GTEST_SKIP() << "softmetal is not in this build, or not for this processor";
  }
};
using SoftmetalKernels = Softmetal;
using SoftmetalMutants = Softmetal;

TEST_F(SoftmetalKernels, EqualPlainLoopsInEveryOrderAndWidth) {
  for (const std::string& name : softmetal_kernel_names()) {
    for (const SoftmetalCase& c : softmetal_cases(name)) {
      for (const softmetal::Execution& e : executions()) {
        EXPECT_EQ(run_softmetal(c, name, e), "") << name << ", " << described(e);
      }
    }
  }
}

TEST_F(SoftmetalKernels, GiveTheSameBitsInEveryOrder) {
  for (const std::string& name : softmetal_kernel_names()) {
    const SoftmetalCase c = softmetal_cases(name)[0];
    std::vector<std::vector<std::byte>> first, again;
    ASSERT_EQ(run_softmetal(c, name, {}, &first), "");
    for (uint32_t seed = 0; seed < 30; ++seed) {
      const SoftmetalOrder order = seed == 0 ? kSoftmetalReverse : kSoftmetalShuffled;
      ASSERT_EQ(run_softmetal(c, name, {order, seed + test_seed_32(), 32, true}, &again), "");
      EXPECT_TRUE(first == again) << name << ", seed " << seed;
    }
  }
}

struct Mutant {
  const char* kernel;
  const char* suffix;
  const char* caught_for;  // part of the sentence
};
constexpr const char* kRace = "with no barrier between";
constexpr const char* kReturned = "invocations returned";
constexpr const char* kOutside = "is outside of";
const Mutant kMutants[] = {
    {"gemm_tiled", "no_first_barrier", kRace},
    {"gemm_tiled", "no_second_barrier", kRace},
    {"gemm_tiled", "unguarded_load", kOutside},
    {"gemm_tiled", "past_tile", kOutside},
    {"gemm_tiled", "early_return", kReturned},
    {"gemm_tiled", "divergent_barrier", "threadgroup barrier that not all invocations reach"},
    {"softmax", "no_first_barrier", kRace},
    {"softmax", "no_second_barrier", kRace},
    {"softmax", "no_third_barrier", kRace},
    {"softmax", "early_return", kReturned},
    {"softmax", "part_of_a_simdgroup", "simd function reached by part of a simdgroup only"},
    {"softmax", "past_row", kOutside},
    {"depthwise", "unguarded_load", kOutside},
    {"depthwise", "before_image", kOutside},
    {"depthwise", "unguarded_store", kOutside},
    {"gemm_f16", "no_first_barrier", kRace},
    {"gemm_f16", "no_second_barrier", kRace},
    {"gemm_f16", "early_return", kReturned},
    {"gemm_f16", "past_tile", kOutside},
    {"gemm_f16", "unguarded_load", kOutside},
    {"gemm_simdgroup", "no_first_barrier", kRace},
    {"gemm_simdgroup", "no_second_barrier", kRace},
    {"gemm_simdgroup", "past_rows", kOutside},
    {"gemm_simdgroup", "past_panel", kOutside},
    {"histogram", "no_first_barrier", kRace},
    {"histogram", "no_second_barrier", kRace},
    {"histogram", "past_bins", kOutside},
    {"histogram", "early_return", kReturned},
    {"transpose", "no_barrier", kRace},
    {"transpose", "too_much", "more than 32 KiB of threadgroup memory"},
    {"transpose", "past_tile", kOutside},
};

TEST_F(SoftmetalMutants, AreCaughtInEveryOrderEachForItsMistake) {
  for (const Mutant& m : kMutants) {
    const SoftmetalCase c = softmetal_cases(m.kernel)[0];
    const std::string name = str_cat(m.kernel, "_", m.suffix);
    for (const SoftmetalOrder order : kOrders) {
      const softmetal::Execution e{order, test_seed_32(), 8, true};
      const std::string said = run_softmetal(c, name, e);
      EXPECT_NE(said.find(m.caught_for), std::string::npos) << name << ", " << described(e) << ": '" << said << "'";
      EXPECT_NE(said.find(str_cat("kernel '", name, "'")), std::string::npos) << said;
      EXPECT_NE(said.find("line "), std::string::npos) << said;
    }
  }
}

// The test above counts on races being looked for. Without, a missing barrier leaves a wrong answer in one of the
// orders, for threadgroup memory is a NaN before it is written.
TEST_F(SoftmetalMutants, WithoutBarriersAreWrongInSomeOrder) {
  for (const Mutant& m : kMutants) {
    if (m.caught_for != kRace) continue;
    const std::string name = str_cat(m.kernel, "_", m.suffix);
    std::string said;
    for (softmetal::Execution e : executions()) {
      e.races = false;
      for (const SoftmetalCase& c : softmetal_cases(m.kernel)) said += run_softmetal(c, name, e);
    }
    const bool hidden = name == "softmax_no_second_barrier";
    EXPECT_EQ(said.find("wrong answer") == std::string::npos, hidden) << name << ": '" << said << "'";
  }
}

TEST_F(SoftmetalMutants, AreAllListed) {
  const SoftmetalLibrary* library = softmetal_test_kernels();
  EXPECT_EQ(library->kernel_count, softmetal_kernel_names().size() + std::size(kMutants));
  for (uint32_t i = 1; i < library->kernel_count; ++i) EXPECT_LT(std::string(library->name(i - 1)), library->name(i));
}

TEST_F(SoftmetalKernels, LaunchesOutsideOfLimitsAreRefused) {
  const SoftmetalCase c = softmetal_cases("transpose")[0];
  SoftmetalCase large = c;
  large.local = {1025, 1, 1};
  EXPECT_NE(run_softmetal(large, "transpose", {}).find("1025 x 1 x 1 invocations, has 1 to 1024"), std::string::npos);
  EXPECT_NE(run_softmetal(c, "transpose", {kSoftmetalForward, 1, 7, true}).find("simd width 7"), std::string::npos);
  EXPECT_NE(run_softmetal(c, "no_such_kernel", {}).find("there are"), std::string::npos);
  SoftmetalCase much = softmetal_cases("scan")[0];
  much.threadgroup_bytes = 40000;
  EXPECT_NE(run_softmetal(much, "scan", {}).find("more than 32 KiB"), std::string::npos);
  SoftmetalCase unbound = c;
  unbound.buffers[0].clear();
  EXPECT_NE(run_softmetal(unbound, "transpose", {}).find("buffer(0)"), std::string::npos);
  SoftmetalCase short_push = c;
  short_push.push.resize(4);
  EXPECT_NE(run_softmetal(short_push, "transpose", {}).find("buffer(30): has 4 bytes, the kernel reads 8"),
            std::string::npos);
}

}  // namespace
}  // namespace pinnace
