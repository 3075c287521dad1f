// Reading of the test bed's environment variables.
#include "nnapi_host/test_bed/settings.h"

#include <algorithm>
#include <charconv>
#include <optional>
#include <string_view>

#include "base/environment.h"
#include "base/text.h"
#include "nnapi/operations.h"

namespace pinnace::nnapi_host {
namespace {

constexpr uint64_t kLongestDelayUs = 600'000'000;

std::optional<uint64_t> number(std::string_view text) {
  uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

std::vector<std::string_view> split(std::string_view text, char separator) {
  std::vector<std::string_view> parts;
  while (!text.empty()) {
    const size_t at = text.find(separator);
    if (at != 0) parts.push_back(text.substr(0, at));
    text.remove_prefix(at == std::string_view::npos ? text.size() : at + 1);
  }
  return parts;
}

/// "29", "1000006" as NNAPI has them; "fl3" as we count.
std::optional<int> level(std::string_view text) {
  const bool counted = text.starts_with("fl");
  const auto value = number(text.substr(counted ? 2 : 0));
  for (int level = 1; value && level <= nnapi::kNewestFeatureLevel; ++level) {
    if (*value == static_cast<uint64_t>(counted ? level : nnapi::feature_level_code(level))) return level;
  }
  return std::nullopt;
}

/// "ADD,CONV_2D", "ALL,-ADD".
bool read_operations(std::string_view text, std::bitset<nnapi::kOperationCount>& set) {
  for (std::string_view name : split(text, ',')) {
    const bool add = !name.starts_with('-');
    if (!add) name.remove_prefix(1);
    bool known = false;
    for (const nnapi::OperationInfo& operation : nnapi::all_operations()) {
      if (name != "ALL" && name != operation.name) continue;
      set.set(static_cast<size_t>(operation.code), add);
      known = true;
    }
    if (!known) return false;
  }
  return true;
}

/// "@3", "@3+", "@3-5" or nothing.
bool read_calls(std::string_view text, Fault& fault) {
  const bool open = text.ends_with('+');
  if (open) text.remove_suffix(1);
  const size_t dash = text.find('-');
  const auto first = number(text.substr(0, dash));
  if (!first || *first == 0 || (open && dash != std::string_view::npos)) return false;
  fault.first = fault.last = *first;
  if (open) fault.last = UINT64_MAX;
  if (dash == std::string_view::npos) return true;
  const auto last = number(text.substr(dash + 1));
  if (!last || *last < *first) return false;
  fault.last = *last;
  return true;
}

bool read_place(std::string_view name, Fault& fault) {
  if (name == "*") fault.place = Fault::Place::kAny;
  if (name == "computation") fault.place = Fault::Place::kComputation;
  if (fault.place != Fault::Place::kFunction) return true;
  const auto* found =
      std::find_if(std::begin(kFunctions), std::end(kFunctions), [&](const FunctionInfo& f) { return name == f.name; });
  if (found == std::end(kFunctions)) return false;
  fault.function = static_cast<Function>(found - std::begin(kFunctions));
  return true;
}

/// "20ms", "5us", "1s".
std::optional<uint64_t> microseconds(std::string_view text) {
  uint64_t unit = 0;
  for (const auto& [suffix, us] : {std::pair{"us", 1}, {"ms", 1000}, {"s", 1'000'000}}) {
    if (unit || !text.ends_with(suffix)) continue;
    unit = static_cast<uint64_t>(us);
    text.remove_suffix(std::string_view(suffix).size());
  }
  const auto value = number(text);
  if (!unit || !value || *value > kLongestDelayUs / unit) return std::nullopt;
  return *value * unit;
}

/// A result code by name or number, "dead", or "delay:20ms"; several joined by "+".
bool read_actions(std::string_view text, Fault& fault) {
  for (std::string_view action : split(text, '+')) {
    if (action == "dead") {
      fault.dead = true;
      fault.code = ANEURALNETWORKS_DEAD_OBJECT;
      continue;
    }
    if (action.starts_with("delay:")) {
      const auto delay = microseconds(action.substr(6));
      if (!delay) return false;
      fault.delay_us = *delay;
      continue;
    }
    const auto codes = nnapi::result_names();
    const auto found = std::find(codes.begin(), codes.end(), action);
    const auto value = found == codes.end() ? number(action) : static_cast<uint64_t>(found - codes.begin());
    if (!value || *value == 0 || *value >= codes.size()) return false;
    fault.code = static_cast<int>(*value);
  }
  const bool gives_code = fault.place != Fault::Place::kFunction || info(fault.function).gives_code;
  return fault.code == 0 ? fault.delay_us != 0 : gives_code;
}

bool read_fault(std::string_view text, Fault& fault) {
  const size_t equals = text.find('=');
  if (equals == std::string_view::npos) return false;
  const std::string_view place = text.substr(0, equals);
  const size_t at = place.find('@');
  if (!read_place(place.substr(0, at), fault)) return false;
  if (at != std::string_view::npos && !read_calls(place.substr(at + 1), fault)) return false;
  return read_actions(text.substr(equals + 1), fault);
}

/// "1" and "stderr" are standard error; a path has a slash.
bool read_sink(std::string_view text, std::string& to) {
  if (text == "0") return true;
  to = text == "1" ? "stderr" : std::string(text);
  return to == "stderr" || to.find('/') != std::string::npos;
}

}  // namespace

std::string result_name(int code) {
  const auto codes = nnapi::result_names();
  return code >= 0 && static_cast<size_t>(code) < codes.size() ? codes[static_cast<size_t>(code)] : str_cat(code);
}

Settings read_settings(std::vector<std::string>& errors) {
  Settings s;
  const auto read = [&](const char* name, const char* wanted, auto take) {
    const char* value = environment(name);
    if (!value || !*value || take(std::string_view(value))) return;
    errors.push_back(str_cat(name, "=", value, ": must be ", wanted));
  };
  read("PINNACE_NNAPI_LEVEL", "27 to 31, 1000006 to 1000008, or fl1 to fl8", [&](std::string_view text) {
    const auto found = level(text);
    s.feature_level = found.value_or(s.feature_level);
    return found.has_value();
  });
  read("PINNACE_NNAPI_UNSUPPORTED", "names of operations, separated by commas; ALL; -NAME takes one out",
       [&](std::string_view text) { return read_operations(text, s.unsupported); });
  read("PINNACE_NNAPI_GPU", "0 or 1", [&](std::string_view text) {
    s.gpu = text != "0";
    return text == "0" || text == "1";
  });
  read("PINNACE_NNAPI_TRACE", "1 or a path with a slash", [&](std::string_view t) { return read_sink(t, s.trace); });
  read("PINNACE_NNAPI_STRICT", "1 or a path with a slash", [&](std::string_view t) { return read_sink(t, s.strict); });
  read("PINNACE_NNAPI_DUMP", "a folder's path with a slash", [&](std::string_view text) {
    s.dump = text;
    return text.find('/') != std::string_view::npos;
  });
  read("PINNACE_NNAPI_FAULTS", "FUNCTION[@call][+|-call]=CODE|dead|delay:20ms, separated by semicolons",
       [&](std::string_view text) {
         for (std::string_view part : split(text, ';')) {
           if (!read_fault(part, s.faults.emplace_back())) return false;
         }
         return true;
       });
  return s;
}

}  // namespace pinnace::nnapi_host
