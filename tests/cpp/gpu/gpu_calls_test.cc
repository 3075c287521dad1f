// Sessions on the GPU back ends while each allocation, each start of a thread, each call of the file system and each
// call of the driver fails once.
#include <gtest/gtest.h>

#include <optional>

#include "base/exception_boundary.h"
#include "cpp/fault_harness.h"
#include "cpp/gpu/gpu_calls.h"
#include "cpp/gpu/gpu_session.h"
#include "cpp/program/program_fixture.h"

namespace pinnace::testing {
namespace {

using Parameter = std::tuple<const gpu::Driver*, Fault>;

class GpuCalls : public ::testing::TestWithParam<Parameter> {
 protected:
  void SetUp() override {
    if (!kFaultsCanBeMade) GTEST_SKIP() << "a sanitizer has the functions that are to fail";
    if (const std::string reason = no_device(*driver()); !reason.empty()) GTEST_SKIP() << reason;
    setenv("PINNACE_GPU_CACHE", folder_.path().c_str(), 1);
  }
  void TearDown() override { unsetenv("PINNACE_GPU_CACHE"); }
  const gpu::Driver* driver() const { return std::get<0>(GetParam()); }
  Fault fault() const { return std::get<1>(GetParam()); }
  Status create(bool fallback) {
    return exception_boundary([&] {
      auto made = net_.session(driver()->name, "fp32", fallback);
      if (made) session_.emplace(std::move(*made));
      return made.status();
    });
  }
  /// What is wrong with the session, or with one that is made now.
  std::string check() {
    if (!session_) {
      if (const Status now = create(true); !now.ok()) return "none can be made any more: " + now.message();
    }
    return net_.check(*session_, 1e-4);
  }
  std::string name(const char* what) const { return std::string(what) + ", " + driver()->name; }

  TemporaryFolder folder_;
  SmallNetwork net_;
  std::optional<Session> session_;
};

TEST_P(GpuCalls, EachFailureIsSurvived) {
  const FailingVulkan failing;
  const GpuOptions with(fault() == Fault::kDevice || fault() == Fault::kDeviceMemory ? "no_self_check,staging"
                                                                                     : "no_self_check");
  const auto nothing = [] {};
  const auto end = [&] { session_.reset(); };
  const auto after = [&](const Status&) { return check(); };
  const std::vector<Code> codes = {Code::kDeviceLost, Code::kOutOfMemory, Code::kUnsupported, Code::kFile};
  std::vector<Fault> met = {Fault::kAllocation, Fault::kNoMoreAllocations};
  if (driver()->name == std::string_view("vulkan")) met.insert(met.end(), {Fault::kDevice, Fault::kDeviceMemory});
  fail_everywhere({name("open a device, create a session"), nothing, [&] { return create(true); }, after, end, met,
                   codes, nullptr, 6},
                  fault());
  const auto make = [&] { ASSERT_TRUE(create(true).ok()); };
  Tensor tensor;
  tensor.type = net_.type;
  tensor.memory.host = net_.x.data();
  tensor.memory.bytes = net_.x.size() * sizeof(float);
  const std::vector<Tensor> inputs = {tensor};
  fail_everywhere({name("run"), make, [&] { return session_->run(inputs); }, after, end, met, codes, nullptr, 6},
                  fault());
}

INSTANTIATE_TEST_SUITE_P(Gpu, GpuCalls,
                         ::testing::Combine(::testing::ValuesIn(gpu_drivers()),
                                            ::testing::Values(Fault::kAllocation, Fault::kNoMoreAllocations,
                                                              Fault::kFile, Fault::kThread, Fault::kDevice,
                                                              Fault::kDeviceMemory)),
                         [](const ::testing::TestParamInfo<Parameter>& info) {
                           return std::string(std::get<0>(info.param)->name) + "_" +
                                  fault_test_name(std::get<1>(info.param));
                         });

}  // namespace
}  // namespace pinnace::testing
