// The library's devices: our CPU back end and, where Vulkan is, our GPU back end.
#include <algorithm>

#include "compile/targets.h"
#include "nnapi_host/objects.h"
#include "nnapi_host/test_bed/test_bed.h"

namespace pinnace::nnapi_host {
namespace {

constexpr int32_t kCpu = 2, kGpu = 3;  // NNAPI's types of devices

std::vector<ANeuralNetworksDevice> find_devices() {
  const TestBed* const bed = TestBed::get();
  std::vector<ANeuralNetworksDevice> found = {{"pinnace-cpu", PINNACE_VERSION, kCpu, &cpu_backend()}};
  if (bed && !bed->settings().gpu) return found;
  if (const auto gpu = parse_targets("vulkan", "fp32", {}); gpu.ok()) {
    found.push_back({"pinnace-vulkan", PINNACE_VERSION, kGpu, gpu->front().backend});
  }
  return found;
}

}  // namespace

int feature_level() {
  const TestBed* const bed = TestBed::get();
  return bed ? bed->settings().feature_level : nnapi::kNewestFeatureLevel;
}

std::span<const ANeuralNetworksDevice> all_devices() {
  static const auto* const devices = new std::vector<ANeuralNetworksDevice>(find_devices());
  return *devices;
}

namespace {

/// What the test bed says.
bool pretends_to_take(const nnapi::Model& model, const nnapi::Operation& operation) {
  const TestBed* const bed = TestBed::get();
  if (!bed || bed->settings().unsupported.none()) return true;
  return nnapi::all_operations(model, operation, [&](const nnapi::Operation& o) {
    return !nnapi::operation_info(o.code) || !bed->settings().unsupported.test(static_cast<size_t>(o.code));
  });
}

}  // namespace

bool device_takes(const ANeuralNetworksDevice& device, const nnapi::Model& model, const nnapi::Operation& operation) {
  if (!nnapi::has_mapping(model, operation) || !pretends_to_take(model, operation)) return false;
  return device.backend == &cpu_backend() || backend_takes(*device.backend, model, operation);
}

int check_devices(const ANeuralNetworksDevice* const* devices, uint32_t count) {
  if (!devices) return ANEURALNETWORKS_UNEXPECTED_NULL;
  if (count == 0) return ANEURALNETWORKS_BAD_DATA;
  for (uint32_t i = 0; i < count; ++i) {
    if (!devices[i]) return ANEURALNETWORKS_UNEXPECTED_NULL;
  }
  const auto all = all_devices();
  for (uint32_t i = 0; i < count; ++i) {
    const bool ours = std::any_of(all.begin(), all.end(), [&](const auto& device) { return &device == devices[i]; });
    if (!ours || std::find(devices, devices + i, devices[i]) != devices + i) return ANEURALNETWORKS_BAD_DATA;
  }
  return ANEURALNETWORKS_NO_ERROR;
}

}  // namespace pinnace::nnapi_host

using namespace pinnace::nnapi_host;

int64_t plain::getRuntimeFeatureLevel(void) {
  return pinnace::nnapi::feature_level_code(feature_level());
}

int plain::getDeviceCount(uint32_t* numDevices) {
  if (!numDevices) return ANEURALNETWORKS_UNEXPECTED_NULL;
  *numDevices = static_cast<uint32_t>(all_devices().size());
  return ANEURALNETWORKS_NO_ERROR;
}

int plain::getDevice(uint32_t devIndex, ANeuralNetworksDevice** device) {
  if (!device) return ANEURALNETWORKS_UNEXPECTED_NULL;
  *device = nullptr;
  if (devIndex >= all_devices().size()) return ANEURALNETWORKS_BAD_DATA;
  *device = const_cast<ANeuralNetworksDevice*>(&all_devices()[devIndex]);
  return ANEURALNETWORKS_NO_ERROR;
}

int plain::Device_getName(const ANeuralNetworksDevice* device, const char** name) {
  if (!device || !name) return ANEURALNETWORKS_UNEXPECTED_NULL;
  *name = device->name.c_str();
  return ANEURALNETWORKS_NO_ERROR;
}

int plain::Device_getType(const ANeuralNetworksDevice* device, int32_t* type) {
  if (!device || !type) return ANEURALNETWORKS_UNEXPECTED_NULL;
  *type = device->type;
  return ANEURALNETWORKS_NO_ERROR;
}

int plain::Device_getVersion(const ANeuralNetworksDevice* device, const char** version) {
  if (!device || !version) return ANEURALNETWORKS_UNEXPECTED_NULL;
  *version = device->version.c_str();
  return ANEURALNETWORKS_NO_ERROR;
}

int plain::Device_getFeatureLevel(const ANeuralNetworksDevice* device, int64_t* featureLevel) {
  if (!device || !featureLevel) return ANEURALNETWORKS_UNEXPECTED_NULL;
  *featureLevel = pinnace::nnapi::feature_level_code(feature_level());
  return ANEURALNETWORKS_NO_ERROR;
}

int plain::Device_wait(const ANeuralNetworksDevice* device) {
  return device ? ANEURALNETWORKS_NO_ERROR : ANEURALNETWORKS_UNEXPECTED_NULL;
}

int plain::Device_getExtensionSupport(const ANeuralNetworksDevice* device, const char* extensionName,
                                      bool* isExtensionSupported) {
  if (!device || !extensionName || !isExtensionSupported) return ANEURALNETWORKS_UNEXPECTED_NULL;
  *isExtensionSupported = false;
  return ANEURALNETWORKS_NO_ERROR;
}
