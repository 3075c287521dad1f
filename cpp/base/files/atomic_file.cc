// openat O_EXCL, write, fsync, renameat, fsync of the folder.
#include "base/files/atomic_file.h"

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
#include "base/files/mapped_file.h"

namespace pinnace {
namespace {

/// For names in it, and to flush them where the folder may be read.
Descriptor open_folder(const std::string& path) {
  Descriptor folder(::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
#if defined(O_PATH)
  if (!folder.valid() && errno == EACCES) folder = Descriptor(::open(path.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
#endif
  return folder;
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
    return fail_with(Code::kFile, "cannot write '", path, "': it is not a regular file");
  }
  return target;
}

/// All pieces, flushed to the disk: 0, or the errno of what failed; ECANCELED if the caller's work is to stop.
int write_and_flush(int fd, std::span<const std::span<const std::byte>> pieces) {
  // All of a large file at once would take a slow disk seconds at the end, which nothing can interrupt.
  constexpr size_t kWritten = 8 << 20, kFlushed = 64 << 20;
  size_t unflushed = 0;
  for (std::span<const std::byte> bytes : pieces) {
    while (!bytes.empty()) {
      if (stopped()) return ECANCELED;
      const ssize_t written = ::write(fd, bytes.data(), std::min(bytes.size(), kWritten));
      if (written < 0) {
        if (errno == EINTR) continue;
        return errno;
      }
      bytes = bytes.subspan(static_cast<size_t>(written));
      unflushed += static_cast<size_t>(written);
      if (unflushed < kFlushed) continue;
      if (::fsync(fd) != 0) return errno;
      unflushed = 0;
    }
  }
  return ::fsync(fd) == 0 ? 0 : errno;
}

}  // namespace

Status replace_in(const Descriptor& folder, const std::string& name, std::span<const std::span<const std::byte>> pieces,
                  mode_t mode, const std::string& path, void (*before_rename)()) {
  static std::atomic<uint64_t> next{0};
  std::string temporary;
  Descriptor file;
  do {  // names left by a killed process of the same number are passed over
    // The name is cut so that a name of the longest length (255 bytes) still has a temporary neighbour.
    temporary = str_cat(".", name.substr(0, 200), ".", ::getpid(), "-", next.fetch_add(1), ".tmp");
    file = Descriptor(
        ::openat(folder.get(), temporary.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, mode));
  } while (!file.valid() && errno == EEXIST);
  if (!file.valid()) return file_error("write", path, errno);
  int error = write_and_flush(file.get(), pieces);
  if (::close(file.release()) != 0 && !error) error = errno;
  if (!error && before_rename) before_rename();
  if (!error && ::renameat(folder.get(), temporary.c_str(), folder.get(), name.c_str()) != 0) error = errno;
  if (error) {
    ::unlinkat(folder.get(), temporary.c_str(), 0);
    if (error == ECANCELED && stopped()) return stop_status(str_cat("the writing of ", path));
    return file_error("write", path, error);
  }
  // EINVAL: a file system that has nothing to flush. EBADF: the folder may not be read.
  if (::fsync(folder.get()) != 0 && errno != EINVAL && errno != EBADF) {
    return file_error("flush the folder of", path, errno);
  }
  return {};
}

Status write_file_atomically(const std::string& path, std::span<const std::byte> bytes, void (*before_rename)()) {
  return write_file_atomically(path, std::span(&bytes, 1), before_rename);
}

Status write_file_atomically(const std::string& path, std::span<const std::span<const std::byte>> pieces,
                             void (*before_rename)()) {
  if (path.empty() || path.find('\0') != std::string::npos) {
    return Status(Code::kFile, "cannot write to a path that is empty or holds a NUL character");
  }
  PINNACE_ASSIGN(const std::string target, target_of(path));
  const size_t slash = target.rfind('/');
  const Descriptor folder = open_folder(slash == std::string::npos ? "." : slash == 0 ? "/" : target.substr(0, slash));
  if (!folder.valid()) return file_error("write", path, errno);
  return replace_in(folder, target.substr(slash == std::string::npos ? 0 : slash + 1), pieces, 0666, path,
                    before_rename);
}

}  // namespace pinnace
