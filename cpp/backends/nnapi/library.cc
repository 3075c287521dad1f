// Finding and opening the library; choosing a device.
#include "backends/nnapi/library.h"

#include <dlfcn.h>

#include <algorithm>
#include <map>

#include "base/environment.h"
#include "base/process.h"
#include "nnapi/operations.h"

namespace pinnace::nnapi_client {
namespace {

constexpr const char* kName = "libneuralnetworks.so";
// Taken only by name: Android's slow CPU, and the GPU of our own library, which the target vulkan reaches without a
// detour.
constexpr std::string_view kByNameOnly[] = {"nnapi-reference", "pinnace-vulkan"};

/// Opened libraries by path.
constinit PerProcess<std::map<std::string, void*>> handles;

/// The folder of the shared object that holds this code, where packages put our own library.
std::string own_folder() {
  Dl_info info{};
  if (!dladdr(reinterpret_cast<const void*>(&own_folder), &info) || !info.dli_fname) return {};
  const std::string file = info.dli_fname;
  const size_t slash = file.rfind('/');
  return slash == std::string::npos ? std::string() : file.substr(0, slash + 1);
}

void* open_path(const std::string& path, std::string& tried) {
  const auto opened = handles.lock();
  if (const auto found = opened->find(path); found != opened->end()) return found->second;
  void* handle = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (!handle) {
    const char* reason = dlerror();
    tried += str_cat(tried.empty() ? "" : "; ", path, " (", reason ? reason : "no reason given", ")");
    return nullptr;
  }
  opened->emplace(path, handle);
  return handle;
}

/// 27 to 31 and 1000006 to 1000008 as 1 to 8; a newer one counts as 8.
int feature_level_of(int64_t code) {
  if (code >= 1000006) return static_cast<int>(std::min<int64_t>(code - 1000000, 8));
  return static_cast<int>(std::clamp<int64_t>(code - 26, 1, 5));
}

/// By the functions that are there, as a library before feature level 5 cannot be asked.
int feature_level_by_functions(void* handle) {
  int level = 0;
  bool whole[9] = {true, true, true, true, true, true, true, true, true};
#define FUNCTION(since, result, name, arguments) \
  if (!dlsym(handle, "ANeuralNetworks" #name)) whole[since] = false;
#include "backends/nnapi/functions.inc"
#undef FUNCTION
  while (level < 5 && whole[level + 1]) ++level;
  return level;
}

void load(void* handle, int level, Functions& to) {
#define FUNCTION(since, result, name, arguments) \
  if (since <= level) to.name = reinterpret_cast<decltype(to.name)>(dlsym(handle, "ANeuralNetworks" #name));
#include "backends/nnapi/functions.inc"
#undef FUNCTION
}

Status find_devices(Library& library) {
  if (library.feature_level < 3) {
    DeviceInfo any;
    any.feature_level = library.feature_level;
    library.devices.push_back(any);
    return {};
  }
  const Functions& f = library.functions;
  uint32_t count = 0;
  if (const int code = f._getDeviceCount(&count)) {
    return unsupported(library.path, ": getDeviceCount gives ", result_name(code));
  }
  for (uint32_t i = 0; i < count; ++i) {
    DeviceInfo info;
    const char *name = nullptr, *version = nullptr;
    int32_t type = 0;
    int64_t level = 0;
    if (f._getDevice(i, &info.device) || f.Device_getName(info.device, &name) ||
        f.Device_getVersion(info.device, &version) || f.Device_getType(info.device, &type) ||
        f.Device_getFeatureLevel(info.device, &level)) {
      return unsupported(library.path, ": device ", i, " cannot be described");
    }
    info.name = name;
    info.version = version;
    info.type = type;
    info.feature_level = std::min(feature_level_of(level), library.feature_level);
    library.devices.push_back(std::move(info));
  }
  return {};
}

/// The higher, the sooner it is taken.
int preference(const DeviceInfo& device) {
  if (std::find(std::begin(kByNameOnly), std::end(kByNameOnly), device.name) != std::end(kByNameOnly)) return -1;
  switch (device.type) {
    case 4:
      return 4;
    case 3:
      return 3;
    case 2:
      return 1;
    default:
      return 2;
  }
}

std::string list_of(const Library& library) {
  std::string text;
  for (const DeviceInfo& d : library.devices) {
    text += str_cat(text.empty() ? "" : ", ", d.name, " (level ", d.feature_level, ")");
  }
  return text.empty() ? "none" : text;
}

}  // namespace

const char* result_name(int code) {
  const auto names = nnapi::result_names();
  return code >= 0 && static_cast<size_t>(code) < names.size() ? names[static_cast<size_t>(code)] : "an unknown code";
}

Result<std::shared_ptr<const Library>> open_library() {
  std::string tried;
  std::vector<std::string> paths;
  if (const char* stated = environment("PINNACE_NNAPI_LIBRARY"); stated && *stated) {
    paths = {stated};
  } else {
    paths = {kName};
    if (const std::string folder = own_folder(); !folder.empty()) paths.push_back(folder + kName);
  }
  auto library = std::make_shared<Library>();
  void* handle = nullptr;
  for (const std::string& path : paths) {
    if (handle = open_path(path, tried); handle) {
      library->path = path;
      break;
    }
  }
  if (!handle) return unsupported("no NNAPI library, tried ", tried);
  library->feature_level = feature_level_by_functions(handle);
  if (library->feature_level < 1)
    return unsupported(library->path, " is no NNAPI library: it lacks functions of feature level 1");
  if (library->feature_level >= 5) {
    load(handle, 5, library->functions);
    library->feature_level = feature_level_of(library->functions._getRuntimeFeatureLevel());
    library->functions = {};
  }
  load(handle, std::min(library->feature_level, 5), library->functions);
  PINNACE_TRY(find_devices(*library));
  return std::shared_ptr<const Library>(std::move(library));
}

Result<DeviceInfo> choose_device(const Library& library, int level, std::string_view by_session) {
  const char* stated = environment("PINNACE_NNAPI_DEVICE");
  const std::string_view wanted = !by_session.empty() || !stated ? by_session : stated;
  const DeviceInfo* best = nullptr;
  for (const DeviceInfo& d : library.devices) {
    if (!wanted.empty() && d.device) {
      if (d.name == wanted) best = &d;
    } else if (preference(d) >= 0 && d.feature_level >= level && (!best || preference(d) > preference(*best))) {
      best = &d;
    }
  }
  if (best && best->feature_level >= level) return *best;
  if (!wanted.empty()) {
    return unsupported(by_session.empty() ? "PINNACE_NNAPI_DEVICE is " : "the session's device is ", wanted, ", and ",
                       library.path, " has ", list_of(library));
  }
  return unsupported("no device of feature level ", level, " in ", library.path, ", which has ", list_of(library));
}

}  // namespace pinnace::nnapi_client
