// open, fstat, mmap.
#include "base/files/mapped_file.h"

#include "base/files/open_file.h"

#include <fcntl.h>
#include <string.h>  // NOLINT: strerror_r is POSIX, not C++
#include <sys/mman.h>
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
  PINNACE_ASSIGN(RegularFile file, open_regular(path));
  const std::shared_ptr<MappedFile> made(new MappedFile(nullptr, 0, -1));  // which unmaps whatever fails from here on
  PINNACE_ASSIGN(made->data_, map_file(file, path));
  made->size_ = static_cast<size_t>(file.bytes);
  made->descriptor_ = file.descriptor.release();
  return std::shared_ptr<const MappedFile>(made);
}

Result<std::shared_ptr<const MappedFile>> MappedFile::of_descriptor(int descriptor, int64_t offset, int64_t size,
                                                                    const std::string& name) {
  Descriptor own(::fcntl(descriptor, F_DUPFD_CLOEXEC, 0));
  if (!own.valid()) return file_error("duplicate", name, errno);
  PINNACE_ASSIGN(RegularFile file, regular_file(std::move(own), name));
  const int64_t whole = file.bytes;
  const bool inside = offset >= 0 && offset <= whole;
  if (inside && size == -1) size = whole - offset;
  if (!inside || size < 0 || size > whole - offset) {
    return invalid("bytes from ", offset, " on, ", size, " of them, are not inside '", name, "', which has ", whole);
  }
  const int64_t before = offset % ::sysconf(_SC_PAGESIZE);
  file.bytes = size == 0 ? 0 : before + size;
  const std::shared_ptr<MappedFile> made(new MappedFile(nullptr, 0, -1));
  PINNACE_ASSIGN(made->data_, map_file(file, name, offset - before));
  made->size_ = static_cast<size_t>(file.bytes);
  made->before_ = size == 0 ? 0 : static_cast<size_t>(before);
  if (size == whole) made->descriptor_ = file.descriptor.release();
  return std::shared_ptr<const MappedFile>(made);
}

Result<const std::byte*> map_file(const RegularFile& file, const std::string& path, int64_t offset) {
  if (file.bytes == 0) return static_cast<const std::byte*>(nullptr);
  const auto size = static_cast<size_t>(file.bytes);
  void* mapping = ::mmap(nullptr, size, PROT_READ, MAP_PRIVATE, file.descriptor.get(), offset);
  if (mapping == MAP_FAILED) return file_error("map", path, errno);
#if defined(MADV_NOHUGEPAGE)
  ::madvise(mapping, size, MADV_NOHUGEPAGE);  // a wish
#endif
  return static_cast<const std::byte*>(mapping);
}

MappedBytes::~MappedBytes() {
  if (!bytes_.empty()) ::munmap(const_cast<std::byte*>(bytes_.data()), bytes_.size());
}

Result<std::shared_ptr<const MappedBytes>> MappedBytes::of(const RegularFile& file, const std::string& path) {
  const std::shared_ptr<MappedBytes> made(new MappedBytes({}));
  PINNACE_ASSIGN(const std::byte* const data, map_file(file, path));
  made->bytes_ = {data, static_cast<size_t>(file.bytes)};
  return std::shared_ptr<const MappedBytes>(made);
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
