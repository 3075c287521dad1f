// Products of rows that are rounded when they are there: the kernel has the bits of the operators that it stands for,
// on every instruction set that this processor has, and lowering puts it where it computes what they do.
#include <gtest/gtest.h>

#include <pinnace/model.h>
#include <pinnace/session.h>

#include <cmath>
#include <limits>

#include "base/text.h"
#include "cpp/cpu/kernel_line.h"
#include "cpp/cpu/quantized_contract.h"

namespace pinnace::testing {
namespace {

/// x [M, K], weights [K, N] with a scale for each column, and, where not empty, a bias.
struct Product {
  int64_t M, N, K;
  std::vector<float> x, scales, bias;
  std::vector<int8_t> weights;
  float low = -INFINITY, high = INFINITY;
};

Product random_product(Random& random) {
  const auto one_of = [&](std::initializer_list<int64_t> list) {
    return *(list.begin() + random.integer(0, static_cast<int64_t>(list.size()) - 1));
  };
  Product p{one_of({1, 2, 3, 5, 16, 63, 64, 65, 90}),
            one_of({1, 3, 8, 16, 24, 31, 32, 33, 65, 270}),
            one_of({1, 2, 7, 8, 9, 63, 64, 65, 120, 250, 256}),
            {},
            {},
            {},
            {}};
  const double size = std::pow(10.0, static_cast<double>(random.integer(-30, 30)));
  for (int64_t i = 0; i < p.M * p.K; ++i) p.x.push_back(static_cast<float>(random.normal() * size));
  for (int64_t i = 0; i < p.K * p.N; ++i) p.weights.push_back(static_cast<int8_t>(random.integer(-128, 127)));
  for (int64_t i = 0; i < p.N; ++i) p.scales.push_back(0.001f * static_cast<float>(random.integer(1, 30)));
  if (random.integer(0, 1)) {
    for (int64_t i = 0; i < p.N; ++i) p.bias.push_back(static_cast<float>(random.normal() * size));
  }
  if (random.integer(0, 3) == 0) p.low = 0;
  if (random.integer(0, 5) == 0) p.low = -1, p.high = 2.5f;
  // Rows of zeros, of one number that is none, and of numbers that are next to nothing.
  const float special[] = {0.0f, NAN, INFINITY, std::numeric_limits<float>::denorm_min()};
  for (const float number : special) {
    if (random.integer(0, 3)) continue;
    const int64_t row = random.integer(0, p.M - 1), whole = number == 0 || std::isfinite(number);
    for (int64_t k = 0; k < (whole ? p.K : 1); ++k) p.x[static_cast<size_t>(row * p.K + k)] = number;
  }
  return p;
}

/// What the operators give one after the other, by their definitions.
std::vector<float> wanted(const Product& p) {
  std::vector<float> y;
  for (int64_t m = 0; m < p.M; ++m) {
    const float* x = p.x.data() + m * p.K;
    float above = 0, below = 0;
    for (int64_t k = 0; k < p.K; ++k) {
      above = std::isnan(x[k]) || x[k] > above ? x[k] : above;
      below = std::isnan(x[k]) || -x[k] > below ? -x[k] : below;
      if (std::isnan(x[k])) break;
    }
    const float scale = (above + below) * (1.0f / 255.0f), least = below / scale;
    const float zero = std::isnan(least) ? 0.0f : std::min(std::nearbyint(least), 255.0f);
    for (int64_t n = 0; n < p.N; ++n) {
      int64_t sum = 0;
      for (int64_t k = 0; k < p.K; ++k) {
        const float quotient = x[k] / scale;
        const float q = std::isnan(quotient) ? 0.0f : std::clamp(std::nearbyint(quotient) + zero, 0.0f, 255.0f) - zero;
        sum += static_cast<int64_t>(q) * p.weights[static_cast<size_t>(k * p.N + n)];
      }
      const float own = static_cast<float>(sum) * p.scales[static_cast<size_t>(n)];
      float real = own * scale;
      if (!p.bias.empty()) real += p.bias[static_cast<size_t>(n)];
      if (real < p.low) real = p.low;
      if (real > p.high) real = p.high;
      y.push_back(real);
    }
  }
  return y;
}

template <class T>
TensorView view(const TensorType& type, const std::vector<T>& elements) {
  return {&type, const_cast<std::byte*>(reinterpret_cast<const std::byte*>(elements.data()))};
}

Result<std::vector<float>> by_line(const CpuKernelLine& line, const Product& p, int threads) {
  const TensorType x{DType::kF32, {p.M, p.K}, nullptr}, w{DType::kI8, {p.K, p.N}, nullptr};
  const TensorType row{DType::kF32, {p.N}, nullptr}, y{DType::kF32, {p.M, p.N}, nullptr};
  Fusion fusion;
  fusion.weights = IntegerWeightsOf<FusedView>{.integers = {view(w, p.weights), {}},
                                               .scales = {view(row, p.scales), {}},
                                               .zero_points = {},
                                               .axis = 1,
                                               .block_size = 0,
                                               .transposed = false,
                                               .rounds_rows = true};
  Call call("mat_mul");
  if (p.high < INFINITY) {
    call.attr("activation", std::string("clip"));
    call.attr("activation_params", std::vector<double>{static_cast<double>(p.low), static_cast<double>(p.high)});
  } else if (p.low == 0) {
    call.attr("activation", std::string("relu"));
  }
  Node node = call.node;
  node.inputs = {0, kNoValue, p.bias.empty() ? kNoValue : 2};
  const std::vector<TensorView> in{view(x, p.x), TensorView{}, p.bias.empty() ? TensorView{} : view(row, p.bias)};
  const std::vector<const TensorType*> types{in[0].type, nullptr, in[2].type};
  const std::vector<const void*> data{nullptr, nullptr, in[2].bytes};
  std::vector<float> result(static_cast<size_t>(p.M * p.N), -7.0f);
  const TensorView out = view(y, result);
  const TensorType* declared[] = {&y};
  const KernelNode product(NodeView(node, *call.op, types, data, declared), fusion);
  PINNACE_TRY(run_forced(line, product, in, {&out, 1}, threads));
  return result;
}

TEST(RoundedRows, KernelsHaveTheBitsOfTheOperators) {
  Random random(test_seed());
  int ran = 0;
  for (size_t i = 0; i < 1000; ++i) {
    if (!in_slice(i, 10)) continue;
    const Product p = random_product(random);
    const std::vector<float> want = wanted(p);
    for (const CpuKernelLine& line : cpu_kernels()) {
      if (!(line.kernel->fuses & kFusesRoundedRows) || !line_runs(line)) continue;
      const auto got = by_line(line, p, static_cast<int>(random.integer(1, 3)));
      ASSERT_TRUE(got.ok()) << line.name << ": " << got.status().message();
      for (size_t k = 0; k < want.size(); ++k) {
        if (std::isnan(want[k]) && std::isnan((*got)[k])) continue;
        // By their bits, but for the sign of 0, which clamps leave open.
        ASSERT_EQ((*got)[k], want[k]) << line.name << ": [" << p.M << "," << p.K << "] x [" << p.K << "," << p.N
                                      << "], element " << k << "; seed " << test_seed();
      }
      ++ran;
    }
  }
#if defined(__x86_64__)
  EXPECT_EQ(ran > 0, cpu_runs(Cpu::avx2));
#endif
}

/// A chain as build(quantize=DynamicInt8()) makes it; each part can be replaced.
struct Chain {
  std::string step = "{0.003921568859368563}", axes = "{-1}", axis = "-1", block = "6", weights = "i8", zero = "%z",
              sums = "{0,-1,-2,-3}", after = "%y = add(%r, %bias) {activation=\"relu\"}", outputs = "output \"y\" %y";
  std::string text() const {
    const std::string number = weights == "i8" ? "const %w : i8[6,4] = {" : "const %w : u8[6,4] = {";
    std::string all;
    for (int i = 0; i < 24; ++i) all += str_cat(i ? "," : "", weights == "i8" ? i % 7 - 3 : i);
    return str_cat(
        "graph \"chain\" { input %x : f32[2,3,6]\n", number, all, "}\n",
        "const %c : f32[4] = {0.5,0.25,0.125,1} const %bias : f32[4] = {1,-2,0.5,0}\n", "const %axes : i64[1] = ", axes,
        " const %step : f32[] = ", step, " const %sums : i32[4] = ", sums, "\n",
        "%m = reduce_max(%x, %axes) {keepdims=1} %u = relu(%m) %k = reduce_min(%x, %axes) {keepdims=1}\n",
        "%n = neg(%k) %d = relu(%n) %t = add(%u, %d) %s = mul(%t, %step)\n",
        "%z = quantize_linear(%d, %s) {axis=-1, block_size=1, output_dtype=\"u8\"}\n", "%q = quantize_linear(%x, %s, ",
        zero, ") {axis=", axis, ", block_size=", block, ", output_dtype=\"u8\"}\n",
        "%i = mat_mul_integer(%q, %w) %e = cast(%z) {to=\"i32\"} %h = mul(%e, %sums) %o = sub(%i, %h)\n",
        "%f = cast(%o) {to=\"f32\"} %g = mul(%f, %c) %r = mul(%g, %s)\n", after, "\n", outputs, " }");
  }
};

/// The kernels' names by operator, and the first output.
std::pair<std::string, std::vector<float>> run(const std::string& text) {
  const auto model = Model::parse(text, {.disabled_passes = {"all"}});
  EXPECT_TRUE(model.ok()) << model.status().message() << "\n" << text;
  if (!model.ok()) return {};
  const auto program = model->build();
  EXPECT_TRUE(program.ok()) << program.status().message();
  auto session = Session::create(*program, {.target = "cpu", .threads = 1});
  EXPECT_TRUE(session.ok()) << session.status().message();
  std::vector<float> x;
  for (int i = 0; i < 36; ++i) x.push_back(static_cast<float>(i * 5 % 17 - 8) / 3.0f);
  const Tensor input{{DType::kF32, {2, 3, 6}, nullptr}, {x.data(), x.size() * sizeof(float)}};
  EXPECT_TRUE(session->run(std::span(&input, 1)).ok());
  std::string kernels;
  for (const Placement& p : session->placement()) kernels += p.kernel + " ";
  const Tensor y = session->output(0);
  const auto* from = static_cast<const float*>(y.memory.host);
  return {kernels, {from, from + y.type.elements()}};
}

TEST(RoundedRows, LoweringFindsTheChain) {
#if defined(__x86_64__)
  if (!cpu_runs(Cpu::avx2)) GTEST_SKIP() << "needs AVX2";
  const auto fused = [](const Chain& chain) {
    const auto [kernels, y] = run(chain.text());
    EXPECT_EQ(y.size(), 24u);
    return kernels.find("mat_mul_rounded_rows") != std::string::npos;
  };
  EXPECT_TRUE(fused({}));
  EXPECT_TRUE(fused({.axes = "{2}", .axis = "2", .block = "9"}));
  EXPECT_TRUE(fused({.after = "%y = neg(%r)"}));
  EXPECT_TRUE(fused({.after = "%y = add(%bias, %r)"}));
  // Two products of the same rows are two kernels, and nothing rounds rows beside them.
  const auto [kernels, y] =
      run(Chain{.after = "%j = mat_mul_integer(%q, %w) %h2 = mul(%sums, %e) "
                         "%o2 = sub(%j, %h2) %f2 = cast(%o2) {to=\"f32\"} %l = mul(%c, %f2) %r2 = mul(%s, %l) "
                         "%y = sub(%r, %r2)"}
              .text());
  EXPECT_EQ(kernels.find("quantize_axis"), std::string::npos) << kernels;
  EXPECT_EQ(y, std::vector<float>(24, 0.0f));
  // Somebody else needs what the kernel would not write, or the arithmetic is another one.
  EXPECT_FALSE(fused({.outputs = "output \"y\" %y output \"s\" %s"}));
  EXPECT_FALSE(fused({.outputs = "output \"y\" %y output \"q\" %q"}));
  EXPECT_FALSE(fused({.outputs = "output \"y\" %y output \"g\" %g"}));
  EXPECT_FALSE(fused({.after = "%y = add(%r, %s)", .outputs = "output \"y\" %y output \"f\" %f"}));
  EXPECT_FALSE(fused({.after = "%v = mul(%bias, %s) %y = add(%r, %v)"}));
  EXPECT_FALSE(fused({.after = "%v = cast(%z) {to=\"f32\"} %y = add(%r, %v)"}));
  EXPECT_FALSE(fused({.step = "{0.00390625}"}));
  EXPECT_FALSE(fused({.weights = "u8"}));
  EXPECT_FALSE(fused({.sums = "{0,-1,-2,-2}"}));
#endif
}

TEST(RoundedRows, TheChainGivesTheSameWithAndWithoutTheKernel) {
  const auto fused = run(Chain{}.text()).second;
  const auto apart = run(Chain{.outputs = "output \"y\" %y output \"s\" %s output \"f\" %f"}.text()).second;
  EXPECT_EQ(fused, apart);
}

}  // namespace
}  // namespace pinnace::testing
