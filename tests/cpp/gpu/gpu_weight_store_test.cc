// What the weight store keeps on the device: constants of the model for the program's life, tables that depend on sizes
// no longer than the executables that use them.
#include <gtest/gtest.h>

#include <deque>

#include "backends/gpu/weight_store.h"
#include "cpp/gpu/gpu_session.h"
#include "graph/graph.h"
#include "ops/type_inference.h"

namespace pinnace::testing {
namespace {

/// A convolution with constant weights, between tables of a pad and of a resize, and a sum with the sizes of the input.
std::string text_of(int64_t rows) {
  return str_cat("graph \"g\" { input %x : f32[1,2,", rows, R"(,4] const %w : f32[3,2,1,1] = {1,2,3,4,5,6}
    const %pads : i64[8] = {0,0,1,0,0,0,1,0} const %scales : f32[4] = {1,1,2,1}
    %p = pad (%x, %pads, none) {mode="reflect"} %c = conv (%p, %w) %r = resize (%c, none, %scales, none) {mode="linear"}
    %s = shape (%x) %f = cast (%s) {to="f32"} %y = add (%r, %f) output "y" %y })");
}

class GpuWeightStore : public ::testing::TestWithParam<const gpu::Driver*> {
 protected:
  void SetUp() override {
    if (const std::string reason = no_device(*GetParam()); !reason.empty()) GTEST_SKIP() << reason;
  }

  /// The executable for so many rows, and its answer.
  Result<std::unique_ptr<Executable>> compile(int64_t rows, std::vector<float>& y) {
    PINNACE_ASSIGN(const Graph graph, parse(text_of(rows)));
    PINNACE_ASSIGN(const TypeInference types, infer_types(graph, {}, std::vector<ConstantPtr>(1), ops_));
    std::vector<int32_t> nodes;
    for (size_t i = 0; i < graph.nodes.size(); ++i) {
      if (!types.computed[i]) nodes.push_back(static_cast<int32_t>(i));
    }
    const Backend& backend = backend_of(*GetParam());
    const Segment segment{graph, types, nodes, graph.inputs, graph.outputs, ops_, packed_, ""};
    PINNACE_ASSIGN(auto executable, backend.compile(segment, {std::string(backend.name()), "", "fp32"}));
    const TensorType &from = types.types[static_cast<size_t>(graph.inputs[0])],
                     &to = types.types[static_cast<size_t>(graph.outputs[0])];
    std::vector<float> x(static_cast<size_t>(from.elements()));
    for (size_t i = 0; i < x.size(); ++i) x[i] = static_cast<float>(i % 17) - 8;
    y.resize(static_cast<size_t>(to.elements()));
    const TensorView in{&from, reinterpret_cast<std::byte*>(x.data())},
        out{&to, reinterpret_cast<std::byte*>(y.data())};
    PINNACE_TRY(executable->run(RunContext(), {&in, 1}, {&out, 1}));
    return executable;
  }
  gpu::WeightStore::Held held() {
    const auto store = gpu::WeightStore::of(packed_, backend_of(*GetParam()).name());
    EXPECT_TRUE(store.ok()) << store.status().message();
    const auto all = (*store)->held();
    EXPECT_TRUE(all.ok()) << all.status().message();
    return *all;
  }

  const OpTable ops_;
  PackedConstants packed_;
};
INSTANTIATE_TEST_SUITE_P(Drivers, GpuWeightStore, ::testing::ValuesIn(gpu_drivers()), driver_name);

TEST_P(GpuWeightStore, TablesOfSizesGoWithTheirExecutables) {
  std::vector<float> first, again, other;
  auto one = compile(1000, first);
  ASSERT_TRUE(one.ok()) << one.status().message();
  const gpu::WeightStore::Held before = held();
  EXPECT_GT(before.constants, 0u);
  ASSERT_GE(before.tables, 3u) << "a pad, a resize and the sizes have one each";
  {
    auto same = compile(1000, again);
    ASSERT_TRUE(same.ok()) << same.status().message();
    EXPECT_EQ(held().tables, before.tables) << "executables of the same sizes share theirs";
    one->reset();
    EXPECT_EQ(held().tables, before.tables) << "the second one still uses them";
  }
  EXPECT_EQ(held().tables, 0u);
  std::deque<std::unique_ptr<Executable>> last;
  for (int64_t rows = 1001; rows < 1033; ++rows) {
    auto made = compile(rows, other);
    ASSERT_TRUE(made.ok()) << made.status().message();
    last.push_back(std::move(*made));
    if (last.size() > 4) last.pop_front();
    const gpu::WeightStore::Held now = held();
    EXPECT_EQ(now.constants, before.constants);
    EXPECT_EQ(now.constant_bytes, before.constant_bytes);
    EXPECT_LE(now.tables, 4 * before.tables);
    EXPECT_LE(now.table_bytes, 5 * before.table_bytes);
  }
  last.clear();
  EXPECT_EQ(held().table_bytes, 0u);
  ASSERT_TRUE(compile(1000, again).ok());
  EXPECT_EQ(again, first) << "made anew they are what they were";
}

}  // namespace
}  // namespace pinnace::testing
