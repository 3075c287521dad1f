// Lines to standard error or a file.
#include "nnapi_host/test_bed/sink.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>

#include "base/files/mapped_file.h"

namespace pinnace::nnapi_host {

Sink::Sink(const std::string& path) : file_(STDERR_FILENO) {
  if (path == "stderr") return;
  const int opened = ::open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
  const int error = errno;
  if (opened >= 0) {
    file_ = opened;
  } else {
    line(file_error("open", path, error).message());
  }
}

void Sink::line(std::string_view text) const {
  std::string whole = "pinnace-nnapi: ";
  whole += text;
  whole += '\n';
  for (std::string_view rest = whole; !rest.empty();) {
    const ssize_t written = ::write(file_, rest.data(), rest.size());
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) return;  // there is nowhere to say so
    rest.remove_prefix(static_cast<size_t>(written));
  }
}

}  // namespace pinnace::nnapi_host
