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
  ~MappedFile();
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;

  /// Starts at a page boundary.
  std::span<const std::byte> bytes() const { return {data_, size_}; }
  /// Open for reading as long as this lives; who needs it for longer duplicates it.
  int descriptor() const { return descriptor_; }

 private:
  MappedFile(const std::byte* data, size_t size, int descriptor) : data_(data), size_(size), descriptor_(descriptor) {}
  const std::byte* data_;
  size_t size_;
  int descriptor_;
};

/// A wish for large pages where these bytes lie, before they are read; for what is read often. A mapped file has small
/// ones elsewhere: one byte of it would bring 2 MiB into the process.
void prefer_large_pages(std::span<const std::byte> bytes);

/// kFile "cannot <verb> '<path>': No such file or directory (errno 2)".
Status file_error(std::string_view verb, const std::string& path, int error);

}  // namespace pinnace
