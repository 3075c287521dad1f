// Work that a device cannot take at once is divided into parts, and the parts make the same bits as the whole: every
// case of every operator, and larger graphs of each family, on devices that are made to take very little.
#include <gtest/gtest.h>

#include <cstring>
#include <map>
#include <set>

#include "backends/gpu/dispatch_splitting.h"
#include "cases/parse_case.h"
#include "cpp/gpu/gpu_graphs.h"
#include "cpp/gpu/gpu_session.h"
#include "cpp/lone_node.h"

namespace pinnace::testing {
namespace {

bool everything() {
  const char* all = std::getenv("PINNACE_TEST_ALL");
  return all && *all == '1';
}

/// Which kernel a refusal by V-20 names, without its storage type.
std::string kernel_in(const std::string& text) {
  const size_t at = text.find(", kernel ");
  if (at == std::string::npos) return {};
  std::string name = text.substr(at + 9, text.find(' ', at + 9) - at - 9);
  for (const char* type : {"_f32", "_f16"}) {
    if (name.ends_with(type)) name.resize(name.size() - 4);
  }
  return name;
}

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr bool kSanitized = true;
#else
constexpr bool kSanitized = false;
#endif

/// All that may be refused, by devices that bind less than so many bytes or have fewer groups on an axis than that.
/// Every other step must be divided. Lines may go, and numbers fall; nothing may be added for a kernel that was
/// divided.
struct MayBeRefused {
  std::string_view kernel;
  uint64_t binds_below;
  uint32_t groups_below;
  const char* why;
};
constexpr MayBeRefused kMayBeRefused[] = {
    {"attention", 65536, 0, "keys and values of a head, and the mask of 16 queries"},
    {"attention_vectors", 65536, 0, "the same"},
    {"batch_norm", 512, 0, "an element and what lies before it in 256 bytes"},
    {"int8_conv", 2048, 0, "weights of a block of outputs"},
    {"int8_conv_dense", 65536, 0, "all weights"},
    {"int8_gemm", 1024, 0, "four columns of weights"},
    {"int8_log_softmax", 4 << 20, 0, "a table of more than 512 KiB"},
    {"int8_norm", 1 << 20, 0, "the same"},
    {"int8_pair", 65536, 0, "a table of 64 KiB"},
    {"int8_pair_dense", 65536, 0, "a table of 64 KiB"},
    {"int8_pool", 65536, 0, "places of all windows, thresholds of all divisors"},
    {"int8_pool_norm", 65536, 0, "places of all windows, a table of 4 KiB"},
    {"int8_reduce", 4096, 0, "a table of 4 KiB"},
    {"int8_reduce_ordered", 4 << 20, 0, "a table of 4 KiB, or of a megabyte"},
    {"int8_resize", 65536, 0, "a table of 4 KiB, and taps"},
    {"int8_softmax", 1 << 20, 0, "a table of 514 KiB"},
    {"int8_to_dense", 512, 0, "an item, and what lies before it in 256 bytes"},
    {"conv_depthwise", 65536, 0, "weights of a block"},
    {"conv_nc4hw4", 65536, 0, "weights of a block of outputs"},
    {"conv_nc4hw4_block", 65536, 16, "the same; groups that are no whole blocks have theirs together"},
    {"conv_nc4hw4_transposed", 65536, 16, "the same"},
    {"conv_matrices", 1024, 0, "weights of a block of outputs"},
    {"conv_pointwise", 1024, 0, "weights of a block of outputs"},
    {"conv_dense", 65536, 0, "weights of an output, or of all groups"},
    {"conv_dense_transposed", 65536, 0, "all weights"},
    {"dequantize", 512, 0, "the scales"},
    {"dynamic_quantize", 65536, 16, "the range of all elements; the parts of it"},
    {"gemm", 1 << 20, 0, "four columns, a row; matrices whose rows begin at no multiple of the alignment"},
    {"gemm_matrices", 1 << 20, 0, "the same"},
    {"gemm_packed", 1 << 20, 0, "the same"},
    {"gemm_split", 1 << 20, 0, "the same"},
    {"gemm_int32", 4096, 16, "the same; matrices whose two dimensions both broadcast"},
    {"grid_sample", 16384, 0, "a plane of the image"},
    {"leave_nc4hw4", 512, 0, "an element and what lies before it in 256 bytes"},
    {"pool_adaptive", 4096, 0, "a plane"},
    {"pool_global", 4096, 0, "a plane"},
    {"lengths", 512, 16, "places that count from the first"},
    {"quantize", 1 << 20, 0, "thresholds of all scales: 1 KiB each, or of 16 bits 256 KiB"},
    {"range", 4096, 16, "places that count from the first"},
    {"recurrent", 4096, 0, "gates of all steps, states"},
    {"reduce", 1024, 0, "a row"},
    {"resize", 1024, 0, "places and weights of all taps"},
    {"roi_align", 1024, 0, "a channel of all images"},
    {"scatter", 65536, 16, "where updates go, and they may go anywhere"},
    {"scatter_int32", 65536, 16, "the same"},
    {"softmax", 4096, 0, "a slice along the axis"},
    {"winograd_output_2", 0, 16, "its tensors whole; gives way where they are above what a device binds"},
    {"winograd_output_4", 0, 16, "the same"},
};

/// Each with tensors above 64 KiB that no kernel can bind as they lie: one image, one matrix, one slice.
constexpr const char* kLarge[] = {
    R"(input %x : i8[301,83] input %z : i8[83,101] %y = mat_mul_integer (%x, %z) output "y" %y)",
    R"(input %x : f32[1,20,37,61] input %k_w : f32[24,20,5,3] input %k_b : f32[24]
  %y = conv (%x, %k_w, %k_b) {pads=[2,1,2,1], strides=[2,1], dilations=[1,2], activation="relu"} output "y" %y)",
    R"(input %x : f32[1,12,51,61] input %k_w : f32[12,12,1,1] input %k_v : f32[12,12,1,1]
  %c = conv (%x, %k_w) %d = conv (%c, %k_v) %y = add (%d, %c) output "y" %y)",
    R"(input %x : f32[1,18,41,47] input %k_w : f32[18,3,4,4] %y = conv (%x, %k_w) {group=6} output "y" %y)",
    R"(input %x : f32[1,64,1,600] input %k_w : f32[40,64,1,7] %y = conv (%x, %k_w) {pads=[0,3,0,3]} output "y" %y)",
    R"(input %x : f32[1,5,129,151] input %k_w : f32[5,1,3,3]
  %y = conv (%x, %k_w) {group=5, pads=[1,1,1,1]} output "y" %y)",
    R"(input %x : f32[1,16,23,61] input %k_w : f32[16,10,4,5] input %k_b : f32[10]
  %y = conv_transpose (%x, %k_w, %k_b) {strides=[2,3], pads=[1,1,1,1], dilations=[2,1]} output "y" %y)",
    R"(input %x : f32[1,6,13,29,31] input %k_w : f32[4,6,3,3,3]
  %y = conv (%x, %k_w) {pads=[1,1,1,1,1,1], strides=[2,1,1]} output "y" %y)",
    R"(input %x : f32[1,7,9,19,23] input %k_w : f32[7,4,2,3,3]
  %y = conv_transpose (%x, %k_w) {strides=[1,2,1]} output "y" %y)",
    R"(input %x : f32[1,3,149,151] %y = max_pool (%x) {kernel_shape=[3,3], strides=[1,2], pads=[1,1,1,1]} output "y" %y)",
    R"(input %x : f32[1,3,149,151]
  %y = average_pool (%x) {kernel_shape=[4,3], pads=[2,1,1,1], count_include_pad=1} output "y" %y)",
    R"(input %x : f32[1,3,131,149] %y = hard_swish (%x) output "y" %y)",
    R"(input %x : f32[61,71] input %k_w : f32[71,601] input %k_b : f32[601]
  %y = gemm (%x, %k_w, %k_b) output "y" %y)",
    R"(input %x : f32[41,307] input %z : f32[307,199] %y = mat_mul (%x, %z) output "y" %y)",
    R"(input %x : f32[83,301] input %z : f32[83,101] input %b : f32[301,101]
  %y = gemm (%x, %z, %b) {trans_a=1} output "y" %y)",
    R"(input %x : f32[1,33,751] %y = softmax (%x) {axis=1} %z = log_softmax (%x) {axis=1} output "y" %y output "z" %z)",
    R"(input %x : f32[1,33,751] const %k_k : i64[1] = {3}
  %y, %i = top_k (%x, %k_k) {axis=1} output "y" %y output "i" %i)",
    R"(input %x : f32[1,33,751] const %k_a : i64[1] = {1} %y = cum_sum (%x, %k_a) output "y" %y)",
    R"(input %x : f32[33,7,101] const %k_a : i64[1] = {0} %y = reduce_mean (%x, %k_a) output "y" %y)",
    R"(input %x : f32[1,25,29,31] %y = lrn (%x) {size=5} output "y" %y)",
    R"(input %x : f32[701,61] const %k_i : i64[5] = {700, -701, 3, 350, -1} %y = gather (%x, %k_i) output "y" %y)",
    R"(input %x : f32[3,8191] const %k_i : i64[4] = {2, -3, 1, 0} %y = gather (%x, %k_i) output "y" %y)",
    R"(input %x : f32[1,70,504] input %k : f32[1,90,504] input %v : f32[1,90,504] input %m : f32[70,90]
  %y = attention (%x, %k, %v, %m) {q_num_heads=12, kv_num_heads=12} output "y" %y)",
    R"(input %x : f32[1,70,390] input %k : f32[1,90,130] input %v : f32[1,90,130]
  %y = attention (%x, %k, %v) {q_num_heads=30, kv_num_heads=10, is_causal=1} output "y" %y)",
    R"(input %x : i8[1,20,61,71]{scale 0.05, zero 3} input %k_w : i8[24,20,3,3]{scale 0.02, zero 0}
  %y : i8[1,24,61,71]{scale 0.9, zero -5} = conv (%x, %k_w) {pads=[1,1,1,1]} output "y" %y)",
    R"(input %x : i8[1,5,151,161]{scale 0.05, zero 3} input %k_w : i8[5,1,3,3]{scale 0.02, zero 0}
  %y : i8[1,5,149,159]{scale 0.3, zero -5} = conv (%x, %k_w) {group=5} output "y" %y)",
    R"(input %x : i8[43,64]{scale 0.02, zero 5} input %k_w : i8[901,64]{scale 0.03, zero 0} input %k_b : i32[901]
  %y : i8[43,901]{scale 0.3, zero -8} = gemm (%x, %k_w, %k_b) {trans_b=1} output "y" %y)",
    R"(input %x : f32[1,5,131,149] const %s : f32[5] = {0.02,0.03,0.015,0.01,0.025} const %z : i8[5] = {3,0,-7,1,9}
  %q = quantize_linear (%x, %s, %z) {axis=1} %y = dequantize_linear (%q, %s, %z) {axis=1} output "y" %y)",
};

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
                               "offset_alignment=256,max_binding_bytes=1024", "staging,max_binding_bytes=512",
                               "offset_alignment=256,max_binding_bytes=65536"}) {
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
    EXPECT_NE(status.message().find("(rule V-20)"), std::string::npos) << where << ": " << status.message();
    const gpu::DeviceCaps& caps = small_->caps();
    const bool allowed = std::any_of(std::begin(kMayBeRefused), std::end(kMayBeRefused), [&](const MayBeRefused& line) {
      return line.kernel == kernel &&
             (caps.max_binding_bytes < line.binds_below || caps.max_groups[0] < line.groups_below);
    });
    EXPECT_TRUE(allowed) << where << ": no line of kMayBeRefused has " << status.message();
    ++refused_[kernel];
  }
  /// Where a device binds too little for Winograd's kernels, the direct ones make other bits of the same sums.
  static bool close(std::span<const std::byte> whole, std::span<const std::byte> parts, bool f16) {
    const auto* a = reinterpret_cast<const float*>(whole.data());
    const auto* b = reinterpret_cast<const float*>(parts.data());
    float largest = 0, off = 0;
    for (size_t i = 0; i < whole.size() / 4; ++i) {
      largest = std::max(largest, std::fabs(a[i]));
      off = std::max(off, std::fabs(a[i] - b[i]));
    }
    return off <= (f16 ? 1e-2f : 1e-5f) * largest;
  }
  bool gives_way(std::string_view text) const {
    return text.find("conv") != text.npos && text.find("3,3]") != text.npos &&
           small_->caps().max_binding_bytes < 1 << 20;
  }

  static constexpr const char* kWhole = "no_self_check,validation";
  std::shared_ptr<gpu::Context> whole_, small_;
  std::map<std::string, int> refused_;
  int equal_ = 0;
};

TEST_P(GpuParts, CasesHaveTheSameBits) {
  const gpu::Driver& driver = *GetParam().driver;
  const size_t share = everything() ? 1 : std::strcmp(driver.name, "vulkan") == 0 ? 60 : kSanitized ? 36 : 12;
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
          refuse(parts.status(), where);
          continue;
        }
        ++equal_;
        for (size_t k = 0; k < whole->size(); ++k) {
          const auto bytes = static_cast<size_t>((*whole)[k].type.bytes());
          const std::span a((*whole)[k].bytes.data(), bytes), b((*parts)[k].bytes.data(), bytes);
          if (std::equal(a.begin(), a.end(), b.begin(), b.end())) continue;
          const bool other =
              list.op == std::string_view("conv") && gives_way(list.op + std::string(list.cases[i].inputs));
          EXPECT_TRUE(other && close(a, b, precision == std::string_view("fp16")))
              << where << ", values " << values << ", output " << k;
        }
      }
    }
  }
  EXPECT_GT(equal_, 0);
}

TEST_P(GpuParts, GraphsHaveTheSameBits) {
  const gpu::Driver& driver = *GetParam().driver;
  std::vector<const char*> texts(family_graphs().begin(), family_graphs().end());
  if (small_->caps().max_binding_bytes == 65536) texts.assign(std::begin(kLarge), std::end(kLarge));
  // Sanitized, softmetal takes half a minute for all graphs of a device.
  const bool softmetal = std::strcmp(driver.name, "softmetal") == 0;
  const size_t share = everything() ? 1 : !softmetal ? 3 : kSanitized ? 10 : 1;
  for (size_t i = 0; i < texts.size(); ++i) {
    const char* text = texts[i];
    for (const char* precision : {"fp32", "fp16"}) {
      if ((i + (precision[2] == '3') + test_seed()) % share != 0) continue;
      const auto made = [&](const std::string& options) {
        const GpuOptions with(options);
        return graph_answers(backend_of(driver), text, precision, 1);
      };
      const auto whole = made(kWhole);
      ASSERT_TRUE(whole.ok()) << text << ": " << whole.status().message();
      const auto parts = made(small());
      if (!parts.ok()) {
        refuse(parts.status(), text);
        continue;
      }
      ++equal_;
      for (size_t k = 0; k < whole->size(); ++k) {
        if ((*whole)[k] == (*parts)[k]) continue;
        EXPECT_TRUE(gives_way(text) && close((*whole)[k], (*parts)[k], precision == std::string_view("fp16")))
            << text << precision << k;
      }
    }
  }
  EXPECT_GT(equal_, 0);
}

// A kernel of which nobody has said how it can be cut is refused, whatever it is.
TEST(GpuPartsWithoutCuts, AreRefusedAndNotDivided) {
  gpu::DeviceCaps caps;
  caps.max_binding_bytes = 4096;
  for (const gpu::KernelId id : {gpu::KernelId::recurrent, gpu::KernelId::winograd_input_4}) {
    const gpu::KernelCode& code = gpu::kernel_code(id, false);
    gpu::LoweredSegment lowered;
    gpu::Step step{{id, false, std::vector<int32_t>(code.spec_constants, 1)},
                   std::vector<std::byte>(code.push_bytes),
                   {},
                   {1, 1, 1}};
    for (uint32_t b = 0; b < code.bindings; ++b) {
      lowered.tensors.push_back({gpu::DeviceTensor::Place::kActivation, 0, 8192});
      step.bindings.push_back(static_cast<gpu::TensorId>(b));
    }
    lowered.steps.push_back(step);
    gpu::split_dispatches(lowered, caps);
    ASSERT_EQ(lowered.steps.size(), 1u) << code.name;
    EXPECT_TRUE(lowered.steps[0].windows.empty());
    const Verdict verdict = gpu::within_limits(lowered, lowered.steps[0], caps);
    EXPECT_FALSE(verdict.supported);
    EXPECT_EQ(verdict.rule, "V-20");
    EXPECT_NE(verdict.value.find(code.name), std::string::npos) << verdict.value;
  }
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

// Inputs, outputs, what lies between and what kernels report, each of more bytes than a buffer has.
TEST(GpuSmallBuffers, HoldTogetherWhatOneDoesNot) {
  constexpr const char* kText = R"(input %x : f32[100,150] input %z : f32[100,150] input %k_w : f32[150,100]
  %p = softmax (%x) {axis=1} %q = softmax (%z) {axis=0} %r = mat_mul (%p, %k_w) %s = mat_mul (%q, %k_w)
  %t = mat_mul (%r, %s) %u = mat_mul (%s, %r) %y = sub (%t, %u)
  output "p" %p output "q" %q output "r" %r output "y" %y)";
  constexpr const char* kWrong = R"(input %x : f32[100,150] input %i : i32[40] input %j : i32[50]
  %p = gather (%x, %i) {axis=0} %q = gather (%x, %j) {axis=0} output "q" %q output "p" %p)";
  constexpr const char* kLargeOne = R"(input %x : f32[100,170] %y = neg (%x) output "y" %y)";
  for (const gpu::Driver* driver : gpu_drivers()) {
    if (const std::string reason = no_device(*driver); !reason.empty()) GTEST_SKIP() << reason;
    for (const std::string options : {"", "staging,", "offset_alignment=256,"}) {
      for (const char* precision : {"fp32", "fp16"}) {
        const auto made = [&](const char* text, const char* limit) {
          const GpuOptions with(str_cat("no_self_check,validation,", options, limit));
          return graph_answers(backend_of(*driver), text, precision, 3);
        };
        const std::string where = str_cat(driver->name, " ", options, precision);
        const auto whole = made(kText, "unknown_subgroup"), small = made(kText, "max_buffer_bytes=65536");
        ASSERT_TRUE(whole.ok()) << where << ": " << whole.status().message();
        ASSERT_TRUE(small.ok()) << where << ": " << small.status().message();
        EXPECT_TRUE(*whole == *small) << where;
        const Status wrong = made(kWrong, "unknown_subgroup").status();
        EXPECT_NE(wrong.message().find("is outside a dimension of size 100"), std::string::npos) << wrong.message();
        EXPECT_EQ(made(kWrong, "max_buffer_bytes=65700").status().message(), wrong.message()) << where;
        const Status refused = made(kLargeOne, "max_buffer_bytes=65536").status();
        EXPECT_NE(refused.message().find("needs a tensor of 68000 bytes, its buffers have 65536 (rule V-20)"),
                  std::string::npos)
            << where << ": " << refused.message();
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Gpu, GpuParts, ::testing::ValuesIn(small_devices()), small_name);

}  // namespace
}  // namespace pinnace::testing
