// The sink, and who calls it at the moment.
//
// Whoever has a message counts itself in `calls` and then looks at `listening`; whoever changes the sink clears
// `listening` and then waits until `calls` is zero. One of the two sees the other, so that nobody calls a sink that is
// gone. The count names its process: calls that a fork left behind in the parent are none of the child's.
#include "base/log.h"

#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <iterator>
#include <thread>

#include "base/process.h"
#include "base/status.h"
#include "base/utf8.h"

namespace pinnace {

constinit std::atomic<LogLevel> wanted_log_level{LogLevel::kOff};

namespace {

/// A name from a file may have any length.
constexpr size_t kLongestText = 4000;

constexpr const char* kNames[] = {"trace", "debug", "info", "warn", "error", "off"};

constinit ProcessMutex changing;  // held by who changes the next two
constinit LogReceiver receiver;   // read by those that are counted in `calls`, while `listening`
constinit std::atomic<bool> listening{false};

constinit std::atomic<uint64_t> calls{0};  // the process in the upper half, its calls of the sink in the lower
thread_local bool in_sink = false;         // this thread is in the sink

uint64_t this_process() {
  return static_cast<uint64_t>(static_cast<uint32_t>(::getpid())) << 32;
}
constexpr uint64_t kProcess = ~uint64_t{0} << 32;

/// Counts a call of the sink for a scope.
class Call {
 public:
  Call() : process_(this_process()) {
    uint64_t seen = calls.load(std::memory_order_relaxed);
    while (!calls.compare_exchange_weak(seen, (seen & kProcess) == process_ ? seen + 1 : process_ | 1)) {
    }
    in_sink = true;
  }
  ~Call() {
    in_sink = false;
    if (process_ == this_process()) calls.fetch_sub(1);  // in a child that the sink made, nothing was counted
  }
  Call(const Call&) = delete;
  Call& operator=(const Call&) = delete;

 private:
  const uint64_t process_;
};

bool calls_are_under_way() {
  const uint64_t seen = calls.load();
  return (seen & kProcess) == this_process() && (seen & ~kProcess) != 0;
}

Status check_change(LogLevel least) {
  if (in_sink) return invalid("a log sink cannot change the log");
  if (least > LogLevel::kOff) return invalid("log level ", static_cast<int>(least), " is not one of 0 to 5");
  return {};
}

void call_sink(const LogReceiver& to, LogLevel level, const std::string& text) {
  reinterpret_cast<LogSink>(to.function)(to.user, level, text);
}

}  // namespace

const char* log_level_name(LogLevel level) {
  return kNames[std::min<size_t>(static_cast<size_t>(level), std::size(kNames) - 1)];
}

Result<LogLevel> log_level_from_name(std::string_view name) {
  return exception_boundary([&]() -> Result<LogLevel> {
    for (size_t i = 0; i < std::size(kNames); ++i) {
      if (name == kNames[i]) return static_cast<LogLevel>(i);
    }
    return invalid("log level '", name, "' is not one of trace, debug, info, warn, error, off");
  });
}

Status set_log_receiver(const LogReceiver& next, LogLevel least) {
  return exception_boundary([&]() -> Status {
    PINNACE_TRY(check_change(least));
    const ProcessLockAnew lock(changing);
    wanted_log_level.store(LogLevel::kOff, std::memory_order_relaxed);
    listening.store(false);
    while (calls_are_under_way()) std::this_thread::sleep_for(std::chrono::microseconds(50));
    receiver = next;
    if (!next.call) return {};
    listening.store(true);
    wanted_log_level.store(least, std::memory_order_relaxed);
    return {};
  });
}

Status set_log_sink(LogSink sink, LogLevel least, void* user) {
  return set_log_receiver(sink ? LogReceiver{call_sink, reinterpret_cast<void (*)()>(sink), user} : LogReceiver{},
                          least);
}

Status set_log_level(LogLevel least) {
  return exception_boundary([&]() -> Status {
    PINNACE_TRY(check_change(least));
    const ProcessLockAnew lock(changing);
    if (listening.load()) wanted_log_level.store(least, std::memory_order_relaxed);
    return {};
  });
}

void send_log(LogLevel level, std::string_view text) {
  if (in_sink) return;
  // Escaped in steps, for a character may become four: the line is what has a limit.
  std::string line;
  size_t escaped = 0;
  while (escaped < text.size() && line.size() < kLongestText) {
    size_t end = std::min(text.size(), escaped + std::max<size_t>(4, (kLongestText - line.size()) / 4));
    while (end < text.size() && (static_cast<unsigned char>(text[end]) & 0xc0) == 0x80) ++end;  // whole characters
    line += printable(text.substr(escaped, end - escaped));
    escaped = end;
  }
  if (escaped < text.size()) line += str_cat(" ... (", text.size() - escaped, " bytes more)");
  const Call call;
  if (listening.load()) receiver.call(receiver, level, line);
}

std::string LogTime::text_of(std::chrono::nanoseconds time) {
  const double ms = static_cast<double>(time.count()) * 1e-6;
  char text[48];
  const bool long_time = ms >= 10'000;
  std::snprintf(text, sizeof text, long_time ? "%.1f s" : ms < 10 ? "%.2f ms" : "%.0f ms", long_time ? ms / 1000 : ms);
  return text;
}

}  // namespace pinnace
