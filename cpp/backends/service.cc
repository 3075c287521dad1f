// Members of Service by name, so that what a back end has no use of can be said.
#include "backends/service.h"

#include <algorithm>
#include <utility>

namespace pinnace {

std::span<const ServiceWord> preference_words() {
  static constexpr ServiceWord words[] = {{"low_power", 0}, {"fast_single_answer", 1}, {"sustained_speed", 2}};
  return words;
}

std::span<const ServiceWord> priority_words() {
  static constexpr ServiceWord words[] = {{"low", 90}, {"medium", 100}, {"high", 110}};
  return words;
}

Result<int> service_number(std::string_view what, std::string_view word, std::span<const ServiceWord> words) {
  std::string known;
  for (const ServiceWord& w : words) {
    if (w.word == word) return w.nnapi;
    known += str_cat(known.empty() ? "" : ", ", w.word);
  }
  return invalid(what, " is '", word, "', must be one of ", known);
}

Status check_service(const Service& service) {
  if (!service.preference.empty()) {
    PINNACE_TRY(service_number("preference", service.preference, preference_words()).status());
  }
  if (!service.priority.empty()) {
    PINNACE_TRY(service_number("priority", service.priority, priority_words()).status());
  }
  for (const auto& [name, time] : {std::pair{"deadline", service.deadline}, {"loop_timeout", service.loop_timeout}}) {
    if (time.count() < 0) return invalid(name, " is ", time.count(), " ns, must be 0 or more");
  }
  return {};
}

std::string unused_members(std::string_view backend, const Service& service,
                           std::initializer_list<std::string_view> used) {
  const std::pair<std::string_view, bool> members[] = {
      {"preference", !service.preference.empty()}, {"priority", !service.priority.empty()},
      {"deadline", service.deadline.count() > 0},  {"cache_folder", !service.cache_folder.empty()},
      {"device", !service.device.empty()},         {"processors", !service.processors.empty()},
  };
  std::string names;
  for (const auto& [name, set] : members) {
    if (!set || std::find(used.begin(), used.end(), name) != used.end()) continue;
    names += str_cat(names.empty() ? "" : ", ", name);
  }
  return names.empty() ? names : str_cat(backend, " has no use of ", names);
}

}  // namespace pinnace
