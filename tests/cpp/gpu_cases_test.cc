// Every operator that the GPU back ends lower, on its cases, held against the reference code: on Vulkan under
// validation, on devices that are made to look lesser, and on softmetal in every order and width. Each case runs with
// its first input alone as a value of the run, and with all inputs so; in 32 and in 16 bits.
#include <gtest/gtest.h>

#include <cstring>
#include <map>
#include <set>

#include "backends/gpu/lowering.h"
#include "base/half.h"
#include "cpp/gpu_session.h"
#include "cpp/lone_node.h"

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
  };
  return names;
}

struct Tally {
  int ran = 0, refused = 0;
  std::string rules{};
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

/// Which cases of an operator run: all with PINNACE_TEST_ALL=1, else one of `share`, by the seed.
bool in_slice(const char* op, size_t i, size_t share) {
  const char* all = std::getenv("PINNACE_TEST_ALL");
  return (all && *all == '1') || (case_seed(op, i) + test_seed()) % share == 0;
}

/// Runs the operator's cases on the device that the environment's options make of the back end's. A case whose node the
/// device refuses is counted; with `lesser` also one that only this device refuses.
void run_cases(const CaseList& list, const Backend& backend, size_t share, bool lesser, Tally& tally) {
  std::map<std::string, int> rules;
  for (size_t i = 0; i < list.cases.size(); ++i) {
    if (!in_slice(list.op, i, share)) continue;
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
      for (const uint32_t values : {1u, ~0u}) {
        if (values == ~0u && views.size() < 2) continue;
        const std::string where =
            str_cat(list.op, " case ", i, ": ", list.cases[i].inputs, " ", list.cases[i].attributes,
                    f16 ? ", fp16" : "", values == 1 ? "" : ", all inputs open");
        const auto got = run_case_with(
            [&](const NodeView& node, std::span<const TensorView> in, std::span<const TensorView> out) {
              return run_on(backend, {std::string(backend.name()), "", f16 ? "fp16" : "fp32"}, values, node, in, out);
            },
            *built);
        if (!got.ok() && got.status().code() == Code::kUnsupported) {
          ++tally.refused;
          ++rules[got.status().rule()];
          EXPECT_TRUE(got.status().rule().starts_with("V-")) << where << ": " << got.status().message();
          continue;
        }
        if (lesser && !got.ok() && got.status().message().find("(rule V-20)") != std::string::npos) {
          ++tally.refused;
          ++rules["V-20"];
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
  for (const auto& [rule, count] : rules) tally.rules += str_cat(" ", rule, ": ", count);
}

class GpuCases : public ::testing::TestWithParam<CaseList> {};

TEST_P(GpuCases, MatchTheReference) {
  const CaseList& list = GetParam();
  PINNACE_NEEDS_GPU();
  const GpuOptions options("validation");
  const auto context = gpu::Context::open(vulkan::kDriver, 0);
  ASSERT_TRUE(context.ok()) << context.status().message();
  Tally tally;
  run_cases(list, vulkan_backend(), 1, false, tally);
  EXPECT_GT(tally.ran, 0);
  EXPECT_EQ((*context)->device().validation_messages(), 0u) << (*context)->device().validation_texts();
  RecordProperty("ran", tally.ran);
  RecordProperty("refused", tally.refused);
  printf("%-28s %4d ran  %4d refused%s\n", list.op, tally.ran, tally.refused, tally.rules.c_str());
}

#if defined(PINNACE_HAS_SOFTMETAL)
/// How softmetal executes, for the life of this object.
class SoftmetalExecutes {
 public:
  explicit SoftmetalExecutes(const std::string& how) { setenv("PINNACE_SOFTMETAL", how.c_str(), 1); }
  ~SoftmetalExecutes() { unsetenv("PINNACE_SOFTMETAL"); }
  SoftmetalExecutes(const SoftmetalExecutes&) = delete;
  SoftmetalExecutes& operator=(const SoftmetalExecutes&) = delete;
};

// Three orders, three widths: one of them, by the seed, for one case of three; with PINNACE_TEST_ALL=1 all of all.
TEST_P(GpuCases, MatchTheReferenceOnMetalsText) {
  if (const std::string reason = softmetal::unavailable(0); !reason.empty()) GTEST_SKIP() << reason;
  const CaseList& list = GetParam();
  const char* all = std::getenv("PINNACE_TEST_ALL");
  const uint64_t chosen = (case_seed(list.op, 0) + test_seed()) % 9;
  Tally tally;
  for (uint64_t way = 0; way < 9; ++way) {
    if (way != chosen && !(all && *all == '1')) continue;
    constexpr const char *kOrders[] = {"forward", "reverse", "shuffled"}, *kWidths[] = {"8", "32", "64"};
    const std::string how =
        str_cat("order=", kOrders[way / 3], " width=", kWidths[way % 3], " seed=", test_seed() % 1000);
    SCOPED_TRACE(how);
    const SoftmetalExecutes executes(how);
    const auto context = gpu::Context::open(softmetal::kDriver, 0);
    ASSERT_TRUE(context.ok()) << context.status().message();
    run_cases(list, softmetal_backend(), 3, false, tally);
    EXPECT_EQ((*context)->device().validation_messages(), 0u);
  }
  RecordProperty("ran", tally.ran);
}
#endif

// One operator of each kind of kernel on devices that lack what lavapipe has, under validation.
class GpuLesserDevices : public ::testing::TestWithParam<const char*> {};

TEST_P(GpuLesserDevices, GiveTheSameAnswersOrRefuseByRule) {
  PINNACE_NEEDS_GPU();
  static const std::set<std::string> kOps = {
      "add",  "concat",   "conv",    "conv_transpose",      "gather",   "gemm",
      "pad",  "max_pool", "mat_mul", "layer_normalization", "resize",   "softmax",
      "relu", "slice",    "split",   "reduce_mean",         "transpose"};
  const GpuOptions options(str_cat("validation,", GetParam()));
  const auto context = gpu::Context::open(vulkan::kDriver, 0);
  ASSERT_TRUE(context.ok()) << context.status().message();
  Tally tally;
  for (const CaseList& list : all_cases()) {
    if (kOps.contains(list.op)) run_cases(list, vulkan_backend(), 20, true, tally);
  }
  EXPECT_GT(tally.ran, 0) << tally.rules;
  EXPECT_EQ((*context)->device().validation_messages(), 0u) << (*context)->device().validation_texts();
  SmallNetwork net;
  auto session = net.session("vulkan", "fp32");
  ASSERT_TRUE(session.ok()) << session.status().message();
  EXPECT_EQ(net.check(*session, 1e-4), "");
  printf("%-32s %4d ran  %4d refused%s\n", GetParam(), tally.ran, tally.refused, tally.rules.c_str());
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

}  // namespace
}  // namespace pinnace::testing
