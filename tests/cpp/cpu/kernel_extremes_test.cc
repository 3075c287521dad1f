// Every line of kernels.inc of normalisations on numbers that float32 has, and whose sums it rounds by more than they
// differ or does not hold: against the reference code, which has them in double.
#include <gtest/gtest.h>

#include "cpp/cpu/kernel_line.h"

namespace pinnace::testing {
namespace {

struct Extreme {
  const char* op;
  Case source;
};
constexpr Tolerance kF32{.rel = 2e-6f};
constexpr Extreme kExtremes[] = {
    {"layer_normalization",
     {.inputs = "f32[3,100] in 200000.1..200000.1;f32[100];f32[100]", .tolerance = kF32, .why = "equal: variance 0"}},
    {"layer_normalization",
     {.inputs = "f32[3,77] in 50.3..50.3;f32[77];f32[77]", .attributes = "epsilon=1e-12", .tolerance = kF32}},
    {"layer_normalization",
     {.inputs = "f32[2,640] in 99999..100001;f32[640]", .tolerance = kF32, .why = "what the mean leaves is all"}},
    {"layer_normalization", {.inputs = "f32[2,640] in 1e38..1.2e38;f32[640];f32[640]", .tolerance = kF32}},
    {"group_normalization",
     {.inputs = "f32[2,4,9,7] in 200000.1..200000.1;f32[4];f32[4]", .attributes = "num_groups=2", .tolerance = kF32}},
    {"group_normalization",
     {.inputs = "f32[1,4,20,20] in 1e38..1.2e38;f32[4];f32[4]", .attributes = "num_groups=2", .tolerance = kF32}},
    {"instance_normalization",
     {.inputs = "f32[2,9,9,7] in 31.7..31.7;f32[9];f32[9]", .attributes = "epsilon=1e-12", .tolerance = kF32}},
    {"instance_normalization", {.inputs = "f32[1,9,20,20] in 1e38..1.2e38;f32[9];f32[9]", .tolerance = kF32}},
    {"lp_normalization", {.inputs = "f32[2,2]{3e38,-3e38,3e38,0}", .tolerance = kF32, .why = "the norm"}},
    {"lp_normalization", {.inputs = "f32[2,2]{3e38,-3e38,1,0}", .attributes = "p=1", .tolerance = kF32}},
    {"lp_normalization",
     {.inputs = "f32[2,3]{3e38,1,3e38,-3e38,3,3e38}", .attributes = "axis=0, p=1", .tolerance = kF32}},
    {"lp_normalization", {.inputs = "f32[2,3]{3e38,1,3e38,-3e38,3,inf}", .attributes = "axis=0", .tolerance = kF32}},
};

TEST(Kernel, ExtremeNumbersAreNormalised) {
  int ran = 0;
  for (const Extreme& extreme : kExtremes) {
    const auto built = build_case(extreme.op, extreme.source, test_seed());
    ASSERT_TRUE(built.ok()) << built.status().message();
    const auto want = run_case(*built);
    ASSERT_TRUE(want.ok()) << want.status().message();
    for (const CpuKernelLine& line : cpu_kernels()) {
      if (line.op != std::string_view(extreme.op) || line.dtype != DType::kF32 || !line_runs(line)) continue;
      const uint32_t images = line.kernel->layouts == Layouts::kDense ? 0 : line.kernel->nhwc_inputs;
      const auto got = run_line(line, *built, images, 1);
      if (!got.ok() && got.status().code() == Code::kUnsupported) continue;
      ASSERT_TRUE(got.ok()) << line.name << ": " << got.status().message();
      EXPECT_EQ(differs(line, *got, *want, extreme.source.tolerance), "")
          << line.name << " on " << extreme.source.inputs << " | " << extreme.source.attributes;
      ++ran;
    }
  }
  EXPECT_GE(ran, static_cast<int>(std::size(kExtremes)));
}

}  // namespace
}  // namespace pinnace::testing
