// open, then fstat of what was opened.
#include "base/files/open_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>
#include <cerrno>

#include "base/files/mapped_file.h"

namespace pinnace {

Descriptor::~Descriptor() {
  if (fd_ >= 0) ::close(fd_);
}

namespace {
Status not_regular(const std::string& path, const char* what) {
  return std::move(Status(Code::kFile, str_cat("cannot open '", path, "': it is ", what)).with_rule(kNotRegular));
}
}  // namespace

int reading_flags() {
  return O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY;
}

Result<RegularFile> regular_file(Descriptor descriptor, const std::string& path) {
  struct stat about;
  if (::fstat(descriptor.get(), &about) != 0) return file_error("read the size of", path, errno);
  if (!S_ISREG(about.st_mode)) return not_regular(path, S_ISDIR(about.st_mode) ? "a directory" : "not a regular file");
  return RegularFile{std::move(descriptor), static_cast<int64_t>(about.st_size)};
}

Result<RegularFile> open_regular(const std::string& path) {
  if (path.find('\0') != std::string::npos) return Status(Code::kFile, "cannot open a path that holds a NUL character");
  Descriptor descriptor(::open(path.c_str(), reading_flags()));
  if (!descriptor.valid()) {
    // What a socket, or a device without a driver, answers.
    if (errno == ENXIO || errno == ENODEV) return not_regular(path, "not a regular file");
    return file_error("open", path, errno);
  }
  return regular_file(std::move(descriptor), path);
}

}  // namespace pinnace
