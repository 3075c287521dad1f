// Deadlines of libneuralnetworks.so: what is late does not run, and what runs too long is cancelled.
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <unistd.h>

#include <chrono>
#include <thread>

#include "cpp/child_process.h"
#include "cpp/nnapi/nnapi_client.h"

namespace {

using namespace nnapi_client;
using Clock = std::chrono::steady_clock;
constexpr int kOk = 0, kBadState = 6, kMissed = ANEURALNETWORKS_MISSED_DEADLINE_TRANSIENT;
constexpr uint64_t kMillisecond = 1'000'000, kHour = 3'600'000 * kMillisecond;

/// A compilation for the one device, which deadlines need.
struct ForDevice {
  ANeuralNetworksCompilation* compilation = nullptr;
  explicit ForDevice(const Builder& b, uint64_t timeout = 0, int expected = kOk) {
    ANeuralNetworksDevice* device = nullptr;
    EXPECT_EQ(ANeuralNetworks_getDevice(0, &device), kOk);
    EXPECT_EQ(ANeuralNetworksCompilation_createForDevices(b.model, &device, 1, &compilation), kOk);
    EXPECT_EQ(ANeuralNetworksCompilation_setTimeout(compilation, timeout), kOk);
    EXPECT_EQ(ANeuralNetworksCompilation_finish(compilation), expected);
  }
  ~ForDevice() { ANeuralNetworksCompilation_free(compilation); }
};

/// An AddModel's execution with everything bound.
struct Ready {
  AddModel model;
  ForDevice compiled{model};
  ANeuralNetworksExecution* execution = nullptr;
  std::vector<float> x = {1, 2, 3, 4}, y = {1, 1}, z = std::vector<float>(4, -1);
  explicit Ready(uint64_t timeout) {
    EXPECT_EQ(ANeuralNetworksExecution_create(compiled.compilation, &execution), kOk);
    EXPECT_EQ(ANeuralNetworksExecution_setTimeout(execution, timeout), kOk);
    EXPECT_EQ(ANeuralNetworksExecution_setInput(execution, 0, nullptr, x.data(), 16), kOk);
    EXPECT_EQ(ANeuralNetworksExecution_setInput(execution, 1, nullptr, y.data(), 8), kOk);
    EXPECT_EQ(ANeuralNetworksExecution_setOutput(execution, 0, nullptr, z.data(), 16), kOk);
  }
  ~Ready() { ANeuralNetworksExecution_free(execution); }
};

TEST(NnapiDeadline, ALateComputationDoesNotRun) {
  Child child({"PINNACE_NNAPI_FAULTS=computation@2=delay:20ms"});
  if (!child.here()) return;
  Ready in_time(kHour), late(kMillisecond);
  EXPECT_EQ(ANeuralNetworksExecution_compute(in_time.execution), kOk);
  EXPECT_EQ(in_time.z[3], 5);
  EXPECT_EQ(ANeuralNetworksExecution_compute(late.execution), kMissed);
  EXPECT_EQ(late.z[3], -1) << "nothing was written";
  uint32_t rank = 0;
  EXPECT_EQ(ANeuralNetworksExecution_getOutputOperandRank(late.execution, 0, &rank), kBadState);
}

TEST(NnapiDeadline, NeverIsNoDeadline) {
  for (uint64_t timeout : {uint64_t(0), UINT64_MAX}) {
    Ready ready(timeout);
    EXPECT_EQ(ANeuralNetworksExecution_compute(ready.execution), kOk);
  }
}

TEST(NnapiDeadline, WaitingForDependenciesCounts) {
  Ready ready(5 * kMillisecond);
  const int fd = eventfd(0, EFD_CLOEXEC);
  ANeuralNetworksEvent *fence = nullptr, *event = nullptr;
  ASSERT_EQ(ANeuralNetworksEvent_createFromSyncFenceFd(fd, &fence), kOk);
  ASSERT_EQ(ANeuralNetworksExecution_startComputeWithDependencies(ready.execution, &fence, 1, 0, &event), kOk);
  std::this_thread::sleep_for(std::chrono::milliseconds(10));
  ASSERT_EQ(eventfd_write(fd, 1), 0);
  EXPECT_EQ(ANeuralNetworksEvent_wait(event), kMissed);
  EXPECT_EQ(ready.z[3], -1);
  ANeuralNetworksEvent_free(event);
  ANeuralNetworksEvent_free(fence);
  close(fd);
}

TEST(NnapiDeadline, TheDurationOfAFencedComputationCountsFromItsDependencies) {
  Ready ready(0);
  const int fd = eventfd(0, EFD_CLOEXEC);
  ANeuralNetworksEvent *fence = nullptr, *event = nullptr;
  ASSERT_EQ(ANeuralNetworksEvent_createFromSyncFenceFd(fd, &fence), kOk);
  const uint64_t second = 1000 * kMillisecond;
  ASSERT_EQ(ANeuralNetworksExecution_startComputeWithDependencies(ready.execution, &fence, 1, second, &event), kOk);
  std::this_thread::sleep_for(std::chrono::milliseconds(1100));
  ASSERT_EQ(eventfd_write(fd, 1), 0);
  EXPECT_EQ(ANeuralNetworksEvent_wait(event), kOk);
  ANeuralNetworksEvent_free(event);
  ANeuralNetworksEvent_free(fence);
  close(fd);
}

TEST(NnapiDeadline, ALateCompilationHasFailed) {
  AddModel model;
  ForDevice late(model, 1, kMissed);
  EXPECT_EQ(ANeuralNetworksCompilation_finish(late.compilation), kBadState);
  ANeuralNetworksExecution* execution = nullptr;
  EXPECT_EQ(ANeuralNetworksExecution_create(late.compilation, &execution), kBadState);
  ForDevice in_time(model, kHour);
}

/// Products of 512 x 512 matrices one after the other: half a second or more.
struct SlowModel : Builder {
  SlowModel() {
    const uint32_t x = operand(kTensorFloat32, {512, 512}), no = operand(6, {});
    const bool value = false;
    EXPECT_EQ(ANeuralNetworksModel_setOperandValue(model, static_cast<int32_t>(no), &value, 1), kOk);
    uint32_t last = x;
    for (int i = 0; i < 150; ++i) {
      const uint32_t next = operand(kTensorFloat32, {512, 512});
      add(102, {last, x, no, no}, {next});  // BATCH_MATMUL
      last = next;
    }
    finish({x}, {last});
  }
};

TEST(NnapiDeadline, AComputationUnderWayIsCancelled) {
  SlowModel model;
  ForDevice compiled(model);
  std::vector<float> x(512 * 512, 1.0f / 512), y(x.size());
  const auto run = [&](uint64_t timeout, int expected) {
    ANeuralNetworksExecution* execution = nullptr;
    EXPECT_EQ(ANeuralNetworksExecution_create(compiled.compilation, &execution), kOk);
    EXPECT_EQ(ANeuralNetworksExecution_setTimeout(execution, timeout), kOk);
    EXPECT_EQ(ANeuralNetworksExecution_setInput(execution, 0, nullptr, x.data(), x.size() * sizeof(float)), kOk);
    EXPECT_EQ(ANeuralNetworksExecution_setOutput(execution, 0, nullptr, y.data(), y.size() * sizeof(float)), kOk);
    const auto begin = Clock::now();
    EXPECT_EQ(ANeuralNetworksExecution_compute(execution), expected);
    const auto took = Clock::now() - begin;
    ANeuralNetworksExecution_free(execution);
    return took;
  };
  const auto whole = run(kHour, kOk);
  const auto tenth = std::chrono::duration_cast<std::chrono::nanoseconds>(whole).count() / 10;
  const auto cut = run(static_cast<uint64_t>(tenth), kMissed);
  EXPECT_LT(cut, whole * 2 / 3);
  EXPECT_GE(cut, std::chrono::nanoseconds(tenth));
}

TEST(NnapiDeadline, AFailedDependencyLeavesNoValueInAMemory) {
  Child child({"PINNACE_NNAPI_FAULTS=computation@2=OP_FAILED"});
  if (!child.here()) return;
  Ready first(0), failing(0), last(0);
  ANeuralNetworksMemoryDesc* desc = nullptr;
  ANeuralNetworksMemory* memory = nullptr;
  ASSERT_EQ(ANeuralNetworksMemoryDesc_create(&desc), kOk);
  ASSERT_EQ(ANeuralNetworksMemoryDesc_addOutputRole(desc, first.compiled.compilation, 0, 1), kOk);
  ASSERT_EQ(ANeuralNetworksMemoryDesc_finish(desc), kOk);
  ASSERT_EQ(ANeuralNetworksMemory_createFromDesc(desc, &memory), kOk);
  ANeuralNetworksMemoryDesc_free(desc);
  const auto bound = [&] {
    ANeuralNetworksExecution* execution = nullptr;
    EXPECT_EQ(ANeuralNetworksExecution_create(first.compiled.compilation, &execution), kOk);
    EXPECT_EQ(ANeuralNetworksExecution_setInput(execution, 0, nullptr, first.x.data(), 16), kOk);
    EXPECT_EQ(ANeuralNetworksExecution_setInput(execution, 1, nullptr, first.y.data(), 8), kOk);
    EXPECT_EQ(ANeuralNetworksExecution_setOutputFromMemory(execution, 0, nullptr, memory, 0, 0), kOk);
    return execution;
  };
  const int fd = memfd_create("nnapi", MFD_CLOEXEC);
  ASSERT_EQ(ftruncate(fd, 16), 0);
  ANeuralNetworksMemory* copy = nullptr;
  ASSERT_EQ(ANeuralNetworksMemory_createFromFd(16, PROT_READ | PROT_WRITE, fd, 0, &copy), kOk);
  close(fd);
  ANeuralNetworksExecution *good = bound(), *dependent = bound();
  ASSERT_EQ(ANeuralNetworksExecution_compute(good), kOk);
  EXPECT_EQ(ANeuralNetworksMemory_copy(memory, copy), kOk);
  ANeuralNetworksEvent *failed = nullptr, *event = nullptr;
  ASSERT_EQ(ANeuralNetworksExecution_startCompute(failing.execution, &failed), kOk);
  ASSERT_EQ(ANeuralNetworksExecution_startComputeWithDependencies(dependent, &failed, 1, 0, &event), kOk);
  EXPECT_EQ(ANeuralNetworksEvent_wait(failed), 5);
  EXPECT_NE(ANeuralNetworksEvent_wait(event), kOk);
  EXPECT_EQ(ANeuralNetworksMemory_copy(memory, copy), 4) << "the memory holds no value";
  ANeuralNetworksEvent_free(failed);
  ANeuralNetworksEvent_free(event);
  ANeuralNetworksExecution_free(good);
  ANeuralNetworksExecution_free(dependent);
  ANeuralNetworksMemory_free(memory);
  ANeuralNetworksMemory_free(copy);
}

}  // namespace
