// Work that a device cannot take at once is divided into parts, and the parts make the same bits as the whole: every
// case of every operator, and larger graphs of each family, on devices that are made to take very little.
#include <gtest/gtest.h>

#include <cstring>
#include <map>
#include <set>

#include "backends/gpu/parts.h"
#include "cases/parse_case.h"
#include "cpp/gpu_session.h"
#include "cpp/lone_node.h"
#include "ops/infer.h"

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

// Larger than cases, so that there is something to divide along each dimension.
constexpr const char* kGraphs[] = {
    R"(input %x : f32[3,37,9,11] input %k_w : f32[37,1,3,3] input %k_b : f32[37]
  %y = conv (%x, %k_w, %k_b) {group=37, pads=[1,1,1,1], activation="relu"} output "y" %y)",
    R"(input %x : f32[1,24,8,9] input %k_w : f32[44,24,1,1] input %k_b : f32[44]
  %c = conv (%x, %k_w, %k_b) %d = tanh (%c) %e = add (%d, %c) output "y" %e)",
    R"(input %x : f32[2,12,7,9] input %k_w : f32[40,12,3,3] input %k_b : f32[40]
  %y = conv (%x, %k_w, %k_b) {strides=[2,1], activation="hard_swish"} output "y" %y)",
    R"(input %x : f32[1,32,7,9] input %k_w : f32[64,8,3,3] %y = conv (%x, %k_w) {group=4} output "y" %y)",
    R"(input %x : f32[1,8,5,6] input %k_w : f32[8,20,3,3] input %k_b : f32[20]
  %y = conv_transpose (%x, %k_w, %k_b) {strides=[2,2]} output "y" %y)",
    R"(input %x : f32[1,48,24,24] input %k_w : f32[48,48,3,3] %y = conv (%x, %k_w) {pads=[1,1,1,1]} output "y" %y)",
    R"(input %x : f32[3,4,3,4,5] input %k_w : f32[6,4,2,2,2] %y = conv (%x, %k_w) output "y" %y)",
    R"(input %x : f32[37,96] input %k_w : f32[70,96] input %k_b : f32[70]
  %y = gemm (%x, %k_w, %k_b) {trans_b=1} output "y" %y)",
    R"(input %x : f32[1,64] input %k_w : f32[300,64] input %k_b : f32[300]
  %y = gemm (%x, %k_w, %k_b) {trans_b=1} output "y" %y)",
    R"(input %x : f32[3,5,9,16] input %z : f32[5,16,12] %y = mat_mul (%x, %z) output "y" %y)",
    R"(input %x : f32[2,6,40,8] input %k : f32[2,2,24,8] input %v : f32[2,2,24,12] input %m : f32[40,24]
  %y = attention (%x, %k, %v, %m) output "y" %y)",
    R"(input %x : f32[1,40,16] input %k : f32[1,24,16] input %v : f32[1,24,16]
  %y = attention (%x, %k, %v) {q_num_heads=2, kv_num_heads=2, is_causal=1} output "y" %y)",
    R"(input %x : f32[21,3,40] %y = softmax (%x) {axis=1} output "y" %y)",
    R"(input %x : f32[50,64] input %k_w : f32[64] input %k_b : f32[64]
  %y = layer_normalization (%x, %k_w, %k_b) output "y" %y)",
    R"(input %x : f32[2,16,8,8] input %k_w : f32[16] input %k_b : f32[16]
  %y = instance_normalization (%x, %k_w, %k_b) output "y" %y)",
    R"(input %x : f32[2,24,9,9] %p = max_pool (%x) {kernel_shape=[3,3], strides=[2,2]}
  %q = average_pool (%p) {kernel_shape=[2,2]} %g = global_average_pool (%q) output "y" %g)",
    R"(input %x : f32[9,5,7,8] %y = transpose (%x) {perm=[2,0,3,1]} output "y" %y)",
    R"(input %x : f32[3,31,17] input %z : f32[31,1] %m = mul (%x, %z) %l = less (%m, %x)
  %w = where (%l, %m, %x) output "y" %w)",
    R"(input %x : f32[40,33] const %k_k : i64[1] = {5}
  %y, %i = top_k (%x, %k_k) {axis=1} output "y" %y output "i" %i)",
    R"(input %x : f32[64,20] const %k_a : i64[1] = {1} %y = cum_sum (%x, %k_a) output "y" %y)",
    R"(input %x : f32[6,7,8,9] const %k_a : i64[2] = {1,3} %y = reduce_sum (%x, %k_a) output "y" %y)",
    R"(input %x : f32[40,3,30] const %k_s : i64[2] = {-1,2} const %k_e : i64[2] = {-40,28}
  const %k_a : i64[2] = {0,2} const %k_t : i64[2] = {-3,2}
  %y = slice (%x, %k_s, %k_e, %k_a, %k_t) output "y" %y)",
    R"(input %x : f32[1,9,20,12] input %z : f32[1,16,20,12] %r = relu (%z)
  %y = concat (%r, %x) {axis=1} output "y" %y)",
    R"(input %x : i8[2,20,9,11]{scale 0.05, zero 3} input %k_w : i8[24,20,3,3]{scale 0.02, zero 0}
  %y : i8[2,24,7,9]{scale 0.9, zero -5} = conv (%x, %k_w) output "y" %y)",
    R"(input %x : i8[1,24,9,11]{scale 0.05, zero 3} input %k_w : i8[24,1,3,3]{scale 0.02, zero 0}
  %y : i8[1,24,7,9]{scale 0.3, zero -5} = conv (%x, %k_w) {group=24} output "y" %y)",
    R"(input %x : i8[30,64]{scale 0.02, zero 5} input %k_w : i8[50,64]{scale 0.03, zero 0} input %k_b : i32[50]
  %y : i8[30,50]{scale 0.3, zero -8} = gemm (%x, %k_w, %k_b) {trans_b=1} output "y" %y)",
    R"(input %x : f32[2,12,5,5,5] %y = relu (%x) output "y" %y)",
    R"(input %x : f32[2,3,0,5] input %z : f32[2,3,4,5] %y = concat (%x, %z) {axis=2} %r = exp (%y) output "y" %r)",
    R"(input %x : f32[2,3,2,3,2,30] %t = transpose (%x) {perm=[5,3,4,2,0,1]} %y = sigmoid (%t) output "y" %y)",
};

struct Trial {
  Graph graph;
  Inference inference;
  std::vector<ConstantPtr> contents;
  std::vector<ValueId> open;
  std::vector<int32_t> nodes;
  OpTable ops;
  PackedConstants packed;
};

Result<std::vector<std::vector<std::byte>>> answers(const gpu::Driver& driver, const std::string& text,
                                                    const char* precision) {
  Trial t;
  PINNACE_ASSIGN(t.graph, parse(str_cat("graph \"parts\" {\n", text, "\n}")));
  std::vector<ConstantPtr> known;
  uint64_t state = 1;
  for (const ValueId id : t.graph.inputs) {
    const Value& value = t.graph.value(id);
    std::vector<std::byte> bytes(static_cast<size_t>(value.type.bytes()));
    const auto fill = [&](auto zero) {
      using T = decltype(zero);
      for (size_t i = 0; i < bytes.size() / sizeof(T); ++i) {
        state = state * 6364136223846793005u + 1442695040888963407u;
        const int number = static_cast<int>(state >> 56) - 128;
        const T made = value.type.dtype == DType::kF32 ? static_cast<T>(number / 64.0) : static_cast<T>(number);
        std::memcpy(bytes.data() + i * sizeof(T), &made, sizeof(T));
      }
    };
    if (value.type.dtype == DType::kF32) fill(float{});
    if (value.type.dtype == DType::kI64) fill(int64_t{});
    if (value.type.dtype == DType::kI32) fill(int32_t{});
    if (value.type.dtype == DType::kI8) fill(int8_t{});
    PINNACE_ASSIGN(ConstantPtr made, Constant::copy_of(bytes.data(), bytes.size()));
    t.contents.push_back(made);
    const bool constant = value.name.starts_with("k_");
    known.push_back(constant ? std::move(made) : nullptr);
    if (!constant) t.open.push_back(id);
  }
  PINNACE_ASSIGN(t.inference, infer(t.graph, {}, known, t.ops));
  for (size_t i = 0; i < t.graph.nodes.size(); ++i) {
    if (!t.inference.computed[i]) t.nodes.push_back(static_cast<int32_t>(i));
  }
  const Segment segment{t.graph, t.inference, t.nodes, t.open, t.graph.outputs, t.ops, t.packed, ""};
  PINNACE_ASSIGN(auto executable, backend_of(driver).compile(segment, {driver.name, "", precision}));
  std::vector<TensorView> inputs, outputs;
  for (size_t i = 0; i < t.graph.inputs.size(); ++i) {
    const ValueId id = t.graph.inputs[i];
    if (std::find(t.open.begin(), t.open.end(), id) == t.open.end()) continue;
    auto* bytes = const_cast<std::byte*>(static_cast<const std::byte*>(t.contents[i]->data()));
    inputs.push_back({&t.inference.types[static_cast<size_t>(id)], bytes});
  }
  std::vector<std::vector<std::byte>> made;
  made.reserve(t.graph.outputs.size());
  for (const ValueId id : t.graph.outputs) {
    const TensorType& type = t.inference.types[static_cast<size_t>(id)];
    made.emplace_back(static_cast<size_t>(type.bytes()));
    outputs.push_back({&type, made.back().data()});
  }
  PINNACE_TRY(executable->run(RunContext(), inputs, outputs));
  return made;
}

TEST_P(GpuParts, GraphsHaveTheSameBits) {
  const gpu::Driver& driver = *GetParam().driver;
  for (const char* text : kGraphs) {
    for (const char* precision : {"fp32", "fp16"}) {
      const auto made = [&](const std::string& options) {
        const GpuOptions with(options);
        return answers(driver, text, precision);
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

INSTANTIATE_TEST_SUITE_P(Gpu, GpuParts, ::testing::ValuesIn(small_devices()), small_name);

}  // namespace
}  // namespace pinnace::testing
