// open O_EXCL, write, fsync, rename, fsync of the folder.
#include "base/atomic_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>
#include <atomic>
#include <cerrno>
#include <climits>
#include <cstdio>
#include <cstdlib>
#include <memory>

#include "base/cancel.h"
#include "base/mapped_file.h"

namespace pinnace {
namespace {

/// Flushes the folder's list of names. File systems that cannot (EINVAL) have nothing to flush.
int sync_folder(const std::string& folder) {
  const int fd = ::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (fd < 0) return errno == EACCES ? 0 : errno;  // a folder may be writable and not readable
  const int error = ::fsync(fd) == 0 || errno == EINVAL ? 0 : errno;
  ::close(fd);
  return error;
}

/// The file to replace: `path`, or what it links to. Fails where that is no regular file.
Result<std::string> target_of(const std::string& path) {
  struct stat about;
  if (::lstat(path.c_str(), &about) != 0) {
    if (errno == ENOENT) return path;
    return file_error("write", path, errno);
  }
  std::string target = path;
  if (S_ISLNK(about.st_mode)) {
    const std::unique_ptr<char, void (*)(void*)> resolved(::realpath(path.c_str(), nullptr), std::free);
    if (!resolved) return file_error("follow the link", path, errno);
    target = resolved.get();
    if (::stat(target.c_str(), &about) != 0) return file_error("write", target, errno);
  }
  if (!S_ISREG(about.st_mode)) {
    return Status(Code::kFile, str_cat("cannot write '", path, "': it is not a regular file"));
  }
  return target;
}

}  // namespace

int write_and_flush(int fd, std::span<const std::byte> bytes) {
  constexpr size_t kPiece = 8 << 20, kFlushed = 8;  // pieces
  for (size_t piece = 1; !bytes.empty(); ++piece) {
    if (stopped()) return ECANCELED;
    const ssize_t written = ::write(fd, bytes.data(), std::min(bytes.size(), kPiece));
    if (written < 0) {
      if (errno == EINTR) continue;
      return errno;
    }
    bytes = bytes.subspan(static_cast<size_t>(written));
    // All of a large file at once would take a slow disk seconds at the end, which nothing can interrupt.
    if (piece % kFlushed == 0 && ::fsync(fd) != 0) return errno;
  }
  return ::fsync(fd) == 0 ? 0 : errno;
}

Status write_file_atomically(const std::string& path, std::span<const std::byte> bytes, void (*before_rename)()) {
  if (path.empty() || path.find('\0') != std::string::npos) {
    return Status(Code::kFile, "cannot write to a path that is empty or holds a NUL character");
  }
  PINNACE_ASSIGN(const std::string target, target_of(path));
  const size_t slash = target.rfind('/');
  const std::string folder = slash == std::string::npos ? "." : slash == 0 ? "/" : target.substr(0, slash);
  // The name is cut so that a name of the longest length (255 bytes) still has a temporary neighbour.
  const std::string name = target.substr(slash == std::string::npos ? 0 : slash + 1, 200);
  static std::atomic<uint64_t> next{0};
  std::string temporary;
  int fd = -1;
  do {  // names left by a killed process of the same number are passed over
    temporary = str_cat(folder, "/.", name, ".", ::getpid(), "-", next.fetch_add(1), ".tmp");
    fd = ::open(temporary.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
  } while (fd < 0 && errno == EEXIST);
  if (fd < 0) return file_error("write", path, errno);
  int error = write_and_flush(fd, bytes);
  if (::close(fd) != 0 && !error) error = errno;
  if (!error && before_rename) before_rename();
  if (!error && ::rename(temporary.c_str(), target.c_str()) != 0) error = errno;
  if (error) {
    ::unlink(temporary.c_str());
    if (error == ECANCELED && stopped()) return stop_status(str_cat("the writing of ", path));
    return file_error("write", path, error);
  }
  if ((error = sync_folder(folder))) return file_error("flush the folder of", path, error);
  return {};
}

}  // namespace pinnace
