// openat and fstat: what is looked at is what is used, whatever takes its name meanwhile.
#include "base/files/private_folder.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>
#include <cerrno>
#include <cstdio>
#include <utility>

#include "base/files/atomic_file.h"
#include "base/files/mapped_file.h"

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
  return std::move(fail_with(Code::kFile, "cannot trust '", path, "': ", why).with_rule(kUntrusted));
}

}  // namespace

Result<PrivateFolder> PrivateFolder::open(const std::string& path) {
  std::string plain = path;
  while (plain.size() > 1 && plain.back() == '/') plain.pop_back();  // behind a slash links are followed
  if (plain.empty() || plain.find('\0') != std::string::npos) {
    return Status(Code::kFile, "a folder's path is empty or holds a NUL character");
  }
  constexpr int kFlags = O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC;
  Descriptor descriptor(::open(plain.c_str(), kFlags));
  if (!descriptor.valid() && errno == ENOENT) {
    if (::mkdir(plain.c_str(), 0700) != 0 && errno != EEXIST) return file_error("make the folder", path, errno);
    descriptor = Descriptor(::open(plain.c_str(), kFlags));
  }
  if (!descriptor.valid() && (errno == ELOOP || errno == ENOTDIR)) {
    struct stat link;
    const bool is_link = ::lstat(plain.c_str(), &link) == 0 && S_ISLNK(link.st_mode);
    return not_private(path, is_link ? "it is a link" : "it is no folder");
  }
  if (!descriptor.valid()) return file_error("open the folder", path, errno);
  struct stat about;
  if (::fstat(descriptor.get(), &about) != 0) return file_error("look at the folder", path, errno);
  if (const std::string why = why_not_private(about); !why.empty()) return not_private(path, why);
  return PrivateFolder(path, std::move(descriptor));
}

Result<std::shared_ptr<const PrivateFile>> PrivateFolder::read(const std::string& name) const {
  const std::string path = str_cat(path_, "/", name);
  Descriptor descriptor(::openat(descriptor_.get(), name.c_str(), reading_flags() | O_NOFOLLOW));
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
  return write(name, std::span(&bytes, 1));
}

Status PrivateFolder::write(const std::string& name, std::span<const std::span<const std::byte>> pieces) const {
  return replace_in(descriptor_, name, pieces, 0600, str_cat(path_, "/", name));
}

Result<std::vector<PrivateFolder::Entry>> PrivateFolder::list() const {
  // Its own description of the folder: the position in it is shared by all that were duplicated.
  Descriptor again(::openat(descriptor_.get(), ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!again.valid()) return file_error("list the folder", path_, errno);
  const std::unique_ptr<DIR, int (*)(DIR*)> open(::fdopendir(again.get()), ::closedir);
  if (!open) return file_error("list the folder", path_, errno);
  static_cast<void>(again.release());  // closedir() closes it
  std::vector<Entry> entries;
  for (;;) {
    errno = 0;  // which alone tells the end from an error
    const dirent* entry = ::readdir(open.get());
    if (!entry && errno) return file_error("list the folder", path_, errno);
    if (!entry) break;
    struct stat about;
    if (::fstatat(descriptor_.get(), entry->d_name, &about, AT_SYMLINK_NOFOLLOW) != 0 || !S_ISREG(about.st_mode)) {
      continue;  // gone meanwhile, or none of ours
    }
    entries.push_back({entry->d_name, about.st_size, about.st_mtim});
  }
  return entries;
}

void PrivateFolder::remove(const std::string& name) const {
  ::unlinkat(descriptor_.get(), name.c_str(), 0);
}

}  // namespace pinnace
