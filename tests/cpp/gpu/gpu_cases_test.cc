// Every operator that the GPU back ends lower, on its cases, on Vulkan under validation, on devices that are made to
// look lesser, and by Metal's text on this processor, held against the reference code. Each case runs with its first
// input alone as a value of the run, and with all inputs so, convolutions also with weights or bias; in 32 and in 16
// bits. softmetal takes one order of invocations and one simd width per operator, which move with the seed, or with
// PINNACE_TEST_ALL=1 each of the nine.
#include <gtest/gtest.h>

#include <cstring>
#include <map>
#include <set>

#include "backends/gpu/lowering.h"
#include "base/half.h"
#include "cpp/gpu/gpu_session.h"
#include "cpp/lone_node.h"

#ifdef PINNACE_TEST_KERNELS
#include "backends/softmetal/device.h"
#endif

namespace pinnace {
const Backend& vulkan_backend();
const Backend& softmetal_backend();
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

struct Tally {
  int ran = 0, refused = 0, wide = 0;
  std::map<std::string, int> rules{};  ///< that refused, and how often
};

/// Whether a run was given back for a 64-bit integer that 32 bits do not hold.
bool given_back(const Status& status) {
  return status.code() == Code::kDeviceLost && status.message().find("32-bit integers") != std::string::npos;
}
bool holds_wide(std::span<const TensorView> tensors) {
  for (const TensorView& t : tensors) {
    if (!t.present() || t.dtype() != DType::kI64) continue;
    for (int64_t i = 0; i < t.elements(); ++i) {
      if (t.data<int64_t>()[i] != static_cast<int32_t>(t.data<int64_t>()[i])) return true;
    }
  }
  return false;
}

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
    if (!t.present || t.type.dtype != DType::kF32 || t.bytes->bytes() == 0) continue;
    std::vector<float> floats(t.bytes->bytes() / sizeof(float));
    std::memcpy(floats.data(), t.bytes->data(), t.bytes->bytes());
    for (float& f : floats) f = half_to_float(float_to_half(f));
    PINNACE_ASSIGN(t.bytes, Constant::copy_of(floats.data(), t.bytes->bytes()));
  }
  return {};
}

/// Devices may reduce the arguments of sines as they like beyond pi, and float32 does not hold every square.
bool beyond_the_device(std::string_view op, std::span<const TensorView> inputs) {
  const double most = op == "sin" || op == "cos" || op == "tan" ? 3.2 : op == "reduce_l2" ? 1e18 : 1e300;
  for (const TensorView& t : inputs) {
    if (!t.present() || !gpu::is_device_float(t.dtype())) continue;
    for (int64_t i = 0; i < t.elements(); ++i) {
      if (std::fabs(element(t, i)) > most && std::isfinite(element(t, i))) return true;
    }
  }
  return false;
}

bool everything() {
  const char* all = std::getenv("PINNACE_TEST_ALL");
  return all && *all == '1';
}

/// Runs one of `share` cases by the seed, or everything. lesser: the device may refuse what others take (rule V-20).
void run_cases(const CaseList& list, const gpu::Driver& driver, const Backend& backend, size_t share, bool lesser,
               Tally& tally) {
  for (size_t i = 0; i < list.cases.size(); ++i) {
    if (share > 1 && !everything() && (case_seed(list.op, i) + test_seed()) % share != 0) continue;
    for (const bool f16 : {false, true}) {
      auto built = build_case(list.op, list.cases[i], case_seed(list.op, i));
      ASSERT_TRUE(built.ok());
      if (built->expect.error) continue;
      if (f16) {
        const auto drawn = built->input_views();
        if (!std::all_of(drawn.begin(), drawn.end(), fits_halves)) continue;
        ASSERT_TRUE(round_to_halves(*built).ok());
      }
      const auto views = built->input_views();
      if (beyond_the_device(list.op, views)) continue;
      const auto reference = run_case(*built);
      ASSERT_TRUE(reference.ok());
      const bool convolution = std::string_view(list.op).starts_with("conv") && views.size() == 3;
      for (const uint32_t values : {1u, 3u, 5u, ~0u}) {
        if (values == ~0u && views.size() < 2) continue;
        if ((values == 3u || values == 5u) && !convolution) continue;  // weights without bias, bias without weights
        const std::string where = str_cat(list.op, " case ", i, ": ", list.cases[i].inputs, " ",
                                          list.cases[i].attributes, f16 ? ", fp16" : "",
                                          values == 1     ? ""
                                          : values == ~0u ? ", all inputs open"
                                                          : str_cat(", inputs open: ", values));
        const auto got = run_case_with(
            [&](const NodeView& node, std::span<const TensorView> in, std::span<const TensorView> out) {
              return run_on(backend, {driver.name, "", f16 ? "fp16" : "fp32"}, values, node, in, out);
            },
            *built);
        if (!got.ok() && got.status().code() == Code::kUnsupported) {
          ++tally.refused;
          ++tally.rules[got.status().rule()];
          EXPECT_TRUE(got.status().rule().starts_with("V-")) << where << ": " << got.status().message();
          continue;
        }
        if (lesser && !got.ok() && got.status().message().find("(rule V-20)") != std::string::npos) {
          ++tally.refused;
          ++tally.rules["V-20"];
          continue;
        }
        if (!got.ok() && given_back(got.status())) {
          std::vector<TensorView> made;
          for (const auto& o : *reference) made.push_back({&o.type, const_cast<std::byte*>(o.bytes.data())});
          EXPECT_TRUE(holds_wide(views) || holds_wide(made)) << where << ": " << got.status().message();
          ++tally.wide;
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
}

std::string to_string(const Tally& tally) {
  std::string text = str_cat(tally.ran, " ran, ", tally.refused, " refused");
  for (const auto& [rule, count] : tally.rules) text += str_cat(" ", rule, ": ", count);
  return tally.wide ? str_cat(text, ", ", tally.wide, " given back") : text;
}

void match_the_reference(const CaseList& list, const gpu::Driver& driver, const Backend& backend) {
  const auto context = gpu::Context::open(driver, 0);
  ASSERT_TRUE(context.ok()) << context.status().message();
  Tally tally;
  run_cases(list, driver, backend, 1, false, tally);
  EXPECT_GT(tally.ran, 0);
  EXPECT_EQ((*context)->device().validation_messages(), 0u) << (*context)->device().validation_texts();
  printf("%-28s %s\n", list.op, to_string(tally).c_str());
}

class GpuCases : public ::testing::TestWithParam<CaseList> {};

TEST_P(GpuCases, MatchTheReference) {
  PINNACE_NEEDS_GPU();
  const GpuOptions options("validation");
  match_the_reference(GetParam(), vulkan::kDriver, vulkan_backend());
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

#ifdef PINNACE_TEST_KERNELS
class SoftmetalCases : public ::testing::TestWithParam<CaseList> {};

TEST_P(SoftmetalCases, MatchTheReference) {
  if (const std::string reason = softmetal::unavailable(0); !reason.empty()) GTEST_SKIP() << reason;
  constexpr const char* kOrders[] = {"forward", "reverse", "shuffled"};
  constexpr int kWidths[] = {8, 32, 64};
  const uint64_t turn = case_seed(GetParam().op, 0);
  for (uint64_t way = 0; way < 9; ++way) {
    if (way != turn % 9 && !everything()) continue;
    const std::string execution =
        str_cat("order=", kOrders[way % 3], " width=", kWidths[way / 3], " seed=", turn / 9 % 1000);
    SCOPED_TRACE(execution);
    setenv("PINNACE_SOFTMETAL", execution.c_str(), 1);
    match_the_reference(GetParam(), softmetal::kDriver, softmetal_backend());
    unsetenv("PINNACE_SOFTMETAL");
  }
}

INSTANTIATE_TEST_SUITE_P(Softmetal, SoftmetalCases, ::testing::ValuesIn(lowered_cases()),
                         [](const auto& info) { return std::string(info.param.op); });
// Width 32 alone has simdgroup matrices: the operators that use them with and without, in an order of the seed.
class SoftmetalMatrices : public ::testing::TestWithParam<CaseList> {};

TEST_P(SoftmetalMatrices, MatchTheReferenceWithAndWithout) {
  if (const std::string reason = softmetal::unavailable(0); !reason.empty()) GTEST_SKIP() << reason;
  constexpr const char* kOrders[] = {"forward", "reverse", "shuffled"};
  setenv("PINNACE_SOFTMETAL", str_cat("width=32 order=", kOrders[test_seed() % 3]).c_str(), 1);
  for (const char* given : {"", "no_matrices"}) {
    const GpuOptions options(given);
    match_the_reference(GetParam(), softmetal::kDriver, softmetal_backend());
  }
  unsetenv("PINNACE_SOFTMETAL");
}

std::vector<CaseList> cases_of_products() {
  std::vector<CaseList> all = lowered_cases();
  std::erase_if(all, [](const CaseList& list) {
    const std::string_view op = list.op;
    return op != "conv" && op != "gemm" && op != "mat_mul";
  });
  return all;
}

INSTANTIATE_TEST_SUITE_P(Softmetal, SoftmetalMatrices, ::testing::ValuesIn(cases_of_products()),
                         [](const auto& info) { return std::string(info.param.op); });
#endif

// One operator of each kind of kernel, and a network, on devices that lack what lavapipe has. What 8-bit storage would
// be is not among it: gpu_shaders_test.cc finds no kernel that asks for any capability but 16-bit storage.
class GpuLesserDevices : public ::testing::TestWithParam<const char*> {};

TEST_P(GpuLesserDevices, GiveTheSameAnswersOrRefuseByRule) {
  PINNACE_NEEDS_GPU();
  static const std::set<std::string> kOps = {"add",
                                             "attention",
                                             "concat",
                                             "conv",
                                             "conv_transpose",
                                             "cum_sum",
                                             "gather",
                                             "gemm",
                                             "gru",
                                             "less",
                                             "max_pool",
                                             "mat_mul",
                                             "layer_normalization",
                                             "log_softmax",
                                             "lp_pool",
                                             "pad",
                                             "relu",
                                             "resize",
                                             "slice",
                                             "softmax",
                                             "split",
                                             "reduce_l2",
                                             "reduce_mean",
                                             "top_k",
                                             "where"};
  const GpuOptions options(str_cat("validation,", GetParam()));
  const auto context = gpu::Context::open(vulkan::kDriver, 0);
  ASSERT_TRUE(context.ok()) << context.status().message();
  Tally tally;
  for (const CaseList& list : all_cases()) {
    if (kOps.contains(list.op)) run_cases(list, vulkan::kDriver, vulkan_backend(), 20, true, tally);
  }
  EXPECT_GT(tally.ran, 0) << to_string(tally);
  EXPECT_EQ((*context)->device().validation_messages(), 0u) << (*context)->device().validation_texts();
  SmallNetwork net;
  auto session = net.session("vulkan", "fp32");
  ASSERT_TRUE(session.ok()) << session.status().message();
  EXPECT_EQ(net.check(*session, 1e-4), "");
  printf("%-32s %s\n", GetParam(), to_string(tally).c_str());
}

INSTANTIATE_TEST_SUITE_P(Vulkan, GpuLesserDevices,
                         ::testing::Values("staging", "offset_alignment=256", "no_f16", "unknown_subgroup",
                                           "shared_bytes=16384", "max_invocations=128", "max_groups=16",
                                           "max_binding_bytes=4096",
                                           "staging,offset_alignment=256,no_f16,unknown_subgroup,max_invocations=64"),
                         [](const auto& info) {
                           std::string name = info.param;
                           for (char& c : name) c = std::isalnum(static_cast<unsigned char>(c)) ? c : '_';
                           return name;
                         });

TEST(GpuCasesList, NamesOperators) {
  EXPECT_EQ(lowered_cases().size(), lowered().size());
}

}  // namespace
}  // namespace pinnace::testing
