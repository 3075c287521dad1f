// The host library's sink: spdlog for stderr, and what is kept for take_log().
//
// A forked child may find either lock in the hands of a thread that stayed behind in the parent: the line to stderr is
// then written all the same, since spdlog holds no more than how it formats, and what was kept is forgotten.
#include <pinnace/host_log.h>

// All of spdlog and fmt that is used is compiled here: no library of theirs is needed. Nothing is thrown but
// std::bad_alloc, and no thread number is remembered, which a forked child would have wrong.
#define SPDLOG_HEADER_ONLY
#define SPDLOG_NO_EXCEPTIONS
#define SPDLOG_NO_TLS
#define SPDLOG_LEVEL_NAMES {"trace", "debug", "info", "warn", "error", "critical", "off"}
#define FMT_HEADER_ONLY
#include <spdlog/logger.h>
#include <spdlog/pattern_formatter.h>
#include <spdlog/sinks/ansicolor_sink.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <memory>
#include <utility>

#include "base/environment.h"
#include "base/log.h"
#include "base/process.h"
#include "base/status.h"

namespace pinnace {
namespace {

constexpr size_t kMostKeptBytes = 16 << 20;

static_assert(static_cast<int>(LogLevel::kTrace) == spdlog::level::trace);
static_assert(static_cast<int>(LogLevel::kError) == spdlog::level::err);

/// "20:10:02.123": the time of day in UTC. Local time comes from the C library under a lock of its own, which a forked
/// child may find taken for ever.
class TimeOfDay final : public spdlog::custom_flag_formatter {
 public:
  void format(const spdlog::details::log_msg& message, const std::tm&, spdlog::memory_buf_t& to) override {
    const auto ms = std::chrono::duration_cast<std::chrono::milliseconds>(message.time.time_since_epoch()).count();
    const auto part = [&](int64_t unit, int64_t count) { return static_cast<int>(ms / unit % count); };
    char text[48];
    std::snprintf(text, sizeof text, "%02d:%02d:%02d.%03d", part(3'600'000, 24), part(60'000, 60), part(1000, 60),
                  part(1, 1000));
    to.append(std::string_view(text));
  }
  std::unique_ptr<spdlog::custom_flag_formatter> clone() const override { return std::make_unique<TimeOfDay>(); }
};

constinit std::atomic<LogLevel> stderr_least{LogLevel::kOff}, kept_least{LogLevel::kOff};
constinit ProcessMutex writing;

/// Under `writing`. Never destroyed: threads may still have something to say at exit.
spdlog::logger& logger() {
  static constinit spdlog::logger* made = nullptr;
  if (!made) {
    auto sink = std::make_shared<spdlog::sinks::ansicolor_stderr_sink_st>();
    auto formatter = std::make_unique<spdlog::pattern_formatter>();
    formatter->add_flag<TimeOfDay>('*').set_pattern("%* %t %^%l%$ pinnace: %v");
    sink->set_formatter(std::move(formatter));
    auto fresh = std::make_unique<spdlog::logger>("pinnace", std::move(sink));
    fresh->set_level(spdlog::level::trace);
    made = fresh.release();
  }
  return *made;
}

void write_line(LogLevel level, std::string_view text) {
  const ProcessLockAnew lock(writing);
  logger().log(static_cast<spdlog::level::level_enum>(level), spdlog::string_view_t(text.data(), text.size()));
}

/// Messages in order.
struct Kept {
  std::vector<LogMessage> messages;
  size_t bytes = 0, dropped = 0;
};
constinit PerProcess<Kept> kept;
constinit std::atomic<bool> any_kept{false};

void keep(LogLevel level, std::string_view text) {
  const auto all = kept.lock();
  any_kept.store(true, std::memory_order_relaxed);
  const size_t bytes = text.size() + sizeof(LogMessage);
  if (all->bytes + bytes > kMostKeptBytes) {
    ++all->dropped;
    return;
  }
  all->messages.push_back({level, std::string(text), std::chrono::system_clock::now()});
  all->bytes += bytes;
}

void take_message(void*, LogLevel level, std::string_view text) {
  if (level >= stderr_least.load(std::memory_order_relaxed)) write_line(level, text);
  if (level >= kept_least.load(std::memory_order_relaxed)) keep(level, text);
}

Status change(std::atomic<LogLevel>& which, LogLevel least) {
  if (least > LogLevel::kOff) return invalid("log level ", static_cast<int>(least), " is not one of 0 to 5");
  which.store(least);
  for (;;) {
    const LogLevel wanted = std::min(stderr_least.load(), kept_least.load());
    PINNACE_TRY(set_log_sink(take_message, wanted));
    // Another thread may have changed the other level meanwhile, and set the sink's before this one did.
    if (wanted == std::min(stderr_least.load(), kept_least.load())) return {};
  }
}

constinit std::optional<LogLevel> from_environment;

/// Before anything of the library is called.
[[gnu::constructor]] void read_environment() {
  const char* name = environment("PINNACE_LOG");
  if (!name || !*name) return;
  const auto level = log_level_from_name(name);
  from_environment = level ? *level : LogLevel::kWarn;
  static_cast<void>(log_to_stderr(*from_environment));
  if (!level) PINNACE_LOG_ERROR("PINNACE_LOG: ", level.status().message(), "; warn is taken");
}

}  // namespace

Status log_to_stderr(LogLevel least) {
  return change(stderr_least, least);
}

LogLevel stderr_log_level() {
  return stderr_least.load(std::memory_order_relaxed);
}

std::optional<LogLevel> environment_log_level() {
  return from_environment;
}

Status keep_log(LogLevel least) {
  return change(kept_least, least);
}

bool log_is_kept() noexcept {
  return any_kept.load(std::memory_order_relaxed);
}

std::vector<LogMessage> take_log() {
  Kept taken;
  const auto all = kept.lock();
  if (all->dropped) {
    const std::string text = str_cat(all->dropped, " messages were dropped: nobody took those before them in time");
    all->messages.push_back({LogLevel::kWarn, text, std::chrono::system_clock::now()});
    all->dropped = 0;
  }
  std::swap(*all, taken);
  any_kept.store(false, std::memory_order_relaxed);
  return std::move(taken.messages);
}

void write_log(LogLevel level, std::string_view text) noexcept {
  if (logs(level)) log_made(level, [&] { return text; });
}

void print_log(LogLevel level, std::string_view text) noexcept {
  const auto print = [&] {
    write_line(level, text);
    return true;
  };
  static_cast<void>(exception_boundary(print, false));
}

}  // namespace pinnace
