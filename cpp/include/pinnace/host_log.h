// The log of the host library (libpinnace, the Python extension): spdlog writes messages to stderr, and they can be
// kept for a caller who takes them later. The environment's PINNACE_LOG=error|warn|info|debug|trace|off sets what goes
// to stderr when the library is loaded. The device library has <pinnace/log.h> alone.
#pragma once

#include <chrono>
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <pinnace/log.h>

#pragma GCC visibility push(default)
namespace pinnace {

/// Writes messages of level `least` and above to stderr, each a line of time, level and text; kOff: none.
///
/// Makes the host library's sink the one of set_log_sink(), in the place of any other. Safe after a fork.
/// Errors as set_log_sink().
Status log_to_stderr(LogLevel least);
/// What log_to_stderr() or PINNACE_LOG has set; kOff: nothing is written.
LogLevel stderr_log_level();
/// What PINNACE_LOG named when the library was loaded; nothing: it was not set, or does not count (in a process that
/// has rights which its caller lacks).
std::optional<LogLevel> environment_log_level();

/// One message that was kept.
struct LogMessage {
  LogLevel level;
  std::string text;
  std::chrono::system_clock::time_point time;  ///< when it arose
};

/// Keeps messages of level `least` and above, in the order in which they arose, until take_log(); kOff: none. At most
/// 16 MiB of them; further ones are counted and dropped. For hosts whose own log may only be called on certain threads
/// or under certain locks, as Python's. Errors as set_log_sink().
Status keep_log(LogLevel least);
/// Whether take_log() has something to give; one load.
bool log_is_kept() noexcept;
/// What was kept since the last call, with a warning at the end that counts those that were dropped. Throws
/// std::bad_alloc, after which nothing is lost. From any thread.
std::vector<LogMessage> take_log();

/// Hands over a message of the host's own code, as if the library had made it.
void write_log(LogLevel level, std::string_view text) noexcept;
/// Writes a line to stderr as log_to_stderr() does, whatever its level is.
void print_log(LogLevel level, std::string_view text) noexcept;

}  // namespace pinnace
#pragma GCC visibility pop
