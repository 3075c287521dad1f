// Work that a device cannot take at once is divided into parts, and the parts make the same bits as the whole: every
// case of every operator, and larger graphs of each family, on devices that are made to take very little.
#include <gtest/gtest.h>

#include <cstring>
#include <map>
#include <set>

#include "backends/gpu/parts.h"
#include "cases/parse_case.h"
#include "cpp/gpu_graphs.h"
#include "cpp/gpu_session.h"
#include "cpp/lone_node.h"

namespace pinnace {
const Backend& vulkan_backend();
const Backend& softmetal_backend();
}  // namespace pinnace

namespace pinnace::testing {
namespace {

const Backend& backend_of([[maybe_unused]] const gpu::Driver& driver) {
#if defined(PINNACE_HAS_SOFTMETAL)
  if (&driver == &softmetal::kDriver) return softmetal_backend();
#endif
  return vulkan_backend();
}

bool everything() {
  const char* all = std::getenv("PINNACE_TEST_ALL");
  return all && *all == '1';
}

/// Which kernel a refusal by V-20 names.
std::string kernel_in(const std::string& text) {
  const size_t at = text.find(", kernel ");
  if (at == std::string::npos) return {};
  return text.substr(at + 9, text.find(' ', at + 9) - at - 9);
}

struct Small {
  const gpu::Driver* driver;
  const char* limits;
};
std::string small_name(const ::testing::TestParamInfo<Small>& info) {
  std::string name = str_cat(info.param.driver->name, "_", info.param.limits);
  for (char& c : name) c = std::isalnum(static_cast<unsigned char>(c)) ? c : '_';
  return name;
}
std::vector<Small> small_devices() {
  std::vector<Small> all;
  for (const gpu::Driver* driver : gpu_drivers()) {
    for (const char* limits : {"max_groups=3", "max_binding_bytes=256", "max_groups=16,max_binding_bytes=4096",
                               "offset_alignment=256,max_binding_bytes=1024", "staging,max_binding_bytes=512"}) {
      all.push_back({driver, limits});
    }
  }
  return all;
}

/// The same on the device as it is and on a small one. `run` has options in the environment and answers or refuses.
class GpuParts : public ::testing::TestWithParam<Small> {
 protected:
  void SetUp() override {
    if (const std::string reason = no_device(*GetParam().driver); !reason.empty()) GTEST_SKIP() << reason;
    const GpuOptions whole(kWhole);
    auto context = gpu::Context::open(*GetParam().driver, 0);
    ASSERT_TRUE(context.ok()) << context.status().message();
    whole_ = *context;
    const GpuOptions divided(small());
    context = gpu::Context::open(*GetParam().driver, 0);
    ASSERT_TRUE(context.ok()) << context.status().message();
    small_ = *context;
  }
  void TearDown() override {
    if (!small_) return;
    EXPECT_EQ(small_->device().validation_messages(), 0u) << small_->device().validation_texts();
    std::string text;
    for (const auto& [kernel, count] : refused_) text += str_cat(" ", kernel, ": ", count);
    printf("%-10s %-44s %d equal, refused by V-20:%s\n", GetParam().driver->name, GetParam().limits, equal_,
           text.empty() ? " none" : text.c_str());
  }
  std::string small() const { return str_cat("no_self_check,validation,", GetParam().limits); }
  void refuse(const Status& status, const std::string& where) {
    const std::string kernel = kernel_in(status.message());
    EXPECT_NE(kernel, "") << where << ": " << status.message();
    ++refused_[kernel];
  }

  static constexpr const char* kWhole = "no_self_check,validation";
  std::shared_ptr<gpu::Context> whole_, small_;
  std::map<std::string, int> refused_;
  int equal_ = 0;
};

TEST_P(GpuParts, CasesHaveTheSameBits) {
  const gpu::Driver& driver = *GetParam().driver;
  const size_t share = everything() ? 1 : std::strcmp(driver.name, "vulkan") == 0 ? 60 : 12;
  for (const CaseList& list : all_cases()) {
    for (size_t i = 0; i < list.cases.size(); ++i) {
      const uint64_t turn = (case_seed(list.op, i) + test_seed()) / 7;
      if (turn % share != 0) continue;
      auto built = build_case(list.op, list.cases[i], case_seed(list.op, i));
      ASSERT_TRUE(built.ok());
      if (built->expect.error) continue;
      const char* precision = turn / share % 2 == 0 ? "fp32" : "fp16";
      const std::string where = str_cat(list.op, " case ", i, ": ", list.cases[i].inputs, ", ", precision);
      for (const uint32_t values : {1u, ~0u}) {
        const auto made = [&](const std::string& options) {
          const GpuOptions with(options);
          return run_case_with(
              [&](const NodeView& node, std::span<const TensorView> in, std::span<const TensorView> out) {
                return run_on(backend_of(driver), {driver.name, "", precision}, values, node, in, out);
              },
              *built);
        };
        const auto whole = made(kWhole);
        if (!whole.ok()) continue;
        const auto parts = made(small());
        if (!parts.ok()) {
          EXPECT_NE(parts.status().message().find("(rule V-20)"), std::string::npos)
              << where << ": " << parts.status().message();
          refuse(parts.status(), where);
          continue;
        }
        ++equal_;
        for (size_t k = 0; k < whole->size(); ++k) {
          const auto bytes = static_cast<size_t>((*whole)[k].type.bytes());
          EXPECT_EQ(bytes == 0 ? 0 : std::memcmp((*whole)[k].bytes.data(), (*parts)[k].bytes.data(), bytes), 0)
              << where << ", values " << values << ", output " << k;
        }
      }
    }
  }
  EXPECT_GT(equal_, 0);
}

TEST_P(GpuParts, GraphsHaveTheSameBits) {
  const gpu::Driver& driver = *GetParam().driver;
  for (const char* text : family_graphs()) {
    for (const char* precision : {"fp32", "fp16"}) {
      const auto made = [&](const std::string& options) {
        const GpuOptions with(options);
        return graph_answers(backend_of(driver), text, precision, 1);
      };
      const auto whole = made(kWhole);
      ASSERT_TRUE(whole.ok()) << text << ": " << whole.status().message();
      const auto parts = made(small());
      if (!parts.ok()) {
        EXPECT_NE(parts.status().message().find("(rule V-20)"), std::string::npos) << parts.status().message();
        refuse(parts.status(), text);
        continue;
      }
      ++equal_;
      for (size_t k = 0; k < whole->size(); ++k) EXPECT_EQ((*whole)[k], (*parts)[k]) << text << precision << k;
    }
  }
  EXPECT_GT(equal_, 0);
}

// Sizes that no Vulkan device need take at once, on a device as it is: more than 65,535 planes, images and matrices.
// Operands are multiples of 1/64, so that sums of few products are exact, whoever adds them.
TEST(GpuPartsBeyondLimits, HaveTheBitsOfADeviceWithoutThem) {
  PINNACE_NEEDS_GPU();
#if defined(PINNACE_HAS_SOFTMETAL)
  if (const std::string reason = no_device(softmetal::kDriver); !reason.empty()) GTEST_SKIP() << reason;
  constexpr const char* kTexts[] = {
      R"(input %x : f32[65537,3,2,3] %y = max_pool (%x) {kernel_shape=[2,2]} output "y" %y)",
      R"(input %x : f32[66000,2,2,1] const %s : f32[4] = {1,1,2,2} %y = resize (%x, none, %s) output "y" %y)",
      R"(input %x : f32[65537,2,2,2] input %k_w : f32[3,2,2,1] %y = conv (%x, %k_w) output "y" %y)",
      R"(input %x : f32[65537,3,2,2] input %k_w : f32[3,1,2,2] %y = conv (%x, %k_w) {group=3} output "y" %y)",
      R"(input %x : f32[65537,2,3] input %z : f32[65537,3,1] %y = mat_mul (%x, %z) output "y" %y)",
      R"(input %x : f32[1048577,3] input %k_w : f32[3,2] %y = mat_mul (%x, %k_w) output "y" %y)",
  };
  const GpuOptions with("no_self_check,validation");
  const auto context = gpu::Context::open(vulkan::kDriver, 0);
  ASSERT_TRUE(context.ok());
  for (const char* text : kTexts) {
    const auto got = graph_answers(vulkan_backend(), text, "fp32", 1);
    const auto want = graph_answers(softmetal_backend(), text, "fp32", 1);
    ASSERT_TRUE(got.ok()) << text << got.status().message();
    ASSERT_TRUE(want.ok()) << text << want.status().message();
    EXPECT_TRUE(*got == *want) << text;
  }
  EXPECT_EQ((*context)->device().validation_messages(), 0u) << (*context)->device().validation_texts();
#else
  GTEST_SKIP() << "softmetal is not built";
#endif
}

// A tensor of 144 MiB, of which a device may bind 128.
TEST(GpuPartsBeyondLimits, TensorsMayBeLargerThanABinding) {
  PINNACE_NEEDS_GPU();
  if (!everything()) GTEST_SKIP() << "PINNACE_TEST_ALL=1 runs it";
  const GpuOptions with("no_self_check,max_binding_bytes=134217728");
  constexpr const char* kText = R"(input %x : f32[36,1024,1024] %y = neg (%x) %z = neg (%y) output "z" %z)";
  const auto got = graph_answers(vulkan_backend(), kText, "fp32", 1);
  ASSERT_TRUE(got.ok()) << got.status().message();
  const auto once =
      graph_answers(vulkan_backend(), R"(input %x : f32[36,1024] %y = abs (%x) output "y" %y)", "fp32", 1);
  ASSERT_TRUE(once.ok()) << once.status().message();
  const auto* all = reinterpret_cast<const float*>((*got)[0].data());
  const auto* first = reinterpret_cast<const float*>((*once)[0].data());
  for (int i = 0; i < 36 * 1024; ++i) ASSERT_EQ(std::fabs(all[i]), first[i]) << i;  // the same numbers
  for (size_t i = 0; i < size_t{36} << 20; ++i) ASSERT_TRUE(all[i] >= -2 && all[i] <= 2) << i;
}

INSTANTIATE_TEST_SUITE_P(Gpu, GpuParts, ::testing::ValuesIn(small_devices()), small_name);

}  // namespace
}  // namespace pinnace::testing
