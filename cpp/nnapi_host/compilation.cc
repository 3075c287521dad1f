// Compilation: choices for a finished model, and its engine.
#include <algorithm>

#include "base/exception_boundary.h"
#include "base/log.h"
#include "compile/targets.h"
#include "nnapi_host/deadline.h"
#include "nnapi_host/objects.h"
#include "nnapi_host/test_bed/test_bed.h"

using namespace pinnace::nnapi_host;

namespace {

constexpr int32_t kLowPower = 0, kSustainedSpeed = 2;
/// What our kernels like best, a cache line; shorter ones are as right.
constexpr uint32_t kPreferredAlignment = 64;
constexpr uint32_t kPreferredPadding = 1;

int make(ANeuralNetworksModel* model, std::span<const ANeuralNetworksDevice* const> devices,
         ANeuralNetworksCompilation** compilation) {
  if (!model->valid) return ANEURALNETWORKS_BAD_STATE;
  auto made = std::make_unique<ANeuralNetworksCompilation>();
  made->model = model->model;
  made->devices.assign(devices.begin(), devices.end());
  *compilation = made.release();
  return ANEURALNETWORKS_NO_ERROR;
}

int preferred(const ANeuralNetworksCompilation* compilation, bool input, uint32_t index, uint32_t value,
              uint32_t* result) {
  if (!compilation || !result) return ANEURALNETWORKS_UNEXPECTED_NULL;
  if (!compilation->engine) return ANEURALNETWORKS_BAD_STATE;
  const pinnace::nnapi::Model& model = compilation->engine->model();
  if (index >= (input ? model.inputs : model.outputs).size()) return ANEURALNETWORKS_BAD_DATA;
  *result = value;
  return ANEURALNETWORKS_NO_ERROR;
}

using Devices = std::vector<const ANeuralNetworksDevice*>;

/// True if every operation, those of referenced models too, can run: on one of the devices if some were chosen, else
/// with what stands in for them.
bool runs(const pinnace::nnapi::Model& model, const Devices& chosen) {
  return std::all_of(model.operations.begin(), model.operations.end(), [&](const auto& operation) {
    if (chosen.empty()) return pinnace::nnapi::has_mapping(model, operation);
    return std::any_of(chosen.begin(), chosen.end(),
                       [&](auto* device) { return device_takes(*device, model, operation); });
  });
}

/// Where the model is to run: on the CPU unless devices were chosen; on the CPU beside others only if it was chosen.
pinnace::Options options(const ANeuralNetworksCompilation& compilation) {
  pinnace::Options options{.target = "cpu", .threads = compilation.preference == kLowPower ? 1 : 0, .plan_cache = 1};
  if (compilation.devices.empty()) return options;
  options.target.clear();
  options.fallback = false;
  for (const ANeuralNetworksDevice* device : compilation.devices) {
    options.target += pinnace::str_cat(options.target.empty() ? "" : ",", device->backend->name());
    options.fallback |= device->backend == &pinnace::cpu_backend();
  }
  return options;
}

int finish(ANeuralNetworksCompilation& compilation) {
  const pinnace::LogTime time;
  const size_t operations = compilation.model->operations.size();
  auto engine = std::make_shared<Engine>(compilation.model, options(compilation));
  const std::string& target = engine->options().target;
  if (!runs(*compilation.model, compilation.devices)) {
    PINNACE_LOG_INFO("a model of ", operations, " operations is refused: ", target, " cannot run all of them");
    return ANEURALNETWORKS_BAD_DATA;
  }
  std::optional<Cache> cache;
  if (const std::string& directory = compilation.cache_directory; !directory.empty()) {
    cache.emplace(directory, compilation.cache_token, engine->model(), target);
    if (TestBed* const bed = TestBed::get()) bed->cache_folder(compilation, cache->problem());
  }
  const Deadline deadline(compilation.timeout_ns);
  const pinnace::Status prepared = engine->prepare_ahead(deadline, cache ? &*cache : nullptr);
  if (deadline.passed()) return ANEURALNETWORKS_MISSED_DEADLINE_TRANSIENT;
  if (!prepared.ok()) {
    PINNACE_LOG_INFO("a model of ", operations, " operations is not prepared for its own shapes",
                     engine->options().fallback ? ", and is when it runs: " : ": ", prepared.message());
  }
  // The CPU may still take other shapes and values; another device has said that it takes these.
  if (!prepared.ok() && !engine->options().fallback) return code_of(prepared);
  PINNACE_LOG_INFO("compiled a model of ", operations, " operations for ", target, ", in ", time.text());
  compilation.engine = std::move(engine);
  return ANEURALNETWORKS_NO_ERROR;
}

}  // namespace

int plain::Compilation_create(ANeuralNetworksModel* model, ANeuralNetworksCompilation** compilation) {
  if (!compilation) return ANEURALNETWORKS_UNEXPECTED_NULL;
  *compilation = nullptr;
  if (!model) return ANEURALNETWORKS_UNEXPECTED_NULL;
  return make(model, {}, compilation);
}

int plain::Compilation_createForDevices(ANeuralNetworksModel* model, const ANeuralNetworksDevice* const* devices,
                                        uint32_t numDevices, ANeuralNetworksCompilation** compilation) {
  if (!compilation) return ANEURALNETWORKS_UNEXPECTED_NULL;
  *compilation = nullptr;
  if (!model) return ANEURALNETWORKS_UNEXPECTED_NULL;
  if (const int code = check_devices(devices, numDevices)) return code;
  return make(model, {devices, numDevices}, compilation);
}

void plain::Compilation_free(ANeuralNetworksCompilation* compilation) {
  delete compilation;
}

int plain::Compilation_setPreference(ANeuralNetworksCompilation* compilation, int32_t preference) {
  if (!compilation) return ANEURALNETWORKS_UNEXPECTED_NULL;
  if (compilation->finished) return ANEURALNETWORKS_BAD_STATE;
  if (preference < kLowPower || preference > kSustainedSpeed) return ANEURALNETWORKS_BAD_DATA;
  compilation->preference = preference;
  return ANEURALNETWORKS_NO_ERROR;
}

int plain::Compilation_setCaching(ANeuralNetworksCompilation* compilation, const char* cacheDir, const uint8_t* token) {
  if (!compilation || !cacheDir || !token) return ANEURALNETWORKS_UNEXPECTED_NULL;
  if (compilation->finished) return ANEURALNETWORKS_BAD_STATE;
  compilation->cache_directory = cacheDir;
  std::copy_n(token, compilation->cache_token.size(), compilation->cache_token.begin());
  return ANEURALNETWORKS_NO_ERROR;
}

int plain::Compilation_setPriority(ANeuralNetworksCompilation* compilation, int priority) {
  if (!compilation) return ANEURALNETWORKS_UNEXPECTED_NULL;
  if (compilation->finished) return ANEURALNETWORKS_BAD_STATE;
  return priority == 90 || priority == 100 || priority == 110 ? ANEURALNETWORKS_NO_ERROR : ANEURALNETWORKS_BAD_DATA;
}

int plain::Compilation_setTimeout(ANeuralNetworksCompilation* compilation, uint64_t duration) {
  if (!compilation) return ANEURALNETWORKS_UNEXPECTED_NULL;
  if (compilation->finished) return ANEURALNETWORKS_BAD_STATE;
  if (compilation->devices.size() != 1) return ANEURALNETWORKS_BAD_DATA;
  compilation->timeout_ns = duration;
  return ANEURALNETWORKS_NO_ERROR;
}

int plain::Compilation_finish(ANeuralNetworksCompilation* compilation) {
  if (!compilation) return ANEURALNETWORKS_UNEXPECTED_NULL;
  if (compilation->finished) return ANEURALNETWORKS_BAD_STATE;
  const int code = pinnace::exception_boundary([&] { return finish(*compilation); }, ANEURALNETWORKS_OUT_OF_MEMORY);
  compilation->finished = code != ANEURALNETWORKS_OUT_OF_MEMORY;  // later there may be more
  return code;
}

int plain::Compilation_getPreferredMemoryAlignmentForInput(const ANeuralNetworksCompilation* compilation,
                                                           uint32_t index, uint32_t* alignment) {
  return preferred(compilation, true, index, kPreferredAlignment, alignment);
}
int plain::Compilation_getPreferredMemoryPaddingForInput(const ANeuralNetworksCompilation* compilation, uint32_t index,
                                                         uint32_t* padding) {
  return preferred(compilation, true, index, kPreferredPadding, padding);
}
int plain::Compilation_getPreferredMemoryAlignmentForOutput(const ANeuralNetworksCompilation* compilation,
                                                            uint32_t index, uint32_t* alignment) {
  return preferred(compilation, false, index, kPreferredAlignment, alignment);
}
int plain::Compilation_getPreferredMemoryPaddingForOutput(const ANeuralNetworksCompilation* compilation, uint32_t index,
                                                          uint32_t* padding) {
  return preferred(compilation, false, index, kPreferredPadding, padding);
}

int plain::Compilation_addExtensionAttribute(ANeuralNetworksCompilation* compilation, const char* extensionName,
                                             uint16_t, const void* data, size_t) {
  return compilation && extensionName && data ? ANEURALNETWORKS_BAD_DATA : ANEURALNETWORKS_UNEXPECTED_NULL;
}
