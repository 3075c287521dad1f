// The library's log: its clients have no function to give it a sink, so PINNACE_LOG alone turns it on, and messages go
// to stderr. A message is one write, so that lines of several threads do not mix and a fork leaves no lock behind.
#include "base/log.h"

#include <sys/uio.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <ctime>

#include "base/environment.h"

namespace pinnace::nnapi_host {
namespace {

/// "20:10:02.123 4711 info neuralnetworks: text"; the time is UTC, the number is that of the thread.
void write_line(void*, LogLevel level, std::string_view text) {
  const int before = errno;
  timespec now{};
  ::clock_gettime(CLOCK_REALTIME, &now);
  const auto second = static_cast<int>(now.tv_sec % 86'400);
  char front[96];
  const int length = std::snprintf(front, sizeof front, "%02d:%02d:%02d.%03d %d %s neuralnetworks: ", second / 3600,
                                   second / 60 % 60, second % 60, static_cast<int>(now.tv_nsec / 1'000'000),
                                   static_cast<int>(::gettid()), log_level_name(level));
  char end = '\n';
  const iovec parts[] = {
      {front, static_cast<size_t>(length)}, {const_cast<char*>(text.data()), text.size()}, {&end, 1}};
  if (::writev(STDERR_FILENO, parts, 3) < 0) {  // a closed stderr is nobody's error
  }
  errno = before;
}

/// Before anything of the library is called. In a set-user-id process environment() knows no variable.
[[gnu::constructor]] void read_environment() {
  const char* name = environment("PINNACE_LOG");
  if (!name || !*name) return;
  const auto level = log_level_from_name(name);
  static_cast<void>(set_log_sink(write_line, level ? *level : LogLevel::kWarn));
  if (!level) PINNACE_LOG_ERROR("PINNACE_LOG: ", level.status().message(), "; warn is taken");
}

}  // namespace
}  // namespace pinnace::nnapi_host
