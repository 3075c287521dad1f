// The library's devices: the CPU, and the GPU where Vulkan is, which takes what its back end takes and nothing else.
#include <unistd.h>

#include <filesystem>
#include <string>

#include "cpp/child_process.h"
#include "cpp/nnapi/nnapi_client.h"
#include "cpp/scratch_folder.h"

namespace {

using namespace nnapi_client;
using Device = const ANeuralNetworksDevice*;
using Devices = std::vector<Device>;

constexpr int kOk = 0, kBadData = 4;
constexpr int32_t kRelu = 19, kRandomMultinomial = 74;

Devices devices() {
  uint32_t count = 0;
  EXPECT_EQ(ANeuralNetworks_getDeviceCount(&count), kOk);
  Devices all;
  for (uint32_t i = 0; i < count; ++i) {
    ANeuralNetworksDevice* device = nullptr;
    EXPECT_EQ(ANeuralNetworks_getDevice(i, &device), kOk);
    all.push_back(device);
  }
  return all;
}

std::string name_of(Device device) {
  const char* name = nullptr;
  EXPECT_EQ(ANeuralNetworksDevice_getName(device, &name), kOk);
  return name;
}

int32_t type_of(Device device) {
  int32_t type = 0;
  EXPECT_EQ(ANeuralNetworksDevice_getType(device, &type), kOk);
  return type;
}

/// y = relu(x + [1, -3]) and, if it draws, classes drawn by y, which no GPU kernel does.
struct Sum : Builder {
  explicit Sum(bool draws, const std::vector<uint32_t>& shape = {1, 2}) : draws(draws) {
    const uint32_t x = operand(kTensorFloat32, shape), sum = operand(kTensorFloat32, shape);
    const uint32_t y = operand(kTensorFloat32, shape);
    add(kAdd, {x, constant<float>(kTensorFloat32, {2}, {1, -3}), scalar(0)}, {sum});
    add(kRelu, {sum}, {y});
    if (draws) {
      const uint32_t drawn = operand(kTensorInt32, {1, 3});
      add(kRandomMultinomial, {y, scalar(3), constant<int32_t>(kTensorInt32, {2}, {1, 2})}, {drawn});
      finish({x}, {y, drawn});
    } else {
      finish({x}, {y});
    }
  }
  const bool draws;

  /// One flag per operation.
  std::vector<bool> supported(const Devices& list) const {
    bool flags[3] = {};
    EXPECT_EQ(ANeuralNetworksModel_getSupportedOperationsForDevices(model, list.data(),
                                                                    static_cast<uint32_t>(list.size()), flags),
              kOk);
    return std::vector<bool>(flags, flags + (draws ? 3 : 2));
  }
};

/// A compilation for these devices; `finished` is what finish gave. With a folder: cached there.
struct CompiledFor {
  ANeuralNetworksCompilation* compilation = nullptr;
  int finished = -1;
  CompiledFor(const Sum& b, const Devices& list, const std::string& cache = "") : draws(b.draws) {
    const auto count = static_cast<uint32_t>(list.size());
    EXPECT_EQ(ANeuralNetworksCompilation_createForDevices(b.model, list.data(), count, &compilation), kOk);
    const std::vector<uint8_t> token(32, 1);
    if (!cache.empty()) {
      EXPECT_EQ(ANeuralNetworksCompilation_setCaching(compilation, cache.c_str(), token.data()), kOk);
    }
    finished = ANeuralNetworksCompilation_finish(compilation);
  }
  ~CompiledFor() { ANeuralNetworksCompilation_free(compilation); }

  std::vector<float> compute(std::vector<float> x) const {
    ANeuralNetworksExecution* execution = nullptr;
    EXPECT_EQ(ANeuralNetworksExecution_create(compilation, &execution), kOk);
    std::vector<float> y(x.size());
    std::vector<int32_t> drawn(3);
    EXPECT_EQ(ANeuralNetworksExecution_setInput(execution, 0, nullptr, x.data(), x.size() * 4), kOk);
    EXPECT_EQ(ANeuralNetworksExecution_setOutput(execution, 0, nullptr, y.data(), y.size() * 4), kOk);
    if (draws) {
      EXPECT_EQ(ANeuralNetworksExecution_setOutput(execution, 1, nullptr, drawn.data(), 12), kOk);
    }
    EXPECT_EQ(ANeuralNetworksExecution_compute(execution), kOk);
    ANeuralNetworksExecution_free(execution);
    return y;
  }
  const bool draws;
};

TEST(NnapiDevices, TheCpuComesFirst) {
  const Devices all = devices();
  ASSERT_GE(all.size(), 1u);
  EXPECT_EQ(name_of(all[0]), "pinnace-cpu");
  EXPECT_EQ(type_of(all[0]), 2);
  EXPECT_EQ(all, devices());
  if (all.size() < 2) GTEST_SKIP() << "no Vulkan device";
  EXPECT_EQ(all.size(), 2u);
  EXPECT_EQ(name_of(all[1]), "pinnace-vulkan");
  EXPECT_EQ(type_of(all[1]), 3);
  int64_t level = 0;
  EXPECT_EQ(ANeuralNetworksDevice_getFeatureLevel(all[1], &level), kOk);
  EXPECT_EQ(level, ANeuralNetworks_getRuntimeFeatureLevel());
}

TEST(NnapiDevices, TheGpuTakesWhatItsBackEndTakesAndComputesItAlone) {
  const Devices all = devices();
  if (all.size() < 2) GTEST_SKIP() << "no Vulkan device";
  const Sum sum(false), draws(true);
  EXPECT_EQ(sum.supported({all[1]}), (std::vector<bool>{true, true}));
  EXPECT_EQ(draws.supported({all[1]}), (std::vector<bool>{true, true, false}));
  const CompiledFor compiled(sum, {all[1]});
  ASSERT_EQ(compiled.finished, kOk);
  EXPECT_EQ(compiled.compute({1, 2}), (std::vector<float>{2, 0}));
  EXPECT_EQ(compiled.compute({1, 5}), (std::vector<float>{2, 2}));
  EXPECT_EQ(CompiledFor(draws, {all[1]}).finished, kBadData) << "nothing falls back to a device that was not chosen";
}

TEST(NnapiDevices, TwoDevicesShareAModel) {
  const Devices all = devices();
  if (all.size() < 2) GTEST_SKIP() << "no Vulkan device";
  const Sum draws(true);
  for (const Devices& both : {Devices{all[0], all[1]}, Devices{all[1], all[0]}}) {
    EXPECT_EQ(draws.supported(both), (std::vector<bool>{true, true, true}));
    const CompiledFor compiled(draws, both);
    ASSERT_EQ(compiled.finished, kOk);
    EXPECT_EQ(compiled.compute({1, 5}), (std::vector<float>{2, 2}));
  }
  ANeuralNetworksCompilation* none = nullptr;
  const Devices twice = {all[1], all[0], all[1]};
  EXPECT_EQ(ANeuralNetworksCompilation_createForDevices(draws.model, twice.data(), 3, &none), kBadData);
}

TEST(NnapiDevices, TheGpuWantsShapes) {
  const Devices all = devices();
  if (all.size() < 2) GTEST_SKIP() << "no Vulkan device";
  const Sum open(false, {0, 2});
  EXPECT_EQ(open.supported({all[1]}), (std::vector<bool>{false, false}));
  EXPECT_EQ(open.supported({all[0]}), (std::vector<bool>{true, true}));
  EXPECT_EQ(CompiledFor(open, {all[1]}).finished, kBadData);
}

TEST(NnapiDevices, ACacheKnowsForWhichDevicesItIs) {
  const Devices all = devices();
  if (all.size() < 2) GTEST_SKIP() << "no Vulkan device";
  const auto folder = pinnace::testing::scratch_folder() / ("nnapi_devices_" + std::to_string(getpid()));
  std::filesystem::create_directory(folder);
  const Sum sum(false);
  std::vector<std::filesystem::file_time_type> written;
  const auto compile = [&](const Devices& list) {
    const CompiledFor compiled(sum, list, folder.string());
    EXPECT_EQ(compiled.finished, kOk);
    EXPECT_EQ(compiled.compute({1, 5}), (std::vector<float>{2, 2}));
    for (const auto& file : std::filesystem::directory_iterator(folder)) written.push_back(file.last_write_time());
  };
  for (size_t device : {1, 1, 0, 0, 1}) compile({all[device]});
  std::filesystem::remove_all(folder);
  ASSERT_EQ(written.size(), 5u) << "one file each time";
  EXPECT_EQ(written[0], written[1]);
  EXPECT_LT(written[1], written[2]);
  EXPECT_EQ(written[2], written[3]);
  EXPECT_LT(written[3], written[4]);
}

TEST(NnapiDevices, TheEnvironmentTakesTheGpuAway) {
  Child child({"PINNACE_NNAPI_GPU=0"});
  if (child.here()) {
    EXPECT_EQ(devices().size(), 1u);
  }
}

}  // namespace
