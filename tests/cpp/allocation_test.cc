// A run with sizes that were seen before allocates nothing, and a first run allocates what the plan says: counted by
// replacing operator new of the test program while a counter is on.
#include <gtest/gtest.h>

#include <atomic>
#include <cstdlib>
#include <new>

#include <pinnace/model.h>

namespace {
std::atomic<bool> counting{false};
std::atomic<size_t> allocations{0}, largest{0};

void* counted(size_t bytes, size_t alignment) {
  if (counting.load(std::memory_order_relaxed)) {
    ++allocations;
    if (bytes > largest) largest = bytes;
  }
  return alignment ? std::aligned_alloc(alignment, (bytes + alignment - 1) / alignment * alignment)
                   : std::malloc(bytes ? bytes : 1);
}
}  // namespace

// A sanitizer has operators of its own, which check more than these count.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr bool kCounted = false;
#else
constexpr bool kCounted = true;
void* operator new(size_t bytes) {
  return counted(bytes, 0);
}
void* operator new[](size_t bytes) {
  return counted(bytes, 0);
}
void* operator new[](size_t bytes, std::align_val_t alignment, const std::nothrow_t&) noexcept {
  return counted(bytes, static_cast<size_t>(alignment));
}
void operator delete(void* p) noexcept {
  std::free(p);
}
void operator delete[](void* p) noexcept {
  std::free(p);
}
void operator delete(void* p, size_t) noexcept {
  std::free(p);
}
void operator delete[](void* p, size_t) noexcept {
  std::free(p);
}
void operator delete[](void* p, std::align_val_t) noexcept {
  std::free(p);
}
#endif

namespace pinnace {
namespace {

TEST(Allocation, ACachedShapeAllocatesNothingAndThePlanSaysWhatTheFirstRunTook) {
  if (!kCounted) GTEST_SKIP() << "allocations are counted without sanitizers only";
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
  largest = 0;
  counting = true;
  const Status first = session->run(large);
  counting = false;
  ASSERT_TRUE(first.ok()) << first.message();
  // The one large block is the session's memory; everything else is bookkeeping.
  EXPECT_EQ(static_cast<int64_t>(largest.load()), (session->plan().peak_bytes + 63) / 64 * 64);
  // relu's and sigmoid's results are needed at once, add takes one of them over: two of the three, and the pooled
  // output.
  EXPECT_LT(session->plan().peak_bytes, 3 * 64 * 4 * 256 * 4);
  ASSERT_TRUE(session->run(small).ok());
  for (const auto& in : {large, small}) {
    allocations = 0;
    counting = true;
    const Status status = session->run(in);
    counting = false;
    EXPECT_TRUE(status.ok());
    EXPECT_EQ(allocations.load(), 0u);
  }
}

}  // namespace
}  // namespace pinnace
