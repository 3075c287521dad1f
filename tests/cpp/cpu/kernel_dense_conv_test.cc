// Three-dimensional convolutions, which the kernels of dense tensors compute, on seeded random nodes and every
// instruction set that this processor has: the reference's results within float32's bound, and the same bits by any
// number of threads. A slice in every run, 500 cases with PINNACE_TEST_ALL=1.
#include "cpp/cpu/kernel_line.h"
#include "cpp/cpu/quantized_contract.h"

namespace pinnace::testing {
namespace {

std::vector<float> normals(Random& random, int64_t count, double scale) {
  std::vector<float> all;
  for (int64_t i = 0; i < count; ++i) all.push_back(static_cast<float>(scale * random.normal()));
  return all;
}

Call random_convolution(Random& random) {
  const auto upto = [&](int64_t low, int64_t high) { return random.integer(low, high); };
  int64_t in = upto(1, 9), out = upto(1, 40), kernel = upto(1, 3), groups = upto(0, 3) ? 1 : upto(2, 3);
  int64_t d = upto(3, 7), h = upto(3, 9), w = upto(3, 13);
  switch (upto(0, 9)) {  // 1024 weights of each channel: rows that stand a page apart
    case 0:
      in = 128, kernel = 2, out = upto(9, 30), groups = 1;
      break;
    case 1:
      in = 1024, kernel = 1, out = upto(1, 50), groups = 1, d = 2, h = 3, w = 7;
      break;
    default:
      break;
  }
  const int64_t batch = upto(1, 2), taps = kernel * kernel * kernel;
  const double scale = 1 / std::sqrt(static_cast<double>(in * taps));
  Call call("conv");
  call.input(DType::kF32, {batch, in * groups, d, h, w}, normals(random, batch * in * groups * d * h * w, 1));
  call.input(DType::kF32, {out * groups, in, kernel, kernel, kernel}, normals(random, out * groups * in * taps, scale));
  if (upto(0, 2)) call.input(DType::kF32, {out * groups}, normals(random, out * groups, 1));
  call.attr("group", groups).attr("pads", std::vector<int64_t>(6, upto(0, 1)));
  call.attr("strides", std::vector<int64_t>{upto(1, 2), upto(1, 2), upto(1, 2)});
  const int64_t activation = upto(0, 3);
  if (activation == 1) call.attr("activation", std::string("relu"));
  if (activation == 2) call.attr("activation", std::string("gelu"));
  return call;
}

TEST(KernelDenseConv, ThreeDimensions) {
  int ran = 0;
  for (size_t i = 0; i < 500; ++i) {
    if (!in_slice(i, 10)) continue;
    Random random(test_seed() + i);
    const Call call = random_convolution(random);
    const auto want = call.run(call.op->reference);
    ASSERT_TRUE(want.ok()) << want.status().message();
    for (const CpuKernelLine& line : cpu_kernels()) {
      const bool dense = line.name.starts_with("conv_f32") || line.name.starts_with("conv_variable_f32");
      if (!dense || !line_runs(line)) continue;
      std::vector<std::string> results;
      for (int threads : {1, 3}) {
        const auto got = call.run_line(line, threads);
        ASSERT_TRUE(got.ok()) << line.name << ": " << got.status().message();
        EXPECT_EQ(differs(line, *got, *want, kFloat32), "") << line.name << " on " << call.text() << "; case " << i;
        const Buffer& bytes = (*got)[0].bytes;
        results.emplace_back(reinterpret_cast<const char*>(bytes.data()), bytes.size());
        ++ran;
      }
      EXPECT_TRUE(results[0] == results[1]) << line.name << " with three threads on " << call.text() << "; case " << i;
    }
  }
  EXPECT_GT(ran, 0);
}

/// Weights that another node computes have a kernel too; rows of 1024 are those that constant ones are spread for.
TEST(KernelDenseConv, WeightsThatAreNoConstants) {
  constexpr Case kPage = {.inputs = "f32[2,1024,2,3];f32[9,1024,1,1];f32[9]"},
                 kGroups = {.inputs = "f32[1,6,5,7];f32[8,3,3,3]", .attributes = "group=2, pads=[1,0,1,2]"};
  int ran = 0;
  for (const Case& source : {kPage, kGroups}) {
    const auto built = build_case("conv", source, test_seed());
    ASSERT_TRUE(built.ok()) << built.status().message();
    const auto want = run_case(*built);
    ASSERT_TRUE(want.ok());
    std::vector<const TensorType*> types;
    for (const CaseTensor& input : built->inputs) types.push_back(&input.type);
    const CpuKernelLine* chosen = choose_kernel(NodeView(built->node(), *built->op, types), {Cpu::generic});
    ASSERT_NE(chosen, nullptr) << "reference code";
    EXPECT_EQ(chosen->name, str_cat("conv_variable_f32_", kernel_isa_name(Cpu::generic)));
    for (const CpuKernelLine& line : cpu_kernels()) {
      if (!line.name.starts_with("conv_variable_f32") || !line_runs(line)) continue;
      const auto got = run_line(line, *built, 0b111, 2);
      ASSERT_TRUE(got.ok()) << line.name << ": " << got.status().message();
      EXPECT_EQ(differs(line, *got, *want, kFloat32), "") << line.name << " on " << source.inputs;
      ++ran;
    }
  }
  EXPECT_GT(ran, 1);
}

}  // namespace
}  // namespace pinnace::testing
