// Instruction sets of this processor: names, foreign names, and what each implies.
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

TEST(CpuFeatures, NamesOfThisArchitectureAreInAscendingOrder) {
  std::vector<Cpu> before;
  for (const char* name : kOwn) {
    Cpu isa;
    ASSERT_TRUE(cpu_isa_from_name(name, &isa)) << name;
    EXPECT_EQ(cpu_isa_name_problem(name), "");
    EXPECT_TRUE(cpu_includes(isa, isa));
    for (const Cpu lower : before) {
      EXPECT_GT(isa, lower) << name;
      EXPECT_FALSE(cpu_includes(lower, isa)) << name;
      if (cpu_includes(isa, lower)) {
        EXPECT_LE(cpu_runs(isa), cpu_runs(lower)) << name << " runs, and what it includes does not";
      } else {
        EXPECT_EQ(kernel_isa_name(lower), "avx_vnni");
      }
    }
    before.push_back(isa);
  }
  Cpu isa = before.back();
  EXPECT_TRUE(cpu_isa_from_name("generic", &isa));
  EXPECT_EQ(isa, Cpu::generic);
}

TEST(CpuFeatures, OtherNamesAreToldApart) {
  Cpu isa;
  EXPECT_FALSE(cpu_isa_from_name(kForeign, &isa));
  EXPECT_NE(cpu_isa_name_problem(kForeign).find("is not an instruction set of "), std::string::npos);
  EXPECT_NE(cpu_isa_name_problem(kForeign).find(kOwn[3]), std::string::npos) << "the names that would do are missing";
  EXPECT_NE(cpu_isa_name_problem("mmx").find("'mmx' is no instruction set known here"), std::string::npos);
}

TEST(CpuFeatures, SetsOfTheOtherArchitectureNeverRun) {
#if defined(__x86_64__)
  for (const Cpu isa : {Cpu::neon_dotprod, Cpu::neon_i8mm, Cpu::sve}) EXPECT_FALSE(cpu_runs(isa));
#else
  for (const Cpu isa :
       {Cpu::avx2, Cpu::avx_vnni, Cpu::avx512, Cpu::avx512_vnni, Cpu::avx512_bf16, Cpu::amx_int8, Cpu::amx_bf16}) {
    EXPECT_FALSE(cpu_runs(isa));
  }
#endif
}

/// An emulator that is told which processor to be tells this test which instruction set is its best.
TEST(CpuFeatures, TheBestSetIsChosen) {
  const char* expected = std::getenv("PINNACE_TEST_INSTRUCTION_SET");
  if (!expected) GTEST_SKIP() << "PINNACE_TEST_INSTRUCTION_SET is not set";
  EXPECT_EQ(kernel_isa_name(cpu_isa()), expected);
  EXPECT_TRUE(cpu_runs(cpu_isa()));
}

}  // namespace
}  // namespace pinnace::testing
