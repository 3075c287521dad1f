// A run with sizes that were seen before allocates nothing, and a first run allocates what the plan says: counted by
// replacing operator new of the test program while a counter is on.
#include <gtest/gtest.h>

#include <map>

#include <pinnace/model.h>

#include "base/status.h"
#include "cases/run_case.h"
#include "cpp/counted_memory.h"
#include "graph/graph.h"

namespace pinnace {
namespace {

TEST(Allocation, ACachedShapeAllocatesNothingAndThePlanSaysWhatTheFirstRunTook) {
  if (!testing::kMemoryIsCounted) GTEST_SKIP() << "allocations are counted without sanitizers only";
  LoadOptions options;
  options.disabled_passes = {"all"};
  auto model = Model::parse(R"(graph "g" {
    symbol n 1..64
    input %x : f32[n,4,16,16]
    %a : f32[n,4,16,16] = relu(%x)
    %b : f32[n,4,16,16] = sigmoid(%a)
    %c : f32[n,4,16,16] = add(%b, %a)
    %y : f32[n,4,1,1] = global_average_pool(%c)
    output "y" %y
  })",
                            options);
  ASSERT_TRUE(model.ok()) << model.status().message();
  auto session = Session::create(*model->build(), {.threads = 1});
  ASSERT_TRUE(session.ok());
  std::vector<float> x(64 * 4 * 256, 1.0f);
  const auto input = [&](int64_t n) {
    Tensor t;
    t.type.shape = {n, 4, 16, 16};
    t.memory.host = x.data();
    t.memory.bytes = x.size() * sizeof(float);
    return t;
  };
  const std::vector small = {input(8)}, large = {input(64)};
  size_t largest = 0;
  Status first;
  {
    const testing::MemoryWatch watch;
    first = session->run(large);
    largest = watch.largest();
  }
  ASSERT_TRUE(first.ok()) << first.message();
  // The one large block is the session's memory; everything else is bookkeeping.
  EXPECT_EQ(static_cast<int64_t>(largest), (session->plan().peak_bytes + 63) / 64 * 64);
  // relu's and sigmoid's results are needed at once, add takes one of them over: two of the three, and the pooled
  // output.
  EXPECT_LT(session->plan().peak_bytes, 3 * 64 * 4 * 256 * 4);
  ASSERT_TRUE(session->run(small).ok());
  for (const auto& in : {large, small}) {
    Status status;
    size_t allocations = 0;
    {
      const testing::MemoryWatch watch;
      status = session->run(in);
      allocations = watch.allocations();
    }
    EXPECT_TRUE(status.ok());
    EXPECT_EQ(allocations, 0u);
  }
}

struct LaterRun {
  std::string kernel;  ///< what runs the case's node on the CPU; empty: the case does not run, or not on a kernel
  int64_t blocks = 0;  ///< taken by the third run
};

/// Reference code takes memory as it needs it, so do control flow and sizes that depend on the inputs' elements.
bool is_kernel(const Placement& placed) {
  return placed.backend == "cpu" && placed.kernel != "reference" && placed.kernel != "chosen when sizes are known";
}

LaterRun later_run(const testing::BuiltCase& built, int threads) {
  LoadOptions options;
  options.disabled_passes = {"all"};
  auto model = Model::parse(print(built.graph), options);
  if (!model.ok()) return {};
  const auto program = model->build();
  if (!program.ok()) return {};
  auto session = Session::create(*program, {.threads = threads});
  if (!session.ok()) return {};
  std::vector<Tensor> inputs;
  for (const testing::CaseTensor& t : built.inputs) {
    if (!t.present) continue;
    Tensor& tensor = inputs.emplace_back();
    tensor.type = t.type;
    tensor.memory.host = const_cast<std::byte*>(t.bytes->data());
    tensor.memory.bytes = t.bytes->bytes();
  }
  for (int warm = 0; warm < 2; ++warm) {
    if (!session->run(inputs).ok()) return {};
  }
  LaterRun later;
  {
    const testing::MemoryWatch watch;
    if (!session->run(inputs).ok()) return {};
    later.blocks = static_cast<int64_t>(watch.allocations());
  }
  for (const Placement& placed : session->placement()) {
    if (is_kernel(placed)) later.kernel = placed.kernel;
  }
  return later;
}

TEST(Allocation, NoKernelAllocatesInALaterRun) {
  if (!testing::kMemoryIsCounted) GTEST_SKIP() << "allocations are counted without sanitizers only";
  std::map<std::string, int> ran;
  std::map<std::string, int64_t> blocks;
  for (const testing::CaseList& list : testing::all_cases()) {
    for (size_t i = 0; i < list.cases.size(); ++i) {
      const auto built = testing::build_case(list.op, list.cases[i], testing::case_seed(list.op, i));
      if (!built.ok()) continue;
      for (const int threads : {1, 3}) {
        const LaterRun later = later_run(*built, threads);
        if (later.kernel.empty()) continue;
        ++ran[later.kernel];
        int64_t& most = blocks[str_cat(later.kernel, " on ", list.op)];
        most = std::max(most, later.blocks);
      }
    }
  }
  for (const auto& [kernel, most] : blocks) EXPECT_EQ(most, 0) << kernel;
  EXPECT_GT(ran.size(), 50u) << "kernels that some case runs";
}

}  // namespace
}  // namespace pinnace
