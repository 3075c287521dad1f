// The Metal driver, in Objective-C++, run against a pretend device whose kernels softmetal executes; and type-checked
// as on a Mac. It has not run on Apple's hardware.
#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <iterator>

#include "backends/metal/device.h"
#include "cpp/runtime/on_device.h"

#if defined(PINNACE_PRETEND_METAL)
#include "fakes/metal/pretend_device.h"

namespace pinnace {
namespace {

using gpu::BufferUse;
using gpu::Device;
using gpu::DeviceOptions;
using testing::pretend_metal;

std::string text_of(const std::string& kernel) {
  std::ifstream in(std::string(PINNACE_TEST_DATA "/../softmetal/") + kernel + ".metal");
  return {std::istreambuf_iterator<char>(in), {}};
}

class MetalDriver : public ::testing::Test {
 protected:
  void SetUp() override {
    pretend_metal() = {};
    pretend_metal().kernels = softmetal_test_kernels();
    if (!softmetal_test_kernels()) GTEST_SKIP() << "softmetal is not for this processor";
  }
  void TearDown() override { EXPECT_STREQ(testing::pretend_metal_misuse(), ""); }
  static std::unique_ptr<Device> open(const DeviceOptions& options = {}) {
    auto device = metal::open_device(0, options);
    EXPECT_TRUE(device.ok()) << device.status().message();
    return std::move(*device);
  }
};

TEST_F(MetalDriver, RunsKernelsInAnyOrder) {
  for (const SoftmetalOrder order : {kSoftmetalForward, kSoftmetalReverse, kSoftmetalShuffled}) {
    pretend_metal().order = order;
    const auto device = open();
    for (const std::string& name : softmetal_kernel_names()) {
      if (name == "scan")
        continue;  // its threadgroup memory is sized by the host, which the device interface does not do
      const std::string text = text_of(name);
      for (const SoftmetalCase& c : softmetal_cases(name)) {
        OnDevice work(c);
        work.msl = text;
        ASSERT_TRUE(work.prepare(*device).ok()) << name;
        auto list = std::move(*device->command_list(0));
        list->dispatch(*work.kernel, work.bindings, work.c.push, work.c.groups);
        const Status status = run_list(*device, *list);
        ASSERT_TRUE(status.ok()) << status.message();
        EXPECT_EQ(work.answer(), "") << name;
      }
    }
  }
}

// Two transpositions, the second of what the first wrote, then a copy; submitted twice.
TEST_F(MetalDriver, BarriersCopiesAndTimeStampsHaveTheirPlaces) {
  const std::string text = text_of("transpose");
  for (const bool unified : {true, false}) {
    for (const SoftmetalOrder order : {kSoftmetalForward, kSoftmetalReverse}) {
      pretend_metal().order = order;
      pretend_metal().unified_memory = unified;
      const auto device = open();
      EXPECT_EQ(device->caps().unified_memory, unified);
      OnDevice first(softmetal_cases("transpose")[1]), second(softmetal_cases("transpose")[1]);
      first.msl = second.msl = text;
      ASSERT_TRUE(first.prepare(*device).ok() && second.prepare(*device).ok());
      auto between = std::move(*device->buffer(first.buffers[0]->bytes(), BufferUse::kDevice));
      EXPECT_EQ(between->host() != nullptr, unified);
      first.bindings[1].buffer = second.bindings[0].buffer = between.get();
      auto out = std::move(*device->buffer(between->bytes(), BufferUse::kDownload));
      auto list = std::move(*device->command_list(2));
      list->dispatch(*first.kernel, first.bindings, first.c.push, first.c.groups);
      list->timestamp(0);
      list->barrier();
      list->dispatch(*second.kernel, second.bindings, second.c.push, second.c.groups);
      list->barrier();
      list->copy(*second.buffers[1], 0, *out, 0, out->bytes());
      list->timestamp(1);
      ASSERT_TRUE(list->finish().ok());
      for (int i = 0; i < 2; ++i) {
        memset(out->host(), 0, out->bytes());
        ASSERT_TRUE(device->submit(*list).ok());
        EXPECT_EQ(device->submit(*list).code(), Code::kInvalidArgument);
        const Status status = device->wait(*list);
        ASSERT_TRUE(status.ok()) << status.message();
        EXPECT_EQ(memcmp(out->host(), first.buffers[0]->host(), out->bytes()), 0);
        std::vector<uint64_t> ns;
        ASSERT_TRUE(list->timestamps(&ns).ok());
        EXPECT_LT(ns[0], ns[1]);
      }
    }
  }
}

// The same without a time stamp, which ends a command buffer, so that only the barrier orders the two.
TEST_F(MetalDriver, ABarrierThatIsLeftOutShows) {
  pretend_metal().order = kSoftmetalReverse;
  const auto device = open();
  for (const bool barrier : {true, false}) {
    OnDevice first(softmetal_cases("transpose")[1]), second(softmetal_cases("transpose")[1]);
    first.msl = second.msl = text_of("transpose");
    ASSERT_TRUE(first.prepare(*device).ok() && second.prepare(*device).ok());
    second.bindings[0] = first.bindings[1];
    auto list = std::move(*device->command_list(0));
    list->dispatch(*first.kernel, first.bindings, first.c.push, first.c.groups);
    if (barrier) list->barrier();
    list->dispatch(*second.kernel, second.bindings, second.c.push, second.c.groups);
    ASSERT_TRUE(run_list(*device, *list).ok());
    EXPECT_EQ(memcmp(second.buffers[1]->host(), first.buffers[0]->host(), 512) == 0, barrier);
  }
}

TEST_F(MetalDriver, FailuresHaveTheirCodes) {
  OnDevice work(softmetal_cases("transpose")[1]);
  const std::string text = text_of("transpose"), none = "no source at all";
  work.msl = none;
  auto device = open();
  EXPECT_EQ(work.prepare(*device).code(), Code::kUnsupported);
  work.msl = text_of("softmax");
  EXPECT_NE(work.prepare(*device).message().find("no function transpose"), std::string::npos);
  const struct {
    long error;
    Code code;
  } kinds[] = {{2, Code::kDeviceLost}, {3, Code::kDeviceLost}, {8, Code::kOutOfMemory}, {11, Code::kDeviceLost}};
  for (const auto& kind : kinds) {
    device = open();
    OnDevice fails(softmetal_cases("transpose")[1]);
    fails.msl = text;
    ASSERT_TRUE(fails.prepare(*device).ok());
    pretend_metal().failing_command_buffer = 1;
    pretend_metal().failure_code = kind.error;
    auto list = std::move(*device->command_list(0));
    list->dispatch(*fails.kernel, fails.bindings, fails.c.push, fails.c.groups);
    EXPECT_EQ(run_list(*device, *list).code(), kind.code) << kind.error;
    pretend_metal().failing_command_buffer = 0;
    EXPECT_EQ(device->buffer(16, BufferUse::kDevice).ok(), kind.code != Code::kDeviceLost);
  }
  DeviceOptions options;
  options.fail_buffer = 1;
  EXPECT_EQ(open(options)->buffer(16, BufferUse::kDevice).status().code(), Code::kOutOfMemory);
  options = {};
  options.fail_submit = 1;
  device = open(options);
  auto list = std::move(*device->command_list(0));
  EXPECT_EQ(run_list(*device, *list).code(), Code::kDeviceLost);
  pretend_metal().kernels = nullptr;
  EXPECT_NE(metal::unavailable(0), "");
  EXPECT_EQ(metal::open_device(0, {}).status().code(), Code::kUnsupported);
}

}  // namespace
}  // namespace pinnace

#else
TEST(MetalDriver, RunsAgainstAPretendDevice) {
  GTEST_SKIP() << "no Objective-C++ compiler (gobjc++) or no softmetal in this build";
}
#endif

/// The leak checker asks for it: the Objective-C runtime keeps its tables, and GCC's frees no object.
extern "C" __attribute__((visibility("default"))) const char*
__lsan_default_suppressions();  // NOLINT(bugprone-reserved-identifier): the checker's name
extern "C" const char* __lsan_default_suppressions() {
  return "leak:objc_malloc\nleak:objc_calloc\nleak:Pretend\nleak:metal/device.mm\n";
}
