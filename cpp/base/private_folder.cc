// openat and fstat: what is looked at is what is used, whatever takes its name meanwhile.
#include "base/private_folder.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>
#include <atomic>
#include <cerrno>
#include <cstdio>
#include <utility>

#include "base/atomic_file.h"
#include "base/cancel.h"
#include "base/mapped_file.h"

namespace pinnace {
namespace {

/// What keeps an open file or folder from being trusted; empty if nothing does.
std::string why_not_private(const struct stat& about) {
  const uid_t user = ::geteuid();
  if (about.st_uid != user) return str_cat("it belongs to user ", about.st_uid, ", not to ", user);
  if ((about.st_mode & (S_IWGRP | S_IWOTH)) == 0) return {};
  char mode[8];
  std::snprintf(mode, sizeof mode, "%03o", static_cast<unsigned>(about.st_mode & 0777));
  return str_cat("others than its owner can write it (mode ", mode, ")");
}

Status not_private(const std::string& path, const std::string& why) {
  return std::move(Status(Code::kFile, str_cat("cannot trust '", path, "': ", why)).with_rule(kUntrusted));
}

}  // namespace

Result<PrivateFolder> PrivateFolder::open(const std::string& path) {
  std::string plain = path, shown = path;  // all that is allocated before there is something to close
  while (plain.size() > 1 && plain.back() == '/') plain.pop_back();  // behind a slash links are followed
  if (plain.empty() || plain.find('\0') != std::string::npos) {
    return Status(Code::kFile, "a folder's path is empty or holds a NUL character");
  }
  constexpr int kFlags = O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC;
  int fd = ::open(plain.c_str(), kFlags);
  if (fd < 0 && errno == ENOENT) {
    if (::mkdir(plain.c_str(), 0700) != 0 && errno != EEXIST) return file_error("make the folder", path, errno);
    fd = ::open(plain.c_str(), kFlags);
  }
  if (fd < 0 && (errno == ELOOP || errno == ENOTDIR)) {
    struct stat link;
    const bool is_link = ::lstat(plain.c_str(), &link) == 0 && S_ISLNK(link.st_mode);
    return not_private(path, is_link ? "it is a link" : "it is no folder");
  }
  if (fd < 0) return file_error("open the folder", path, errno);
  PrivateFolder folder(std::move(shown), fd);
  struct stat about;
  if (::fstat(fd, &about) != 0) return file_error("look at the folder", path, errno);
  if (const std::string why = why_not_private(about); !why.empty()) return not_private(path, why);
  return folder;
}

PrivateFolder::PrivateFolder(PrivateFolder&& other) noexcept
    : path_(std::move(other.path_)), descriptor_(std::exchange(other.descriptor_, -1)) {}

PrivateFolder::~PrivateFolder() {
  if (descriptor_ >= 0) ::close(descriptor_);
}

Result<std::shared_ptr<const PrivateFile>> PrivateFolder::read(const std::string& name) const {
  const std::string path = str_cat(path_, "/", name);
  Descriptor descriptor(::openat(descriptor_, name.c_str(), reading_flags() | O_NOFOLLOW));
  if (!descriptor.valid() && errno == ELOOP) return not_private(path, "it is a link");
  if (!descriptor.valid()) return file_error("open", path, errno);
  struct stat about;
  if (::fstat(descriptor.get(), &about) != 0) return file_error("look at", path, errno);
  if (const std::string why = why_not_private(about); !why.empty()) return not_private(path, why);
  PINNACE_ASSIGN(RegularFile file, regular_file(std::move(descriptor), path));
  PINNACE_ASSIGN(std::shared_ptr<const MappedBytes> bytes, MappedBytes::of(file, path));
  return std::shared_ptr<const PrivateFile>(new PrivateFile(std::move(file.descriptor), std::move(bytes)));
}

Status PrivateFolder::write(const std::string& name, std::span<const std::byte> bytes) const {
  static std::atomic<uint64_t> next{0};
  const std::string path = str_cat(path_, "/", name);
  std::string temporary;
  int fd = -1;
  do {  // names left by a killed process of the same number are passed over
    temporary = str_cat(".", name.substr(0, 200), ".", ::getpid(), "-", next.fetch_add(1), ".tmp");
    fd = ::openat(descriptor_, temporary.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
  } while (fd < 0 && errno == EEXIST);
  if (fd < 0) return file_error("write", path, errno);
  int error = write_and_flush(fd, bytes);
  if (::close(fd) != 0 && !error) error = errno;
  if (!error && ::renameat(descriptor_, temporary.c_str(), descriptor_, name.c_str()) != 0) error = errno;
  if (error) {
    ::unlinkat(descriptor_, temporary.c_str(), 0);
    if (error == ECANCELED && stopped()) return stop_status(str_cat("the writing of ", path));
    return file_error("write", path, error);
  }
  if (::fsync(descriptor_) != 0 && errno != EINVAL) return file_error("flush the folder of", path, errno);
  return {};
}

}  // namespace pinnace
