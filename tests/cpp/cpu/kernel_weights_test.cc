// Products by stored integers on seeded random nodes, on every instruction set that this processor has: what
// dequantize_linear, a transpose and the product give one after the other, within float32's bound. A slice in every
// run, 1,000 cases with PINNACE_TEST_ALL=1.
#include "cpp/cpu/kernel_line.h"
#include "cpp/cpu/quantized_contract.h"

namespace pinnace::testing {
namespace {

/// A product and its weights, before they are put together.
struct Stored {
  Call weights{"dequantize_linear"};
  Call product;
  bool turned = false;  ///< a transpose stands between them
};

std::vector<float> normals(Random& random, int64_t count) {
  std::vector<float> all;
  for (int64_t i = 0; i < count; ++i) all.push_back(static_cast<float>(random.normal()));
  return all;
}

Stored random_product(Random& random) {
  const auto upto = [&](int64_t low, int64_t high) { return random.integer(low, high); };
  const auto one_of = [&](std::initializer_list<int64_t> list) {
    return *(list.begin() + upto(0, static_cast<int64_t>(list.size()) - 1));
  };
  const bool gemm = upto(0, 1);
  Stored s{.product = Call(gemm ? "gemm" : "mat_mul")};
  const int64_t M = one_of({1, 2, 5, 14, 15, 40}), N = one_of({1, 3, 8, 16, 24, 31, 32, 33, 65});
  const int64_t K = one_of({1, 7, 8, 9, 64, 119, 120, 121, 250, 256});
  s.turned = upto(0, 1);
  const bool gemm_turned = gemm && upto(0, 1), by_column = s.turned != gemm_turned;
  const Shape shape = by_column ? Shape{N, K} : Shape{K, N};
  const int64_t k_axis = by_column ? 1 : 0;

  const DType dtype = std::array{DType::kI8, DType::kU8, DType::kI4, DType::kU4}[static_cast<size_t>(upto(0, 3))];
  const int64_t kind = upto(0, 2), block = kind == 2 ? one_of({8, 16, 32, 128, 256}) : 0;
  Shape scales;
  if (kind == 1) scales = {N};
  if (kind == 2) {
    scales = shape;
    scales[static_cast<size_t>(k_axis)] = (K + block - 1) / block;
  }
  int64_t count = 1;
  for (const Dim& d : scales) count *= d.size;
  const auto bytes = [&](int64_t n) { return random_bytes(random, (n * dtype_bits(dtype) + 7) / 8); };
  s.weights.input(dtype, shape, bytes(N * K));
  std::vector<float> numbers;
  for (int64_t i = 0; i < count; ++i) numbers.push_back(0.001f * static_cast<float>(upto(1, 30)));
  s.weights.input(DType::kF32, scales, numbers);
  if (upto(0, 1)) s.weights.input(dtype, scales, bytes(count));
  if (kind > 0) s.weights.attr("axis", kind == 2 ? k_axis : 1 - k_axis);
  if (kind == 2) s.weights.attr("block_size", block);

  const Shape a = !gemm && upto(0, 1) ? Shape{2, M, K} : Shape{M, K};
  s.product.input(DType::kF32, a, normals(random, (a.size() == 3 ? 2 : 1) * M * K));
  if (gemm_turned) s.product.attr("trans_b", int64_t{1});
  if (upto(0, 2) == 0) s.product.attr("activation", std::string("relu"));
  return s;
}

/// The weights as the product would read them.
Result<ReferenceOutput> floats_of(const Stored& s) {
  PINNACE_ASSIGN(auto made, s.weights.run(s.weights.op->reference));
  if (!s.turned) return std::move(made[0]);
  const auto* raw = reinterpret_cast<const float*>(made[0].bytes.data());
  Call transpose("transpose");
  transpose.input(DType::kF32, made[0].type.shape, std::vector<float>(raw, raw + made[0].bytes.size() / sizeof(float)));
  transpose.attr("perm", std::vector<int64_t>{1, 0});
  PINNACE_ASSIGN(auto turned, transpose.run(transpose.op->reference));
  return std::move(turned[0]);
}

/// By one line, as lower.cc puts the nodes together.
Result<Buffer> by_line(const CpuKernelLine& line, const Stored& s, const std::vector<float>& bias, const TensorType& y,
                       int threads) {
  const auto view = [](const TensorType& type, const auto& bytes) {
    return TensorView{
        &type, reinterpret_cast<std::byte*>(const_cast<std::byte*>(reinterpret_cast<const std::byte*>(bytes.data())))};
  };
  const auto weights = [&](size_t i) { return FusedView{view(s.weights.types[i], s.weights.bytes[i]), {}}; };
  const Attr *axis = s.weights.node.attr("axis"), *block = s.weights.node.attr("block_size");
  Fusion fusion;
  fusion.weights = IntegerWeightsOf<FusedView>{.integers = weights(0),
                                               .scales = weights(1),
                                               .zero_points = {},
                                               .axis = axis ? std::get<int64_t>(*axis) : 1,
                                               .block_size = block ? std::get<int64_t>(*block) : 0,
                                               .transposed = s.turned};
  if (s.weights.types.size() > 2) fusion.weights->zero_points = weights(2);
  const TensorType row{DType::kF32, {static_cast<int64_t>(bias.size())}, nullptr};
  Node node = s.product.node;
  node.inputs = {0, kNoValue, bias.empty() ? kNoValue : 2};
  const std::vector<TensorView> in{view(s.product.types[0], s.product.bytes[0]), TensorView{},
                                   bias.empty() ? TensorView{} : view(row, bias)};
  const std::vector<const TensorType*> types{in[0].type, nullptr, in[2].type};
  const std::vector<const void*> data{nullptr, nullptr, in[2].bytes};
  PINNACE_ASSIGN(Buffer result, Buffer::allocate(static_cast<size_t>(y.bytes()), "a result"));
  const TensorView out{&y, result.data()};
  const TensorType* declared[] = {&y};
  const KernelNode product(NodeView(node, *s.product.op, types, data, declared), fusion);
  PINNACE_TRY(run_forced(line, product, in, {&out, 1}, threads));
  return result;
}

TEST(KernelWeights, Products) {
  Random random(test_seed());
  int ran = 0;
  for (size_t i = 0; i < 1000; ++i) {
    if (!in_slice(i, 10)) continue;
    Stored s = random_product(random);
    const auto floats = floats_of(s);
    ASSERT_TRUE(floats.ok()) << floats.status().message();
    const bool by_column = s.product.node.attr("trans_b") != nullptr;
    const int64_t N = floats->type.shape[by_column ? 0 : 1].size;
    const std::vector<float> bias = random.integer(0, 1) ? normals(random, N) : std::vector<float>{};
    Call whole = s.product;
    const auto* raw = reinterpret_cast<const float*>(floats->bytes.data());
    whole.input(DType::kF32, floats->type.shape, std::vector<float>(raw, raw + floats->bytes.size() / sizeof(float)));
    if (!bias.empty()) whole.input(DType::kF32, {N}, bias);
    // Terms are up to 4 (weights of 128 steps of 0.03) and may cancel: half a unit of each one's last place.
    const auto terms = static_cast<float>(whole.types[0].shape.back().size);
    const Tolerance tolerance{.abs = terms * 4 * 0x1p-24f, .rel = 0};
    const auto want = whole.run(whole.op->reference);
    ASSERT_TRUE(want.ok()) << want.status().message();
    for (const CpuKernelLine& line : cpu_kernels()) {
      if (!(line.kernel->fuses & kFusesIntegerWeights) || line.op != s.product.op->name || !line_runs(line)) {
        continue;
      }
      auto got = by_line(line, s, bias, (*want)[0].type, static_cast<int>(random.integer(1, 3)));
      ASSERT_TRUE(got.ok()) << line.name << ": " << got.status().message();
      std::vector<ReferenceOutput> outputs;
      outputs.push_back({(*want)[0].type, std::move(*got)});
      EXPECT_EQ(differs(line, outputs, *want, tolerance), "")
          << line.name << " " << s.weights.text() << ", " << s.product.text() << "; seed " << test_seed();
      ++ran;
    }
  }
  EXPECT_GT(ran, 0);
}

}  // namespace
}  // namespace pinnace::testing
