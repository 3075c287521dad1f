// What the library tells beside results and errors: one line for each thing that it loaded, chose, packed, measured,
// refused or did without, handed to a function of the application. Without such a function nothing is written, and a
// message that nobody wants costs one load of a number. docs/logging.md lists what is said at which level.
#pragma once

#include <cstdint>
#include <string_view>

#include <pinnace/status.h>

#pragma GCC visibility push(default)
namespace pinnace {

/// How much a message matters. The numbers are stable: the C API uses them.
enum class LogLevel : uint8_t {
  kTrace = 0,  ///< each run
  kDebug = 1,  ///< each node and each decision
  kInfo = 2,   ///< each phase: loaded, imported, planned, packed, measured, prepared
  kWarn = 3,   ///< something is slower than it could be, or other than was asked for
  kError = 4,  ///< something failed in a place from which no call can return it
  kOff = 5,    ///< of no message; as a limit: none is wanted
};

/// "trace", "debug", "info", "warn", "error", "off".
const char* log_level_name(LogLevel level);
/// The level of that name. kInvalidArgument: there is none; the sentence lists the names.
Result<LogLevel> log_level_from_name(std::string_view name);

/// Takes one message.
///
/// user     as it was given to set_log_sink.
/// text     one line of UTF-8, at most about 4,000 bytes, with a null character behind it; control characters of names
///          that a file brought are escaped. Borrowed until return. It never holds what a run's inputs, outputs or
///          states hold; of the model, a refusal names the attribute or constant that breaks its rule.
///
/// Called on any thread of the application's or of pinnace's, on several at once, and in a forked child as well. Locks
/// of the library may be held meanwhile: it must not call pinnace, must not wait for a thread that does, and must not
/// throw anything but std::bad_alloc, by which the message is lost. Messages that it causes itself are dropped.
using LogSink = void (*)(void* user, LogLevel level, std::string_view text);

/// Sends messages of level `least` and above to `sink` instead of the one before; null: messages are dropped.
///
/// On return no call of the one before is under way, and none will begin: what it used may be freed. So this waits for
/// calls on other threads; whoever holds a lock that the sink takes must not call it. In a forked child it does not
/// wait for the parent's threads. From any thread.
/// kInvalidArgument: the call comes from inside a sink, or `least` is no level.
Status set_log_sink(LogSink sink, LogLevel least = LogLevel::kInfo, void* user = nullptr);

/// Changes the least level that the present sink gets; without a sink it does nothing. Waits for no call of a sink.
/// From any thread. kInvalidArgument: the call comes from inside a sink, or `least` is no level.
Status set_log_level(LogLevel least);

}  // namespace pinnace
#pragma GCC visibility pop
