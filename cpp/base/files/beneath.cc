// openat2 with RESOLVE_BENEATH; by hand: openat with O_NOFOLLOW for every component, from descriptors that are held.
#include "base/files/beneath.h"

#include <fcntl.h>
#include <limits.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>
#include <cerrno>
#include <string_view>
#include <vector>

#include "base/files/mapped_file.h"

namespace pinnace {
namespace {

constexpr size_t kLongestLocation = 4096;
constexpr int kMostLinks = 40;  // as Linux

#if defined(O_PATH)
constexpr int kFolderFlags = O_PATH | O_DIRECTORY | O_CLOEXEC;
#else
constexpr int kFolderFlags = O_RDONLY | O_DIRECTORY | O_CLOEXEC;
#endif

/// A descriptor, or the negative errno. -EXDEV: the location leaves the folder.
int open_by_system([[maybe_unused]] int folder, [[maybe_unused]] const std::string& location) {
#if defined(SYS_openat2)
  // linux/openat2.h is younger than some systems that the kernel runs.
  struct {
    uint64_t flags, mode, resolve;
  } how{static_cast<uint64_t>(reading_flags()), 0, 0x02 | 0x08};  // RESOLVE_NO_MAGICLINKS, RESOLVE_BENEATH
  int error = EAGAIN;                                             // something on the way was renamed meanwhile
  for (int i = 0; i < 8 && error == EAGAIN; ++i) {
    const long fd = ::syscall(SYS_openat2, folder, location.c_str(), &how, sizeof how);
    if (fd >= 0) return static_cast<int>(fd);
    error = errno;
  }
  return -error;
#else
  return -ENOSYS;
#endif
}

/// Puts the components of a path on a stack, the first on top.
void push_parts(std::string_view path, std::vector<std::string>& parts) {
  while (!path.empty()) {
    const size_t slash = path.rfind('/');
    const std::string_view part = slash == std::string_view::npos ? path : path.substr(slash + 1);
    if (!part.empty() && part != ".") parts.emplace_back(part);
    path = slash == std::string_view::npos ? std::string_view() : path.substr(0, slash);
  }
}

int open_by_hand(int folder, const std::string& location) {
  std::vector<std::string> parts;
  push_parts(location, parts);
  std::vector<Descriptor> inside;  // folders below `folder`, each in the one before
  int links = 0;
  while (!parts.empty()) {
    const std::string part = std::move(parts.back());
    parts.pop_back();
    if (part == "..") {
      if (inside.empty()) return -EXDEV;
      inside.pop_back();
      continue;
    }
    const int at = inside.empty() ? folder : inside.back().get();
    const bool last = parts.empty();
    Descriptor found(::openat(at, part.c_str(), (last ? reading_flags() : kFolderFlags) | O_NOFOLLOW));
    if (found.valid() && last) return found.release();
    if (found.valid()) {
      inside.push_back(std::move(found));
      continue;
    }
    const int error = errno;
    char target[PATH_MAX];
    const ssize_t length = ::readlinkat(at, part.c_str(), target, sizeof target);
    if (length < 0) return -error;  // it is no link
    if (++links > kMostLinks) return -ELOOP;
    if (length == 0 || target[0] == '/') return -EXDEV;
    push_parts({target, static_cast<size_t>(length)}, parts);
  }
  return -EISDIR;
}

template <class... Parts>
Status refused(const std::string& location, const Parts&... parts) {
  return fail_with(Code::kCorruptFile, "'", location, "' ", parts...);
}

}  // namespace

Result<Folder> Folder::open(const std::string& path) {
  if (path.find('\0') != std::string::npos) return Status(Code::kFile, "cannot open a path that holds a NUL character");
  Descriptor descriptor(::open(path.c_str(), kFolderFlags));
  if (!descriptor.valid()) return file_error("open the folder", path, errno);
  return Folder(std::move(descriptor));
}

Result<Folder> Folder::of_file(const std::string& path) {
  const size_t slash = path.rfind('/');
  return open(slash == std::string::npos ? "." : slash == 0 ? "/" : path.substr(0, slash));
}

Result<RegularFile> Folder::open_beneath(const std::string& location, Lookup lookup) const {
  const std::string shown = location.substr(0, 256);
  if (location.empty() || location[0] == '/' || location.find('\0') != std::string::npos ||
      location.size() > kLongestLocation) {
    return refused(shown, "is not a path below the model's folder");
  }
  int fd = lookup == Lookup::kBySystem ? open_by_system(descriptor_.get(), location) : -ENOSYS;
  // A filter of system calls may answer EPERM to those it does not know.
  if (fd == -ENOSYS || fd == -EPERM || fd == -EAGAIN) fd = open_by_hand(descriptor_.get(), location);
  if (fd == -EXDEV) return refused(shown, "lies outside the model's folder");
  if (fd == -EISDIR || fd == -ENXIO || fd == -ENODEV) return refused(shown, "is not a file");
  if (fd < 0) return file_error("open", shown, -fd);
  auto file = regular_file(Descriptor(fd), shown);
  if (file.status().rule() == kNotRegular) return refused(shown, "is not a file");
  return file;
}

}  // namespace pinnace
