// The driver softmetal through the device interface: lists of several kernels, copies and time stamps; what it refuses;
// faults on demand; barriers that are missing between commands.
#include <gtest/gtest.h>

#include <cstdlib>
#include <cstring>

#include "backends/softmetal/hazards.h"
#include "cpp/runtime/on_device.h"

namespace pinnace {
namespace {

using gpu::BufferUse;
using gpu::Device;
using gpu::DeviceOptions;

class SoftmetalDevice : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!softmetal_test_kernels()) GTEST_SKIP() << "softmetal is not in this build, or not for this processor";
  }
  static std::unique_ptr<Device> open(const DeviceOptions& options = {}, const softmetal::Execution& execution = {}) {
    auto device = softmetal::open(options, execution, softmetal_test_kernels());
    EXPECT_TRUE(device.ok()) << device.status().message();
    return std::move(*device);
  }
};

TEST_F(SoftmetalDevice, RunsAListAgainAndAgain) {
  for (const SoftmetalOrder order : {kSoftmetalForward, kSoftmetalReverse, kSoftmetalShuffled}) {
    const auto device = open({}, {order, 3, 32, true});
    std::vector<OnDevice> work;
    for (const char* name : {"gemm_tiled", "softmax", "dot_i8"}) work.emplace_back(softmetal_cases(name)[0]);
    for (OnDevice& w : work) ASSERT_TRUE(w.prepare(*device).ok());
    auto list = std::move(*device->command_list(2));
    list->timestamp(0);
    for (OnDevice& w : work) list->dispatch(*w.kernel, w.bindings, w.c.push, w.c.groups);
    list->barrier();
    auto read_back = std::move(*device->buffer(work[0].buffers[3]->bytes(), BufferUse::kDownload));
    list->copy(*work[0].buffers[3], 0, *read_back, 0, read_back->bytes());
    list->timestamp(1);
    ASSERT_TRUE(list->finish().ok());
    for (int i = 0; i < 3; ++i) {
      for (OnDevice& w : work) memset(w.buffers.back()->host(), 0xff, w.buffers.back()->bytes());
      ASSERT_TRUE(device->submit(*list).ok());
      const Status done = device->wait(*list);
      ASSERT_TRUE(done.ok()) << done.message();
      for (OnDevice& w : work) EXPECT_EQ(w.answer(), "") << w.c.kernel;
      EXPECT_EQ(memcmp(read_back->host(), work[0].buffers[3]->host(), read_back->bytes()), 0);
      std::vector<uint64_t> ns;
      ASSERT_TRUE(list->timestamps(&ns).ok());
      ASSERT_EQ(ns.size(), 2u);
      EXPECT_LT(ns[0], ns[1]);
    }
    EXPECT_EQ(device->validation_messages(), 0u);
  }
}

TEST_F(SoftmetalDevice, BoundsAreThoseOfTheBindingNotOfTheBuffer) {
  const auto device = open();
  OnDevice work(softmetal_cases("transpose")[0]);
  ASSERT_TRUE(work.prepare(*device).ok());
  auto large = std::move(*device->buffer(work.buffers[0]->bytes() + 64, BufferUse::kUpload));
  work.bindings[0] = {large.get(), 32, work.buffers[0]->bytes() - 4};
  auto list = std::move(*device->command_list(0));
  list->dispatch(*work.kernel, work.bindings, work.c.push, work.c.groups);
  const Status status = run_list(*device, *list);
  EXPECT_EQ(status.code(), Code::kInvalidArgument);
  EXPECT_NE(status.message().find("buffer(0): element 658 is outside of 658"), std::string::npos) << status.message();
  EXPECT_NE(status.message().find("kernel 'transpose'"), std::string::npos) << status.message();
  EXPECT_EQ(device->validation_messages(), 1u);
  // The device goes on.
  OnDevice next(softmetal_cases("transpose")[0]);
  ASSERT_TRUE(next.prepare(*device).ok());
  auto again = std::move(*device->command_list(0));
  again->dispatch(*next.kernel, next.bindings, next.c.push, next.c.groups);
  ASSERT_TRUE(run_list(*device, *again).ok());
  EXPECT_EQ(next.answer(), "");
}

TEST_F(SoftmetalDevice, MissingBarriersBetweenCommandsAreReported) {
  const auto device = open();
  OnDevice first(softmetal_cases("transpose")[1]), second(softmetal_cases("transpose")[1]);
  ASSERT_TRUE(first.prepare(*device).ok() && second.prepare(*device).ok());
  second.bindings[0] = first.bindings[1];  // reads what the first writes
  for (const bool barrier : {false, true}) {
    auto list = std::move(*device->command_list(0));
    list->dispatch(*first.kernel, first.bindings, first.c.push, first.c.groups);
    if (barrier) list->barrier();
    list->dispatch(*second.kernel, second.bindings, second.c.push, second.c.groups);
    const Status status = list->finish();
    EXPECT_EQ(status.ok(), barrier);
    if (!barrier) {
      EXPECT_NE(status.message().find("commands 0 and 1 touch the same bytes"), std::string::npos) << status.message();
      EXPECT_EQ(device->submit(*list).code(), Code::kInvalidArgument);
    }
  }
  EXPECT_EQ(device->validation_messages(), 1u);
}

TEST(SoftmetalHazards, AreOverlapsWithAWriteAndNoBarrier) {
  const int a = 0, b = 0;
  const softmetal::Touch read{&a, 0, 8, false}, write{&a, 4, 12, true}, behind{&a, 8, 12, true}, other{&b, 0, 8, true};
  EXPECT_EQ(softmetal::find_hazard({{read}, {read}}), "");
  EXPECT_EQ(softmetal::find_hazard({{read}, {behind}, {other}}), "");
  EXPECT_EQ(softmetal::find_hazard({{read}, {}, {write}}), "");
  EXPECT_NE(softmetal::find_hazard({{read}, {write}}), "");
  EXPECT_NE(softmetal::find_hazard({{write}, {other}, {write}}), "");
  EXPECT_NE(softmetal::find_hazard({{}, {write}, {other}, {read}}), "");
}

TEST_F(SoftmetalDevice, RefusesWhatBreaksTheInterface) {
  const auto device = open();
  OnDevice work(softmetal_cases("transpose")[0]);
  ASSERT_TRUE(work.prepare(*device).ok());
  const auto refused = [&](auto&& record) {
    auto list = std::move(*device->command_list(1));
    record(*list);
    return list->finish().message();
  };
  EXPECT_NE(refused([&](gpu::CommandList& l) {
              auto bindings = work.bindings;
              bindings[0].offset = 8;
              bindings[0].bytes -= 8;
              l.dispatch(*work.kernel, bindings, work.c.push, work.c.groups);
            }).find("offsets are multiples of 16"),
            std::string::npos);
  EXPECT_NE(refused([&](gpu::CommandList& l) {
              auto bindings = work.bindings;
              bindings[0].bytes += 4;
              l.dispatch(*work.kernel, bindings, work.c.push, work.c.groups);
            }).find("of a buffer of"),
            std::string::npos);
  EXPECT_NE(refused([&](gpu::CommandList& l) {
              l.dispatch(*work.kernel, {}, work.c.push, work.c.groups);
            }).find("0 bindings and 8 bytes"),
            std::string::npos);
  EXPECT_NE(refused([&](gpu::CommandList& l) {
              l.dispatch(*work.kernel, work.bindings, work.c.push, {0, 1, 1});
            }).find("0 groups on axis 0"),
            std::string::npos);
  EXPECT_NE(refused([](gpu::CommandList& l) { l.timestamp(1); }).find("time stamp 1 of 1"), std::string::npos);
  EXPECT_EQ(device->buffer(0, BufferUse::kDevice).status().code(), Code::kInvalidArgument);
  EXPECT_EQ(device->kernel(work.code, std::vector<int32_t>{1}).status().code(), Code::kInvalidArgument);
  gpu::KernelCode unknown = work.code;
  unknown.name = "zzz";
  EXPECT_EQ(device->kernel(unknown, {}).status().code(), Code::kUnsupported);
}

TEST_F(SoftmetalDevice, BehavesLikeALesserDevice) {
  DeviceOptions options;
  options.force_staging = options.no_f16 = options.unknown_subgroup = true;
  options.offset_alignment = 256;
  options.shared_bytes = 1024;
  options.max_invocations = 128;
  options.max_groups = 2;
  const auto device = open(options);
  EXPECT_EQ(device->caps().subgroup_size, 0u);
  EXPECT_EQ(device->caps().offset_alignment, 256u);
  EXPECT_EQ((*device->buffer(4, BufferUse::kDevice))->host(), nullptr);
  EXPECT_NE((*device->buffer(4, BufferUse::kUpload))->host(), nullptr);
  for (const char* name : {"gemm_f16", "gemm_tiled", "softmax"}) {
    OnDevice work(softmetal_cases(name)[0]);
    EXPECT_EQ(work.prepare(*device).code(), Code::kUnsupported) << name;
  }
}

TEST_F(SoftmetalDevice, FaultsOnDemand) {
  DeviceOptions options;
  options.fail_buffer = 2;
  auto device = open(options);
  EXPECT_TRUE(device->buffer(64, BufferUse::kDevice).ok());
  EXPECT_EQ(device->buffer(64, BufferUse::kDevice).status().code(), Code::kOutOfMemory);
  EXPECT_TRUE(device->buffer(64, BufferUse::kDevice).ok());
  options = {};
  options.fail_submit = 2;
  device = open(options);
  OnDevice work(softmetal_cases("transpose")[1]);
  ASSERT_TRUE(work.prepare(*device).ok());
  auto list = std::move(*device->command_list(0));
  list->dispatch(*work.kernel, work.bindings, work.c.push, work.c.groups);
  ASSERT_TRUE(run_list(*device, *list).ok());
  EXPECT_EQ(device->submit(*list).code(), Code::kDeviceLost);
  EXPECT_EQ(device->wait(*list).code(), Code::kDeviceLost);
  EXPECT_EQ(device->buffer(64, BufferUse::kDevice).status().code(), Code::kDeviceLost);
  EXPECT_EQ(device->kernel(work.code, {}).status().code(), Code::kDeviceLost);
}

TEST(SoftmetalExecution, IsReadFromText) {
  const auto all = softmetal::parse_execution("order=shuffled  seed=7 width=64 races=0");
  ASSERT_TRUE(all.ok());
  EXPECT_EQ(all->order, kSoftmetalShuffled);
  EXPECT_EQ(all->seed, 7u);
  EXPECT_EQ(all->simd_width, 64u);
  EXPECT_FALSE(all->races);
  EXPECT_EQ(softmetal::parse_execution("")->simd_width, 32u);
  for (const char* wrong : {"order=backward", "width=7", "seed=", "seed=1x", "races=2", "speed=9", "order"}) {
    const auto refused = softmetal::parse_execution(wrong);
    EXPECT_EQ(refused.status().code(), Code::kInvalidArgument) << wrong;
    EXPECT_NE(refused.status().message().find(str_cat("'", wrong, "'")), std::string::npos);
  }
}

}  // namespace
}  // namespace pinnace
