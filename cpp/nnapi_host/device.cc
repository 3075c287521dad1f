// The library's only device: our CPU back end.
#include <algorithm>

#include "nnapi_host/bench/bench.h"
#include "nnapi_host/objects.h"

namespace pinnace::nnapi_host {

int feature_level() {
  const Bench* const bench = Bench::get();
  return bench ? bench->settings().level : nnapi::kNewestLevel;
}

bool device_takes(const nnapi::Model& model, const nnapi::Operation& operation) {
  if (!nnapi::can_lower(model, operation)) return false;
  const Bench* const bench = Bench::get();
  if (!bench || bench->settings().unsupported.none()) return true;
  const bool known = nnapi::operation_info(operation.code) != nullptr;
  if (known && bench->settings().unsupported.test(static_cast<size_t>(operation.code))) return false;
  return std::all_of(operation.inputs.begin(), operation.inputs.end(), [&](uint32_t i) {
    const nnapi::Model* const referenced = model.operands[i].model.get();
    return !referenced || std::all_of(referenced->operations.begin(), referenced->operations.end(),
                                      [&](const auto& inner) { return device_takes(*referenced, inner); });
  });
}

const ANeuralNetworksDevice* the_device() {
  static const ANeuralNetworksDevice* const device = new ANeuralNetworksDevice{"pinnace-cpu", PINNACE_VERSION};
  return device;
}

int check_devices(const ANeuralNetworksDevice* const* devices, uint32_t count) {
  if (!devices) return ANEURALNETWORKS_UNEXPECTED_NULL;
  if (count == 0) return ANEURALNETWORKS_BAD_DATA;
  for (uint32_t i = 0; i < count; ++i) {
    if (!devices[i]) return ANEURALNETWORKS_UNEXPECTED_NULL;
  }
  // There is one device: a second one is it again, or none of ours.
  return count == 1 && devices[0] == the_device() ? ANEURALNETWORKS_NO_ERROR : ANEURALNETWORKS_BAD_DATA;
}

}  // namespace pinnace::nnapi_host

using namespace pinnace::nnapi_host;

int64_t plain::getRuntimeFeatureLevel(void) {
  return pinnace::nnapi::level_code(feature_level());
}

int plain::getDeviceCount(uint32_t* numDevices) {
  if (!numDevices) return ANEURALNETWORKS_UNEXPECTED_NULL;
  *numDevices = 1;
  return ANEURALNETWORKS_NO_ERROR;
}

int plain::getDevice(uint32_t devIndex, ANeuralNetworksDevice** device) {
  if (!device) return ANEURALNETWORKS_UNEXPECTED_NULL;
  *device = nullptr;
  if (devIndex >= 1) return ANEURALNETWORKS_BAD_DATA;
  *device = const_cast<ANeuralNetworksDevice*>(the_device());
  return ANEURALNETWORKS_NO_ERROR;
}

int plain::Device_getName(const ANeuralNetworksDevice* device, const char** name) {
  if (!device || !name) return ANEURALNETWORKS_UNEXPECTED_NULL;
  *name = device->name.c_str();
  return ANEURALNETWORKS_NO_ERROR;
}

int plain::Device_getType(const ANeuralNetworksDevice* device, int32_t* type) {
  if (!device || !type) return ANEURALNETWORKS_UNEXPECTED_NULL;
  *type = 2;  // CPU
  return ANEURALNETWORKS_NO_ERROR;
}

int plain::Device_getVersion(const ANeuralNetworksDevice* device, const char** version) {
  if (!device || !version) return ANEURALNETWORKS_UNEXPECTED_NULL;
  *version = device->version.c_str();
  return ANEURALNETWORKS_NO_ERROR;
}

int plain::Device_getFeatureLevel(const ANeuralNetworksDevice* device, int64_t* featureLevel) {
  if (!device || !featureLevel) return ANEURALNETWORKS_UNEXPECTED_NULL;
  *featureLevel = pinnace::nnapi::level_code(feature_level());
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
