// What "auto" sends to a GPU: parts of a graph whose work pays for the copies, by rule V-22; by name all goes there.
#include <gtest/gtest.h>

#include "backends/packed_constants.h"
#include "compile/plan.h"
#include "compile/targets.h"
#include "cpp/gpu/gpu_session.h"
#include "ops/type_inference.h"

namespace pinnace::testing {
namespace {

class GpuAuto : public ::testing::TestWithParam<const gpu::Driver*> {
 protected:
  void SetUp() override {
    if (const std::string reason = no_device(*GetParam()); !reason.empty()) GTEST_SKIP() << reason;
  }
  /// Node by node "op back end", and the reasons.
  struct Placed {
    std::string where, why;
  };
  Placed place(const std::string& text, bool automatic, bool fallback = true) const {
    Graph graph = std::move(*parse("graph \"g\" {\n" + text + "}"));
    EXPECT_TRUE(update_types(graph).ok());
    const TargetSpec spec{GetParam()->name, "", "fp32", automatic};
    const auto found = find_target(GetParam()->name);
    EXPECT_TRUE(found.ok());
    const std::vector<TargetChoice> targets = {{found->backend, spec}, {&cpu_backend(), {"cpu", "", "fp32"}}};
    const std::vector<TensorType> types = sized_inputs(graph, 1);
    const OpTable ops;
    PackedConstants packed;
    const auto plan = make_plan({graph, types, targets, fallback, graph.outputs, ops, packed, ""});
    EXPECT_TRUE(plan.ok()) << plan.status().message();
    Placed placed;
    for (size_t i = 0; plan.ok() && i < plan->placement.size(); ++i) {
      const Placement& row = plan->placement[i];
      placed.where += str_cat(i ? ", " : "", row.op, " ", row.backend == "cpu" ? "cpu" : "gpu");
      for (const std::string& why : row.why) placed.why += why + "\n";
    }
    return placed;
  }
};

TEST_P(GpuAuto, PartsThatDoNotPayStayOnTheCpu) {
  const std::string text = R"(
    input %x : f32[4,32,64,64]
    const %axis : i64[] = {1}
    %r = relu (%x)
    %p = cum_prod (%r, %axis)
    %e = exp (%p)
    %y = exp (%e)
    output "y" %y
  )";
  const auto by_name = place(text, false);
  EXPECT_EQ(by_name.where, "relu gpu, cum_prod cpu, exp gpu, exp gpu") << by_name.why;
  EXPECT_EQ(by_name.why.find("V-22"), std::string::npos) << by_name.why;
  const auto automatic = place(text, true);
  EXPECT_EQ(automatic.where, "relu cpu, cum_prod cpu, exp cpu, exp cpu") << automatic.why;
  EXPECT_NE(automatic.why.find("its work does not pay for the copies, is "), std::string::npos) << automatic.why;
  EXPECT_NE(automatic.why.find(" multiply-adds for 4194304 bytes (rule V-22)"), std::string::npos) << automatic.why;
}

TEST_P(GpuAuto, WorkThatPaysGoesThere) {
  const std::string text = R"(
    input %x : f32[1,64,32,32]
    const %w : f32[64,64,3,3] = )" +
                           [] {
                             std::string all = "{";
                             for (int i = 0; i < 64 * 64 * 9; ++i) all += i ? ",0.01" : "0.01";
                             return all + "}";
                           }() +
                           R"(
    const %axis : i64[] = {1}
    %c = conv (%x, %w) {pads=[1,1,1,1]}
    %r = relu (%c)
    %d = conv (%r, %w) {pads=[1,1,1,1]}
    %g = global_average_pool (%d)
    %p = cum_prod (%g, %axis)
    output "y" %p
  )";
  EXPECT_EQ(place(text, true).where, "conv gpu, relu gpu, conv gpu, global_average_pool gpu, cum_prod cpu");
}

TEST_P(GpuAuto, AGraphThatGoesThereAsAWholeIsNotCut) {
  const std::string text = "  input %x : f32[7]\n  %y = exp (%x)\n  output \"y\" %y\n";
  EXPECT_EQ(place(text, true).where, "exp gpu");
  EXPECT_EQ(place(text, true, false).where, "exp gpu");
}

INSTANTIATE_TEST_SUITE_P(Gpu, GpuAuto, ::testing::ValuesIn(gpu_drivers()), driver_name);

}  // namespace
}  // namespace pinnace::testing
