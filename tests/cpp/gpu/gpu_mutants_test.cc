// Tests of the tests: shaders with one mistake each (tests/softmetal/shader_mutants.py) take the place of the kernel
// under the shared lowering, and its known-answer tests must see it: softmetal by what it checks, in all orders and
// widths, or both drivers by wrong answers.
#include <gtest/gtest.h>

#include <dlfcn.h>

#include <algorithm>
#include <cstring>
#include <fstream>
#include <map>
#include <set>

#include "backends/gpu/self_check.h"
#include "cases/parse_case.h"
#include "cpp/gpu/gpu_session.h"

#ifdef PINNACE_TEST_MUTANTS

namespace pinnace::testing {
namespace {

constexpr const char* kRace = "with no barrier between";
constexpr const char* kOutside = "is outside of";
constexpr const char* kAnswer = "must be";
constexpr const char* kReturned = "invocations returned";
constexpr const char* kPart = "simd function reached by part of a simdgroup only";
constexpr const char* kOwn = "do not agree on an operand";
constexpr const char* kReported = "is outside a dimension";  // by the kernel itself
constexpr const char* kUndecided = "too near to where another byte is stored";

struct Mutant {
  const char* kernel;
  const char* suffix;
  const char* caught_for;  // part of what is said
};
constexpr Mutant kMutants[] = {
    {"attention_f32", "past_keys", kOutside},
    {"attention_f32", "unguarded_store", kOutside},
    {"attention_vectors_f32", "no_barrier_after_maxima", kRace},
    {"attention_vectors_f32", "no_barrier_after_scores", kRace},
    {"attention_vectors_f32", "no_barrier_after_weights", kRace},
    {"attention_vectors_f32", "no_barrier_before_parts", kRace},
    {"attention_vectors_f32", "no_barrier_before_scores", kRace},
    {"batch_norm_f32", "next_channel", kAnswer},
    {"int8_conv", "past_columns", kOutside},
    {"int8_conv", "unguarded_load", kOutside},
    {"int8_depthwise", "unguarded_load", kOutside},
    {"int8_conv_dense", "packed_bias", kAnswer},
    {"int8_gemm", "next_column", kAnswer},
    {"int8_gemm", "unguarded_rows", kOutside},
    {"int8_log_softmax", "no_barrier_after_sum", kRace},
    {"int8_log_softmax", "no_margin_below", kUndecided},
    {"int8_norm", "no_barrier_after_sum", kRace},
    {"int8_pool_norm", "one_channel", kAnswer},
    {"int8_reduce", "no_barrier", kRace},
    {"int8_reduce_ordered", "past_rows", kOutside},
    {"int8_reduce_ordered", "sum_of_factors", kAnswer},
    {"int8_resize", "next_weight", kAnswer},
    {"int8_softmax", "no_barrier_after_sum", kRace},
    {"int8_softmax", "no_barrier_after_tree", kRace},
    {"int8_softmax", "no_barrier_in_tree", kRace},
    {"conv_depthwise_f32", "unguarded_planes", kOutside},
    {"conv_nc4hw4_f32", "unguarded_rows", kOutside},
    {"conv_matrices_f32", "no_barrier_after_fill", kRace},
    {"conv_matrices_f32", "no_barrier_after_read", kRace},
    {"conv_matrices_f32", "no_barrier_after_store", kRace},
    {"conv_matrices_f32", "no_barrier_before_store", kRace},
    {"conv_matrices_f32", "past_left", kOutside},
    {"conv_matrices_f32", "unguarded_pixels", kOutside},
    {"conv_matrices_f32", "unguarded_store", kOutside},
    {"conv_matrices_f32", "unguarded_weights", kOutside},
    {"conv_pointwise_f32", "past_pixels", kOutside},
    {"conv_pointwise_f32", "unguarded_store", kOutside},
    {"cum_sum_f32", "no_barrier_after_read", kRace},
    {"cum_sum_f32", "no_barrier_before_read", kRace},
    {"cum_sum_f32", "no_barrier_before_store", kRace},
    {"cum_sum_f32", "past_slice", kOutside},
    {"dynamic_quantize_f32", "no_barrier_in_tree", kRace},
    {"gemm_f32", "past_columns", kOutside},
    {"gemm_f32", "unguarded_store", kOutside},
    {"gemm_matrices_f32", "early_return", kReturned},
    {"gemm_matrices_f32", "half_the_sum", kAnswer},
    {"gemm_matrices_f32", "no_barrier_after_fill", kRace},
    {"gemm_matrices_f32", "no_barrier_after_read", kRace},
    {"gemm_matrices_f32", "no_barrier_after_store", kRace},
    {"gemm_matrices_f32", "no_barrier_before_store", kRace},
    {"gemm_matrices_f32", "own_matrices", kOwn},
    {"gemm_matrices_f32", "part_of_a_simdgroup", kPart},
    {"gemm_matrices_f32", "past_left", kOutside},
    {"gemm_matrices_f32", "past_right", kOutside},
    {"gemm_matrices_f32", "unguarded_columns", kOutside},
    {"gemm_matrices_f32", "unguarded_depth", kOutside},
    {"gemm_matrices_f32", "unguarded_rows", kOutside},
    {"gemm_matrices_f32", "unguarded_store", kOutside},
    {"gemm_split_f32", "half_the_sum", kAnswer},
    {"gemm_split_f32", "no_barrier", kRace},
    {"gemm_split_f32", "past_parts", kAnswer},
    {"gemm_int32", "unguarded_rows", kOutside},
    {"gemm_int32", "zeros_of_one_matrix", kOutside},
    {"nc4hw4_to_dense_f32", "unguarded_store", kOutside},
    {"lrn_f32", "past_channels", kOutside},
    {"elementwise_f32", "past_the_end", kOutside},
    {"normalize_f32", "no_barrier_after_tree", kRace},
    {"normalize_f32", "no_barrier_before_store", kRace},
    {"normalize_f32", "no_barrier_in_tree", kRace},
    {"place", "past_tuple", kReported},
    {"pool_f32", "unguarded_load", kOutside},
    {"pool_global_f32", "counts_on_simd_32", kRace},
    {"pool_global_f32", "no_barrier", kRace},
    {"recurrent_f32", "no_barrier_after_state", kRace},
    {"recurrent_f32", "no_barrier_after_step", kRace},
    {"recurrent_f32", "no_barrier_before_update", kRace},
    {"recurrent_f32", "past_hidden", kOutside},
    {"reduce_f32", "no_barrier_after_tree", kRace},
    {"reduce_f32", "no_barrier_before_store", kRace},
    {"reduce_f32", "no_barrier_in_tree", kRace},
    {"reduce_f32", "past_row", kAnswer},
    {"reduce_int32", "counts_on_simd_32", kRace},
    {"reduce_int32", "no_barrier", kRace},
    {"resize_f32", "next_column", kOutside},
    {"scatter_f32", "every_owner", kAnswer},
    {"scatter_f32", "past_updates", kOutside},
    {"softmax_f32", "counts_on_simd_64", kAnswer},
    {"softmax_f32", "no_barrier_after_tree", kRace},
    {"softmax_f32", "no_barrier_before_store", kRace},
    {"softmax_f32", "no_barrier_in_tree", kRace},
    {"top_k_f32", "no_barrier_after_tree", kRace},
    {"top_k_f32", "no_barrier_before_store", kRace},
    {"top_k_f32", "no_barrier_in_tree", kRace},
    {"top_k_f32", "past_slice", kAnswer},
    {"winograd_input_4_f32", "before_image", kOutside},
    {"winograd_input_4_f32", "unguarded_load", kOutside},
    {"winograd_output_4_f32", "unguarded_columns", kOutside},
    {"winograd_output_4_f32", "unguarded_rows", kOutside},
};

/// The kernels of the product and the mutants as one library for one device, in ascending order of names.
const SoftmetalLibrary* mutant_kernels = nullptr;
SoftmetalLibrary both_kernels{};
std::vector<std::pair<const SoftmetalLibrary*, uint32_t>>& sorted_kernels() {
  static auto* const all = new std::vector<std::pair<const SoftmetalLibrary*, uint32_t>>;
  return *all;
}

bool load_mutants() {
  static const bool loaded = [] {
    const auto product = softmetal::library();
    void* handle = dlopen(PINNACE_TEST_MUTANTS, RTLD_NOW | RTLD_LOCAL);
    const auto entry = handle ? reinterpret_cast<SoftmetalEntry>(dlsym(handle, SOFTMETAL_ENTRY)) : nullptr;
    if (!product.ok() || !entry) return false;
    mutant_kernels = entry();
    if (!mutant_kernels) return false;
    for (const SoftmetalLibrary* library : {*product, mutant_kernels}) {
      for (uint32_t k = 0; k < library->kernel_count; ++k) sorted_kernels().emplace_back(library, k);
    }
    std::sort(sorted_kernels().begin(), sorted_kernels().end(), [](const auto& a, const auto& b) {
      return std::strcmp(a.first->name(a.second), b.first->name(b.second)) < 0;
    });
    both_kernels = {SOFTMETAL_INTERFACE, static_cast<uint32_t>(sorted_kernels().size()),
                    [](uint32_t k) { return sorted_kernels()[k].first->name(sorted_kernels()[k].second); },
                    [](uint32_t k, const SoftmetalLaunch* launch) {
                      return sorted_kernels()[k].first->run(sorted_kernels()[k].second, launch);
                    }};
    return true;
  }();
  return loaded;
}

/// A device of a driver that is given a mutant where a kernel is asked for.
class MutantDevice final : public gpu::Device {
 public:
  MutantDevice(std::unique_ptr<gpu::Device> own, const gpu::KernelCode& mutant, std::string_view kernel)
      : own_(std::move(own)), mutant_(mutant), kernel_(kernel), caps_(own_->caps()) {
    caps_.identity += str_cat(" ", mutant.name, " ", own_->caps().driver);  // its self-checks are its own
  }
  const gpu::DeviceCaps& caps() const override { return caps_; }
  Result<std::unique_ptr<gpu::DeviceBuffer>> buffer(size_t bytes, gpu::BufferUse use) override {
    return own_->buffer(bytes, use);
  }
  Result<std::unique_ptr<gpu::Kernel>> kernel(const gpu::KernelCode& code, std::span<const int32_t> spec) override {
    return own_->kernel(code.name == kernel_ ? mutant_ : code, spec);
  }
  Result<std::unique_ptr<gpu::CommandList>> command_list(uint32_t timestamps) override {
    return own_->command_list(timestamps);
  }
  Status submit(gpu::CommandList& list) override { return own_->submit(list); }
  Status wait(gpu::CommandList& list) override { return own_->wait(list); }
  std::vector<std::byte> cache_blob() const override { return {}; }
  uint64_t validation_messages() const override { return own_->validation_messages(); }
  std::string validation_texts() const override { return own_->validation_texts(); }

 private:
  std::unique_ptr<gpu::Device> own_;
  const gpu::KernelCode& mutant_;
  std::string_view kernel_;
  gpu::DeviceCaps caps_;
};

/// What the next device is made of.
struct Next {
  gpu::KernelCode code;
  std::string_view kernel;
  softmetal::Execution execution;
} next;

std::string none(uint32_t) {
  return {};
}
Result<std::unique_ptr<gpu::Device>> open_softmetal(uint32_t, const gpu::DeviceOptions& options) {
  PINNACE_ASSIGN(auto own, softmetal::open(options, next.execution, &both_kernels));
  return std::unique_ptr<gpu::Device>(new MutantDevice(std::move(own), next.code, next.kernel));
}
Result<std::unique_ptr<gpu::Device>> open_vulkan(uint32_t index, const gpu::DeviceOptions& options) {
  PINNACE_ASSIGN(auto own, vulkan::open_device(index, options));
  return std::unique_ptr<gpu::Device>(new MutantDevice(std::move(own), next.code, next.kernel));
}
constexpr gpu::Driver kSoftmetal{"softmetal with a mutant", true, &none, &open_softmetal};
constexpr gpu::Driver kVulkan{"vulkan with a mutant", false, &none, &open_vulkan};

gpu::KernelId id_of(std::string_view kernel) {
  constexpr gpu::KernelId all[] = {
#define KERNEL(name, file, storage, defines, params, split) gpu::KernelId::name,
#include "backends/gpu/kernels.inc"
#undef KERNEL
  };
  for (gpu::KernelId id : all) {
    if (gpu::kernel_code(id, false).name == kernel) return id;
  }
  ADD_FAILURE() << kernel;
  return all[0];
}

/// What the known-answer tests of the kernel say of the mutant on a device; empty if they see nothing.
std::string judged(const gpu::Driver& driver, const Mutant& mutant) {
  const GpuOptions with("validation");
  const auto context = gpu::Context::open(driver, 0);
  if (!context.ok()) return str_cat("no device: ", context.status().message());
  const auto failed = gpu::failed_self_checks(*context, {{id_of(mutant.kernel), false}});
  if (!failed.ok()) return failed.status().message();
  std::string said;
  for (const auto& [id, what] : *failed) said += what;
  if ((*context)->device().validation_messages() > 0) said += " " + (*context)->device().validation_texts();
  return said;
}

/// Makes a mutant the next device's; false if its code cannot be read.
bool choose(const Mutant& mutant, std::string& name, std::vector<uint32_t>& words) {
  name = str_cat(mutant.kernel, "_", mutant.suffix);
  next.code = *gpu::find_kernel(mutant.kernel);
  std::ifstream file(str_cat(PINNACE_TEST_MUTANT_CODE, "/", name, ".spv"), std::ios::binary);
  const std::string bytes{std::istreambuf_iterator<char>(file), {}};
  if (bytes.empty() != next.code.spirv.empty()) return false;
  words.resize(bytes.size() / 4);
  if (!bytes.empty()) std::memcpy(words.data(), bytes.data(), words.size() * 4);
  next.code.name = name;
  next.code.spirv = words;
  next.kernel = mutant.kernel;
  return true;
}

TEST(GpuMutants, AreCaughtBySoftmetalEachForItsMistake) {
  if (const std::string reason = softmetal::unavailable(0); !reason.empty()) GTEST_SKIP() << reason;
  ASSERT_TRUE(load_mutants());
  constexpr SoftmetalOrder kOrders[] = {kSoftmetalForward, kSoftmetalReverse, kSoftmetalShuffled};
  std::map<std::string, int> caught;
  for (const Mutant& m : kMutants) {
    std::string name;
    std::vector<uint32_t> words;
    ASSERT_TRUE(choose(m, name, words)) << name;
    for (const SoftmetalOrder order : kOrders) {
      for (const uint32_t width : {8u, 32u, 64u}) {
        if (next.code.simdgroup_matrices && width != 32) continue;  // such a device does not get the kernel
        next.execution = {order, static_cast<uint32_t>(test_seed()), width, true};
        const std::string said = judged(kSoftmetal, m);
        // 64 invocations that are one simdgroup do go in step.
        const bool right = width == 64 && std::string(m.suffix) == "counts_on_simd_64";
        if (right) {
          EXPECT_EQ(said, "") << name;
          continue;
        }
        EXPECT_NE(said.find(m.caught_for), std::string::npos)
            << name << ", order " << order << ", width " << width << ": '" << said << "'";
        ++caught[m.caught_for];
      }
    }
  }
  for (const auto& [how, count] : caught) printf("softmetal: %d runs of mutants caught by '%s'\n", count, how.c_str());
}

// Accesses outside of a binding are left out: what a device makes of them is not defined.
TEST(GpuMutants, ManyAnswerWrongOnVulkan) {
  PINNACE_NEEDS_GPU();
  const char* given = std::getenv("PINNACE_TEST_ALL");
  const size_t share = given && *given == '1' ? 1 : 4;  // the driver compiles each kernel anew
  int seen = 0, all = 0;
  size_t turn = test_seed() % share;
  for (const Mutant& m : kMutants) {
    if (gpu::find_kernel(m.kernel)->spirv.empty()) continue;
    if (m.caught_for != kRace && m.caught_for != kAnswer) continue;
    if (turn++ % share != 0) continue;
    std::string name;
    std::vector<uint32_t> words;
    ASSERT_TRUE(choose(m, name, words)) << name;
    const std::string said = judged(kVulkan, m);
    ++all;
    EXPECT_TRUE(said.empty() || said.find(kAnswer) != std::string::npos) << name << ": " << said;
    seen += !said.empty();
    printf("vulkan: %-48s %s\n", name.c_str(), said.empty() ? "not seen" : "wrong answer");
  }
  printf("vulkan: %d of %d mutants gave wrong answers\n", seen, all);
  // Whether a race shows depends on the device.
  EXPECT_GT(seen, share == 1 ? 10 : 0) << "of " << all;
}

TEST(GpuMutants, AreAllListed) {
  if (const std::string reason = softmetal::unavailable(0); !reason.empty()) GTEST_SKIP() << reason;
  ASSERT_TRUE(load_mutants());
  std::set<std::string> listed;
  for (const Mutant& m : kMutants) listed.insert(str_cat(m.kernel, "_", m.suffix));
  EXPECT_EQ(listed.size(), mutant_kernels->kernel_count);
  for (uint32_t k = 0; k < mutant_kernels->kernel_count; ++k) {
    EXPECT_TRUE(listed.contains(mutant_kernels->name(k))) << mutant_kernels->name(k);
  }
}

}  // namespace
}  // namespace pinnace::testing

#endif
