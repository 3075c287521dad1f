// The product kernel that is written by hand for Metal's simdgroup matrices, on softmetal and under the Metal driver on
// the pretend device: its results against sums in double, within a bound that holds for any order of adding; which
// devices get it; and what stands in for it where a device has no such matrices, answers wrong, or refuses the text.
#include <gtest/gtest.h>

#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>
#include <map>
#include <random>

#include "backends/gpu/backend.h"
#include "backends/gpu/self_check.h"
#include "backends/packed_constants.h"
#include "base/half.h"
#include "cases/parse_case.h"
#include "cpp/gpu/gpu_session.h"
#include "cpp/program/program_fixture.h"
#include "graph/graph.h"
#include "ops/type_inference.h"

#ifdef PINNACE_HAS_SOFTMETAL
#ifdef PINNACE_PRETEND_METAL
#include "backends/metal/device.h"
#include "fakes/metal/pretend_device.h"
#endif

namespace pinnace {
const Backend& softmetal_backend();
}  // namespace pinnace

namespace pinnace::testing {
namespace {

/// y = act(alpha * op(a) op(b) + beta * c): a comes from the host, b and c are constants.
struct ProductCase {
  int64_t M, N, K;
  bool trans_a = false, trans_b = false, relu = false;
  double alpha = 1, beta = 1;
  int64_t c_rows = 0, c_columns = 0;  ///< 0: no c; else 1 or all

  std::string text() const {
    const auto shape = [](int64_t rows, int64_t columns) { return str_cat("f32[", rows, ",", columns, "]"); };
    const auto flag = [](bool b) { return b ? "1" : "0"; };
    return str_cat("graph \"product\" {\n  input %a : ", shape(trans_a ? K : M, trans_a ? M : K),
                   "\n  input %k_b : ", shape(trans_b ? N : K, trans_b ? K : N),
                   c_rows ? str_cat("\n  input %k_c : ", shape(c_rows, c_columns)) : "", "\n  %y = gemm (%a, %k_b",
                   c_rows ? ", %k_c" : "", ") {trans_a=", flag(trans_a), ", trans_b=", flag(trans_b), ", alpha=", alpha,
                   ".0, beta=", beta, ".0", relu ? ", activation=\"relu\"" : "", "}\n  output \"y\" %y\n}");
  }
};

std::vector<ProductCase> cases() {
  std::vector<ProductCase> all = {
      {8, 8, 1},
      {9, 8, 3, true},
      {31, 63, 16, false, true},
      {32, 64, 16},
      {33, 65, 17, true, true, true, 2, 3, 33, 65},
      {40, 8, 63, false, false, false, 3, -2, 1, 8},
      {8, 100, 31, true, false, true, -1, 1, 8, 1},
      {65, 129, 7, false, true, false, 1, 1, 1, 1},
      {256, 260, 70, false, true, true, 1, 1, 1, 260},  // of long sums only products of many results
  };
  std::mt19937_64 random(test_seed());
  const auto below = [&](int64_t n) { return static_cast<int64_t>(random() % static_cast<uint64_t>(n)); };
  for (int i = 0; i < 6; ++i) {
    ProductCase c{8 + below(90), 8 + below(90), 1 + below(63)};
    c.trans_a = below(2) == 1;
    c.trans_b = below(2) == 1;
    c.relu = below(2) == 1;
    c.alpha = static_cast<double>(below(7) - 3);
    c.beta = static_cast<double>(below(7) - 3);
    if (below(3) > 0) {
      c.c_rows = below(2) ? 1 : c.M;
      c.c_columns = below(2) ? 1 : c.N;
    }
    all.push_back(c);
  }
  return all;
}

/// From -2 to 2, such that 16 bits hold them where they must.
std::vector<float> numbers(int64_t count, bool f16, std::mt19937_64& random) {
  std::vector<float> made;
  for (int64_t i = 0; i < count; ++i) {
    const float x = static_cast<float>(static_cast<double>(random() >> 11) * 0x1p-51 - 2.0);
    made.push_back(f16 ? half_to_float(float_to_half(x)) : x);
  }
  return made;
}

struct Answer {
  std::string kernel, notice;
  std::string wrong;  ///< empty, or the first element beyond the bound
  std::vector<float> y;
};

/// Runs the graph, whose first input comes from the host; `expect`(element, sum, size) gives the sum in double and the
/// sum of the sizes of its `terms` parts. A sum in float32, in whatever order and fused or not, is off by at most 2^-24
/// of that size for each term (and terms of its square), four more being roundings of factors and of a bias. Of fp16,
/// operands are exact, and the result is rounded to 11 bits.
using Expect = std::function<void(std::span<const std::vector<float>>, int64_t, double&, double&)>;
Result<Answer> answer_of(const Backend& backend, const std::string& text, const char* precision, int64_t terms,
                         bool relu, const Expect& expect) {
  const bool f16 = std::string_view(precision) == "fp16";
  std::mt19937_64 random(test_seed() + text.size());
  PINNACE_ASSIGN(Graph graph, parse(text));
  std::vector<std::vector<float>> values;
  std::vector<ConstantPtr> known;
  std::vector<ValueId> open;
  std::vector<TensorView> in;
  for (const ValueId id : graph.inputs) {
    const Value& value = graph.value(id);
    values.push_back(numbers(value.type.elements(), f16, random));
    PINNACE_ASSIGN(ConstantPtr made, Constant::copy_of(values.back().data(), values.back().size() * 4));
    const bool constant = value.name.starts_with("k_");
    known.push_back(constant ? std::move(made) : nullptr);
    if (!constant) open.push_back(id);
  }
  const OpTable ops;
  PackedConstants packed;
  PINNACE_ASSIGN(const TypeInference type_inference, infer_types(graph, {}, known, ops));
  std::vector<int32_t> nodes;
  for (size_t i = 0; i < graph.nodes.size(); ++i) nodes.push_back(static_cast<int32_t>(i));
  for (size_t i = 0; i < values.size(); ++i) {
    if (known[i]) continue;
    in.push_back({&graph.value(graph.inputs[i]).type, reinterpret_cast<std::byte*>(values[i].data())});
  }
  const Segment segment{graph, type_inference, nodes, open, graph.outputs, ops, packed, ""};
  PINNACE_ASSIGN(const auto executable, backend.compile(segment, {std::string(backend.name()), "", precision}));
  Answer answer{std::string(executable->kernel(0)), {}, {}, {}};
  for (size_t i = 0; i < nodes.size(); ++i) answer.notice += executable->notice(i);
  const TensorType& type = type_inference.types[static_cast<size_t>(graph.outputs[0])];
  answer.y.resize(static_cast<size_t>(type.elements()));
  const TensorView y{&type, reinterpret_cast<std::byte*>(answer.y.data())};
  PINNACE_TRY(executable->run(RunContext(), in, {&y, 1}));
  for (int64_t i = 0; i < type.elements() && answer.wrong.empty(); ++i) {
    double sum = 0, size = 0;
    expect(values, i, sum, size);
    if (relu) sum = std::max(sum, 0.0);
    const double bound =
        static_cast<double>(terms + 4) * 0x1p-24 * size + (f16 ? std::fabs(sum) * 0x1.01p-11 + 0x1p-25 : 0);
    const double got = answer.y[static_cast<size_t>(i)];
    if (std::fabs(got - sum) <= bound) continue;
    answer.wrong = str_cat(text, ", ", precision, ": element ", i, " is ", got, ", must be ", sum, " within ", bound);
  }
  return answer;
}

Result<Answer> answer_of(const Backend& backend, const ProductCase& p, const char* precision) {
  return answer_of(backend, p.text(), precision, p.K, p.relu,
                   [&](std::span<const std::vector<float>> in, int64_t i, double& sum, double& size) {
                     const int64_t m = i / p.N, n = i % p.N;
                     for (int64_t k = 0; k < p.K; ++k) {
                       const double product =
                           p.alpha * double{in[0][static_cast<size_t>(p.trans_a ? k * p.M + m : m * p.K + k)]} *
                           double{in[1][static_cast<size_t>(p.trans_b ? n * p.K + k : k * p.N + n)]};
                       sum += product;
                       size += std::fabs(product);
                     }
                     if (!p.c_rows) return;
                     const int64_t at = (p.c_rows > 1 ? m : 0) * p.c_columns + (p.c_columns > 1 ? n : 0);
                     const double c = p.beta * in[2][static_cast<size_t>(at)];
                     sum += c;
                     size += std::fabs(c);
                   });
}

/// y = act(w x + b + r), a 1 x 1 convolution with a residual sum or without.
struct PointwiseCase {
  int64_t N, C, M, pixels;
  bool residual = false, relu = false;

  std::string text() const {
    const std::string x = str_cat("f32[", N, ",", C, ",", pixels, "]"),
                      y = str_cat("f32[", N, ",", M, ",", pixels, "]");
    const char* act = relu ? " {activation=\"relu\"}" : "";
    return str_cat("graph \"pointwise\" {\n  input %x : ", x, "\n  input %k_w : f32[", M, ",", C,
                   ",1]\n  input %k_b : f32[", M, "]\n", residual ? str_cat("  input %r : ", y, "\n") : "",
                   residual ? str_cat("  %c = conv (%x, %k_w, %k_b)\n  %y = add (%c, %r)", act)
                            : str_cat("  %y = conv (%x, %k_w, %k_b)", act),
                   "\n  output \"y\" %y\n}");
  }
};

std::vector<PointwiseCase> pointwise_cases() {
  std::vector<PointwiseCase> all = {
      {1, 8, 8, 8},           {2, 9, 11, 15, true},         {1, 16, 32, 64, false, true}, {3, 17, 33, 65, true, true},
      {1, 100, 63, 49, true}, {2, 31, 70, 129, false, true}};
  std::mt19937_64 random(test_seed());
  const auto below = [&](int64_t n) { return static_cast<int64_t>(random() % static_cast<uint64_t>(n)); };
  for (int i = 0; i < 4; ++i) {
    all.push_back({1 + below(3), 8 + below(60), 8 + below(60), 8 + below(90), below(2) == 1, below(2) == 1});
  }
  return all;
}

Result<Answer> answer_of(const Backend& backend, const PointwiseCase& p, const char* precision) {
  return answer_of(backend, p.text(), precision, p.C, p.relu,
                   [&](std::span<const std::vector<float>> in, int64_t i, double& sum, double& size) {
                     const int64_t pixel = i % p.pixels, m = i / p.pixels % p.M, image = i / p.pixels / p.M;
                     const auto add = [&](double part) {
                       sum += part;
                       size += std::fabs(part);
                     };
                     for (int64_t c = 0; c < p.C; ++c) {
                       add(double{in[0][static_cast<size_t>((image * p.C + c) * p.pixels + pixel)]} *
                           double{in[1][static_cast<size_t>(m * p.C + c)]});
                     }
                     add(in[2][static_cast<size_t>(m)]);
                     if (p.residual) add(in[3][static_cast<size_t>(i)]);
                   });
}

class GpuMatrices : public ::testing::Test {
 protected:
  void SetUp() override {
    if (const std::string reason = softmetal::unavailable(0); !reason.empty()) GTEST_SKIP() << reason;
  }
  void TearDown() override { unsetenv("PINNACE_SOFTMETAL"); }
  static void execute(const std::string& execution) { setenv("PINNACE_SOFTMETAL", execution.c_str(), 1); }
};

TEST_F(GpuMatrices, AreWithinTheBoundInEveryOrder) {
  std::map<std::string, std::vector<float>> first;  // of the orders, whose bits are the same
  for (const char* order : {"forward", "reverse", "shuffled"}) {
    execute(str_cat("order=", order, " seed=", test_seed() % 1000));
    for (const ProductCase& c : cases()) {
      for (const char* precision : {"fp32", "fp16"}) {
        const auto got = answer_of(softmetal_backend(), c, precision);
        ASSERT_TRUE(got.ok()) << c.text() << got.status().message();
        EXPECT_EQ(got->wrong, "") << order;
        EXPECT_EQ(got->kernel, str_cat("gemm_matrices_f", precision + 2)) << c.text();
        EXPECT_EQ(got->notice, "");
        const auto [known, added] = first.try_emplace(c.text() + precision, got->y);
        EXPECT_TRUE(added || known->second == got->y) << order << c.text();
      }
    }
    for (const PointwiseCase& c : pointwise_cases()) {
      for (const char* precision : {"fp32", "fp16"}) {
        const auto got = answer_of(softmetal_backend(), c, precision);
        ASSERT_TRUE(got.ok()) << c.text() << got.status().message();
        EXPECT_EQ(got->wrong, "") << order;
        EXPECT_EQ(got->kernel, str_cat("conv_matrices_f", precision + 2)) << c.text();
        const auto [known, added] = first.try_emplace(c.text() + precision, got->y);
        EXPECT_TRUE(added || known->second == got->y) << order << c.text();
      }
    }
  }
}

// The same cases, the same bound.
TEST_F(GpuMatrices, AreLeftOutWhereADeviceHasNone) {
  for (const char* execution : {"width=8", "width=16", "width=64", "width=32"}) {
    execute(execution);
    const GpuOptions options(std::strcmp(execution, "width=32") == 0 ? "no_matrices" : "");
    const auto context = gpu::Context::open(softmetal::kDriver, 0);
    ASSERT_TRUE(context.ok()) << context.status().message();
    EXPECT_FALSE((*context)->caps().simdgroup_matrices) << execution;
    EXPECT_EQ(softmetal_backend().description().find("simdgroup matrices"), std::string::npos);
    const int32_t spec[] = {0, 0};
    EXPECT_EQ((*context)->device().kernel(*gpu::find_kernel("gemm_matrices_f32"), spec).status().code(),
              Code::kUnsupported);
    for (const ProductCase& c : cases()) {
      for (const char* precision : {"fp32", "fp16"}) {
        const auto got = answer_of(softmetal_backend(), c, precision);
        ASSERT_TRUE(got.ok()) << c.text() << got.status().message();
        EXPECT_EQ(got->wrong, "") << execution;
        EXPECT_EQ(got->kernel, str_cat("gemm_packed_f", precision + 2)) << c.text();
      }
    }
    for (const PointwiseCase& c : pointwise_cases()) {
      for (const char* precision : {"fp32", "fp16"}) {
        const auto got = answer_of(softmetal_backend(), c, precision);
        ASSERT_TRUE(got.ok()) << c.text() << got.status().message();
        EXPECT_EQ(got->wrong, "") << execution;
        EXPECT_EQ(got->kernel, str_cat("conv_pointwise_f", precision + 2)) << c.text();
      }
    }
  }
  EXPECT_NE(softmetal_backend().description().find("simdgroup matrices"), std::string::npos);
}

TEST_F(GpuMatrices, AreNotForVulkan) {
  PINNACE_NEEDS_GPU();
  const auto context = gpu::Context::open(vulkan::kDriver, 0);
  ASSERT_TRUE(context.ok()) << context.status().message();
  EXPECT_FALSE((*context)->caps().simdgroup_matrices);
  const int32_t spec[] = {0, 0};
  const auto made = (*context)->device().kernel(*gpu::find_kernel("gemm_matrices_f32"), spec);
  EXPECT_EQ(made.status().code(), Code::kUnsupported);
  EXPECT_NE(made.status().message().find("Metal's language alone"), std::string::npos) << made.status().message();
}

// Less than a matrix in a direction, and few results of long sums, which are divided among more invocations.
TEST_F(GpuMatrices, AreNotForEveryShape) {
  for (const auto& [shape, kernel] : std::map<std::vector<int64_t>, const char*>{
           {{7, 64, 32}, "gemm_packed_f32"}, {{64, 7, 32}, "gemm_packed_f32"}, {{32, 64, 64}, "gemm_split_f32"}}) {
    const auto got = answer_of(softmetal_backend(), ProductCase{shape[0], shape[1], shape[2]}, "fp32");
    ASSERT_TRUE(got.ok()) << got.status().message();
    EXPECT_EQ(got->kernel, kernel);
    EXPECT_EQ(got->wrong, "");
  }
}

TEST_F(GpuMatrices, ThatAnswerWrongAreReplaced) {
  const ProductCase c{33, 65, 17};
  const struct {
    const char *options, *precision, *kernel, *said;
  } chain[] = {
      {"fail_self_test=gemm_matrices", "fp32", "gemm_packed_f32",
       "another kernel instead: its kernel fails the self-check of this device, gemm_matrices_f32: element 0 is"},
      {"fail_self_test=gemm_matrices,fail_self_test=gemm_packed", "fp32", "gemm_f32", "gemm_packed_f32: element 0 is"},
      {"fail_self_test=gemm_matrices_f16", "fp16", "gemm_packed_f16", "this device, gemm_matrices_f16: element 0 is"},
      {"fail_self_test=gemm_matrices,fail_self_test=gemm_packed_f16", "fp16", "gemm_packed_f32",
       "fp32 instead of fp16"},
      {"fail_self_test=gemm_matrices,fail_self_test=gemm_packed_f16", "fp16", "gemm_packed_f32",
       "; another kernel instead"},
      {"fail_self_test=gemm_matrices_f16,fail_self_test=gemm_packed_f16", "fp16", "gemm_matrices_f32",
       "instead of fp16"}};
  for (const auto& link : chain) {
    const GpuOptions with(link.options);
    const auto got = answer_of(softmetal_backend(), c, link.precision);
    ASSERT_TRUE(got.ok()) << got.status().message();
    EXPECT_EQ(got->kernel, link.kernel);
    EXPECT_NE(got->notice.find(link.said), std::string::npos) << got->notice;
    EXPECT_EQ(got->wrong, "");
  }
  const GpuOptions with("fail_self_test=conv_matrices");
  const auto got = answer_of(softmetal_backend(), PointwiseCase{2, 9, 11, 15, true}, "fp16");
  ASSERT_TRUE(got.ok()) << got.status().message();
  EXPECT_EQ(got->kernel, "conv_pointwise_f16");
  EXPECT_NE(got->notice.find("another kernel instead"), std::string::npos) << got->notice;
  EXPECT_EQ(got->wrong, "");
}

// Winograd's product in the middle, whose operands have 32 bits: within what Winograd's transforms cost.
TEST_F(GpuMatrices, MultiplyForWinograd) {
  constexpr const char* kText = R"(graph "winograd" {
  input %x : f32[1,56,19,23]
  input %k_w : f32[57,56,3,3]
  %y = conv (%x, %k_w) {pads=[1,1,1,1]}
  output "y" %y
})";
  const auto expect = [](std::span<const std::vector<float>> in, int64_t i, double& sum, double& size) {
    const int64_t x = i % 23, y = i / 23 % 19, m = i / 23 / 19;
    for (int64_t k = 0; k < 56 * 9; ++k) {
      const int64_t c = k / 9, iy = y + k / 3 % 3 - 1, ix = x + k % 3 - 1;
      if (iy < 0 || iy >= 19 || ix < 0 || ix >= 23) continue;
      const double part =
          double{in[0][static_cast<size_t>((c * 19 + iy) * 23 + ix)]} * double{in[1][static_cast<size_t>(m * 504 + k)]};
      sum += part;
      size += std::fabs(part);
    }
  };
  for (const char* given : {"", "fail_self_test=conv_matrices"}) {
    const GpuOptions options(given);
    const auto got = answer_of(softmetal_backend(), kText, "fp32", 504, false, expect);
    ASSERT_TRUE(got.ok()) << got.status().message();
    EXPECT_EQ(got->wrong, "");
    EXPECT_EQ(got->notice.find("conv_matrices_f32") != std::string::npos, *given != 0) << got->notice;
  }
}

/// A device whose compiler takes no kernel whose name begins so, and one that is given Metal's text of each.
std::vector<std::string> refused;
class CompilingDevice final : public gpu::Device {
 public:
  explicit CompilingDevice(std::unique_ptr<gpu::Device> own) : own_(std::move(own)), caps_(own_->caps()) {
    for (const std::string& name : refused) caps_.identity += " without " + name;  // its self-checks are its own
  }
  const gpu::DeviceCaps& caps() const override { return caps_; }
  Result<std::unique_ptr<gpu::DeviceBuffer>> buffer(size_t bytes, gpu::BufferUse use) override {
    return own_->buffer(bytes, use);
  }
  Result<std::unique_ptr<gpu::Kernel>> kernel(const gpu::KernelCode& code, std::span<const int32_t> spec) override {
    for (const std::string& name : refused) {
      if (code.name.starts_with(name)) return unsupported("program_source:9: error:\n\tno such type");
    }
    std::lock_guard lock(mutex_);
    auto& [text, with_text] = codes_[std::string(code.name)];
    if (text.empty()) {
      std::ifstream file(str_cat(PINNACE_TEST_MSL, "/", code.name, ".metal"));
      text.assign(std::istreambuf_iterator<char>(file), {});
      with_text = code;
      with_text.msl = text;
    }
    return own_->kernel(with_text, spec);
  }
  Result<std::unique_ptr<gpu::CommandList>> command_list(uint32_t timestamps) override {
    return own_->command_list(timestamps);
  }
  Status submit(gpu::CommandList& list) override { return own_->submit(list); }
  Status wait(gpu::CommandList& list) override { return own_->wait(list); }
  std::vector<std::byte> cache_blob() const override { return {}; }

 private:
  std::unique_ptr<gpu::Device> own_;
  gpu::DeviceCaps caps_;
  std::mutex mutex_;
  std::map<std::string, std::pair<std::string, gpu::KernelCode>> codes_;
};

std::string none(uint32_t) {
  return {};
}
Result<std::unique_ptr<gpu::Device>> open_softmetal(uint32_t, const gpu::DeviceOptions& options) {
  PINNACE_ASSIGN(auto own, softmetal::open(options, {}));
  return std::unique_ptr<gpu::Device>(new CompilingDevice(std::move(own)));
}

TEST_F(GpuMatrices, WhoseTextACompilerRefusesAreReplaced) {
  static constexpr gpu::Driver kDriver{"softmetal, refusing", true, &none, &open_softmetal};
  static const Backend& backend = *gpu::make_backend(kDriver);
  const ProductCase c{33, 65, 17};
  const std::pair<std::vector<std::string>, const char*> all[] = {{{}, "gemm_matrices_f32"},
                                                                  {{"gemm_matrices"}, "gemm_packed_f32"},
                                                                  {{"gemm_matrices", "gemm_packed"}, "gemm_f32"}};
  for (const auto& [names, kernel] : all) {
    refused = names;
    const auto got = answer_of(backend, c, "fp32");
    ASSERT_TRUE(got.ok()) << got.status().message();
    EXPECT_EQ(got->kernel, kernel);
    EXPECT_EQ(got->wrong, "");
    if (refused.empty()) continue;
    EXPECT_NE(got->notice.find(R"(program_source:9: error:\n\tno such type)"), std::string::npos) << got->notice;
  }
  // What takes the place is judged by itself, not by the known-answer tests that both could run.
  refused = {"conv_matrices"};
  const auto got = answer_of(backend, PointwiseCase{2, 9, 11, 15, true}, "fp16");
  ASSERT_TRUE(got.ok()) << got.status().message();
  EXPECT_EQ(got->kernel, "conv_pointwise_f16");
  EXPECT_EQ(got->wrong, "");
  // A compiler may be interrupted: the next process asks it again.
  const TemporaryFolder folder;
  setenv("PINNACE_GPU_CACHE", folder.path().c_str(), 1);
  refused = {"gemm_matrices", "nothing else"};
  EXPECT_EQ(answer_of(backend, c, "fp32")->kernel, "gemm_packed_f32");
  unsetenv("PINNACE_GPU_CACHE");
  std::string stored;
  for (const auto& entry : std::filesystem::directory_iterator(folder.path())) {
    std::ifstream file(entry.path(), std::ios::binary);
    stored.assign(std::istreambuf_iterator<char>(file), {});
  }
  EXPECT_NE(stored.find("gemm_packed_f32\t\n"), std::string::npos) << stored;
  EXPECT_EQ(stored.find("gemm_matrices_f32"), std::string::npos) << stored;
  refused = {"leave"};  // without it nothing can be judged, and the device is of no use
  EXPECT_EQ(answer_of(backend, c, "fp32").status().code(), Code::kDeviceLost);
  refused.clear();
}

#ifdef PINNACE_PRETEND_METAL
Result<std::unique_ptr<gpu::Device>> open_metal(uint32_t index, const gpu::DeviceOptions& options) {
  PINNACE_ASSIGN(auto own, metal::open_device(index, options));
  return std::unique_ptr<gpu::Device>(new CompilingDevice(std::move(own)));
}

// All of the back end above the Metal driver, with Metal's text of the kernels.
TEST_F(GpuMatrices, AreAskedOfMetalByFamilyAndWidth) {
  static constexpr gpu::Driver kDriver{"metal, pretended", false, &metal::unavailable, &open_metal};
  static const Backend& backend = *gpu::make_backend(kDriver);
  const ProductCase c{33, 65, 17, true, true, true, 2, 3, 33, 65};
  const struct {
    long family;
    unsigned width;
    const char *options, *kernel;
  } devices[] = {{1007, 32, "", "gemm_matrices"},
                 {1009, 32, "", "gemm_matrices"},
                 {1007, 32, "no_matrices", "gemm_packed"},
                 {1006, 32, "", "gemm_packed"},
                 {1007, 16, "", "gemm_packed"}};
  for (const auto& d : devices) {
    pretend_metal() = {};
    pretend_metal().kernels = *softmetal::library();
    pretend_metal().family = d.family;
    pretend_metal().simd_width = d.width;
    refused = {str_cat("none of family ", d.family, " and width ", d.width)};  // for an identity of its own
    const GpuOptions options(d.options);
    for (const char* precision : {"fp32", "fp16"}) {
      const auto got = answer_of(backend, c, precision);
      ASSERT_TRUE(got.ok()) << got.status().message();
      EXPECT_EQ(got->kernel, str_cat(d.kernel, "_f", precision + 2)) << d.family;
      EXPECT_EQ(got->wrong, "");
      // Found out when the kernel is made.
      EXPECT_EQ(got->notice.find("simdgroups of 16 lanes") != std::string::npos, d.width == 16) << got->notice;
    }
    EXPECT_STREQ(pretend_metal_misuse(), "");
  }
  refused.clear();
  pretend_metal() = {};
}
#endif

}  // namespace
}  // namespace pinnace::testing

#endif  // PINNACE_HAS_SOFTMETAL
