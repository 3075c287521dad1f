// Every operator that the GPU back ends lower, on its cases, on Vulkan under validation, held against the reference
// code; those on quantised tensors and recurrent ones on softmetal too. Each case runs with its first input alone as a
// value of the run, and with all inputs so; in 32 and in 16 bits. Integers must be equal.
#include <gtest/gtest.h>

#include <cstring>
#include <map>
#include <set>

#include "backends/gpu/lowering.h"
#include "base/half.h"
#include "compile/targets.h"
#include "cpp/gpu_device.h"
#include "cpp/lone_node.h"

namespace pinnace {
const Backend& vulkan_backend();
}  // namespace pinnace

namespace pinnace::testing {
namespace {

const std::set<std::string>& lowered() {
  static const std::set<std::string> names = {
#define LOWERING(op, function) #op,
#include "backends/gpu/lowerings.inc"
#undef LOWERING
#define QUANTIZED_LOWERING(op, function) #op,
#include "backends/gpu/quantized_lowerings.inc"
#undef QUANTIZED_LOWERING
  };
  return names;
}

bool is_quantized(const BuiltCase& built) {
  return std::any_of(built.inputs.begin(), built.inputs.end(),
                     [](const CaseTensor& t) { return t.present && t.type.quantized(); });
}

struct Tally {
  int ran = 0, refused = 0;
};

/// What a result may differ by: the case's own bound, and of the largest magnitude 2e-5 in fp32 (sums and functions in
/// float32, whose exp, log, sin and pow are the device's), 4e-3 in fp16 (operands and results have 11 bits).
std::string far(const TensorView& want, const TensorView& got, const Tolerance& own, bool f16) {
  double largest = 0;
  for (int64_t i = 0; i < want.elements(); ++i) {
    if (std::isfinite(element(want, i))) largest = std::max(largest, std::fabs(element(want, i)));
  }
  const bool floats = gpu::is_device_float(want.dtype());
  const double relative = want.dtype() == DType::kBF16 ? 8e-3 : f16 ? 4e-3 : want.dtype() == DType::kF16 ? 1e-3 : 2e-5;
  const double bound =
      floats ? (f16 ? 4e-3 : 1e-6) + static_cast<double>(own.abs) + std::max<double>(relative, own.rel) * largest : 0;
  for (int64_t i = 0; i < want.elements(); ++i) {
    const double w = element(want, i), g = element(got, i);
    if (f16 && !(std::fabs(w) < 6e4)) continue;  // beyond what 16 bits hold
    if (std::isnan(w) ? std::isnan(g) : std::isinf(w) ? w == g : std::fabs(w - g) <= bound) continue;
    return str_cat("element ", i, " is ", g, ", must be ", w, " within ", bound);
  }
  return {};
}

bool fits_halves(const TensorView& t) {
  if (!t.present() || (t.dtype() != DType::kF32 && t.dtype() != DType::kF16)) return true;
  for (int64_t i = 0; i < t.elements(); ++i) {
    if (!(std::fabs(element(t, i)) < 6e4)) return false;
  }
  return true;
}

/// The operands as 16 bits hold them: a step function such as ceil answers for what the device was given, and a number
/// just above an integer is that integer in 16 bits.
Status round_to_halves(BuiltCase& built) {
  for (CaseTensor& t : built.inputs) {
    if (!t.present || t.type.dtype != DType::kF32) continue;
    std::vector<float> floats(t.bytes->bytes() / sizeof(float));
    std::memcpy(floats.data(), t.bytes->data(), t.bytes->bytes());
    for (float& f : floats) f = half_to_float(float_to_half(f));
    PINNACE_ASSIGN(t.bytes, Constant::copy_of(floats.data(), t.bytes->bytes()));
  }
  return {};
}

/// Devices may reduce the arguments of sines as they like beyond pi, and float32 does not hold every square.
bool beyond_the_device(std::string_view op, std::span<const TensorView> inputs) {
  const double most = op == "sin" || op == "cos" ? 3.2 : op == "reduce_l2" ? 1e18 : 1e300;
  for (const TensorView& t : inputs) {
    if (!t.present() || !gpu::is_device_float(t.dtype())) continue;
    for (int64_t i = 0; i < t.elements(); ++i) {
      if (std::fabs(element(t, i)) > most && std::isfinite(element(t, i))) return true;
    }
  }
  return false;
}

/// Those whose lowering is kept for the quantised case.
const std::set<std::string>& quantized() {
  static const std::set<std::string> names = {
#define QUANTIZED_LOWERING(op, function) #op,
#include "backends/gpu/quantized_lowerings.inc"
#undef QUANTIZED_LOWERING
  };
  return names;
}

/// Runs the cases that `wanted` picks.
void match_the_reference(const CaseList& list, const Backend& backend, const char* target,
                         bool (*wanted)(const BuiltCase&)) {
  Tally tally;
  std::map<std::string, int> rules;
  for (size_t i = 0; i < list.cases.size(); ++i) {
    for (const bool f16 : {false, true}) {
      auto built = build_case(list.op, list.cases[i], case_seed(list.op, i));
      ASSERT_TRUE(built.ok());
      if (built->expect.error || !wanted(*built)) continue;
      if (f16) {
        const auto drawn = built->input_views();
        if (!std::all_of(drawn.begin(), drawn.end(), fits_halves)) continue;
        ASSERT_TRUE(round_to_halves(*built).ok());
      }
      const auto views = built->input_views();
      if (beyond_the_device(list.op, views)) continue;
      const auto reference = run_case(*built);
      ASSERT_TRUE(reference.ok());
      for (const uint32_t values : {1u, ~0u}) {
        if (values == ~0u && views.size() < 2) continue;
        const std::string where =
            str_cat(list.op, " case ", i, ": ", list.cases[i].inputs, " ", list.cases[i].attributes,
                    f16 ? ", fp16" : "", values == 1 ? "" : ", all inputs open");
        const auto got = run_case_with(
            [&](const NodeView& node, std::span<const TensorView> in, std::span<const TensorView> out) {
              return run_on(backend, {target, "", f16 ? "fp16" : "fp32"}, values, node, in, out);
            },
            *built);
        if (!got.ok() && got.status().code() == Code::kUnsupported) {
          ++tally.refused;
          ++rules[got.status().rule()];
          EXPECT_TRUE(got.status().rule().starts_with("V-")) << where << ": " << got.status().message();
          continue;
        }
        ASSERT_TRUE(got.ok()) << where << ": " << got.status().message();
        ++tally.ran;
        for (size_t k = 0; k < got->size(); ++k) {
          const TensorView want{&(*reference)[k].type, const_cast<std::byte*>((*reference)[k].bytes.data())};
          const TensorView is{&(*got)[k].type, const_cast<std::byte*>((*got)[k].bytes.data())};
          EXPECT_EQ(far(want, is, list.cases[i].tolerance, f16), "") << where << ", output " << k;
        }
      }
    }
  }
  EXPECT_GT(tally.ran, 0);
  std::string refused;
  for (const auto& [rule, count] : rules) refused += str_cat(" ", rule, ": ", count);
  ::testing::Test::RecordProperty("ran", tally.ran);
  ::testing::Test::RecordProperty("refused", tally.refused);
  printf("%-28s %4d ran  %4d refused%s\n", list.op, tally.ran, tally.refused, refused.c_str());
}

class GpuCases : public ::testing::TestWithParam<CaseList> {};

TEST_P(GpuCases, MatchTheReference) {
  PINNACE_NEEDS_GPU();
  const GpuOptions options("validation");
  const auto context = gpu::Context::open(vulkan::kDriver, 0);
  ASSERT_TRUE(context.ok()) << context.status().message();
  match_the_reference(GetParam(), vulkan_backend(), "vulkan", [](const BuiltCase&) { return true; });
  EXPECT_EQ((*context)->device().validation_messages(), 0u) << (*context)->device().validation_texts();
}

std::vector<CaseList> lowered_cases() {
  std::vector<CaseList> all;
  for (const CaseList& list : all_cases()) {
    if (lowered().contains(list.op)) all.push_back(list);
  }
  return all;
}

INSTANTIATE_TEST_SUITE_P(Vulkan, GpuCases, ::testing::ValuesIn(lowered_cases()),
                         [](const auto& info) { return std::string(info.param.op); });

TEST(GpuCasesList, NamesOperators) {
  EXPECT_EQ(lowered_cases().size(), lowered().size());
}

class SoftmetalCases : public ::testing::TestWithParam<CaseList> {};

TEST_P(SoftmetalCases, MatchTheReference) {
  const auto found = parse_targets("softmetal", "fp32", {});
  if (!found.ok()) GTEST_SKIP() << found.status().message();
  const bool always = !quantized().contains(GetParam().op);
  match_the_reference(GetParam(), *(*found)[0].backend, "softmetal",
                      always ? [](const BuiltCase&) { return true; } : is_quantized);
}

/// What compares integers, or loops inside a kernel.
std::vector<CaseList> softmetal_cases() {
  std::vector<CaseList> all;
  for (const CaseList& list : all_cases()) {
    const std::string op = list.op;
    const bool own = op == "lstm" || op == "gru" || op == "rnn" || op == "quantize_linear" || op == "dequantize_linear";
    if (!own && !quantized().contains(op)) continue;
    const auto scaled = [](const Case& c) {
      return std::string_view(c.inputs).find("scale ") != std::string_view::npos;
    };
    if (own || std::any_of(list.cases.begin(), list.cases.end(), scaled)) all.push_back(list);
  }
  return all;
}
INSTANTIATE_TEST_SUITE_P(Softmetal, SoftmetalCases, ::testing::ValuesIn(softmetal_cases()),
                         [](const auto& info) { return std::string(info.param.op); });

}  // namespace
}  // namespace pinnace::testing
