// A file holds a magic word and the hash of what follows: the key, the driver, and two times or a reason, a line each.
#include "runtime/measured_times.h"

#include <sys/stat.h>

#include <charconv>
#include <ctime>
#include <optional>

#include "base/environment.h"
#include "base/files/private_folder.h"
#include "base/files/user_cache.h"
#include "base/hash.h"
#include "base/log.h"
#include "runtime/device_search.h"

namespace pinnace {
namespace {

constexpr std::string_view kMagic = "pinnace times 2 ", kReason = "passed over: ";
constexpr time_t kValidSeconds = 30 * 24 * 3600;

constinit PerProcess<TimesMemory> memory;

std::span<const std::byte> bytes_of(std::string_view text) {
  return std::as_bytes(std::span(text.data(), text.size()));
}

/// As the environment says, else the user's, which ARM64 does without; empty: no times are kept.
std::string cache_folder() {
  const char* folder = environment("PINNACE_GPU_CACHE");
#if PINNACE_SEARCHES_BESIDE_RUNS
  return folder ? folder : user_cache_folder();
#else
  return folder ? folder : "";
#endif
}
Result<PrivateFolder> open_folder([[maybe_unused]] bool make) {
#if PINNACE_SEARCHES_BESIDE_RUNS
  if (!environment("PINNACE_GPU_CACHE")) return open_user_cache(make);
#endif
  return PrivateFolder::open(cache_folder());
}
std::string file_of(const std::string& key) {
  return str_cat("auto-", hash64(bytes_of(key)), ".times");
}
std::string one_line(std::string text) {
  for (char& c : text) c = c == '\n' ? ' ' : c;
  return text;
}

/// A line off the front, without its end; none: there is none.
std::optional<std::string_view> take_line(std::string_view* text) {
  const size_t end = text->find('\n');
  if (end == std::string_view::npos) return std::nullopt;
  const std::string_view line = text->substr(0, end);
  text->remove_prefix(end + 1);
  return line;
}

/// "1234 finished" or "1234 stopped".
bool read_timing(std::optional<std::string_view> line, Timing* timing) {
  if (!line) return false;
  const auto [at, problem] = std::from_chars(line->data(), line->data() + line->size(), timing->us);
  if (problem != std::errc() || timing->us < 1) return false;
  line->remove_prefix(static_cast<size_t>(at - line->data()));
  timing->finished = *line == " finished";
  return timing->finished || *line == " stopped";
}

/// False if the text is damaged or of another key.
bool read_times(std::string_view text, const std::string& key, MeasuredTimes* times) {
  const auto first = take_line(&text);
  if (!first || *first != str_cat(kMagic, hash64(bytes_of(text)))) return false;
  const auto of = take_line(&text), driver = take_line(&text);
  if (!of || *of != key || !driver) return false;
  times->driver = *driver;
  std::string_view rest = text;
  if (const auto line = take_line(&rest); line && line->starts_with(kReason)) {
    times->passed_over = line->substr(kReason.size());
    return rest.empty() && !times->passed_over.empty();
  }
  return read_timing(take_line(&text), &times->device) && read_timing(take_line(&text), &times->rest) && text.empty();
}

/// False if the file is not there, not trusted, too old, damaged, or of something else.
bool read_file(const std::string& key, MeasuredTimes* times) {
  if (cache_folder().empty()) return false;
  const auto ignored = [&](std::string_view why) {
    PINNACE_LOG_DEBUG("times of auto in '", measured_times_path(key), "' are not used: ", why);
    return false;
  };
  const auto folder = open_folder(false);
  if (!folder) return ignored(folder.status().message());
  const auto file = folder->read(file_of(key));
  if (!file) return ignored(file.status().message());
  struct stat about = {};
  const bool known = ::fstat((*file)->descriptor(), &about) == 0;
  const time_t age = known ? ::time(nullptr) - about.st_mtime : 0;
  if (!known || age < -kValidSeconds || age > kValidSeconds) return ignored("the file is older than 30 days");
  const auto bytes = (*file)->bytes();
  const std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  if (!read_times(text, key, times)) return ignored("the file is damaged or of another model, device or build");
  PINNACE_LOG_DEBUG("times of auto are read from '", measured_times_path(key), "'");
  return true;
}

}  // namespace

bool TimesMemory::find(const std::string& key, MeasuredTimes* times) {
  if (const auto found = known_.find(key); found != known_.end()) {
    *times = found->second;
    return true;
  }
  MeasuredTimes read;
  if (!read_file(key, &read)) return false;
  *times = known_[key] = std::move(read);
  return true;
}

Status TimesMemory::add(const std::string& key, const MeasuredTimes& times) {
  known_[key] = times;
  if (cache_folder().empty()) return {};
  const auto folder = open_folder(true);
  std::string text = str_cat(key, "\n", one_line(times.driver), "\n");
  if (times.passed_over.empty()) {
    for (const Timing& t : {times.device, times.rest}) {
      text += str_cat(t.us, t.finished ? " finished\n" : " stopped\n");
    }
  } else {
    text += str_cat(kReason, one_line(times.passed_over), "\n");
  }
  text = str_cat(kMagic, hash64(bytes_of(text)), "\n", text);
  const Status written = folder ? folder->write(file_of(key), bytes_of(text)) : folder.status();
  PINNACE_LOG_DEBUG("times of auto are ", written.ok() ? "" : "not ", "written to '", measured_times_path(key),
                    written.ok() ? "'" : "': ", written.message());
  // Nobody has asked for the user's own folder: that it cannot be written is no news.
  return environment("PINNACE_GPU_CACHE") ? written : Status();
}

PerProcess<TimesMemory>::Locked measured_times() {
  return memory.lock();
}

std::string measured_times_path(const std::string& key) {
  return cache_folder().empty() ? std::string() : str_cat(cache_folder(), "/", file_of(key));
}

}  // namespace pinnace
