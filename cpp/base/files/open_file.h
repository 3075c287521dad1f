// Opening files whose paths come from users and from files: only regular files are accepted, and nothing waits.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <utility>

#include "base/status.h"

namespace pinnace {

/// An open file that closes itself; moves, does not copy.
class Descriptor {
 public:
  Descriptor() = default;
  explicit Descriptor(int fd) : fd_(fd) {}
  Descriptor(Descriptor&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  Descriptor& operator=(Descriptor&& other) noexcept {
    std::swap(fd_, other.fd_);
    return *this;
  }
  ~Descriptor();
  int get() const { return fd_; }
  bool valid() const { return fd_ >= 0; }
  int release() { return std::exchange(fd_, -1); }

 private:
  int fd_ = -1;
};

struct RegularFile {
  Descriptor descriptor;
  int64_t bytes = 0;
};

/// Flags with which every file is opened for reading: a FIFO would otherwise wait for a writer before it can be
/// refused, a terminal would become the process's own.
int reading_flags();

/// The rule of statuses that say that what has the path is no regular file; others say why it could not be opened.
inline constexpr const char* kNotRegular = "not_regular";

/// Opens a regular file for reading; links are followed. kFile, with path and the system's reason, for what cannot be
/// opened and for everything else that has a path: directories, pipes, devices, sockets. The type is that of what was
/// opened, so that it does not matter what takes the path's name meanwhile.
Result<RegularFile> open_regular(const std::string& path);
/// The check alone, for a descriptor; `path` is for the sentence.
Result<RegularFile> regular_file(Descriptor descriptor, const std::string& path);

/// Maps the whole file read-only; null for an empty one. kFile. Whoever shortens a file while it is mapped makes reads
/// beyond its new end fatal: files are to be replaced, never rewritten. `offset`, of whole pages: file.bytes are those
/// from there on.
Result<const std::byte*> map_file(const RegularFile& file, const std::string& path, int64_t offset = 0);

/// The bytes of a mapped file that is closed already: for models of more files than a process may have open.
class MappedBytes {
 public:
  static Result<std::shared_ptr<const MappedBytes>> of(const RegularFile& file, const std::string& path);
  ~MappedBytes();
  MappedBytes(const MappedBytes&) = delete;
  MappedBytes& operator=(const MappedBytes&) = delete;
  /// Starts at a page boundary.
  std::span<const std::byte> bytes() const { return bytes_; }

 private:
  explicit MappedBytes(std::span<const std::byte> bytes) : bytes_(bytes) {}
  std::span<const std::byte> bytes_;
};

}  // namespace pinnace
