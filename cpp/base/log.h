// PINNACE_LOG_INFO(parts...) and its like: a message for the sink of <pinnace/log.h>.
//
// Where nobody wants the level, a message costs one relaxed load, and its parts are not evaluated. Where somebody does,
// it can fail nothing: memory that its parts or its text lack costs the message alone. Parts are those of str_cat; they
// name things (files, nodes, devices, sizes, times) and never what a run's inputs, outputs or states hold.
#pragma once

#include <atomic>
#include <chrono>
#include <string>

#include <pinnace/log.h>

#include "base/exception_boundary.h"
#include "base/text.h"

namespace pinnace {

/// The least level that the sink wants; kOff while there is none.
extern std::atomic<LogLevel> wanted_log_level;

inline bool logs(LogLevel level) {
  return level >= wanted_log_level.load(std::memory_order_relaxed);
}

/// Gives the text to the sink, cut to one printable line.
[[gnu::cold]] void send_log(LogLevel level, std::string_view text);

/// Sends the text that make() gives; what the two lack memory for is dropped.
template <class F>
[[gnu::cold, gnu::noinline]] void log_made(LogLevel level, const F& make) noexcept {
  const auto send = [&] {
    send_log(level, make());
    return true;
  };
  static_cast<void>(exception_boundary(send, false));
}

/// Calls f(), which sends several messages and may lack memory for them, if somebody wants the level.
template <class F>
void log_several(LogLevel level, const F& f) noexcept {
  const auto send = [&] {
    f();
    return true;
  };
  if (logs(level)) static_cast<void>(exception_boundary(send, false));
}

/// Time since its making, as messages have it: "1.23 ms".
class LogTime {
 public:
  std::string text() const { return text_of(std::chrono::steady_clock::now() - start_); }
  static std::string text_of(std::chrono::nanoseconds time);

 private:
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
};

/// What a sink is: `call` knows the type that `function` had.
struct LogReceiver {
  void (*call)(const LogReceiver&, LogLevel, const std::string&) = nullptr;
  void (*function)() = nullptr;
  void* user = nullptr;
};
/// set_log_sink() for functions of any type.
Status set_log_receiver(const LogReceiver& receiver, LogLevel least);

}  // namespace pinnace

#define PINNACE_LOG(level, ...)                                                                              \
  do {                                                                                                       \
    if (::pinnace::logs(level)) ::pinnace::log_made(level, [&] { return ::pinnace::str_cat(__VA_ARGS__); }); \
  } while (false)
#define PINNACE_LOG_ERROR(...) PINNACE_LOG(::pinnace::LogLevel::kError, __VA_ARGS__)
#define PINNACE_LOG_WARN(...) PINNACE_LOG(::pinnace::LogLevel::kWarn, __VA_ARGS__)
#define PINNACE_LOG_INFO(...) PINNACE_LOG(::pinnace::LogLevel::kInfo, __VA_ARGS__)
#define PINNACE_LOG_DEBUG(...) PINNACE_LOG(::pinnace::LogLevel::kDebug, __VA_ARGS__)
#define PINNACE_LOG_TRACE(...) PINNACE_LOG(::pinnace::LogLevel::kTrace, __VA_ARGS__)
