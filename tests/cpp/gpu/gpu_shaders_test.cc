// The kernels as they are embedded, read instruction by instruction: the rules that every driver relies on
// (docs/gpu.md) and the manifest against the code. Needs no device.
#include <gtest/gtest.h>

#include <cstring>
#include <fstream>
#include <iterator>
#include <map>
#include <regex>
#include <set>

#include "backends/gpu/attention/params.h"
#include "backends/gpu/binary/params.h"
#include "backends/gpu/cast/params.h"
#include "backends/gpu/context.h"
#include "backends/gpu/conv/params.h"
#include "backends/gpu/index/params.h"
#include "backends/gpu/layout/params.h"
#include "backends/gpu/matmul/params.h"
#include "backends/gpu/move/params.h"
#include "backends/gpu/normalize/params.h"
#include "backends/gpu/pool/params.h"
#include "backends/gpu/quantize/params.h"
#include "backends/gpu/recurrent/params.h"
#include "backends/gpu/reduce/params.h"
#include "backends/gpu/resize/params.h"
#include "backends/gpu/softmax/params.h"
#include "backends/gpu/sort/params.h"
#include "backends/gpu/unary/params.h"
#include "backends/vulkan/float_controls.h"

namespace pinnace::testing {
namespace {

using gpu::KernelCode;

/// What a module declares, by SPIR-V's numbers of instructions and decorations.
struct Module {
  std::set<uint32_t> capabilities;
  std::map<uint32_t, uint32_t> sets, bindings, spec_ids, sizes, constants, storage;
  std::map<uint32_t, std::pair<uint32_t, uint32_t>> pointers;  // id: storage class, type
  std::map<uint32_t, uint32_t> variables;                      // id: pointer type
  std::set<uint32_t> integers, spec_results, read_only, barriers_after_return;
  std::map<uint32_t, uint32_t> member_end;
  std::array<uint32_t, 3> local{1, 1, 1};
  bool fixed_subgroup = false, has_barrier = false, array_by_spec = false, float_spec = false;

  explicit Module(std::span<const uint32_t> words) {
    for (size_t at = 5; at < words.size();) {
      const uint32_t op = words[at] & 0xffff, count = words[at] >> 16;
      if (count == 0 || at + count > words.size()) {
        ADD_FAILURE() << "an instruction of " << count << " words at " << at;
        return;
      }
      read(op, words.subspan(at + 1, count - 1));
      at += count;
    }
  }

  void read(uint32_t op, std::span<const uint32_t> w) {
    switch (op) {
      case 17:  // OpCapability
        capabilities.insert(w[0]);
        break;
      case 16:  // OpExecutionMode: LocalSize, SubgroupSize
        if (w[1] == 17) local = {w[2], w[3], w[4]};
        if (w[1] == 35) fixed_subgroup = true;
        break;
      case 71:  // OpDecorate: SpecId, NonWritable, Binding, DescriptorSet
        if (w[1] == 1) spec_ids[w[0]] = w[2];
        if (w[1] == 24) read_only.insert(w[0]);
        if (w[1] == 33) bindings[w[0]] = w[2];
        if (w[1] == 34) sets[w[0]] = w[2];
        break;
      case 72:  // OpMemberDecorate: NonWritable, Offset
        if (w[2] == 24) read_only.insert(w[0]);
        if (w[2] == 35) member_end[w[0]] = std::max(member_end[w[0]], w[3] + 4);
        break;
      case 21:  // OpTypeInt
        sizes[w[0]] = w[1] / 8;
        integers.insert(w[0]);
        break;
      case 22:  // OpTypeFloat
        sizes[w[0]] = w[1] / 8;
        break;
      case 23:  // OpTypeVector
        sizes[w[0]] = sizes[w[1]] * w[2];
        break;
      case 28:  // OpTypeArray
        array_by_spec |= spec_results.contains(w[2]);
        sizes[w[0]] = sizes[w[1]] * constants[w[2]];
        break;
      case 32:  // OpTypePointer
        pointers[w[0]] = {w[1], w[2]};
        break;
      case 43:  // OpConstant
        constants[w[1]] = w[2];
        break;
      case 48:  // OpSpecConstantTrue, False
      case 49:
        float_spec = true;
        break;
      case 50:  // OpSpecConstant
        float_spec |= !integers.contains(w[0]);
        spec_results.insert(w[1]);
        break;
      case 59:  // OpVariable
        variables[w[1]] = w[0];
        break;
      case 224:  // OpControlBarrier
        has_barrier = true;
        break;
      default:
        break;
    }
  }
};

class Shaders : public ::testing::TestWithParam<size_t> {
 protected:
  const KernelCode& code() const { return gpu::all_kernels()[GetParam()]; }
};

/// Metal's text of a kernel: what the library has where Metal is, and what softmetal's is made of.
std::string text_of(const KernelCode& code) {
  std::ifstream file(str_cat(PINNACE_TEST_MSL, "/", code.name, ".metal"));
  return {std::istreambuf_iterator<char>(file), {}};
}

/// Of a kernel that is written by hand for Metal, from its text.
void check_written_by_hand(const KernelCode& code) {
  EXPECT_TRUE(code.spirv.empty());
  const std::string text = text_of(code);
  const auto all = [&](const char* form) {
    const std::regex regex(form);
    std::vector<std::smatch> found;
    for (std::sregex_iterator i(text.begin(), text.end(), regex), end; i != end; ++i) found.push_back(*i);
    return found;
  };
  uint32_t shared = 0, written = 0;
  for (const std::smatch& m : all(R"(\bthreadgroup float \w+\[(\d+)\];)")) shared += 4 * std::stoi(m[1]);
  for (const std::smatch& m : all(R"(\bdevice S4?\* \w+ \[\[buffer\((\d+)\)\]\])")) written |= 1u << std::stoi(m[1]);
  EXPECT_EQ(shared, code.shared_bytes);
  EXPECT_LE(shared, 16384u);
  EXPECT_EQ(written, code.written);
  EXPECT_NE(written, 0u);
  EXPECT_LE(code.bindings, 16u);
  EXPECT_EQ(4 * all(R"([ {](?:int|float) (?!S;)\w+;(?=[^}]*\};))").size(), code.push_bytes) << "struct Params";
  EXPECT_LE(code.push_bytes, 128u);
  EXPECT_NE(text.find(str_cat("LOCAL = ", code.local[0], ",")), std::string::npos);
  EXPECT_LE(code.local[0] * code.local[1] * code.local[2], 256u);
  EXPECT_EQ(code.local[0] % 32, 0u) << "whole simdgroups";
  EXPECT_EQ(all(R"(\bdouble\b|\blong\b)").size(), 0u);
  EXPECT_NE(text.find(code.f16_storage ? "typedef half S;" : "typedef float S;"), std::string::npos);
}

TEST_P(Shaders, FollowTheRules) {
  SCOPED_TRACE(std::string(code().name));
  if (code().simdgroup_matrices) return check_written_by_hand(code());
  ASSERT_GT(code().spirv.size(), 5u);
  EXPECT_EQ(code().spirv[0], 0x07230203u);
  std::ifstream in(str_cat(PINNACE_TEST_MSL "/", code().name, ".spv"), std::ios::binary);
  const std::string file{std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
  ASSERT_EQ(file.size(), code().spirv.size_bytes());
  EXPECT_EQ(std::memcmp(file.data(), code().spirv.data(), file.size()), 0) << "is not what the compiler made";
  EXPECT_LE(code().spirv[1], 0x00010300u) << "newer than Vulkan 1.1 has";
  const Module m(code().spirv);
  // Matrix, Shader, storage of 16 bits: nothing that a device of Vulkan 1.1 may lack beyond KernelCode::f16_storage.
  for (uint32_t c : m.capabilities) EXPECT_TRUE(c == 0 || c == 1 || (c == 4433 && code().f16_storage)) << c;
  uint32_t shared = 0, written = 0, push = 0;
  std::set<uint32_t> bindings;
  for (const auto& [id, pointer] : m.variables) {
    const auto [storage, type] = m.pointers.at(pointer);
    if (storage == 4) shared += m.sizes.at(type);
    if (storage == 9) push = m.member_end.at(type);
    EXPECT_NE(storage, 0u) << "no images, no samplers";
    if (storage != 2 && storage != 12) continue;
    ASSERT_TRUE(m.sets.contains(id) && m.bindings.contains(id));
    EXPECT_EQ(m.sets.at(id), 0u);
    bindings.insert(m.bindings.at(id));
    if (!m.read_only.contains(id) && !m.read_only.contains(type)) written |= 1u << m.bindings.at(id);
  }
  EXPECT_EQ(bindings.size(), code().bindings);
  EXPECT_EQ(*bindings.rbegin() + 1, code().bindings) << "bindings count from 0 without gaps";
  EXPECT_LE(code().bindings, 16u);
  EXPECT_EQ(written, code().written);
  EXPECT_NE(written, 0u);
  EXPECT_EQ(push, code().push_bytes);
  EXPECT_LE(push, 128u);
  EXPECT_EQ(shared, code().shared_bytes);
  EXPECT_LE(shared, 16384u);
  EXPECT_EQ(m.local, code().local);
  EXPECT_LE(m.local[0] * m.local[1] * m.local[2], 256u);
  EXPECT_EQ(m.spec_ids.size(), code().spec_constants);
  for (const auto& [id, spec] : m.spec_ids) EXPECT_LT(spec, code().spec_constants);
  EXPECT_FALSE(m.float_spec) << "specialisation constants are integers";
  EXPECT_FALSE(m.array_by_spec) << "the size of an array is a specialisation constant";
  EXPECT_FALSE(m.fixed_subgroup);
  EXPECT_EQ(m.has_barrier, shared > 0) << "shared memory and barriers come together";
}

// What devices with float controls are given: the same code, and that NaN is to be kept.
TEST_P(Shaders, MayAskForSpecialValues) {
  if (code().simdgroup_matrices) return;
  const std::vector<uint32_t> made = vulkan::preserving_special_values(code().spirv);
  EXPECT_EQ(made.size(), code().spirv.size() + 2 + 7 + 4);
  const Module before(code().spirv), after(made);
  std::set<uint32_t> capabilities(before.capabilities.begin(), before.capabilities.end());
  capabilities.insert(4466);
  EXPECT_EQ(std::set<uint32_t>(after.capabilities.begin(), after.capabilities.end()), capabilities);
  EXPECT_EQ(after.local, before.local);
  EXPECT_EQ(after.sizes, before.sizes);
}

TEST_P(Shaders, HaveMetalsText) {
  SCOPED_TRACE(std::string(code().name));
  const std::string text = text_of(code());
  EXPECT_NE(text.find(str_cat("kernel void ", code().name, "(")), std::string_view::npos);
  for (uint32_t i = 0; i < code().bindings; ++i) {
    EXPECT_NE(text.find(str_cat("[[buffer(", i, ")]]")), std::string_view::npos) << i;
  }
  EXPECT_EQ(text.find(str_cat("[[buffer(", code().bindings, ")]]")), std::string_view::npos);
  EXPECT_EQ(text.find("[[buffer(30)]]") != std::string_view::npos, code().push_bytes > 0);
  for (uint32_t i = 0; i < code().spec_constants; ++i) {
    EXPECT_NE(text.find(str_cat("[[function_constant(", i, ")]]")), std::string_view::npos) << i;
  }
  EXPECT_EQ(text.find("threadgroup_barrier") != std::string_view::npos, code().shared_bytes > 0);
}

INSTANTIATE_TEST_SUITE_P(Gpu, Shaders, ::testing::Range(size_t{0}, gpu::all_kernels().size()),
                         [](const auto& info) { return std::string(gpu::all_kernels()[info.param].name); });

TEST(GpuKernels, AreSortedAndFound) {
  const auto all = gpu::all_kernels();
  for (size_t i = 1; i < all.size(); ++i) EXPECT_LT(all[i - 1].name, all[i].name);
  for (const KernelCode& code : all) EXPECT_EQ(gpu::find_kernel(code.name), &code);
  EXPECT_EQ(gpu::find_kernel("no such kernel"), nullptr);
}

size_t check_line(gpu::KernelId id, std::string_view name, std::string_view storage, size_t push_bytes) {
  for (const bool f16 : {false, true}) {
    const KernelCode& code = gpu::kernel_code(id, f16);
    EXPECT_EQ(code.name, storage == "any" ? std::string(name) : str_cat(name, f16 ? "_f16" : "_f32"));
    EXPECT_EQ(code.f16_storage, f16 && storage != "any") << name;
    EXPECT_EQ(code.push_bytes, push_bytes) << name;
  }
  return storage == "any" ? 1 : 2;
}

TEST(GpuKernels, EveryLineHasItsVariants) {
  size_t variants = 0;
#define KERNEL(name, file, storage, defines, params, split) \
  variants += check_line(gpu::KernelId::name, #name, storage, sizeof(gpu::params));
#include "backends/gpu/kernels.inc"
#undef KERNEL
  EXPECT_EQ(variants, gpu::all_kernels().size());
}

}  // namespace
}  // namespace pinnace::testing
