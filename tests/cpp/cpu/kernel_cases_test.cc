// Every line of kernels.inc of some families on random cases, against the reference code: 1,000 cases a family with
// PINNACE_TEST_ALL=1, else a tenth that moves with the seed. Sizes are odd, sometimes 0 or 1; NaN and infinities occur.
#include <gtest/gtest.h>

#include <bit>

#include "base/half.h"
#include "cpp/cpu/kernel_line.h"
#include "cpp/cpu/quantized_contract.h"
#include "cpp/random_cases.h"

namespace pinnace::testing {
namespace {

/// A float32 tensor with its elements rounded to bfloat16; others as they are.
CaseTensor rounded(CaseTensor tensor) {
  if (!tensor.present || tensor.type.dtype != DType::kF32) return tensor;
  const auto* from = reinterpret_cast<const float*>(tensor.bytes->data());
  std::vector<float> floats(from, from + tensor.type.elements());
  for (float& x : floats) x = std::fabs(x) < 1e-4f ? 0.0f : bfloat_to_float(float_to_bfloat(x));  // f16 holds it too
  tensor.bytes = *Constant::copy_of(floats.data(), floats.size() * sizeof(float));
  return tensor;
}

class KernelCases : public ::testing::TestWithParam<RandomFamily> {};

/// Bit by bit, but for the sign and the payload of NaN, which depend on the order of a compiler's operands.
bool same_bits(const ReferenceOutput& a, const ReferenceOutput& b) {
  if (a.type.dtype != DType::kF32) return std::memcmp(a.bytes.data(), b.bytes.data(), a.bytes.size()) == 0;
  const auto* x = reinterpret_cast<const float*>(a.bytes.data());
  const auto* y = reinterpret_cast<const float*>(b.bytes.data());
  for (int64_t i = 0; i < a.type.elements(); ++i) {
    const bool same = std::bit_cast<uint32_t>(x[i]) == std::bit_cast<uint32_t>(y[i]);
    if (!same && !(std::isnan(x[i]) && std::isnan(y[i]))) return false;
  }
  return true;
}

TEST_P(KernelCases, MatchTheReference) {
  const auto& [name, generate] = GetParam();
  int ran = 0;
  for (size_t i = 0; i < kRandomCases; ++i) {
    if (!in_slice(i, 10)) continue;
    Random random(case_seed(name, i));
    Draw draw{random};
    const RandomCase drawn = generate(draw);
    const Case source{.inputs = drawn.inputs.c_str(),
                      .attributes = drawn.attributes.c_str(),
                      .outputs = drawn.outputs,
                      .tolerance = drawn.tolerance,
                      .output_quantization = drawn.quantization.c_str()};
    const std::string sentence =
        str_cat(name, " case ", i, ": ", drawn.op, " (", drawn.inputs.substr(0, 300), " | ", drawn.attributes, ")");
    const auto built = build_case(drawn.op.c_str(), source, case_seed(name, i));
    ASSERT_TRUE(built.ok()) << sentence << ": " << built.status().message();
    const auto reference = run_case(*built);
    ASSERT_TRUE(reference.ok()) << sentence << ": " << reference.status().message();
    // Numbers that 16 bits hold: lines of 16 bits then round nothing, and are held to the bound of float32.
    auto exact = build_case(drawn.op.c_str(), source, case_seed(name, i));
    ASSERT_TRUE(exact.ok());
    for (CaseTensor& input : exact->inputs) input = rounded(input);
    const auto exact_reference = run_case(*exact);
    ASSERT_TRUE(exact_reference.ok()) << sentence;
    for (const CpuKernelLine& line : cpu_kernels()) {
      if (line.op != drawn.op || !line_runs(line)) continue;
      const uint32_t images = line.kernel->layouts == Layouts::kDense ? 0 : line.kernel->nhwc_inputs;
      if (on_halves(line)) {
        const auto of_halves = halved(build_case(drawn.op.c_str(), source, case_seed(name, i)), line);
        ASSERT_TRUE(of_halves.ok()) << sentence;
        const auto rounding = rounding_of(line, *of_halves);
        if (!rounding.ok()) continue;
        const auto want = run_case(*of_halves), got = run_line(line, *of_halves, images, 3);
        if (!got.ok() && got.status().code() == Code::kUnsupported) continue;
        ASSERT_TRUE(want.ok() && got.ok()) << line.name << " on " << sentence;
        EXPECT_EQ(differs(line, *got, *want, *rounding), "") << line.name << " on " << sentence;
        ++ran;
        continue;
      }
      const auto one = run_line(line, *built, images, 1);
      if (!one.ok() && one.status().code() == Code::kUnsupported) continue;
      ASSERT_TRUE(one.ok()) << line.name << " on " << sentence << ": " << one.status().message();
      ++ran;
      const auto within = [&](const BuiltCase& of, bool is_exact) {
        const auto rounding = rounding_of(line, of, is_exact);
        return Tolerance{std::max(drawn.tolerance.abs, rounding.ok() ? rounding->abs : 0), drawn.tolerance.rel};
      };
      EXPECT_EQ(differs(line, *one, *reference, within(*built, false), steepest_slope(drawn.attributes)), "")
          << line.name << " on " << sentence;
      const auto three = run_line(line, *built, images, 3);
      ASSERT_TRUE(three.ok()) << line.name << " on " << sentence;
      for (size_t k = 0; k < one->size(); ++k) {
        EXPECT_TRUE(same_bits((*one)[k], (*three)[k])) << line.name << " with three threads on " << sentence;
      }
      if (line.kernel->precision == Precision::kFp32) continue;
      const auto on_exact = run_line(line, *exact, images, 2);
      ASSERT_TRUE(on_exact.ok()) << line.name << " on " << sentence;
      EXPECT_EQ(differs(line, *on_exact, *exact_reference, within(*exact, true), steepest_slope(drawn.attributes)), "")
          << line.name << " on numbers of 16 bits, " << sentence;
    }
  }
  EXPECT_GT(ran, 0);
}

INSTANTIATE_TEST_SUITE_P(Cpu, KernelCases, ::testing::ValuesIn(random_families()),
                         [](const auto& info) { return std::string(info.param.first); });
INSTANTIATE_TEST_SUITE_P(Casts, KernelCases, ::testing::Values(RandomFamily{"conversions", &conversions}),
                         [](const auto& info) { return std::string(info.param.first); });

}  // namespace
}  // namespace pinnace::testing
