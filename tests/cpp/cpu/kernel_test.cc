// Every line of kernels.inc, run by force on every case of its operator, against the reference code. A line that no
// case exercises fails; one that this processor cannot run is a counted skip.
#include <cmath>

#include <gtest/gtest.h>

#include "base/dtype_code.h"
#include "cpp/cpu/kernel_line.h"

namespace pinnace::testing {
namespace {

class KernelLine : public ::testing::TestWithParam<size_t> {};

TEST_P(KernelLine, MatchesTheReference) {
  const CpuKernelLine& line = cpu_kernels()[GetParam()];
  ASSERT_NE(find_op(line.op), nullptr) << line.op << " is not an operator";
  if (!line_runs(line)) GTEST_SKIP() << "this processor does not have " << kernel_isa_name(line.needs);
  int ran = 0;
  for (const CaseList& list : all_cases()) {
    if (line.op != list.op) continue;
    for (size_t i = 0; i < list.cases.size(); ++i) {
      const auto built = halved(calmed(build_case(list.op, list.cases[i], case_seed(list.op, i)), line), line);
      ASSERT_TRUE(built.ok()) << built.status().message();
      if (built->expect.error) continue;
      const auto rounding = rounding_of(line, *built);
      if (on_halves(line) && !rounding.ok()) continue;
      const auto reference = run_case(*built);
      if (!reference.ok()) continue;  // the parity test reports it
      // Images are values of a run; beside one, other operands may be constants.
      const uint32_t images = line.kernel->layouts == Layouts::kDense ? 0 : line.kernel->nhwc_inputs;
      for (const auto& [threads, values] : {std::pair(1, images), std::pair(3, images), std::pair(3, images & 1)}) {
        const auto got = run_line(line, *built, values, threads);
        if (!got.ok() && got.status().code() == Code::kUnsupported) continue;  // the line does not take this case
        ASSERT_TRUE(got.ok()) << line.name << " on case " << i << " (" << list.cases[i].inputs
                              << "): " << got.status().message();
        ++ran;
        Tolerance tolerance = list.cases[i].tolerance;
        if (line.kernel->precision != Precision::kFp32 || on_halves(line)) {
          ASSERT_TRUE(rounding.ok());
          tolerance.abs = std::max(tolerance.abs, rounding->abs);
        }
        EXPECT_EQ(differs(line, *got, *reference, tolerance, steepest_slope(list.cases[i].attributes)), "")
            << line.name << " on case " << i << " (" << list.cases[i].inputs << " | " << list.cases[i].attributes
            << ")";
      }
    }
  }
  // No case of one operator has the operands that only lower.cc puts together: kernel_weights_test.cc,
  // rounded_rows_test.cc, kernel_gated_test.cc.
  if (line.kernel->fuses & (kFusesIntegerWeights | kFusesRoundedRows | kFusesChannelScale)) return;
  EXPECT_GT(ran, 0) << line.name << ": no case of " << line.op << " runs it";
}

INSTANTIATE_TEST_SUITE_P(Cpu, KernelLine, ::testing::Range<size_t>(0, cpu_kernels().size()), [](const auto& info) {
  const CpuKernelLine& line = cpu_kernels()[info.param];
  return str_cat(line.op, "_", line.dtype == kAnyDType ? "any" : dtype_code(line.dtype), "_", line.name);
});

/// Maps that are about c * x near 0 are so to the last digits there, and 0 at 0: where a formula subtracts nearly equal
/// numbers, the bound of MatchesTheReference, which is absolute, does not see that all digits are gone.
TEST(Kernel, SmallNumbersKeepTheirDigits) {
  constexpr Case kTiny = {.inputs = "f32[9]{1e-2,-1e-3,3e-4,1e-5,-1e-6,1e-7,1e-10,-1e-20,1e-30}"};
  constexpr Case kZero = {.inputs = "f32[9]{0,0,0,0,0,0,0,0,0}"};
  int ran = 0;
  for (const CpuKernelLine& line : cpu_kernels()) {
    constexpr std::string_view kMaps[] = {"erf",  "tanh", "silu", "gelu",     "hard_swish", "elu",
                                          "selu", "celu", "mish", "softsign", "sin",        "round"};
    if (std::find(std::begin(kMaps), std::end(kMaps), line.op) == std::end(kMaps)) continue;
    if (line.dtype != DType::kF32 || line.kernel->layouts != Layouts::kDense || !line_runs(line)) continue;
    for (const Case& the_case : {kTiny, kZero}) {
      auto built = build_case(std::string(line.op).c_str(), the_case, 1);
      ASSERT_TRUE(built.ok()) << built.status().message();
      const auto want = run_case(*built), got = run_line(line, *built, 1, 1);
      ASSERT_TRUE(want.ok() && got.ok()) << line.name;
      const auto* a = reinterpret_cast<const float*>((*want)[0].bytes.data());
      const auto* b = reinterpret_cast<const float*>((*got)[0].bytes.data());
      for (int i = 0; i < 9; ++i) EXPECT_NEAR(a[i], b[i], std::abs(a[i]) * 1e-6f) << line.op << " by " << line.name;
      ++ran;
    }
  }
  EXPECT_GE(ran, 10);
}

TEST(Kernel, ForcedLinesRefuseOtherOperators) {
  const OpDef& op = *find_op("abs");
  Node node;
  node.op = "abs";
  node.name = "a";
  node.outputs = {0};
  const TensorType type{DType::kF32, {2}, nullptr};
  const TensorType* types[] = {&type};
  const NodeView view(node, op, types);
  EXPECT_EQ(run_forced(cpu_kernels()[0], view, {}, {}, 1).code(), Code::kUnsupported);
}

}  // namespace
}  // namespace pinnace::testing
