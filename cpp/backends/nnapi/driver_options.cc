// Options of compilations and runs: those of the environment, over which those of the session win.
#include <string_view>

#include "backends/nnapi/driver_model.h"
#include "backends/service.h"
#include "base/environment.h"
#include "base/files/private_folder.h"

namespace pinnace::nnapi_client {
namespace {

Status read_name(const char* variable, std::span<const ServiceWord> words, int& to) {
  const char* text = environment(variable);
  if (!text || !*text) return {};
  PINNACE_ASSIGN(to, service_number(variable, text, words));
  return {};
}

void open_cache(const std::string& path, DriverOptions& options) {
  if (const auto folder = PrivateFolder::open(path); folder) {
    options.cache_folder = path;
  } else {
    options.cache_problem = folder.status().message();
  }
}

}  // namespace

Result<DriverOptions> DriverOptions::of(const TargetSpec& target, int level) {
  static constexpr ServiceWord work[] = {{"worth", 0}, {"any", 1}};
  const Service& service = target.service;
  DriverOptions options;
  options.feature_level = level;
  options.relaxed = target.precision == "fp16";
  PINNACE_TRY(read_name("PINNACE_NNAPI_PREFERENCE", preference_words(), options.preference));
  PINNACE_TRY(read_name("PINNACE_NNAPI_PRIORITY", priority_words(), options.priority));
  PINNACE_TRY(read_name("PINNACE_NNAPI_WORK", work, options.any_work));
  if (const char* text = environment("PINNACE_NNAPI_DEADLINE_MS"); text && *text) {
    uint64_t milliseconds = 0;
    const std::string_view given = text;
    const auto [end, problem] = std::from_chars(given.data(), given.data() + given.size(), milliseconds);
    if (problem != std::errc() || end != given.data() + given.size() || milliseconds > 1000000000) {
      return invalid("PINNACE_NNAPI_DEADLINE_MS is '", given, "', must be milliseconds");
    }
    options.deadline_ns = milliseconds * 1000000;
  }
  if (!service.preference.empty()) {
    PINNACE_ASSIGN(options.preference, service_number("preference", service.preference, preference_words()));
  }
  if (!service.priority.empty()) {
    PINNACE_ASSIGN(options.priority, service_number("priority", service.priority, priority_words()));
  }
  if (service.deadline.count() > 0) options.deadline_ns = static_cast<uint64_t>(service.deadline.count());
  if (!service.cache_folder.empty()) {
    open_cache(service.cache_folder, options);
  } else if (const char* path = environment("PINNACE_NNAPI_CACHE"); path && *path) {
    open_cache(path, options);
  }
  return options;
}

}  // namespace pinnace::nnapi_client
