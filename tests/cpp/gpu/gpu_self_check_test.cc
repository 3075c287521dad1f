// The trust in a device: every kernel has known-answer tests that the lowering gives to it, a device that answers right
// passes them all, and a kernel whose answers are wrong is gone around: by 32 bits, by another kernel, by the CPU.
#include <gtest/gtest.h>

#include <chrono>

#include "backends/gpu/self_check.h"
#include "cpp/gpu/gpu_session.h"

namespace pinnace::testing {
namespace {

using gpu::KernelId;

constexpr KernelId kAll[] = {
#define KERNEL(name, file, storage, defines, params, split) KernelId::name,
#include "backends/gpu/kernels.inc"
#undef KERNEL
};

TEST(GpuSelfCheck, EveryKernelHasKnownAnswersThatUseIt) {
  PINNACE_NEEDS_GPU();
  std::set<KernelId> tried;
  bool has_metals = false;
  const auto only_metals = [](KernelId id) { return gpu::kernel_code(id, false).simdgroup_matrices; };
#if defined(PINNACE_HAS_SOFTMETAL)
  if (no_device(softmetal::kDriver).empty()) {
    const auto context = gpu::Context::open(softmetal::kDriver, 0);
    ASSERT_TRUE(context.ok()) << context.status().message();
    for (const gpu::KnownAnswerTest& test : gpu::known_answer_tests()) {
      for (const bool f16 : {false, true}) {
        if (!only_metals(test.kernel)) continue;
        const auto used = gpu::kernels_of(test, *context, f16);
        ASSERT_TRUE(used.ok()) << test.graph << ": " << used.status().message();
        EXPECT_TRUE(used->contains(test.kernel)) << test.graph;
        tried.insert(test.kernel);
        has_metals = true;
      }
    }
  }
#endif
  for (const char* options : {"", "staging"}) {  // inputs enter in 32 bits only where they are staged
    const GpuOptions with(options);
    const auto context = gpu::Context::open(vulkan::kDriver, 0);
    ASSERT_TRUE(context.ok()) << context.status().message();
    for (const gpu::KnownAnswerTest& test : gpu::known_answer_tests()) {
      for (const bool f16 : {false, true}) {
        if (only_metals(test.kernel)) continue;
        const auto used = gpu::kernels_of(test, *context, f16);
        ASSERT_TRUE(used.ok()) << test.graph << ": " << used.status().message();
        const bool own = used->contains(test.kernel);
        const bool entering = test.kernel == KernelId::enter || test.kernel == KernelId::enter_nc4hw4;
        EXPECT_TRUE(own || entering) << test.graph;
        if (own) tried.insert(test.kernel);
      }
    }
  }
  for (KernelId id : kAll) {
    if (only_metals(id) && !has_metals) continue;  // without softmetal there is no device for it
    EXPECT_TRUE(tried.contains(id)) << gpu::kernel_code(id, false).name << " has no known-answer test";
  }
}

TEST(GpuSelfCheck, ADeviceThatAnswersRightPasses) {
  for (const gpu::Driver* driver : gpu_drivers()) {
    if (!no_device(*driver).empty()) continue;
    // A set of results of its own: nothing of this process or of a file is known.
    const GpuOptions with(driver->name[0] == 'v' ? "validation,max_groups=65534" : "max_groups=65534");
    const auto context = gpu::Context::open(*driver, 0);
    ASSERT_TRUE(context.ok()) << context.status().message();
    std::set<std::pair<KernelId, bool>> kernels;
    for (KernelId id : kAll) {
      if (gpu::kernel_code(id, false).simdgroup_matrices && !(*context)->caps().simdgroup_matrices) continue;
      for (const bool f16 : {false, true}) kernels.insert({id, f16 && gpu::kernel_code(id, true).f16_storage});
    }
    const auto failed = gpu::failed_self_checks(*context, kernels);
    ASSERT_TRUE(failed.ok()) << failed.status().message();
    for (const auto& [id, what] : *failed) ADD_FAILURE() << gpu::kernel_code(id, false).name << ": " << what;
    EXPECT_EQ((*context)->device().validation_messages(), 0u) << (*context)->device().validation_texts();
  }
}

/// Which back ends run the nodes, and all that their placement says.
struct Outcome {
  std::set<std::string> backends;
  std::string kernels, words;
};
Outcome outcome_of(const Session& session) {
  Outcome o;
  for (const Placement& row : session.placement()) {
    o.backends.insert(row.backend);
    o.kernels += row.kernel + " ";
    o.words += row.notice + " ";
    for (const std::string& why : row.why) o.words += why + " ";
  }
  return o;
}

class GpuDistrust : public ::testing::TestWithParam<const gpu::Driver*> {
 protected:
  void SetUp() override {
    if (const std::string reason = no_device(*GetParam()); !reason.empty()) GTEST_SKIP() << reason;
  }
  Outcome run(const std::string& options, const char* precision, double bound) {
    const GpuOptions with(options);
    SmallNetwork net;
    auto session = net.session(GetParam()->name, precision);
    EXPECT_TRUE(session.ok()) << session.status().message();
    if (!session) return {};
    EXPECT_EQ(net.check(*session, bound), "");
    return outcome_of(*session);
  }
};

TEST_P(GpuDistrust, NothingIsSaidWhereNothingFails) {
  for (const char* precision : {"fp32", "fp16"}) {
    const Outcome o = run("", precision, 2e-2);
    EXPECT_EQ(o.backends, std::set<std::string>{GetParam()->name});
    EXPECT_EQ(o.words.find("self-check"), std::string::npos) << o.words;
  }
}

TEST_P(GpuDistrust, SixteenBitsThatFailAreThirtyTwo) {
  const Outcome o = run("no_matrices,fail_self_test=conv_pointwise_f16", "fp16", 1e-4);
  EXPECT_EQ(o.backends, std::set<std::string>{GetParam()->name});
  EXPECT_NE(o.kernels.find("conv_pointwise_f32"), std::string::npos) << o.kernels;
  EXPECT_EQ(o.kernels.find("_f16"), std::string::npos) << o.kernels;
  EXPECT_NE(o.words.find("fp32 instead of fp16: conv_pointwise_f16 fails the self-check of this device, element 0 is"),
            std::string::npos)
      << o.words;
}

TEST_P(GpuDistrust, AKernelThatFailsIsReplacedWhereThereIsAnother) {
  const struct {
    const char *failing, *instead;
  } pairs[] = {{"conv_pointwise", "conv_nc4hw4_f32"},
               {"conv_nc4hw4", "conv_nc4hw4_block_f32"},
               {"conv_depthwise", "conv_nc4hw4_block_f32"},
               {"gemm_packed", "gemm_f32"}};
  for (const auto& [failing, instead] : pairs) {
    const Outcome o = run(str_cat("no_matrices,fail_self_test=", failing), "fp32", 1e-4);
    EXPECT_EQ(o.backends, std::set<std::string>{GetParam()->name}) << failing << o.words;
    EXPECT_EQ(o.kernels.find(str_cat(failing, "_f32")), std::string::npos) << o.kernels;
    EXPECT_NE(o.kernels.find(instead), std::string::npos) << o.kernels;
    EXPECT_NE(o.words.find(str_cat("another kernel instead: its kernel fails the self-check of this device, ", failing,
                                   "_f32: element 0 is")),
              std::string::npos)
        << o.words;
  }
}

TEST_P(GpuDistrust, WithoutAnyKernelANodeGoesToTheCpu) {
  const Outcome o = run("fail_self_test=softmax,fail_self_test=pool", "fp32", 1e-4);
  EXPECT_EQ(o.backends, (std::set<std::string>{GetParam()->name, "cpu"}));
  EXPECT_NE(o.words.find("does not take softmax"), std::string::npos) << o.words;
  EXPECT_NE(o.words.find("softmax_f32: element 0 is"), std::string::npos) << o.words;
  EXPECT_NE(o.words.find("(rule V-21)"), std::string::npos) << o.words;
  const Outcome all = run("fail_self_test=leave", "fp32", 1e-4);
  EXPECT_EQ(all.backends, std::set<std::string>{"cpu"});
  const GpuOptions with("fail_self_test=softmax");
  SmallNetwork net;
  const auto strict = net.session(GetParam()->name, "fp32", false);
  EXPECT_EQ(strict.status().code(), Code::kUnsupported);
  EXPECT_NE(strict.status().message().find("V-21"), std::string::npos) << strict.status().message();
}

TEST_P(GpuDistrust, OptionsAreRead) {
  for (const char* wrong : {"fail_self_test=no_such_kernel", "fail_self_test"}) {
    const GpuOptions with(wrong);
    EXPECT_EQ(gpu::options_from_environment().status().code(), Code::kInvalidArgument) << wrong;
  }
  const GpuOptions with("no_self_check,fail_self_test=softmax");
  SmallNetwork net;
  auto session = net.session(GetParam()->name, "fp32");
  ASSERT_TRUE(session.ok()) << session.status().message();
  EXPECT_EQ(outcome_of(*session).backends, std::set<std::string>{GetParam()->name});
}

INSTANTIATE_TEST_SUITE_P(Gpu, GpuDistrust, ::testing::ValuesIn(gpu_drivers()), driver_name);

}  // namespace
}  // namespace pinnace::testing
