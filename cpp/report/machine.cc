// Asked of the system and of the back ends; nothing is read from the environment.
#include "report/machine.h"

#include <sys/utsname.h>
#include <unistd.h>

#include <algorithm>
#include <ctime>

#if defined(__linux__)
#include <sched.h>
#endif
#if defined(__ANDROID__)
#include <sys/system_properties.h>

#include <cstdlib>
#endif

namespace pinnace::report {
namespace {

bool is_software(std::string_view target, std::string_view description) {
  if (target == "softmetal") return true;
  // Off Android the library is pinnace's own. nnapi-reference is Android's own code for the processor.
  if (target == "nnapi") return description.starts_with("pinnace-cpu ") || description.starts_with("nnapi-reference ");
  return description.find(", software") != std::string_view::npos;
}

#if defined(__ANDROID__)
std::string property(const char* name) {
  char value[PROP_VALUE_MAX] = {};
  return __system_property_get(name, value) > 0 ? value : "";
}

std::string joined(const std::string& maker, const std::string& model) {
  return maker.empty() || model.empty() ? maker + model : maker + " " + model;
}
#endif

void write_text(Json* page, std::string_view key, const std::string& text) {
  page->key(key);
  text.empty() ? page->null() : page->value(text);
}

}  // namespace

Result<std::vector<TargetInfo>> target_infos() {
  const pnc_device* devices = nullptr;
  int32_t count = 0;
  if (const pnc_status status = pnc_devices(&devices, &count); status != PNC_OK) {
    return Status(static_cast<Code>(status), pnc_error());
  }
  const std::unique_ptr<const pnc_device, void (*)(const void*)> freed(devices, pnc_free);
  std::vector<TargetInfo> infos;
  for (int32_t i = 0; i < count; ++i) {
    TargetInfo info{devices[i].target, devices[i].description, devices[i].available != 0, false};
    info.software = info.available && is_software(info.target, info.description);
    infos.push_back(std::move(info));
  }
  return infos;
}

int processors() {
#if defined(__linux__)
  cpu_set_t set;
  if (::sched_getaffinity(0, sizeof set, &set) == 0) return std::max(CPU_COUNT(&set), 1);
#endif
  return static_cast<int>(std::max(::sysconf(_SC_NPROCESSORS_ONLN), 1L));
}

void write_machine(const std::vector<TargetInfo>& targets, Json* page) {
  utsname system{};
  const bool known = ::uname(&system) == 0;
  std::string processor, api, device, chip;
  for (const TargetInfo& info : targets) {
    if (info.target == "cpu") processor = info.description;
  }
#if defined(__ANDROID__)
  api = property("ro.build.version.sdk");
  device = joined(property("ro.product.manufacturer"), property("ro.product.model"));
  chip = joined(property("ro.soc.manufacturer"), property("ro.soc.model"));  // Android 12 and later
#endif
  page->key("machine").object();
  write_text(page, "architecture", known ? system.machine : "");
  write_text(page, "processor", processor);
  page->pair("processors", static_cast<int64_t>(processors()));
  write_text(page, "system", known ? std::string(system.sysname) + " " + system.release : "");
  page->key("android_api");
  api.empty() ? page->null() : page->value(static_cast<int64_t>(std::strtol(api.c_str(), nullptr, 10)));
  write_text(page, "device", device);
  write_text(page, "chip", chip);
  page->end();
}

std::string date_now() {
  const std::time_t now = std::time(nullptr);
  std::tm parts{};
  char text[32] = "";
  if (::gmtime_r(&now, &parts)) std::strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", &parts);
  return text;
}

}  // namespace pinnace::report
