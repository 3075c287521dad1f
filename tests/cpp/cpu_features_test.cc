// Levels of this processor: names, foreign names, and what each implies.
#include "base/cpu_features.h"

#include <cstdlib>

#include <gtest/gtest.h>

namespace pinnace::testing {
namespace {

#if defined(__x86_64__)
constexpr const char *kOwn[] = {"sse2", "avx2", "avx512", "avx512_vnni", "avx512_bf16"}, *kForeign = "neon_i8mm";
#else
constexpr const char *kOwn[] = {"neon", "neon_dotprod", "neon_i8mm", "sve"}, *kForeign = "avx512";
#endif

TEST(CpuFeatures, NamesOfThisArchitectureAreLevelsInAscendingOrder) {
  Cpu before = Cpu::generic;
  for (const char* name : kOwn) {
    Cpu level;
    ASSERT_TRUE(cpu_isa_from_name(name, &level)) << name;
    EXPECT_EQ(cpu_isa_name_problem(name), "");
    EXPECT_GE(level, before) << name;
    EXPECT_LE(cpu_runs(level), cpu_runs(before)) << name << " runs, and what it implies does not";
    before = level;
  }
  Cpu level = before;
  EXPECT_TRUE(cpu_isa_from_name("generic", &level));
  EXPECT_EQ(level, Cpu::generic);
}

TEST(CpuFeatures, OtherNamesAreToldApart) {
  Cpu level;
  EXPECT_FALSE(cpu_isa_from_name(kForeign, &level));
  EXPECT_NE(cpu_isa_name_problem(kForeign).find("is not an instruction set of "), std::string::npos);
  EXPECT_NE(cpu_isa_name_problem(kForeign).find(kOwn[3]), std::string::npos) << "the names that would do are missing";
  EXPECT_NE(cpu_isa_name_problem("mmx").find("'mmx' is no instruction set known here"), std::string::npos);
}

TEST(CpuFeatures, LevelsOfTheOtherArchitectureNeverRun) {
#if defined(__x86_64__)
  for (const Cpu level : {Cpu::neon_dotprod, Cpu::neon_i8mm, Cpu::sve}) EXPECT_FALSE(cpu_runs(level));
#else
  for (const Cpu level : {Cpu::avx2, Cpu::avx512, Cpu::avx512_vnni, Cpu::avx512_bf16}) EXPECT_FALSE(cpu_runs(level));
#endif
}

/// An emulator that is told which processor to be tells this test which level that is.
TEST(CpuFeatures, TheBestLevelIsChosen) {
  const char* expected = std::getenv("PINNACE_TEST_CPU_LEVEL");
  if (!expected) GTEST_SKIP() << "PINNACE_TEST_CPU_LEVEL is not set";
  EXPECT_EQ(kernel_isa_name(cpu_isa()), expected);
  EXPECT_TRUE(cpu_runs(cpu_isa()));
}

}  // namespace
}  // namespace pinnace::testing
