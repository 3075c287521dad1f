// Options of compilations and runs that the environment states.
#include <string_view>

#include "backends/nnapi/driver_model.h"
#include "base/environment.h"
#include "base/private_folder.h"

namespace pinnace::nnapi_client {
namespace {

struct Name {
  std::string_view name;
  int value;
};

Status read_name(const char* variable, std::span<const Name> names, int& to) {
  const char* text = environment(variable);
  if (!text || !*text) return {};
  std::string known;
  for (const Name& n : names) {
    if (n.name == text) {
      to = n.value;
      return {};
    }
    known += str_cat(known.empty() ? "" : ", ", n.name);
  }
  return invalid(variable, " is '", text, "', must be one of ", known);
}

}  // namespace

Result<DriverOptions> DriverOptions::from_environment(int level, bool relaxed) {
  static constexpr Name preferences[] = {{"low_power", 0}, {"fast_single_answer", 1}, {"sustained_speed", 2}};
  static constexpr Name work[] = {{"worth", 0}, {"any", 1}};
  static constexpr Name priorities[] = {{"low", 90}, {"medium", 100}, {"high", 110}};
  DriverOptions options;
  options.feature_level = level;
  options.relaxed = relaxed;
  PINNACE_TRY(read_name("PINNACE_NNAPI_PREFERENCE", preferences, options.preference));
  PINNACE_TRY(read_name("PINNACE_NNAPI_PRIORITY", priorities, options.priority));
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
  if (const char* path = environment("PINNACE_NNAPI_CACHE"); path && *path) {
    const auto folder = PrivateFolder::open(path);
    if (folder) {
      options.cache_folder = path;
    } else {
      options.cache_problem = folder.status().message();
    }
  }
  return options;
}

}  // namespace pinnace::nnapi_client
