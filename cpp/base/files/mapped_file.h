// MappedFile: a regular file's bytes, mapped read-only. It stays open, so that drivers can map them too, and keeps its
// bytes also when another file takes its name.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>

#include "base/status.h"

namespace pinnace {

class MappedFile {
 public:
  /// Maps the whole file. kFile, with path and the system's reason: it cannot be opened, is not a regular file, or
  /// cannot be mapped. An empty file gives no bytes. Whoever shortens the file while it is mapped makes reads beyond
  /// its new end fatal: files are to be replaced, never rewritten.
  static Result<std::shared_ptr<const MappedFile>> open(const std::string& path);
  /// The same of a part of a file that is open for reading, `size` bytes from `offset` on; -1: to its end. The
  /// descriptor is duplicated. kInvalidArgument: the part is not inside the file. `name` is the file's in messages.
  static Result<std::shared_ptr<const MappedFile>> of_descriptor(int descriptor, int64_t offset, int64_t size,
                                                                 const std::string& name);
  ~MappedFile();
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;

  /// A whole file starts at a page boundary, a part of one as far from one as in the file.
  std::span<const std::byte> bytes() const { return {data_ + before_, size_ - before_}; }
  /// Open for reading as long as this lives; who needs it for longer duplicates it. -1 if the bytes are a
  /// part of the file.
  int descriptor() const { return descriptor_; }

 private:
  MappedFile(const std::byte* data, size_t size, int descriptor) : data_(data), size_(size), descriptor_(descriptor) {}
  const std::byte* data_;
  size_t size_;  ///< of the mapping
  int descriptor_;
  size_t before_ = 0;  ///< what is mapped before the part, from the page boundary on
};

/// A wish for large pages where these bytes lie, before they are read; for what is read often. A mapped file has small
/// ones elsewhere: one byte of it would bring 2 MiB into the process.
void prefer_large_pages(std::span<const std::byte> bytes);

/// kFile "cannot <verb> '<path>': No such file or directory (errno 2)".
Status file_error(std::string_view verb, const std::string& path, int error);

}  // namespace pinnace
