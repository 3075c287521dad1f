// Levels of this processor: names, foreign names, and what each implies.
#include "base/cpu_features.h"

#include <cstdlib>
#include <vector>

#include <gtest/gtest.h>

namespace pinnace::testing {
namespace {

#if defined(__x86_64__)
constexpr const char *kOwn[] = {"sse2",        "avx2",        "avx_vnni", "avx512",
                                "avx512_vnni", "avx512_bf16", "amx_int8", "amx_bf16"},
                     *kForeign = "neon_i8mm";
#else
constexpr const char *kOwn[] = {"neon", "neon_dotprod", "neon_i8mm", "sve"}, *kForeign = "avx512";
#endif

TEST(CpuFeatures, NamesOfThisArchitectureAreLevelsInAscendingOrder) {
  std::vector<Cpu> before;
  for (const char* name : kOwn) {
    Cpu level;
    ASSERT_TRUE(cpu_isa_from_name(name, &level)) << name;
    EXPECT_EQ(cpu_isa_name_problem(name), "");
    EXPECT_TRUE(cpu_includes(level, level));
    for (const Cpu lower : before) {
      EXPECT_GT(level, lower) << name;
      EXPECT_FALSE(cpu_includes(lower, level)) << name;
      if (cpu_includes(level, lower)) {
        EXPECT_LE(cpu_runs(level), cpu_runs(lower)) << name << " runs, and what it includes does not";
      } else {
        EXPECT_EQ(kernel_isa_name(lower), "avx_vnni");
      }
    }
    before.push_back(level);
  }
  Cpu level = before.back();
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
  for (const Cpu level :
       {Cpu::avx2, Cpu::avx_vnni, Cpu::avx512, Cpu::avx512_vnni, Cpu::avx512_bf16, Cpu::amx_int8, Cpu::amx_bf16}) {
    EXPECT_FALSE(cpu_runs(level));
  }
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
