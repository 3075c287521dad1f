// A run with sizes that were seen before allocates nothing, and a first run allocates what the plan says: counted by
// replacing operator new of the test program while a counter is on.
#include <gtest/gtest.h>

#include <pinnace/model.h>

#include "cpp/counted_memory.h"

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

}  // namespace
}  // namespace pinnace
