// Convolutions of gated channels, which only lower.cc puts together, on seeded random nodes and every instruction set
// that this processor has: what mul, conv and add give one after the other, within float32's bound. A slice in every
// run, 1,000 cases with PINNACE_TEST_ALL=1.
#include "cpp/cpu/kernel_line.h"
#include "cpp/cpu/quantized_contract.h"

namespace pinnace::testing {
namespace {

std::vector<float> normals(Random& random, int64_t count, double scale) {
  std::vector<float> all;
  for (int64_t i = 0; i < count; ++i) all.push_back(static_cast<float>(scale * random.normal()));
  return all;
}

/// The only output, as floats.
Result<std::vector<float>> floats_of(const Call& call) {
  PINNACE_ASSIGN(const auto made, call.run(call.op->reference));
  const auto* raw = reinterpret_cast<const float*>(made[0].bytes.data());
  return std::vector<float>(raw, raw + made[0].type.elements());
}

TEST(KernelGated, Convolutions) {
  int ran = 0;
  for (size_t i = 0; i < 1000; ++i) {
    if (!in_slice(i, 10)) continue;
    Random random(test_seed() + i);
    const auto upto = [&](int64_t low, int64_t high) { return random.integer(low, high); };
    const int64_t C = upto(1, 50), M = upto(0, 2) ? upto(1, 20) : upto(20, 70), stride = upto(0, 3) ? 1 : 2;
    const int64_t W = upto(1, 20), H = (4 * M + W - 1) / W + upto(0, 5);
    const int64_t out_h = (H - 1) / stride + 1, out_w = (W - 1) / stride + 1;
    const Shape image{1, C, H, W}, gates{1, C, 1, 1}, weights{M, C, 1, 1}, result{1, M, out_h, out_w};
    const bool adds = upto(0, 1), clips = upto(0, 1);
    const auto x = normals(random, C * H * W, 1), gate = normals(random, C, 1), bias = normals(random, M, 1);
    const auto w = normals(random, M * C, 1 / std::sqrt(static_cast<double>(C)));
    const auto residual = normals(random, M * out_h * out_w, 1);

    const auto gated = floats_of(Call("mul").input(DType::kF32, image, x).input(DType::kF32, gates, gate));
    ASSERT_TRUE(gated.ok()) << gated.status().message();
    const auto conv = [&](const std::vector<float>& of) {
      Call call("conv");
      call.input(DType::kF32, image, of).input(DType::kF32, weights, w).input(DType::kF32, {M}, bias);
      call.attr("strides", std::vector<int64_t>{stride, stride});
      return call;
    };
    const auto product = floats_of(conv(*gated));
    ASSERT_TRUE(product.ok()) << product.status().message();
    Call sum("add");
    sum.input(DType::kF32, result, *product);
    sum.input(DType::kF32, result, adds ? residual : std::vector<float>(residual.size(), 0.0f));
    if (clips) sum.attr("activation", std::string("relu"));
    const auto want = sum.run(sum.op->reference);
    ASSERT_TRUE(want.ok()) << want.status().message();

    Call whole = conv(x);
    if (clips) whole.attr("activation", std::string("relu"));
    const TensorType result_type{DType::kF32, result, nullptr}, gates_type{DType::kF32, gates, nullptr};
    const auto fused = [](const TensorType& of, const std::vector<float>& numbers) {
      return FusedView{{&of, reinterpret_cast<std::byte*>(const_cast<float*>(numbers.data()))}, {}};
    };
    Fusion fusion;
    if (adds) fusion.residual = ResidualOf<FusedView>{.addend = fused(result_type, residual)};
    fusion.channel_scale = fused(gates_type, gate);
    for (const CpuKernelLine& line : cpu_kernels()) {
      if (!(line.kernel->fuses & kFusesChannelScale) || !line_runs(line)) continue;
      std::vector<std::vector<float>> results;
      for (int threads : {1, 3}) {
        // Only weights and bias are known before the run.
        std::vector<const TensorType*> types;
        std::vector<const void*> data;
        std::vector<TensorView> in;
        for (size_t k = 0; k < whole.types.size(); ++k) {
          auto* bytes = reinterpret_cast<std::byte*>(whole.bytes[k].data());
          types.push_back(whole.present[k] ? &whole.types[k] : nullptr);
          data.push_back(k == 1 || k == 2 ? bytes : nullptr);
          in.push_back(whole.present[k] ? TensorView{&whole.types[k], bytes} : TensorView{});
        }
        results.emplace_back(residual.size());
        const TensorType& type = (*want)[0].type;
        const TensorView out{&type, reinterpret_cast<std::byte*>(results.back().data())};
        const TensorType* declared[] = {&type};
        const Status status = run_forced(
            line, KernelNode(NodeView(whole.node, *whole.op, types, data, declared), fusion), in, {&out, 1}, threads);
        ASSERT_TRUE(status.ok()) << line.name << ": " << status.message();
        const CaseTensor expected{true, type, *Constant::copy_of((*want)[0].bytes.data(), (*want)[0].bytes.size())};
        EXPECT_EQ(difference(expected, out, kFloat32), "") << line.name << " on " << whole.text() << "; case " << i;
        ++ran;
      }
      EXPECT_EQ(results[0], results[1]) << line.name << " with three threads on " << whole.text() << "; case " << i;
    }
  }
  EXPECT_GT(ran, 0);
}

}  // namespace
}  // namespace pinnace::testing
