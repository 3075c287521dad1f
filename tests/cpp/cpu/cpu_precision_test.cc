// Sessions of another precision than float32, on a small network with all that halves go through without a change of
// type: which kernels run, and how far the results are from float32's.
#include <gtest/gtest.h>

#include <cmath>

#include <pinnace/session.h>

#include "base/cpu_features.h"
#include "base/text.h"
#include "cpp/program/program_fixture.h"
#include "ops/type_inference.h"
#include "program/writer.h"

namespace pinnace::testing {
namespace {

/// A constant of numbers between -a and a.
std::string constant(const std::string& name, const std::string& shape, int count, double a) {
  std::string text = str_cat("const %", name, " : T", shape, " = {");
  for (int i = 0; i < count; ++i) text += str_cat(i ? "," : "", std::to_string(a * std::sin(1.7 * i + count)));
  return text + "}\n";
}

/// With values of element type `type` between the casts.
Program net(const std::string& type) {
  std::string text = R"(graph "net" {
    symbol n 1..3
    input %image : f32[n,3,13,11]
)";
  text += constant("w1", "[16,3,3,3]", 432, 0.5) + constant("b1", "[16]", 16, 0.1) +
          constant("w2", "[16,1,3,3]", 144, 0.6) + constant("w3", "[24,16,1,1]", 384, 0.5) +
          constant("w4", "[24,24,1,1]", 576, 0.4) + constant("w5", "[24,1,5,5]", 600, 0.3) +
          constant("w6", "[10,192]", 1920, 0.15);
  text += R"(const %low : T[] = {0}
    const %high : T[] = {6}
    %x : T[n,3,13,11] = cast(%image) {to="T"}
    %c1 : T[n,16,7,6] = conv(%x, %w1, %b1) {pads=[1,1,1,1], strides=[2,2]}
    %a1 : T[n,16,7,6] = clip(%c1, %low, %high)
    %c2 : T[n,16,7,6] = conv(%a1, %w2) {pads=[1,1,1,1], group=16, activation="relu"}
    %c3 : T[n,24,7,6] = conv(%c2, %w3)
    %c4 : T[n,24,7,6] = conv(%c3, %w4)
    %s : T[n,24,7,6] = add(%c4, %c3) {activation="hard_swish"}
    %c5 : T[n,24,7,6] = conv(%s, %w5) {pads=[2,2,2,2], group=24}
    %g : T[n,24,7,6] = sigmoid(%c5)
    %m : T[n,24,7,6] = mul(%g, %s)
    %k : T[n,48,7,6] = concat(%m, %s) {axis=1}
    %p : T[n,48,3,3] = max_pool(%k) {kernel_shape=[2,2], strides=[2,2]}
    %v : T[n,48,1,1] = global_average_pool(%p)
    const %scales : f32[4] = {1,1,2,2}
    %r : T[n,48,2,2] = resize(%v, none, %scales) {mode="nearest"}
    %f : T[n,192] = flatten(%r)
    %l : T[n,10] = gemm(%f, %w6) {trans_b=1}
    %y : f32[n,10] = cast(%l) {to="f32"}
    output "y" %y
  })";
  for (size_t at = 0; (at = text.find(" T[", at)) != std::string::npos;) text.replace(at + 1, 1, type);
  for (size_t at = 0; (at = text.find("\"T\"", at)) != std::string::npos;) text.replace(at + 1, 1, type);
  auto graph = parse(text);
  EXPECT_TRUE(graph.ok()) << graph.status().message();
  const Status typed = update_types(*graph);
  EXPECT_TRUE(typed.ok()) << typed.message();
  const auto bytes = write_program(*graph, {}, {});
  EXPECT_TRUE(bytes.ok()) << bytes.status().message();
  return load({bytes->data(), bytes->size()});
}

std::vector<float> run(Session& session, int64_t n) {
  std::vector<float> x;
  for (int64_t i = 0; i < n * 429; ++i) x.push_back(std::sin(0.37f * static_cast<float>(i)));
  Tensor image;
  for (int64_t size : {n, int64_t{3}, int64_t{13}, int64_t{11}}) image.type.shape.push_back(Dim(size));
  image.memory.host = x.data();
  image.memory.bytes = x.size() * sizeof(float);
  const Status status = session.run(std::vector{image});
  EXPECT_TRUE(status.ok()) << status.message();
  const Tensor y = session.output(0);
  const auto* data = static_cast<const float*>(y.memory.host);
  return {data, data + y.type.elements()};
}

class CpuPrecision : public ::testing::TestWithParam<const char*> {};

TEST_P(CpuPrecision, HalvesGoFromConvolutionToConvolution) {
  const Program program = net(GetParam());
  auto exact = Session::create(program, {.target = "cpu", .threads = 1});
  ASSERT_TRUE(exact.ok()) << exact.status().message();
  for (const int threads : {1, 3}) {
    auto session = Session::create(program, {.target = "cpu", .threads = threads, .precision = "fp16"});
    ASSERT_TRUE(session.ok()) << session.status().message();
    for (const int64_t n : {1, 2}) {
      const std::vector<float> want = run(*exact, n), got = run(*session, n);
      ASSERT_EQ(got.size(), want.size());
      float largest = 0;
      for (const float y : want) largest = std::max(largest, std::fabs(y));
      for (size_t i = 0; i < got.size(); ++i) EXPECT_NEAR(got[i], want[i], 1e-2f * largest) << "element " << i;
    }
#if defined(__aarch64__)
    for (const Placement& row : session->placement()) {
      const bool half = row.kernel.find("_f16_neon_dotprod") != std::string::npos;
      const bool other = row.op == "resize" || row.op == "gemm" || row.op == "cast" || row.op == "flatten";
      EXPECT_EQ(half, !other && cpu_isa() >= Cpu::neon_dotprod) << row.op << " by " << row.kernel;
    }
#endif
  }
  for (const Placement& row : exact->placement()) {
    EXPECT_EQ(row.kernel.find("_f16_neon_dotprod"), std::string::npos) << row.op << " by " << row.kernel;
  }
}

INSTANTIATE_TEST_SUITE_P(Types, CpuPrecision, ::testing::Values("f32", "f16"));

}  // namespace
}  // namespace pinnace::testing
