// The library's only device: our CPU back end.
#include "nnapi_host/objects.h"

namespace pinnace::nnapi_host {

int feature_level() {
  return nnapi::kNewestLevel;
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

int64_t ANeuralNetworks_getRuntimeFeatureLevel(void) {
  return pinnace::nnapi::level_code(feature_level());
}

int ANeuralNetworks_getDeviceCount(uint32_t* numDevices) {
  if (!numDevices) return ANEURALNETWORKS_UNEXPECTED_NULL;
  *numDevices = 1;
  return ANEURALNETWORKS_NO_ERROR;
}

int ANeuralNetworks_getDevice(uint32_t devIndex, ANeuralNetworksDevice** device) {
  if (!device) return ANEURALNETWORKS_UNEXPECTED_NULL;
  *device = nullptr;
  if (devIndex >= 1) return ANEURALNETWORKS_BAD_DATA;
  *device = const_cast<ANeuralNetworksDevice*>(the_device());
  return ANEURALNETWORKS_NO_ERROR;
}

int ANeuralNetworksDevice_getName(const ANeuralNetworksDevice* device, const char** name) {
  if (!device || !name) return ANEURALNETWORKS_UNEXPECTED_NULL;
  *name = device->name.c_str();
  return ANEURALNETWORKS_NO_ERROR;
}

int ANeuralNetworksDevice_getType(const ANeuralNetworksDevice* device, int32_t* type) {
  if (!device || !type) return ANEURALNETWORKS_UNEXPECTED_NULL;
  *type = 2;  // CPU
  return ANEURALNETWORKS_NO_ERROR;
}

int ANeuralNetworksDevice_getVersion(const ANeuralNetworksDevice* device, const char** version) {
  if (!device || !version) return ANEURALNETWORKS_UNEXPECTED_NULL;
  *version = device->version.c_str();
  return ANEURALNETWORKS_NO_ERROR;
}

int ANeuralNetworksDevice_getFeatureLevel(const ANeuralNetworksDevice* device, int64_t* featureLevel) {
  if (!device || !featureLevel) return ANEURALNETWORKS_UNEXPECTED_NULL;
  *featureLevel = pinnace::nnapi::level_code(feature_level());
  return ANEURALNETWORKS_NO_ERROR;
}

int ANeuralNetworksDevice_wait(const ANeuralNetworksDevice* device) {
  return device ? ANEURALNETWORKS_NO_ERROR : ANEURALNETWORKS_UNEXPECTED_NULL;
}

int ANeuralNetworksDevice_getExtensionSupport(const ANeuralNetworksDevice* device, const char* extensionName,
                                              bool* isExtensionSupported) {
  if (!device || !extensionName || !isExtensionSupported) return ANEURALNETWORKS_UNEXPECTED_NULL;
  *isExtensionSupported = false;
  return ANEURALNETWORKS_NO_ERROR;
}
