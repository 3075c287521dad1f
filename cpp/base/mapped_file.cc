// open, fstat, mmap.
#include "base/mapped_file.h"

#include <fcntl.h>
#include <string.h>  // NOLINT: strerror_r is POSIX, not C++
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#include <cerrno>

namespace pinnace {
namespace {
// strerror_r has two forms: GNU's gives the text, POSIX's a number beside the filled buffer.
[[maybe_unused]] const char* error_text(const char* text, const char*) {
  return text;
}
[[maybe_unused]] const char* error_text(int failed, const char* buffer) {
  return failed ? "unknown error" : buffer;
}
}  // namespace

Status file_error(std::string_view verb, const std::string& path, int error) {
  char buffer[256] = {};
  const char* reason = error_text(strerror_r(error, buffer, sizeof buffer), buffer);
  return Status(error == ENOMEM ? Code::kOutOfMemory : Code::kFile,
                str_cat("cannot ", verb, " '", path, "': ", reason, " (errno ", error, ")"));
}

Result<std::shared_ptr<const MappedFile>> MappedFile::open(const std::string& path) {
  if (path.find('\0') != std::string::npos) return Status(Code::kFile, "cannot open a path that holds a NUL character");
  const std::shared_ptr<MappedFile> made(
      new MappedFile(nullptr, 0, -1));  // which closes and unmaps, whatever fails from here on
  // O_NONBLOCK: a FIFO would otherwise wait for a writer before it can be refused.
  const int fd = made->descriptor_ = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (fd < 0) return file_error("open", path, errno);
  struct stat about;
  if (::fstat(fd, &about) != 0) return file_error("read the size of", path, errno);
  if (!S_ISREG(about.st_mode)) {
    return Status(Code::kFile, str_cat("cannot open '", path, "': ",
                                       S_ISDIR(about.st_mode) ? "it is a directory" : "it is not a regular file"));
  }
  const auto size = static_cast<size_t>(about.st_size);
  if (size > 0) {
    void* mapping = ::mmap(nullptr, size, PROT_READ, MAP_PRIVATE, fd, 0);
    if (mapping == MAP_FAILED) return file_error("map", path, errno);
#if defined(MADV_NOHUGEPAGE)
    ::madvise(mapping, size, MADV_NOHUGEPAGE);  // a wish
#endif
    made->data_ = static_cast<const std::byte*>(mapping);
    made->size_ = size;
  }
  return std::shared_ptr<const MappedFile>(made);
}

void prefer_large_pages(std::span<const std::byte> bytes) {
#if defined(MADV_HUGEPAGE)
  static const auto page = static_cast<uintptr_t>(::sysconf(_SC_PAGESIZE));
  const auto begin = reinterpret_cast<uintptr_t>(bytes.data());
  const uintptr_t first = begin / page * page, last = (begin + bytes.size() + page - 1) / page * page;
  ::madvise(const_cast<std::byte*>(bytes.data()) - (begin - first), last - first, MADV_HUGEPAGE);
#endif
}

MappedFile::~MappedFile() {
  if (data_) ::munmap(const_cast<std::byte*>(data_), size_);
  if (descriptor_ >= 0) ::close(descriptor_);
}

}  // namespace pinnace
